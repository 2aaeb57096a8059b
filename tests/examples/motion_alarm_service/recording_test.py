# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests clips of motion from the camera's own stream: their frames, names and list, the limits of the disk, and
failures of the camera, the disk or the service."""

import datetime
import hashlib
import json
import os
import pathlib
import signal
import tempfile
import threading
import unittest
from unittest import mock

from helpers import HANGS, Case, launch, listener, start_camera, the_clip, wait_for

import common
import config
import recorder
from common import Gst

common.parse("cudadiff ! fakesink")
H264 = Gst.ElementFactory.find("openh264enc")


def slices_of(frame):
    """The pictures in an H.264 frame whose NAL units have length prefixes. A clip may repeat parameter sets."""
    slices = b""
    while frame:
        size = int.from_bytes(frame[:4], "big")
        unit, frame = frame[4 : 4 + size], frame[4 + size :]
        slices += unit if unit[0] & 31 in (1, 5) else b""
    return slices


def samples_of(file, decoder):
    return common.samples(common.parse(f"{decoder} name=clip ! appsink name=sink sync=false",
                                       clip={"uri": pathlib.Path(file).as_uri()}))


def frames_of(file, codec):
    """Hashes of the encoded frames of a file, in order."""
    caps = "video/x-h264,stream-format=avc" if codec == "video/x-h264" else codec
    buffers = [sample.get_buffer()
               for sample in samples_of(file, f"uridecodebin caps={caps} expose-all-streams=false")]
    frames = [buffer.extract_dup(0, buffer.get_size()) for buffer in buffers]
    return [hashlib.sha256(slices_of(frame) if codec == "video/x-h264" else frame).hexdigest() for frame in frames]


def pictures_of(file):
    """The number of decoded frames."""
    return len(list(samples_of(file, common.DECODER)))


class Frame:
    def __init__(self, pts, key, size=1000, caps=Gst.Caps("image/jpeg")):
        self.pts, self.key, self.size, self.caps = int(pts * Gst.SECOND), key, size, caps


class Units(Case):
    def test_the_ring(self):
        """The ring holds whole groups of frames. It covers the requested seconds and not many more, within its limit of
        bytes."""
        ring = recorder.Ring(2 * Gst.SECOND)
        for number in range(3, 100):
            ring.put(Frame(number / 10, number % 10 == 0))
        self.assertEqual([7.0, 8.0, 9.0], [group[0].pts / Gst.SECOND for group in ring.groups])
        self.assertEqual(30 * 1000, ring.size)
        self.assertEqual([8.0, 9.9], [ring.since(int(8.5 * Gst.SECOND))[index].pts / Gst.SECOND for index in (0, -1)])
        self.assertEqual(7.0, ring.since(0)[0].pts / Gst.SECOND)
        for number in range(100, 200):
            ring.put(Frame(number / 10, number % 10 == 0, recorder.RING // 15))
        self.assertLessEqual(ring.size, recorder.RING)
        self.assertEqual(1, len(ring.groups))
        ring.put(Frame(20, True, caps=Gst.Caps("video/x-h264")))
        self.assertEqual(1, len(ring.since(0)))  # frames with other caps cannot be in one clip
        for number in range(201, 300):
            ring.put(Frame(number / 10, False, recorder.RING // 15))
        self.assertEqual(([], 0), (ring.since(0), ring.size))  # without a key frame nothing can be shown

    def new_folder(self, size=0.0, days=0.0):
        return recorder.Folder(tempfile.mkdtemp(dir=self.folder), "door", size, days)

    def put(self, folder, ago, size=100, suffix=".mkv"):
        """Writes a file of a clip that began some days ago."""
        when = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=ago)
        name = f"door_{when.strftime('%Y-%m-%dT%H-%M-%S%z')}{suffix}"
        pathlib.Path(folder.path, name).write_bytes(bytes(size))
        return name

    def test_the_oldest_clips_go(self):
        for size, days, kept in ((0, 0, 5), (250, 0, 2), (1, 0, 1), (0, 2.5, 3), (0, 0.1, 0)):
            folder = self.new_folder(size, days)
            names = [self.put(folder, ago) for ago in (4.0, 3.0, 2.0, 1.0, 0.5)]
            other = pathlib.Path(folder.path, "precious.mkv")
            other.write_bytes(bytes(1000))
            folder.open()
            wanted = names[len(names) - kept :]
            self.assertEqual(wanted, [row["file"] for row in folder.rows])
            self.assertEqual({*wanted, "precious.mkv", "clips.json"}, set(os.listdir(folder.path)))
            listed = json.loads(pathlib.Path(folder.path, "clips.json").read_text())
            self.assertEqual(wanted, [row["file"] for row in listed])

    def test_age_counts_while_nothing_moves(self):
        folder = self.new_folder(days=1)
        self.put(folder, 0.9)
        folder.open()
        self.assertEqual(1, len(folder.rows))
        folder.days = 0.5
        folder.tidy()
        self.assertEqual(["clips.json"], os.listdir(folder.path))

    def test_unfinished_clips_of_a_killed_service(self):
        folder = self.new_folder()
        name, short = self.put(folder, 1, recorder.LEAST, ".mkv.part"), self.put(folder, 2, 10, ".mkv.part")
        # another service writes this one
        with recorder.Unfinished(folder, f"door_{'2026-01-02T03-04-05+0000'}.mkv") as other:
            other.stream.write(bytes(recorder.LEAST))
            other.stream.flush()
            with self.assertLogs("motion-alarm"):
                folder.open()
            self.assertEqual([name.removesuffix(".part")], [row["file"] for row in folder.rows])
            self.assertFalse(folder.rows[0]["complete"])
            self.assertNotIn(short, os.listdir(folder.path))
            self.assertEqual(1, sum(each.endswith(".part") for each in os.listdir(folder.path)))

    def test_clips_of_one_second_have_different_names(self):
        folder = self.new_folder()
        for expected in ("", "-2", "-3"):
            with folder.new_file(0, "mkv") as file:
                file.stream.write(b"x")
                row = file.become({"begin": "", "seconds": 1, "complete": True, "motions": []})
            self.assertRegex(row["file"], rf"^door_1970-01-0\dT\d\d-\d\d-\d\d[+-]\d{{4}}{expected}\.mkv$|^door_1969")
        self.assertEqual(3, len(folder.rows))

    def test_a_disk_that_is_too_slow(self):
        """The data that waits for the disk is bounded. The recorder begins another clip later, and reports why one is
        missing."""
        settings = config.Recording(folder=str(self.folder))
        with mock.patch.object(recorder.Clip, "run", lambda clip: None), mock.patch.object(recorder, "RING", 100_000):
            each = recorder.Recorder("door", settings)
            caps = Gst.Caps("image/jpeg,width=8,height=8")

            def take(number):
                buffer = Gst.Buffer.new_wrapped(bytes(1000))
                buffer.pts = number * Gst.SECOND // 10
                each.take(buffer, caps)

            take(0)
            each.begin("motion", 0)
            with self.assertLogs("motion-alarm", "ERROR") as logged:
                for number in range(1, 1000):
                    take(number)
            self.assertEqual(["ERROR:motion-alarm:door: recording: the disk is too slow"], logged.output)
            self.assertLessEqual(sum(clip.bytes for clip in each.clips), 200_000)
            self.assertIsNone(each.clip)
            each.again = 0
            take(1000)
            self.assertIsNotNone(each.clip)

    def record(self, frames, events, **settings):
        """Records 10 frames a second with key frames every 2 s. `events`: number of a frame → what follows it: `begin`
        or `end`, the visit and its time in seconds, or a function that is called with the recorder. Returns the clips
        and the times of their frames. All are finished."""
        settings, done = config.Recording(folder=str(self.folder), before=3, after=4, **settings), threading.Event()
        with mock.patch.object(recorder.Clip, "run", lambda clip: done.wait()):
            each = recorder.Recorder("door", settings)
            for number in range(frames):
                buffer = Gst.Buffer.new_wrapped(bytes(10))
                buffer.pts = number * Gst.SECOND // 10
                if number % 20:
                    buffer.set_flags(Gst.BufferFlags.DELTA_UNIT)
                each.take(buffer, Gst.Caps("image/jpeg,width=8,height=8"))
                event = events.get(number)
                if callable(event):
                    event(each)
                elif event:
                    getattr(each, event[0])(event[1], event[2] * Gst.SECOND)
            clips = [[clip.waiting.get() for _ in range(clip.waiting.qsize())] for clip in each.clips]
            done.set()
        self.assertTrue(all(clip[-1] is None for clip in clips))
        return each.clips, [[frame.pts / Gst.SECOND for frame in clip[:-1]] for clip in clips]

    def tenths(self, first, end):
        return [number / 10 for number in range(first, end)]

    def test_which_frames_are_in_which_clip(self):
        """Motion begins at 20 s and lasts until 38 s. Clips have at most 10 s. The decoder takes a while."""
        clips, times = self.record(500, {
            204: lambda each: each.note("begin", "begin"), 205: ("begin", "motion", 20),
            399: lambda each: each.note("end", "end"), 400: ("end", "motion", 38)}, longest=10)
        self.assertEqual([self.tenths(160, 260), self.tenths(260, 360), self.tenths(360, 420)], times)
        self.assertEqual([[{"begin": "begin", "end": None}]] * 2 + [[{"begin": "begin", "end": "end"}]],
                         [clip.motions for clip in clips])

    def test_visits_in_clips(self):
        """Visits that overlap, or follow each other within the tail, are one clip. A visit that ends after another one,
        but was seen for the last time before it, does not shorten the tail."""
        clips, times = self.record(900, {
            205: ("begin", 1, 20), 230: ("begin", 2, 23), 250: ("end", 1, 24),
            320: ("end", 2, 31),  # the tail lasts until 35 s
            345: ("begin", 3, 34), 350: ("begin", 4, 35), 400: ("end", 3, 40), 420: ("end", 4, 38),
            700: ("begin", 5, 70), 800: ("end", 5, 72)})  # reported after its tail
        self.assertEqual([self.tenths(160, 440), self.tenths(660, 801)], times)

    def test_a_camera_that_is_lost_ends_its_visits(self):
        """Neither a visit that did not end nor an earlier tail extends the clip of the next attempt."""
        clips, times = self.record(300, {
            100: ("begin", 1, 10), 110: ("begin", 2, 11),
            120: lambda each: (each.end(1, 100 * Gst.SECOND), each.close()),
            200: ("begin", 3, 20), 210: ("end", 3, 21)})
        self.assertEqual([self.tenths(60, 121), self.tenths(160, 250)], times)

    def test_visits_while_clips_fail(self):
        """The recorder waits before it begins another clip, even if more objects enter. The next clip has the rest of
        the visits."""
        with self.assertLogs("motion-alarm", "ERROR"):
            clips, times = self.record(400, {
                100: ("begin", 1, 10), 110: lambda each: each.not_written(each.clip, "the disk is full"),
                120: ("begin", 2, 12), 130: ("end", 1, 13), 150: lambda each: setattr(each, "again", 0),
                200: ("end", 2, 19)})
        self.assertEqual([self.tenths(60, 111), self.tenths(160, 230)], times)

    def test_motions_in_clips_of_visits(self):
        """A clip lists the motions that are in progress when it begins, and those that begin in it. Their end is
        unknown if it comes after the clip. Other motions are forgotten."""
        events = {20: ("begin", "a"), 40: ("end", "b"), 90: ("begin", "c"), 105: ("end", "d"), 110: ("begin", "e"),
                  250: ("end", "f"), 255: ("begin", "g"), 350: ("end", "h"), 360: ("begin", "i"), 370: ("end", "j"),
                  380: ("begin", "k"), 390: ("end", "l")}
        clips, _ = self.record(500, {
            **{number: lambda each, event=event: each.note(*event) for number, event in events.items()},
            100: ("begin", 1, 10), 120: ("end", 1, 12), 300: ("begin", 2, 30), 310: ("end", 2, 31),
            395: lambda each: self.assertEqual([{"begin": "k", "end": "l"}], each.motions),
            400: ("begin", 3, 40), 410: ("end", 3, 41)})
        self.assertEqual([[{"begin": "c", "end": "d"}, {"begin": "e", "end": None}], [{"begin": "g", "end": None}], []],
                         [clip.motions for clip in clips])

    def test_what_cannot_be_recorded(self):
        each = recorder.Recorder("door", config.Recording(folder=str(self.folder)))
        buffer = Gst.Buffer.new_wrapped(b"x")
        buffer.pts = 0
        with self.assertLogs("motion-alarm", "ERROR") as logged:
            each.begin("motion", 0)
            each.end("motion", 0)
            each.take(buffer, Gst.Caps("video/x-wmv"))
            each.begin("motion", 0)
        self.assertIn("its video is not encoded, or has no key frame yet", logged.output[0])
        self.assertIn("video/x-wmv cannot be recorded: let the camera send H.264", logged.output[1])


class Visits(Case):
    def test_only_visits_of_a_zone_are_recorded(self):
        """A square moves in the right half, then in the left half, and again in the left half until the camera stops.
        It is invisible in between. Only the visits of the left half are recorded: from `before` seconds before the
        first frame to `leave`, which comes two seconds late, and to the last frame."""
        lines, rows = [], []
        door, pushed = start_camera(
            self, "appsrc name=source is-live=true format=time caps=video/x-raw,format=GRAY8,width=320,height=240,"
            "framerate=5/1 ! jpegenc ! jpegdec",
            listener(event=lambda _, line: lines.append(line), clip=lambda _, row: rows.append(row)),
            config.Recording(folder=str(self.folder), before=1, after=1),
            recording=["left"],
            cudadiff={"reference": "first", "gap": 0.4, "track-hold": 2,
                      "zones": "left: 0.0,0.0 0.5,0.0 0.5,1.0 0.0,1.0; right: 0.5,0.0 1.0,0.0 1.0,1.0 0.5,1.0"})
        door.is_silent = lambda seconds: None  # time passes with frames only
        places = [None, *range(200, 280, 8), *[None] * 20, *range(20, 100, 8), *[None] * 20, *range(20, 60, 8)]
        for number, x in enumerate(places, 1):
            picture = [bytearray(320) for _ in range(240)]
            for row in picture[100:150] if x else ():
                row[x : x + 50] = b"\xc8" * 50
            frame = Gst.Buffer.new_wrapped(b"".join(picture))
            frame.pts = number * Gst.SECOND // 5
            pushed.emit("push-buffer", frame)
            wait_for("the frame", lambda: door.sink.get_property("stats").get_value("rendered") == number)
        door.stop()
        door.join(HANGS)
        door.recorder.wait(HANGS)
        self.assertEqual(["right", "left", "left"], [line["zone"] for line in lines if line["event"] == "enter"])
        begins = [line["entered"] - 1 for line in lines if line["event"] == "enter" and line["zone"] == "left"]
        late = next(line for line in lines if line["event"] == "leave" and line["zone"] == "left")
        self.assertAlmostEqual(2, late["time"] - late["left"])
        for row, begin, end in zip(rows, begins, (late["time"], len(places) / 5), strict=True):
            self.assertAlmostEqual(end - begin, row["seconds"])
            self.assertEqual(round(5 * (end - begin)) + 1, pictures_of(self.folder / "door" / row["file"]))
        times = {name: [line["at"] for line in lines if line["event"] == name] for name in ("begin", "end")}
        motions = [[{"begin": begin, "end": end}] for begin, end in zip(times["begin"], times["end"], strict=True)]
        self.assertEqual(motions[1:], [row["motions"] for row in rows])


class Recording(Case):
    def tables(self, uri, recording=""):
        self.clips = self.folder / "clips"
        return f"""
