#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests examples/motion-scan:  scan_test.py [--unit]

Each part of the program has a class here. The tests on Ray are in scan_ray.py; --unit skips them. GStreamer must find
the plugin (GST_PLUGIN_PATH). Exit status: 0; 1 after a failure; 77 without Ray or the Python bindings of GStreamer.
"""
import base64
import concurrent.futures
import contextlib
import copy
import dataclasses
import datetime
import importlib.util
import io
import json
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import time
import unittest
import warnings
from unittest import mock

import programs
from programs import EXAMPLES
from scan_fixture import FOLDER, FOREVER, FRAMES, LIMIT, PROGRAM, Folder, make_clip, make_sound
programs.use("motion-scan")
import child  # noqa: E402
import clips  # noqa: E402
import cluster  # noqa: E402
import common  # noqa: E402
import page  # noqa: E402
import progress  # noqa: E402
import recorder  # noqa: E402
import tables  # noqa: E402
import uris  # noqa: E402


@contextlib.contextmanager
def unwarned():
    """Keeps warnings out of stderr: Python may warn at any time about things that earlier tests left open."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Discovery(Folder):
    def test_each_clip_is_found_once(self):
        self.touch("a/1.avi")
        self.assertEqual(clips.discover(["a/1.avi", "./a/1.avi", "a", self.folder.joinpath("a/1.avi").as_uri()]),
                         ["a/1.avi"])

    def test_lists_hold_paths_uris_and_folders(self):
        self.touch("a/1.avi", "# 2 \\.avi", b"3\xff.avi")
        pathlib.Path("list").write_bytes(b"# 2 \\.avi\r\n\nhttp://host/x.mp4\na\n3\xff.avi\ngone.avi\n")
        expected = ["# 2 \\.avi", "http://host/x.mp4", "a/1.avi", "3\udcff.avi", "gone.avi"]
        self.assertEqual(clips.discover(["@list"]), expected)
        self.assertEqual(clips.discover([], ["list"]), expected)

    def test_wrong_paths_are_one_sentence(self):
        self.touch("empty/notes.txt", "nothing")
        pathlib.Path("nothing").write_text("\n")
        for arguments, text in ((["gone.avi"], "cannot read gone.avi: there is no such file"),
                                (["empty"], "there is no video in the folder empty; skipped: 1 file that is not a "
                                 "video .notes.txt"),
                                (["@gone"], "cannot read gone: No such file"),
                                (["@nothing"], "the list names no clip")):
            with self.assertRaisesRegex(common.Failure, text):
                clips.discover(arguments)

    def test_uris_of_odd_names(self):
        name = 'a "b" ! filesink location=x \udcff#?.avi'
        self.touch(name)
        clip = clips.clip_of(name, {})
        self.assertTrue(clip.uri.endswith("/a%20%22b%22%20%21%20filesink%20location%3Dx%20%FF%23%3F.avi"), clip.uri)
        self.assertEqual(uris.path_of(clip.uri), str(self.folder.resolve() / name))

    def test_names_are_distinct(self):
        given = [f"http://host/x?token={number}" for number in (1, 2)]
        first, second = clips.clips_of(given, {})
        self.assertEqual([first.name, second.name], ["http://host/x?token=***", "http://host/x?token=*** (2)"])
        self.assertEqual([first.uri, second.uri], given)
        self.assertEqual(first.key, clips.clip_of(given[0], {}).key)

    def test_file_uris_with_a_host(self):
        self.touch("a b.avi")
        uri = pathlib.Path("a b.avi").absolute().as_uri()
        with_host = uri.replace("file:///", "file://localhost/")
        self.assertEqual(clips.discover([with_host]), [str(self.folder / "a b.avi")])
        self.assertEqual(clips.clip_of(with_host, {}).uri, uri)
        self.assertEqual(clips.clip_of(with_host, {}).key, clips.clip_of("a b.avi", {}).key)


