#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests examples/motion-scan:  scan_test.py [--unit]

--unit leaves out the tests that run Ray. GStreamer must find the plugin (GST_PLUGIN_PATH). Exit status: 0; 1 after a failure; 77
without Ray or the Python bindings of GStreamer.
"""
import importlib
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest
from unittest import mock

sys.dont_write_bytecode = True
from scan_fixture import EXAMPLES, FOLDER, FOREVER, FRAMES, LIMIT, PROGRAM, Folder, make_clip, make_sound  # noqa: E402

sys.path[:0] = [str(FOLDER), str(EXAMPLES)]
try:
    import child
    import clips
    import cluster
    import common
    import uris
except (ImportError, ValueError) as error:
    print(f"skipped: no Python bindings of GStreamer ({error})")
    sys.exit(77)


def load(name, path):
    """A module from a file whose name has no `.py`."""
    spec = importlib.util.spec_from_loader(name, importlib.machinery.SourceFileLoader(name, str(path)))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Discovery(Folder):
    def test_folders_are_searched_for_videos(self):
        self.touch("a/2.MP4", "a/1.avi", "a/b/3.mkv", "a/notes.txt", "a/.hidden.avi", "a/.git/4.avi")
        self.assertEqual(clips.discover(["a"]), ["a/1.avi", "a/2.MP4", "a/b/3.mkv"])

    def test_each_clip_is_found_once(self):
        self.touch("a/1.avi")
        self.assertEqual(clips.discover(["a/1.avi", "./a/1.avi", "a", self.folder.joinpath("a/1.avi").as_uri()]), ["a/1.avi"])

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
                                (["empty"], "there is no video file in empty"),
                                (["@gone"], "cannot read gone: No such file"), (["@nothing"], "the list names no clip")):
            with self.assertRaisesRegex(common.Failure, text):
                clips.discover(arguments)

    def test_uris_of_odd_names(self):
        name = 'a "b" ! filesink location=x \udcff#?.avi'
        self.touch(name)
        clip = clips.clip_of(name, {})
        self.assertTrue(clip.uri.endswith("/a%20%22b%22%20%21%20filesink%20location%3Dx%20%FF%23%3F.avi"), clip.uri)
        self.assertEqual(uris.path_of(clip.uri), str(self.folder.resolve() / name))

    def test_names_hide_passwords(self):
        for uri in ("rtsp://me:secret@host/x", "rtsp://me:se@cret@host/x", "http://host/x", "http://host/a@b",
                    "http://host/x?user=me&password=secret"):
            self.assertNotIn("cret", clips.clip_of(uri, {}).name)
        self.assertEqual(clips.clip_of("http://host/a@b", {}).name, "http://host/a@b")
        self.assertEqual(clips.clip_of("rtsp://me:se@cret@host:554/x", {}).name, "rtsp://host:554/x")
        self.assertEqual(clips.clip_of("rtsp://me:se@cret@host:554/x", {}).uri, "rtsp://me:se%40cret@host:554/x")

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
        os.utime("1.avi", ns=(5, 5))
        os.utime("2.avi", ns=(5, 5))
        first = self.key("1.avi", preset="outdoor")
        self.assertEqual(first, self.key("./1.avi", preset="outdoor"))
        self.assertNotEqual(first, self.key("2.avi", preset="outdoor"))
        self.assertNotEqual(first, self.key("1.avi", preset="indoor"))
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
        results.file(every[2]).write_text('{"status": "o')  # not whole
        self.assertEqual(results.missing(every), every[2:])
        self.assertEqual(results.missing(every, repeat_failed=True), every[1:])
        self.assertEqual(results.read(every[1]), {"clip": "2.avi", "key": every[1].key, "status": "failed", "error": "x"})
        os.utime("1.avi", ns=(5, 5))
        self.assertEqual(len(results.missing([clips.clip_of("1.avi", {})])), 1)


class Child(Folder):
    """analyse.py in a process of its own."""
    plugin = os.environ.get("GST_PLUGIN_PATH") or os.environ.get("GST_PLUGIN_PATH_1_0")

    def analyse(self, name, timeout=FOREVER, **settings):
        return child.analyse({"uri": name and clips.clip_of(name, {}).uri, "settings": {"preset": "outdoor", **settings},
                              "backend": "auto", "timeout": timeout})

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
        self.assertEqual([event["event"] for event in result["events"]], ["begin", "end"])
        self.assertGreaterEqual(len(result["objects"]), 1)
        for visit in result["objects"]:
            self.assertEqual(visit["zone"], "all")
            self.assertTrue(0 <= visit["entered"] <= visit["left"] <= FRAMES / 20)

    def test_the_files_that_are_sent_are_enough(self):
        """A node has nothing of this source tree but what --address sends there."""
        make_clip("1.avi")
        node = self.folder / "place" / "node"
        node.mkdir(parents=True)
        for file in cluster.CODE:
            shutil.copy(file, node)
        code = "import json, sys, child; json.dump([child.analyse(json.load(sys.stdin)), child.__file__, sys.path], sys.stdout)"
        request = {"uri": clips.clip_of("1.avi", {}).uri, "settings": {"preset": "outdoor"}, "backend": "auto", "timeout": FOREVER}
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        done = subprocess.run([sys.executable, "-B", "-c", code], cwd=node, input=json.dumps(request), env=environment,
                              stdout=subprocess.PIPE, text=True, check=True)
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
        for settings, text in (({"no-such": "1"}, "no such property or value: no-such=1"), ({"preset": "x"}, "preset=x"),
                               ({"zones": "a: 0,0"}, "zones")):
            result = self.analyse(None, **settings)
            self.assertEqual(result["status"], "setup")
            self.assertIn(text, result["error"])
        self.assertEqual(self.analyse(None)["status"], "ok")

    def test_endless_clips_end_and_keep_what_was_found(self):
        os.mkfifo("endless.mkv")
        result, timeout = {"frames": 0}, 1
        while not result["frames"]:  # a busy machine needs longer to see the first frame
            writer = subprocess.Popen(["gst-launch-1.0", "-q", "videotestsrc", "pattern=ball", "!",
                                       "video/x-raw,width=160,height=120,framerate=20/1", "!", "jpegenc", "!",
                                       "matroskamux", "streamable=true", "!", "filesink", "location=endless.mkv"],
                                      stderr=subprocess.DEVNULL)
            try:
                with mock.patch.object(child, "GRACE", LIMIT):
                    result, timeout = self.analyse("endless.mkv", timeout=timeout), 2 * timeout
            finally:
                writer.kill()
                writer.wait()
            self.assertEqual(result["status"], "timeout")
        self.assertEqual(sum(row["frames"] for row in result["profile"]), result["frames"])
        os.mkfifo("silent.mkv")
        with mock.patch.object(child, "GRACE", 1):
            result = self.analyse("silent.mkv", timeout=1)
        self.assertEqual(result["status"], "timeout")
        self.assertIn("had to be killed", result["error"])

    def test_a_crash_is_told(self):
        pathlib.Path("analyse.py").write_text("import os, sys\nprint('x: bad things', file=sys.stderr)\nos.kill(os.getpid(), 11)\n")
        with mock.patch.object(child, "PROGRAM", self.folder / "analyse.py"):
            result = child.analyse({"uri": None, "settings": {}, "backend": "auto", "timeout": FOREVER})
        self.assertEqual((result["status"], result["error"]), ("crashed", "the process was ended by SIGSEGV: x: bad things"))


class CommandLine(Folder):
    def run_program(self, *arguments, status):
        done = subprocess.run([sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_wrong_usage(self):
        self.touch("1.avi", "file")
        for arguments in ((), ("1.avi",), ("--out=out",), *(("1.avi", "--out=out", option) for option in (
                "--shard=2/2", "--set=preset", "--workers=0", "--timeout=0", "--no-such"))):
            self.assertEqual(len(self.run_program(*arguments, status=2).stderr.splitlines()), 1)
        for arguments in (("gone.avi", "--out=out"), (".git", "--out=out"), ("1.avi", "--out=file"), ("1.avi", "--out=file/x")):
            self.assertEqual(len(self.run_program(*arguments, status=1).stderr.splitlines()), 1)
        self.assertIn("--gpus-per-clip", self.run_program("--help", status=0).stdout)

    def test_the_jobs_use_this_command_line(self):
        parse = load("motion_scan", PROGRAM).arguments
        bin = self.folder / "python"
        bin.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        bin.chmod(0o755)
        environment = {**os.environ, "PYTHON": str(bin), "SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "8",
                       "SLURM_CPUS_PER_TASK": "4", "SLURM_SUBMIT_DIR": str(EXAMPLES.parent)}
        script = FOLDER / "slurm.sh"
        command = re.search(r"^#   sbatch --array=0-7 \S*/slurm\.sh (.*)$", script.read_text(), re.M)[1].split()
        said = subprocess.run(["bash", str(script), *command], env=environment, stdout=subprocess.PIPE, text=True, check=True,
                              timeout=LIMIT).stdout.splitlines()
        self.assertEqual(said[0], str(PROGRAM))
        args = parse(said[1:])
        self.assertEqual((args.clips, args.out, args.shard, args.workers), (["@list.txt"], "FOLDER", (2, 8), 4))
        self.assertEqual(args.settings, {"preset": "outdoor"})
        del environment["SLURM_ARRAY_TASK_ID"]
        self.assertEqual(subprocess.run(["bash", str(script)], env=environment, capture_output=True, timeout=LIMIT).returncode, 2)
        try:
            import yaml
        except ImportError:
            self.skipTest("no PyYAML")
        job = yaml.safe_load((FOLDER / "kubernetes.yaml").read_text())
        self.assertEqual((job["apiVersion"], job["kind"], job["spec"]["completionMode"]), ("batch/v1", "Job", "Indexed"))
        pod = job["spec"]["template"]["spec"]
        container = pod["containers"][0]
        args = parse([text.replace("$(JOB_COMPLETION_INDEX)", "7") for text in container["args"]])
        self.assertEqual(container["command"], ["motion-scan"])
        self.assertEqual(args.shard, (job["spec"]["completions"] - 1, job["spec"]["completions"]))
        self.assertEqual({mount["name"] for mount in container["volumeMounts"]}, {volume["name"] for volume in pod["volumes"]})
        mounted = [mount["mountPath"] for mount in container["volumeMounts"]]
        self.assertIn(args.clips[0], mounted)
        self.assertIn(args.out, mounted)


def main():
    unit = "--unit" in sys.argv
    ray = importlib.util.find_spec("ray") is not None
    scan_ray = importlib.import_module("scan_ray") if ray and not unit else None
    names = [Discovery, Keys, Child, CommandLine] + ([scan_ray.Scan] if scan_ray else [])
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(name) for name in names)
    good = unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful()
    if good and not unit and not ray:
        print("skipped: no Ray (WITH=ray tests/run.sh installs it)")
        return 77
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