[recording]
folder = "{self.clips}"
{recording}
[camera.door]
uri = "{uri}"
recording = true
[camera.door.cudadiff]
reference = "first"
gap = 0.5
"""

    def rows(self):
        try:
            return json.loads((self.clips / "door" / "clips.json").read_text())
        except FileNotFoundError:
            return []

    def check_clip_of_file(self, file, codec):
        found, service = self.watched(self.tables(file, "before = 0.5\nafter = 1"))
        wait_for("two clips", lambda: len(self.rows()) >= 2)
        self.assertEqual(0, service.stop())
        frames, row = frames_of(file, codec), self.rows()[0]
        clip = self.clips / "door" / row["file"]
        recorded = frames_of(clip, codec)
        # Black frames are all equal.
        only = next(index for index, each in enumerate(recorded) if frames.count(each) == 1)
        first = frames.index(recorded[only]) - only
        # No frame is missing, and none was encoded again.
        self.assertTrue(frames[first : first + len(recorded)] == recorded)
        # The ball is visible in frames 15 to 59. Key frames are at most a second apart.
        self.assertIn(first, range(0, 9))
        self.assertGreaterEqual(first + len(recorded), 60)
        self.assertTrue(row["complete"])
        self.assertAlmostEqual(row["seconds"], (len(recorded) - 1) / 15, delta=0.01)
        self.assertEqual(row["bytes"], clip.stat().st_size)
        self.assertLess(row["motions"][0]["begin"], row["motions"][0]["end"])
        self.assertRegex(row["file"], r"^door_\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d[+-]\d{4}\.(mp4|mkv)$")
        self.assertEqual(len(recorded), pictures_of(clip))
        events = [event for event in found.events("door") if event["event"] == "clip"]
        self.assertEqual((row["file"], "door"), (events[0]["file"], events[0]["camera"]))
        wait_for("the last clip",
                 lambda: json.loads(found.last["cudavision/door/clip"])["file"] == self.rows()[-1]["file"])

    def test_frames_of_motion_jpeg(self):
        self.check_clip_of_file(the_clip(), "image/jpeg")

    @unittest.skipUnless(H264, "no openh264enc")
    def test_frames_of_h264(self):
        file = self.folder / "clip.mp4"
        launch(f"filesrc location={the_clip()} ! avidemux ! jpegdec ! videoconvert ! openh264enc gop-size=15 ! "
               f"h264parse ! mp4mux ! filesink location={file}")
        self.check_clip_of_file(file, "video/x-h264")

    def test_a_camera_that_is_lost_and_comes_back(self):
        """The ball always moves. The clip ends with the last frame of the camera, and the next clip begins when it is
        back."""
        door = self.rtsp()
        service = self.service(self.tables(door.uri))
        service.wait_metric("camera_frames_total", "door", least=20)
        wait_for("motion", lambda: service.metrics()["camera_motion", "door"])
        door.kill()
        wait_for("the first clip", self.rows)
        row = self.rows()[0]
        file = self.clips / "door" / row["file"]
        self.assertTrue(row["complete"])
        self.assertIsNotNone(row["motions"][0]["end"])
        # The clip has all frames from the first one on: each JPEG is a key frame, and motion began less than five
        # seconds later.
        self.assertEqual(pictures_of(file), len(frames_of(file, "image/jpeg")))
        self.assertGreaterEqual(pictures_of(file), service.metrics()["camera_frames_total", "door"])
        door.start()
        wait_for("motion again", lambda: service.metrics()["camera_motion", "door"])
        self.assertEqual(0, service.stop())  # this finishes the second clip
        self.assertEqual([True, True], [row["complete"] for row in self.rows()])
        self.assertEqual(2, len({row["file"] for row in self.rows()}))

    def test_a_long_motion_becomes_several_clips(self):
        door = self.rtsp()
        service = self.service(self.tables(door.uri, "longest = 5"))
        wait_for("three clips", lambda: len(self.rows()) >= 3)
        self.assertEqual(0, service.stop())
        for row in self.rows()[:-1]:
            self.assertGreater(row["seconds"], 4)
        hashes = [each for row in self.rows() for each in frames_of(self.clips / "door" / row["file"], "image/jpeg")]
        self.assertGreaterEqual(len(hashes), 3 * 5)  # 50 in each, or fewer on a busy machine

    def test_a_full_disk(self):
        """A limit on the size of files replaces a full disk. It is reported, and the service continues."""
        door = self.rtsp()
        found, service = self.watched(self.tables(door.uri), prefix=("prlimit", "--fsize=100000"))
        wait_for("the report", lambda: found.last.get("cudavision/door/problem", b"").startswith(b"recording: "))
        wait_for("the line of the log", lambda: "door: recording: " in service.log)
        count = service.metrics()["camera_frames_total", "door"]
        service.wait_metric("camera_frames_total", "door", least=count + 20)
        self.assertEqual(1, service.metrics()["camera_up", "door"])
        service.wait_metric("camera_clip_failures_total", "door", least=2)  # it tries again
        self.assertEqual(0, service.stop())
        self.assertFalse(any(row["complete"] for row in self.rows()))

    def test_a_killed_service_leaves_clips_that_can_be_played(self):
        door = self.rtsp()
        service = self.service(self.tables(door.uri))
        part = wait_for("a clip",
                        lambda: list((self.clips / "door").glob("*.part")) if (self.clips / "door").exists() else [])[0]
        wait_for("its first seconds", lambda: part.stat().st_size > 4 * recorder.LEAST)
        service.stop(signal.SIGKILL)
        door.kill()
        again = self.service(self.tables(door.uri))
        wait_for("it is found", self.rows)
        self.assertEqual([part.name.removesuffix(".part"), False],
                         [self.rows()[0][key] for key in ("file", "complete")])
        self.assertGreater(pictures_of(self.clips / "door" / self.rows()[0]["file"]), 10)
        self.assertEqual(0, again.stop())


if __name__ == "__main__":
    unittest.main()