class Keys(Folder):
    def key(self, location, **settings):
        return clips.clip_of(location, settings).key

    def test_a_key_is_of_path_size_time_and_settings(self):
        self.touch("1.avi", "2.avi")
        for name in "1.avi", "2.avi":
            os.utime(name, ns=(5, 5))
        first = self.key("1.avi", preset="outdoor")
        self.assertEqual(first, self.key("./1.avi", preset="outdoor"))
        self.assertNotEqual(first, self.key("2.avi", preset="outdoor"))
        self.assertNotEqual(first, self.key("1.avi", preset="indoor"))
        self.assertEqual(first, clips.clip_of("1.avi", {"preset": "outdoor"}, {}).key)
        self.assertNotEqual(first, clips.clip_of("1.avi", {"preset": "outdoor"}, {"part": {"start": "5.0"}}).key)
        os.utime("1.avi", ns=(5, 6))
        self.assertNotEqual(first, self.key("1.avi", preset="outdoor"))
        pathlib.Path("1.avi").write_text("xx")
        os.utime("1.avi", ns=(5, 5))
        self.assertNotEqual(first, self.key("1.avi", preset="outdoor"))

    def test_settings(self):
        self.assertEqual(clips.settings_of([]), {"preset": "outdoor"})
        self.assertEqual(clips.settings_of(["min_area=4", "preset=indoor", "min-area=5", "zones=a: 0,0 1,0 1,1=x"]),
                         {"preset": "indoor", "min-area": "5", "zones": "a: 0,0 1,0 1,1=x"})
        for text in ("preset", "=x", "output=mask", "post-messages=false", "a b=c"):
            with self.assertRaises(ValueError):
                clips.settings_of([text])

    def test_shards_hold_each_clip_once(self):
        names = [f"{number}.avi" for number in range(400)]
        parts = [[name for name in names if clips.in_shard(name, (index, 3))] for index in range(3)]
        self.assertEqual(sorted(sum(parts, [])), sorted(names))
        self.assertTrue(all(90 < len(part) < 180 for part in parts), [len(part) for part in parts])
        more = [name for name in names + ["new.avi"] if clips.in_shard(name, (1, 3))]
        self.assertEqual([name for name in more if name != "new.avi"], parts[1])
        self.assertEqual(clips.shard_of("2/3"), (2, 3))
        for text in ("3/3", "-1/3", "1", "1/0", "a/b", "1/2/3"):
            with self.assertRaises(ValueError):
                clips.shard_of(text)

    def test_resuming(self):
        self.touch("1.avi", "2.avi", "3.avi", "4.avi")
        every = [clips.clip_of(f"{number}.avi", {}) for number in (1, 2, 3, 4)]
        results = clips.Results("out")
        results.prepare()
        results.write(every[0], {"status": "ok"})
        results.write(every[1], {"status": "failed", "error": "x"})
        results.file(every[2]).write_text('{"status": "o')  # incomplete
        self.assertEqual(results.missing(every), every[2:])
        self.assertEqual(results.missing(every, repeat_failed=True), every[1:])
        self.assertEqual(results.read(every[1]),
                         {"clip": "2.avi", "key": every[1].key, "status": "failed", "error": "x"})
        os.utime("1.avi", ns=(5, 5))
        self.assertEqual(len(results.missing([clips.clip_of("1.avi", {})])), 1)

    def test_a_byte_0_in_a_name(self):
        """No file can have such a name: the clip fails later, and the others continue."""
        self.assertEqual(clips.clip_of("file:///a%00b", {}).uri, "file:///a%00b")
        pathlib.Path("list").write_bytes(b"a\0b\nfile:///a%00b\n")
        self.assertEqual(len(clips.clips_of(clips.discover([], ["list"]), {})), 2)

    def test_files_that_are_no_results(self):
        """They count as missing, so their clips are analysed again. The tables and the page could not use them."""
        clip, results = clips.clip_of("1.avi", {}), clips.Results("out")
        results.prepare()
        second = {"second": 0, "frames": 20, "motion_frames": 3, "brightness": None}
        good = {"status": "ok", "error": "cannot read \udcff.avi", "frames": 40, "motion_frames": 3,
                "profile": [second],
                "events": [{"event": "motion", "begin": 0.1, "end": 1, "duration": 0.9, "picture": None}],
                "objects": []}
        results.file(clip).write_text(json.dumps(good))
        self.assertEqual(results.read(clip), good)
        self.assertEqual(tables.row_of(clip, good, 1)["error"], "cannot read \\xff.avi")
        for wrong in ({"profile": 5}, {"profile": [5]}, {"profile": [{}]}, {"profile": [{**second, "frames": 2**31}]},
                      {"profile": [{**second, "brightness": "dark"}]}, {"events": [{}]}, {"objects": [{"id": True}]},
                      {"frames": None}, {"frames": 1.5}, {"width": 2**40}, {"duration": "long"}, {"duration": 10**400},
                      {"complete": 1}, {"error": 5},
                      {"error": "\ud800"}, {"backend": "\ud800"}, {"status": "fine"}, {"status": []}):
            results.file(clip).write_text(json.dumps({**good, **wrong}))
            self.assertIsNone(results.read(clip), wrong)
        results.file(clip).write_text(json.dumps({"status": "ok", "frames": 40}))
        self.assertIsNone(results.read(clip))
        for text in ("[]", "5", "[" * 100000, '{"status": "ok"' + "[" * 100000, ""):
            results.file(clip).write_text(text)
            self.assertIsNone(results.read(clip), text[:20])

    def test_what_is_left_to_cut(self):
        self.touch("a b/1 ü?.avi")
        clip = clips.clip_of("a b/1 ü?.avi", {})
        results, options = clips.Results("out"), {"of": "motions", "before": 2.0, "after": 2.0}
        results.prepare(True)
        self.assertIsNone(results.cut_request(clip, options))
        motion, visit = ({"event": "motion", "begin": 1.0, "end": 2.0, "duration": 1.0},
                         {"id": 7, "entered": 1.5, "left": 2.5})
        results.write(clip, {"status": "ok", "events": [{"event": "light", "begin": 0, "end": 0, "duration": 0},
                                                        motion], "objects": [visit]})
        self.assertIsNone(results.cut_request(clip, None))
        request = results.cut_request(clip, options)
        folder = f"1_ü_{clip.key[:8]}"
        self.assertEqual(request, {"events": [[1.0, 2.0, None]], "folder": str(self.folder / "out/clips" / folder),
                                   "before": 2.0, "after": 2.0, "joined": False})
        row = {"file": "a.mkv", "begin_s": 0.0, "end_s": 3.0, "event_begin_s": 1.0, "event_end_s": 2.0,
               "begin_clock": "", "object": ""}
        results.write_cut(clip, options, request, {"error": None, "rows": [row], "remark": "no sound"})
        written = results.read(clip)
        self.assertEqual([event.get("cut") for event in written["events"]], [None, row])
        self.assertEqual(written["cut"], {**options, "folder": folder, "error": None, "remark": "no sound"})
        self.assertIsNone(results.cut_request(clip, options))  # it is done
        self.assertEqual(results.cut_request(clip, {**options, "of": "joined"}), {**request, "joined": True})
        for place, wrong in [("rows", {"file": "../a.mkv"}), ("rows", {"begin_s": None}), ("rows", {"object": "7"}),
                             ("cut", {"folder": ".."}), ("cut", {"remark": 5}), ("cut", {"error": []})]:
            changed = copy.deepcopy(written)
            (changed["cut"] if place == "cut" else changed["events"][1]["cut"]).update(wrong)
            results.file(clip).write_text(json.dumps(changed))
            self.assertIsNone(results.read(clip), wrong)
        results.file(clip).write_text(json.dumps(written))
        other = {**options, "of": "visits"}
        request = results.cut_request(dataclasses.replace(clip, name="other"), other)
        self.assertEqual((request["events"], pathlib.Path(request["folder"]).name), ([[1.5, 2.5, 7]], folder))
        results.write_cut(clip, other, request, {"error": "crashed"})
        written = results.read(clip)
        self.assertNotIn("cut", written["events"][1] | written["objects"][0])
        self.assertIsNone(results.cut_request(clip, other))
        self.assertTrue(results.cut_request(clip, other, repeat_failed=True))
        results.write(clip, {"status": "ok", "events": [], "objects": []})
        self.assertIsNone(results.cut_request(clip, options))  # there is nothing to cut


class Rows(unittest.TestCase):
    """The rows that recorder.py makes from messages."""

    def test_a_last_frame_without_a_duration(self):
        """The last frame lasts as long as the step from the previous one, so that a clip of few frames is not shorter
        than its container says."""
        for duration, count, end in ((common.Gst.CLOCK_TIME_NONE, 1, 30), (common.Gst.CLOCK_TIME_NONE, 2, 25),
                                     (10**9, 1, 21)):
            rows = recorder.Recorder(None)
            for seconds, event in (0, "none"), (10, "none"), (20, "light"), (20, "none"):
                rows.on_motion(common.Gst.Structure.from_string(
                    f"cudadiff, event=(string){event}, stream-time=(guint64){seconds * 10**9}, "
                    f"duration=(guint64){duration}, frames=(guint64){count}, motion-frames=(guint64)0, "
                    "changed-ratio=(double)0, changed-mean=(double)0, changed-max=(double)0")[0])
            self.assertEqual(rows.result()["duration"], end)


class Child(Folder):
    """A worker and its analyse.py."""

    def setUp(self):
        super().setUp()
        self.worker = child.Worker()

    def tearDown(self):
        if self.worker.process:
            self.worker.process.close()
        super().tearDown()

    @staticmethod
    def request(name, timeout=FOREVER, **settings):
        return {"uri": name and clips.clip_of(name, {}).uri, "settings": {"preset": "outdoor", **settings},
                "backend": "auto", "timeout": timeout, "threads": 1}

    def analyse(self, name, **options):
        return self.worker.analyse(self.request(name, **options))

    def test_a_clip(self):
        make_clip("1.avi")
        result = self.analyse("1.avi", zones="all: 0.0,0.0 1.0,0.0 1.0,1.0 0.0,1.0")
        expected = {"status": "ok", "error": None, "frames": FRAMES, "width": 160, "height": 120}
        self.assertEqual({key: result[key] for key in expected}, expected)
        self.assertAlmostEqual(result["duration"], FRAMES / 20, 3)
        self.assertEqual([row["second"] for row in result["profile"]], [0, 1])
        self.assertEqual([row["frames"] for row in result["profile"]], [20, 20])
        self.assertEqual(sum(row["motion_frames"] for row in result["profile"]), result["motion_frames"])
        for row in result["profile"]:
            self.assertTrue(0 < row["brightness"] < 50 and row["dark"] <= row["brightness"] <= row["bright"], row)
        self.assertGreaterEqual(len(result["objects"]), 1)
        (motion,) = result["events"]
        self.assertEqual((motion["event"], motion["objects"]),
                         ("motion", len({visit["id"] for visit in result["objects"]})))
        self.assertTrue(0 < motion["begin"] < 0.5 and motion["end"] == FRAMES / 20, motion)
        self.assertAlmostEqual(motion["duration"], motion["end"] - motion["begin"])
        self.assertTrue(base64.b64decode(motion["picture"]).startswith(b"\xff\xd8"))
        self.assertIs(result["complete"], True)
        for visit in result["objects"]:
            self.assertEqual(visit["zone"], "all")
            self.assertTrue(0 <= visit["entered"] <= visit["left"] <= FRAMES / 20)

    def test_the_files_that_are_sent_are_enough(self):
        """A node has nothing of this source tree except the files that --address sends."""
        make_clip("1.avi")
        node = self.folder / "place" / "node"
        node.mkdir(parents=True)
        for file in cluster.CODE:
            shutil.copy(file, node)
        code = ("import json, sys, child; "
                "json.dump([child.Worker().analyse(json.load(sys.stdin)), child.__file__, sys.path], sys.stdout)")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        done = subprocess.run([sys.executable, "-B", "-c", code], cwd=node, input=json.dumps(self.request("1.avi")),
                              env=environment, stdout=subprocess.PIPE, text=True, check=True)
        result, file, paths = json.loads(done.stdout)
        self.assertEqual((result["status"], result["error"], result.get("frames")), ("ok", None, FRAMES))
        self.assertEqual(file, str(node / "child.py"))
        self.assertFalse([path for path in paths if str(EXAMPLES) in path])

    def test_failures_of_clips(self):
        self.touch("text.avi")
        make_sound("sound.wav")
        for name, text in (("text.avi", "."), ("sound.wav", "there is no video in it"), ("gone.avi", ".")):
            result = self.analyse(name)
            self.assertEqual(result["status"], "failed")
            self.assertRegex(result["error"], text)
            self.assertNotIn(str(self.folder), result["error"])

    def test_failures_of_settings(self):
        for settings, text in (({"no-such": "1"}, "no such property or value: no-such=1"),
                               ({"preset": "x"}, "preset=x"), ({"zones": "a: 0,0"}, "zones")):
            result = self.analyse(None, **settings)
            self.assertEqual(result["status"], "setup")
            self.assertIn(text, result["error"])
        self.assertEqual(self.analyse(None)["status"], "ok")

    def test_endless_clips_end_and_keep_what_was_found(self):
        os.mkfifo("endless.mkv")
        result, timeout = {"frames": 0}, 1
        while not result.get("frames"):  # a busy machine needs longer to see the first frame
            # GStreamer opens a file, closes it and opens it again. Without this reader, the writer would meanwhile die
            # of SIGPIPE. Data left in the FIFO disappears with the reader.
            reader = os.open("endless.mkv", os.O_RDONLY | os.O_NONBLOCK)
            writer = subprocess.Popen(["gst-launch-1.0", "-q", "videotestsrc", "pattern=ball", "!",
                                       "video/x-raw,width=160,height=120,framerate=20/1", "!", "jpegenc", "!",
                                       "matroskamux", "streamable=true", "!", "filesink", "location=endless.mkv"],
                                      stderr=subprocess.DEVNULL)
            try:
                with mock.patch.object(child, "GRACE", LIMIT):
                    result, timeout = self.analyse("endless.mkv", timeout=timeout), 2 * timeout
                ended = writer.poll()
            finally:
                writer.kill()
                writer.wait()
                os.close(reader)
            self.assertEqual(result["status"], "timeout",
                             f"the writer ended with {ended}" if ended is not None else result["error"])
        self.assertEqual(sum(row["frames"] for row in result["profile"]), result["frames"])
        os.mkfifo("silent.mkv")
        with mock.patch.object(child, "GRACE", 1):
            result = self.analyse("silent.mkv", timeout=1)
        self.assertEqual(result["status"], "timeout")
        self.assertIn("had to be killed", result["error"])

    def test_a_crash_is_told(self):
        pathlib.Path("analyse.py").write_text(
            "import os, sys\nprint('x: bad things', file=sys.stderr)\nos.kill(os.getpid(), 11)\n")
        with mock.patch.object(child, "PROGRAM", self.folder / "analyse.py"):
            result = self.analyse(None)
        self.assertEqual((result["status"], result["error"]),
                         ("crashed", "the process was ended by SIGSEGV: x: bad things"))

    def test_a_process_that_did_not_read_its_request_is_closed(self):
        pathlib.Path("analyse.py").write_text("import os\nos.close(0)\nos._exit(3)\n")
        with mock.patch.object(child, "PROGRAM", self.folder / "analyse.py"):
            process = child.Process({})
        process.process.wait()
        process.process.stdin.write(b"a request that stays in the buffer")
        process.close()

    def test_a_worker_takes_clip_after_clip(self):
        make_clip("1.avi")
        make_clip("2.avi", frames=10)
        self.touch("text.avi")
        results = [self.analyse(name) for name in ("1.avi", "text.avi")]
        process = self.worker.process
        opened = len(os.listdir(f"/proc/{process.process.pid}/fd"))
        with concurrent.futures.ThreadPoolExecutor() as pool:  # then two at a time
            results += pool.map(self.analyse, ("1.avi", "2.avi"))
        self.assertIs(self.worker.process, process)
        self.assertEqual([result["frames"] for result in results], [FRAMES, 0, FRAMES, 10])
        for key in ("profile", "events", "objects"):
            self.assertEqual(results[0][key], results[2][key])
        for _ in range(10):
            self.analyse("2.avi")
        # Pipelines and their two files are gone soon after their clips.
        ends = time.monotonic() + LIMIT
        while len(os.listdir(f"/proc/{process.process.pid}/fd")) >= opened + 10:
            self.assertLess(time.monotonic(), ends, "files stay open")
            time.sleep(0.05)
        self.assertEqual(self.worker.analyse(self.request(None), alone=True)["status"], "ok")
        self.assertIs(self.worker.process, process)

    def test_a_crash_ends_the_clips_beside_it_and_no_others(self):
        os.mkfifo("silent.mkv")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            beside = pool.submit(self.analyse, "silent.mkv")
            while not self.worker.process or not self.worker.process.waiting:
                time.sleep(0.01)
            killed = self.worker.process.process
            killed.kill()
            self.assertEqual(beside.result()["status"], "crashed")
        make_clip("1.avi")
        self.assertEqual(self.analyse("1.avi")["frames"], FRAMES)
        self.assertIsNot(self.worker.process.process, killed)

    def test_a_process_ends_with_its_worker(self):
        os.mkfifo("silent.mkv")
        with concurrent.futures.ThreadPoolExecutor() as pool:
            self.assertEqual(self.analyse(None)["status"], "ok")
            pool.submit(self.analyse, "silent.mkv")
            while not self.worker.process.waiting:
                time.sleep(0.01)
            self.worker.process.close()  # as the system does when the worker is killed
            self.worker.process.process.wait()

    def cut(self, name, *events, folder="cut", before=0.5, after=0.5, joined=False):
        return self.worker.analyse({"uri": clips.clip_of(name, {}).uri, "timeout": FOREVER, "threads": 1, "cut": {
            "events": events, "folder": str(self.folder / folder), "before": before, "after": after,
            "joined": joined}})

    def test_events_are_cut_out(self):
        make_clip("1.avi")
        result = self.cut("1.avi", [0.65, 1.0, None], [1.2, 1.5, 7])
        self.assertEqual((result["status"], result["error"], result["remark"]), ("ok", None, ""))
        self.assertEqual([(row["file"], row["begin_s"], row["end_s"], row["object"]) for row in result["rows"]],
                         [("00h00m00.1s_0001.mkv", 0.15, 1.5, ""), ("00h00m00.7s_0002_object-7.mkv", 0.7, 2.0, 7)])
        files = [row["file"] for row in result["rows"]]
        self.assertEqual(sorted(os.listdir("cut")), sorted(files + ["clips.csv", "clips.edl", "clips.json"]))
        self.assertEqual([self.analyse(f"cut/{file}")["frames"] for file in files], [27, 26])
        # Another call with other events removes the earlier clips.
        again = self.cut("1.avi", [0.6, 1.0, None], before=0, after=0)
        self.assertEqual(sorted(os.listdir("cut")), sorted([again["rows"][0]["file"], "clips.csv", "clips.edl",
                                                     "clips.json"]))
        # The clips as one file.
        both = self.cut("1.avi", [0.3, 0.5, None], [1.5, 1.7, None], before=0, after=0, joined=True)
        self.assertEqual((both["error"], both["remark"], len(both["rows"])), (None, "", 2))
        self.assertEqual(self.analyse("cut/all-motions.mkv")["frames"],
                         sum(self.analyse(f"cut/{row['file']}")["frames"] for row in both["rows"]))

    def test_the_time_of_the_day(self):
        make_clip("1.mkv", muxer="matroskamux")
        make_clip("1.avi")
        import clip_facts
        began = clip_facts.facts_of("1.mkv").began
        result = self.analyse("1.mkv")
        self.assertEqual(result["began"], began.isoformat())
        self.assertIsNone(self.analyse("1.avi")["began"])
        rows = tables.with_files(result, [{"begin": 1.5}, {"entered": 3600}])
        self.assertEqual([datetime.datetime.fromisoformat(row.get("begin_clock") or row["entered_clock"]) - began
                          for row in rows], [datetime.timedelta(seconds=1.5), datetime.timedelta(hours=1)])
        for wrong in None, "", "x", 3:
            self.assertIsNone(tables.clock_of({"began": wrong} if wrong != 3 else None, 1))
        self.assertIsNone(tables.clock_of({"began": began.isoformat()}, 1e30))

    def test_what_cannot_be_cut_is_a_sentence(self):
        self.touch("text.avi")
        os.mkdir("folder")
        os.mkfifo("fifo.mkv")
        for name, text in (("text.avi", "there is no video in it"), ("gone.avi", "it is not a file"),
                           ("fifo.mkv", "it is not a file"), ("http://host/x.mp4", "it is not a file")):
            result = self.cut(name, [0, 1, None])
            self.assertEqual((result["status"], result["rows"]), ("failed", [{}]))
            self.assertIn(text, result["error"])
        programs.launch("videotestsrc num-buffers=5 ! video/x-raw,format=I420,width=64,height=48 ! avimux ! filesink "
                        "location=raw.avi")
        self.assertIn("video/x-raw in video/x-msvideo cannot be cut without encoding",
                      self.cut("raw.avi", [0, 1, None])["error"])
        make_clip("1.avi")
        self.touch("cut2")
        self.assertIn("cannot write to", self.cut("1.avi", [0, 1, None], folder="cut2")["error"])

    def test_a_machine_must_share_the_folder_of_the_clips(self):
        trial = self.request(None)
        results = clips.Results("out")
        results.prepare(True)
        with results.shared() as file:
            self.assertEqual(self.worker.analyse({**trial, "shared": file})["status"], "ok")
        result = self.worker.analyse({**trial, "shared": file})  # the folder is gone
        self.assertEqual(result["status"], "setup")
        self.assertIn(f"here {self.folder.resolve() / 'out/clips'} is not the folder of --out: it must be shared",
                      result["error"])
        self.assertEqual(os.listdir("out/clips"), [])

    def test_incomplete_clips(self):
        for name, muxer in (("1.mkv", "matroskamux"), ("1.mp4", "qtmux faststart=true"), ("1.avi", "avimux")):
            with self.subTest(name):
                make_clip(name, muxer=muxer)
                whole = self.analyse(name)
                self.assertEqual((whole["status"], whole["complete"], whole["frames"]), ("ok", True, FRAMES))
                os.truncate(name, os.path.getsize(name) * 2 // 5)
                half = self.analyse(name)
                self.assertIs(half["complete"], False)
                self.assertTrue(0 < half["frames"] < FRAMES, half)


class Retries(unittest.TestCase):
    """Tests what is retried, and how many times."""

    def tries(self, result, gone, retries):
        job = cluster.Job(None, {})
        return next(count for count in range(1, 100) if not job.again(result, gone, retries))

    def test_crashes_and_losses(self):
        self.assertEqual(self.tries({"status": "failed"}, False, 2), 1)
        crashed = {"status": "crashed"}
        # The first crash may be the fault of another clip in the process.
        self.assertEqual([self.tries(crashed, False, retries) for retries in (0, 1, 2)], [2, 2, 3])
        self.assertEqual(self.tries(crashed, True, 0), cluster.LOSSES + 1)
        job = cluster.Job(None, {})  # losses are not crashes
        self.assertTrue(all(job.again(crashed, gone, 1) for gone in (True, True, False)))
        self.assertFalse(job.again(crashed, False, 1))


class Defaults(unittest.TestCase):
    """Tests the number of workers, their share of a GPU, and the number of clips that each takes."""

    def test_workers_follow_the_machine(self):
        for found, arguments, expected in (
                ({"CPU": 2}, (None, None, True), (2, 0, 1)), ({"CPU": 16, "GPU": 1}, (None, None, True), (1, 1, 16)),
                ({"CPU": 64, "GPU": 2}, (None, None, True), (2, 1, 16)),
                ({"CPU": 8, "GPU": 1}, (4, None, True), (4, 1 / 4, 2)),
                ({"CPU": 8, "GPU": 2}, (3, 5, True), (3, 1 / 2, 5)),
                ({"CPU": 8, "GPU": 2}, (None, None, False), (8, 0, 1))):
            ray = mock.Mock(**{"cluster_resources.return_value": found})
            with (mock.patch.object(cluster, "load_ray", return_value=ray),
                  mock.patch.object(cluster.Cluster, "connect")):
                made = cluster.Cluster(None, *arguments, {})
            self.assertEqual((made.wanted, made.share, made.clips), expected, (found, arguments))


class Pages(Folder):
    """Tests the page and the progress."""
    rows = [{"clip": f"clips/{name}", "status": "ok", "complete": name != "b.avi", "error": None,
             "track": "", "incomplete": "2 of 12 frames <…>" if name == "b.avi" else "", "frames": 10,
             "motion_frames": 5, "duration": 1.0, "objects": 1, "first_motion": 0.0, "brightness": 50.0, "rate": 100.0,
             "cuts": 0, "links": [], "cut_remark": None, "pictures": [(0.5, f"pictures/{name[0]}-0.jpg")]}
            for name in ('a "x" #1.avi', "b.avi", "c.avi")]

    def test_the_page_shows_pictures_and_leads_to_reports(self):
        self.touch('reports/a "x" #1.avi/report.html', "reports/c.avi/report.webm")
        page.write(self.folder / "summary.html", self.rows, ["3 clips"])
        text = pathlib.Path("summary.html").read_text()
        self.assertEqual(re.findall('<a href="([^"]*)">', text),
                         ["reports/a%20%22x%22%20%231.avi/report.html",
                          *(f"pictures/{name}-0.jpg" for name in "abc")][:2]
                         + ["pictures/b-0.jpg", "pictures/c-0.jpg"])
        self.assertEqual(re.findall('src="([^"]*)"', text), [f"pictures/{name}-0.jpg" for name in "abc"])
        self.assertEqual(text.count("<td>incomplete: 2 of 12 frames &lt;…&gt;</td>"), 1)

    def test_the_page_leads_to_clips_of_events(self):
        page.write(self.folder / "summary.html", self.rows, ["3 clips"])
        self.assertNotIn('class="cuts"', pathlib.Path("summary.html").read_text())
        rows = [{**self.rows[0], "cuts": 102, "links": [(begin, f"clips/ü_1/{begin}.mp4") for begin in range(100)],
                 "cut_remark": "no <sound>"},
                *self.rows[1:]]
        page.write(self.folder / "summary.html", rows, ["3 clips"])
        text = pathlib.Path("summary.html").read_text()
        self.assertIn("<th><button>clips</button></th><th><button>remark</button></th>", text)
        self.assertIn('<td class="cuts" data-value="102"><details><summary>102</summary><a '
                      'href="clips/%C3%BC_1/0.mp4">0.0 s</a>', text)
        self.assertIn("<span>and 2 more</span></details></td><td>no &lt;sound&gt;</td>", text)
        self.assertEqual((text.count('class="cuts"'), text.count("<details>")), (3, 1))

    def test_the_lists_of_clips_of_events(self):
        row = {"file": "a.mp4", "begin_s": 0.5, "end_s": 3.0, "event_begin_s": 1.0, "event_end_s": 2.0,
               "begin_clock": "", "object": 7}
        result = {"objects": [{"id": 7, "cut": row}], "cut": {"folder": "clip_1"}}
        for given, names in ((("=x.mp4", result), ("y", {"events": []}), ("z", result)), ["=x.mp4", "z"]), ((), []):
            with contextlib.ExitStack() as stack:
                lists = tables.Lists(stack, self.folder)
                for each in given:
                    lists.add(*each)
            rows = json.loads(pathlib.Path("clips.json").read_text())
            self.assertEqual(rows, [{"clip": name, **row, "file": "clip_1/a.mp4"} for name in names])
            self.assertEqual(programs.rows_of("clips.csv"),
                             [{key: str(common.harmless(value)) for key, value in each.items()} for each in rows])

    def test_progress_is_a_line_in_a_log(self):
        said = io.StringIO()
        with (unwarned(), mock.patch("sys.stderr", said), mock.patch.object(progress, "EVERY", 0),
              progress.Progress(4) as shown):
            clip = clips.Clip("1.avi", "", "")
            shown.add(clip, {"status": "ok", "duration": 7200.0})
            shown.add(clip, {"status": "failed", "error": "bad", "duration": 0.0})
        summed = shown.sum()
        # Later time does not count.
        with mock.patch.object(progress.time, "monotonic", return_value=shown.began + 10**6):
            self.assertEqual(shown.sum(), summed)
        number = r"[\d.e+]+"
        self.assertRegex(said.getvalue(),
                         rf"^  1 of 4 clips, 2.00 h of video, {number} times real time, about {number} (s|min|h) left\n"
                         rf"1.avi: bad\n  2 of 4 clips, 1 failed, 2.00 h of video, {number} times real time, "
                         rf"about {number} \w+ left\n$")


class CommandLine(Folder):
    def run_program(self, *arguments, status):
        done = subprocess.run([sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_wrong_usage(self):
        self.touch("1.avi", "file")
        for arguments in ((), ("1.avi",), ("--out=out",), *(("1.avi", "--out=out", option) for option in (
                "--shard=2/2", "--set=preset", "--start=x", "--start-time=1:61", "--duration=0", "--min-event=-1",
                "--workers=0", "--timeout=0", "--no-such"))):
            self.assertEqual(len(self.run_program(*arguments, status=2).stderr.splitlines()), 1)
        for arguments in (("gone.avi", "--out=out"), (".git", "--out=out"), ("1.avi", "--out=file"),
                          ("1.avi", "--out=file/x")):
            self.assertEqual(len(self.run_program(*arguments, status=1).stderr.splitlines()), 1)
        self.assertIn("--clips-per-worker", self.run_program("--help", status=0).stdout)

    def test_a_part_in_the_command_line(self):
        parse = runpy.run_path(str(PROGRAM))["arguments"]
        self.assertEqual(parse(["x", "--out=out"]).chosen, {})
        self.assertEqual(parse(["x", "--out=out", "--start=00:01:00", "--duration=250", "--frame-skip=1",
                                "--min-event-length=2s"]).chosen,
                         {"part": {"start": "60.000000000", "duration": "250", "skip": "1"},
                          "min_event": "2.000000000"})

    def test_clips_of_events_in_the_command_line(self):
        parse = runpy.run_path(str(PROGRAM))["arguments"]
        for texts, kind in ((["--clips"], "motions"), (["--clips", "visits"], "visits"), (["--clips=visits"], "visits"),
                            (["--clips", "joined"], "joined"), ([], None)):
            for given in [*texts, "folder", "--out=out"], ["folder", "--out=out", *texts]:
                args = parse(given)
                self.assertEqual((args.clips, args.cut and args.cut["of"]), (["folder"], kind), given)
        self.assertEqual(parse(["--clips", "x", "--out=out", "--before=0", "--after=3.5"]).cut,
                         {"of": "motions", "before": 0.0, "after": 3.5})
        for wrong in "--clips=objects", "--before=-1", "--after=3601", "--before=x", "--after=nan":
            with self.assertRaises(SystemExit), unwarned(), mock.patch("sys.stderr", io.StringIO()) as said:
                parse(["x", "--out=out", wrong])
            self.assertEqual(len(said.getvalue().splitlines()), 1)

    def test_the_jobs_use_this_command_line(self):
        parse = runpy.run_path(str(PROGRAM))["arguments"]
        bin = self.folder / "python"
        bin.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        bin.chmod(0o755)
        script = FOLDER / "slurm.sh"
        command = re.search(r"^#   sbatch --array=0-7 \S*/slurm\.sh (.*)$", script.read_text(), re.M)[1].split()

        def run(**slurm):
            done = subprocess.run(["bash", str(script), *command], timeout=LIMIT, capture_output=True, text=True, env={
                **os.environ, "PYTHON": str(bin), "SLURM_ARRAY_TASK_COUNT": "8", "SLURM_CPUS_PER_TASK": "4",
                "SLURM_SUBMIT_DIR": str(EXAMPLES.parent), **slurm})
            return done.returncode, done.stdout.splitlines()

        status, said = run(SLURM_ARRAY_TASK_ID="2")
        self.assertEqual((status, said[0]), (0, str(PROGRAM)))
        args = parse(said[1:])
        self.assertEqual((args.clips, args.out, args.shard, args.workers), (["@list.txt"], "FOLDER", (2, 8), 4))
        self.assertEqual(args.settings, {"preset": "outdoor"})
        self.assertIsNone(parse(run(SLURM_ARRAY_TASK_ID="2", SLURM_GPUS_ON_NODE="1")[1][1:]).workers)
        self.assertEqual(run()[0], 2)
        try:
            import yaml
        except ImportError:
            self.skipTest("no PyYAML")
        job = yaml.safe_load((FOLDER / "kubernetes.yaml").read_text())
        self.assertEqual((job["apiVersion"], job["kind"], job["spec"]["completionMode"]),
                         ("batch/v1", "Job", "Indexed"))
        pod = job["spec"]["template"]["spec"]
        container = pod["containers"][0]
        args = parse([text.replace("$(JOB_COMPLETION_INDEX)", "7") for text in container["args"]])
        self.assertEqual(container["command"], ["motion-scan"])
        self.assertEqual(args.shard, (job["spec"]["completions"] - 1, job["spec"]["completions"]))
        self.assertEqual({mount["name"] for mount in container["volumeMounts"]},
                         {volume["name"] for volume in pod["volumes"]})
        mounted = [mount["mountPath"] for mount in container["volumeMounts"]]
        self.assertIn(args.clips[0], mounted)
        self.assertIn(args.out, mounted)


if __name__ == "__main__":
    unit, ray = "--unit" in sys.argv, importlib.util.find_spec("ray") is not None
    if ray and not unit:
        from scan_ray import Scan  # noqa: F401: its tests
    done = unittest.main(argv=sys.argv[:1], verbosity=2, exit=False).result
    if done.wasSuccessful() and not unit and not ray:
        print("skipped: no Ray (WITH=ray tests/run.sh installs it)")
        sys.exit(77)
    sys.exit(not done.wasSuccessful())
