#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests parts of clips: the passed frames equal the frames of the whole clip, and all programs have the same
options. MOTION_ALARM is the C++ program. Exit status 77 without the bindings or NumPy."""
import argparse
import hashlib
import pathlib
import tempfile
import unittest

import programs
from programs import ALARM, has, launch, rows_of
import common
from common import Gst
import losses
import part
from shortest import Shortest

programs.use("motion-scan")
FRAMES = 200
COUNTER = ("videotestsrc num-buffers={n} ! video/x-raw,format=I420,width=160,height=120,framerate={rate} ! "
           "timeoverlay ! {how} ! filesink location={file}")
# Key frames are 50 frames apart. The MPEG-4 in AVI has B frames.
KINDS = {"a.mp4": "openh264enc gop-size=50 ! h264parse ! mp4mux", "a.mkv": "openh264enc gop-size=50 ! h264parse ! "
         "matroskamux", "f.mp4": "openh264enc gop-size=50 ! h264parse ! mp4mux fragment-duration=1000",
         "a.webm": "vp8enc deadline=1 keyframe-max-dist=50 ! webmmux", "a.ts": "openh264enc gop-size=50 ! h264parse ! "
         "mpegtsmux", "a.avi": "avenc_mpeg4 max-bframes=2 gop-size=50 ! avimux", "j.avi": "jpegenc ! avimux"}
# start, end, duration
PARTS = (("3.0", None, None), ("3.98", None, "1.0"), ("00:00:05.04", "00:00:06", None), (None, None, "1.5"),
         ("00:05", "5.5s", None), ("100", None, "10"), ("100", "120", None), ("4.0s", "120", None),
         ("0.5", "9000s", None), (None, "25", None), ("100", None, "0.5s"), ("6s", None, "1"), ("1", None, None))


def frames_of(path, chosen):
    """Pairs of a stream time and a hash for the frames of a part of a clip, and its gate."""
    pipeline = common.parse(f"{common.DECODER} name=source ! queue name=queue ! videoconvert ! "
                            "video/x-raw,format=I420 ! appsink name=sink sync=false",
                            source={"uri": common.uri_of(str(path))})
    gate = part.Gate(pipeline.get_by_name("queue").get_static_pad("sink"), chosen)
    frames, watched = [], losses.Losses(pipeline, pipeline.get_by_name("source"))
    with watched:
        for sample in common.samples(pipeline):
            buffer = sample.get_buffer()
            frames.append((sample.get_segment().to_stream_time(Gst.Format.TIME, buffer.pts),
                           hashlib.sha256(buffer.extract_dup(0, buffer.get_size())).hexdigest()))
    lost = watched.result(chosen.is_whole, gate.over)
    if lost:  # frames outside the part are not lost
        raise AssertionError(f"{path}, {chosen.words}: {losses.sentence(lost, len(frames))}")
    return frames, gate


def expected(whole, chosen):
    def before(limit, index, when):
        return index < limit.frames if limit.time is None else when + Gst.MSECOND // 2 < limit.time

    found = [(index, frame) for index, frame in enumerate(whole)
             if not (chosen.start and before(chosen.start, index, frame[0]))
             and not (chosen.end and not before(chosen.end, index, frame[0]))]
    if chosen.duration and chosen.duration.time is None:
        found = found[:chosen.duration.frames]
    elif chosen.duration:
        start = chosen.start
        begin = 0 if not start else found[0][1][0] if start.time is None else start.time
        found = [each for each in found if before(part.Time(time=begin + chosen.duration.time), *each[:1], each[1][0])]
    return [frame for _, frame in found][::chosen.skip + 1]


def part_of(start, end, duration, skip=0):
    return part.Part(*(text and part.time_of(text) for text in (start, end, duration)), skip)


class Times(unittest.TestCase):
    def test_forms(self):
        for text, frames, seconds in (("250", 250, None), ("0", 0, None), ("10.5", None, 10.5), ("10s", None, 10),
                                      ("10.25s", None, 10.25), ("00:00:10", None, 10), ("01:02:03.500", None, 3723.5),
                                      ("1:02", None, 62), ("90:00:00", None, 324000)):
            time = part.time_of(text)
            self.assertEqual((time.frames, time.time), (frames, None if seconds is None else int(seconds * Gst.SECOND)))
            self.assertEqual(part.time_of(str(time)), time)

    def test_wrong_forms(self):
        for text in ("", "x", "-1", "1e3", "10,5", "1:60", "1:75:00", "1:2:3", "10 s", "5m", "٣", ".5", "1:00:00:00"):
            with self.assertRaisesRegex(argparse.ArgumentTypeError, "is not a time: it must be frames"):
                part.time_of(text)

    def test_parts_that_cannot_be(self):
        for words, sentence in (
                (("5s", "2s", None), r"--start \(5 s\) must be before --end \(2 s\)"),
                (("10", "10", None), r"--start \(frame 10\) must be before"),
                ((None, "5s", "5s"), "exclude each other"), ((None, "0", None), "--end is 0"),
                (("1s", None, "0.0"), "--duration is 0")):
            with self.assertRaisesRegex(ValueError, sentence):
                part_of(*words)


class Frames(programs.InFolder):
    @unittest.skipUnless(has("openh264enc", "avenc_mpeg4", "vp8enc", "timeoverlay"), "an element is missing")
    def test_the_frames_equal_frames_of_the_whole_clip(self):
        for name, how in KINDS.items():
            launch(COUNTER.format(n=FRAMES, rate="25/1", how=how, file=name), cwd=self.folder)
            whole, _ = frames_of(self.folder / name, part.Part())
            self.assertGreater(len(whole), FRAMES - 5)
            for words in PARTS:
                for skip in (0, 2):
                    chosen = part_of(*words, skip)
                    with self.subTest(name=name, words=words, skip=skip):
                        frames, gate = frames_of(self.folder / name, chosen)
                        self.assertEqual(frames, expected(whole, chosen))
                        self.assertEqual(gate.why_nothing(), "")
            frames, gate = frames_of(self.folder / name, part_of("7.0", None, None))
            if name in ("a.mp4", "a.mkv", "a.webm"):  # the start was found by seeking, not by decoding
                self.assertLess(gate.came, 110, name)

    @unittest.skipUnless(has("openh264enc", "timeoverlay"), "no openh264enc, or no timeoverlay")
    def test_rates_that_are_not_whole_milliseconds(self):
        for rate in "30000/1001", "24/1", "7/3":
            for name in "a.mp4", "a.mkv":
                launch(COUNTER.format(n=60, rate=rate, how=KINDS[name], file=name), cwd=self.folder)
                whole, _ = frames_of(self.folder / name, part.Part())
                for index in (1, 20, 49, 59):  # the time as in tables
                    chosen = part_of(f"{whole[index][0] / Gst.SECOND:.3f}", None, None)
                    with self.subTest(rate=rate, name=name, index=index):
                        self.assertEqual(frames_of(self.folder / name, chosen)[0], whole[index:])

    @unittest.skipUnless(has("timeoverlay"), "no timeoverlay")
    def test_parts_without_frames(self):
        launch(COUNTER.format(n=25, rate="25/1", how="jpegenc ! avimux", file="a.avi"), cwd=self.folder)
        for words, sentence in (
                (("5s", None, None), r"no frame in the part \(from 5 s\), because the clip has frames until 1"),
                (("40", "50", None), r"\(from frame 40, to frame 50\), because the clip has 25 frames"),
                (("20", "0.5", None), r"\(from frame 20, to 0.5 s\)")):
            frames, gate = frames_of(self.folder / "a.avi", part_of(*words))
            self.assertEqual(frames, [])
            self.assertRegex(gate.why_nothing(), sentence)


class Events(unittest.TestCase):
    """Tests which events the minimum length (--min-event) keeps."""

    def told(self, least, lines):
        shortest = Shortest(least and part.time_of(least))
        return [line["event"] for one in lines for line in shortest.add(dict(one), 0.04)], shortest

    def motion(self, begin, last):
        yield {"event": "begin", "time": begin, "regions": [1]}
        for frame in range(1, round((last - begin) / 0.04) + 1):
            yield {"event": "motion", "time": begin + frame * 0.04, "regions": [1]}
        for frame in range(1, 5):
            yield {"event": "motion", "time": last + frame * 0.04, "regions": []}
        yield {"event": "end", "time": last + 0.2, "regions": []}

    def test_motions(self):
        for least, kept in ((None, True), ("0.4", True), ("10", True), ("0.5s", False), ("11", False)):
            names, shortest = self.told(least, self.motion(1, 1.36))
            self.assertEqual(("begin" in names, "end" in names), (kept, kept), least)
            self.assertEqual(shortest.dropped, set() if kept else {1})

    def test_a_motion_is_told_when_it_has_lasted(self):
        shortest = Shortest(part.time_of("0.2"))
        lines = list(self.motion(1, 3))
        told = [len(shortest.add(line, 0.04)) for line in lines]
        self.assertEqual(told[:6], [0, 0, 0, 0, 5, 1])

    def test_visits_and_order(self):
        lines = [{"event": "enter", "id": 1, "time": 1, "entered": 1}, {"event": "cross", "id": 1, "time": 1.1},
                 {"event": "enter", "id": 2, "zone": "door", "time": 1.2, "entered": 1.2},
                 {"event": "leave", "id": 1, "time": 1.5, "seconds": 0.5},
                 {"event": "light", "time": 3, "regions": []},
                 {"event": "leave", "id": 2, "zone": "door", "time": 4, "seconds": 2.8}]
        self.assertEqual(self.told("1s", lines)[0], ["cross", "enter", "light", "leave"])
        # An object that is gone is held for a second, and may have left before it lasted that long.
        gone = [{"event": "enter", "id": 1, "time": 1, "entered": 1}, {"event": "light", "time": 2.3, "regions": []},
                {"event": "leave", "id": 1, "time": 2.4, "seconds": 0.4}]
        self.assertEqual(self.told("1s", gone)[0], ["light"])
        self.assertEqual(self.told(None, lines)[0], ["enter", "cross", "enter", "leave", "light", "leave"])


class Programs(programs.InFolder):
    """A ball is visible from 2.4 s to 5.4 s, and from 8 s to 8.4 s, in a clip of 10.8 s."""

    @classmethod
    def setUpClass(cls):
        cls.clip = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()), "clip")
        caps = "video/x-raw,format=I420,width=320,height=240,framerate=25/1"
        shown = " ".join(f"videotestsrc pattern={pattern} num-buffers={count} ! {caps} ! all."
                         for pattern, count in (("black", 60), ("ball", 75), ("black", 65), ("ball", 10),
                                                ("black", 60)))
        how = KINDS["a.mp4"] if has("openh264enc") else "jpegenc ! matroskamux"
        launch(f"concat name=all ! {how} ! filesink location={cls.clip} {shown}")

    def report(self, *arguments, status=0):
        """The times of the frames, and the events; after a failure, the message."""
        said = super().report(self.clip, *arguments, status=status)
        if status:
            return said
        return [float(row["time_s"]) for row in rows_of(self.folder / "out/frames.csv")], self.events()

    def scan(self, **chosen):
        return programs.scan(self.clip, **chosen)

    def alarms(self, *arguments, status=0):
        """The events of the alarms and their times; after a failure, the message."""
        found = super().alarms(self.clip, *arguments, settings=("gap=1", "preset=outdoor"), status=status)
        return found if status else [(line["event"], round(line["time"], 3)) for line in found]

    def test_a_part(self):
        """The ball appears at 2.4 s. If it is there in the first frame, the place that it leaves can briefly be a
        second object."""
        for start, first, most in (1, 2.3, 1), (3, 3, 2):
            rows, events = self.report(f"--start=00:00:0{start}", "--end=5.04")
            self.assertEqual((rows[0], rows[-1], len(rows)), (start, 5.0, 126 - 25 * start))
            self.assertTrue(events[-1]["complete"])
            result = self.scan(part={"start": f"{start}.0", "end": "5.04"})
            self.assertEqual((result["frames"], result["complete"], result["error"]), (len(rows), True, None))
            visits = [round(visit["entered"], 3) for visit in result["objects"]]
            self.assertEqual(visits, [round(event["entered"], 3) for event in events if event["event"] == "enter"])
            self.assertIn(len(visits), range(1, most + 1))
            self.assertGreater(min(visits), first)
            alarms = self.alarms(f"--start={start}s", "--end-time=00:00:05.04")
            self.assertEqual(alarms, [(event["event"], round(event["time"], 3)) for event in events
                                      if event["event"] in ("begin", "end", "enter", "leave")])

    def test_frames_and_frames_to_skip(self):
        rows, events = self.report("--start=70", "--duration=30", "--frame-skip=2")
        self.assertEqual(rows, [round(2.8 + 0.12 * frame, 3) for frame in range(10)])
        self.assertTrue(events[-1]["complete"])
        self.assertEqual(self.scan(part={"start": "70", "duration": "30", "skip": 2})["frames"], 10)
        self.assertEqual(self.alarms("--start=70", "--duration=30", "--frame-skip=2"),
                         [(event["event"], round(event["time"], 3)) for event in events
                          if event["event"] in ("begin", "end", "enter", "leave")])
        self.assertTrue(self.scan(part={"skip": 60})["complete"])
        self.assertTrue(self.report("--frame-skip=60")[1][-1]["complete"])

    def test_beyond_the_end(self):
        self.assertEqual(len(self.report("--start=10.0", "--end=99:00:00")[0]), 20)
        self.assertIn("there is no frame in the part (from 20 s), because the clip has frames until 10.8",
                      self.report("--start=20s", status=1))
        result = self.scan(part={"start": "20.0"})
        self.assertEqual(result["status"], "failed")
        self.assertIn("there is no frame in the part (from 20 s), because", result["error"])
        self.assertIn("there is no frame in the part (from 20 s), because", self.alarms("--start=20.0", status=1))

    def test_wrong_usage(self):
        for arguments in (["--start=5s", "--end=2s"], ["--end=1s", "--duration=2s"], ["--duration=0"]):
            self.assertEqual(self.report(*arguments, status=2).partition(": ")[2].partition("; see")[0],
                             self.alarms(*arguments, status=2))
        self.assertIn("1:75 is not a time: it must be frames (250), seconds (10.0 or 10s) or hh:mm:ss",
                      self.alarms("--start=1:75", status=2).replace("argument --start/--start-time", "--start")
                      if not ALARM else self.report("--start=1:75", status=2))
        self.assertIn("--seconds excludes", self.report("--seconds=1", "--end=2s", status=2))

    def test_short_events(self):
        for least in "1s", "20":
            _, events = self.report(f"--min-event={least}", "--clips")
            self.assertEqual(len(rows_of(self.folder / "out/clips/clips.csv")), 1)
            told = [event["event"] for event in events if event["event"] != "motion"]
            self.assertEqual(told, ["begin", "enter", "leave", "end", "finished"])
            self.assertEqual([event for event, _ in self.alarms(f"--min-event-length={least}")], told[:-1])
            result = self.scan(min_event=least)
            self.assertEqual((len(result["events"]), len(result["objects"])), (1, 1))
        self.assertEqual(len(self.scan()["events"]), 2)
        self.assertEqual(self.alarms("--min-event=9s"), [])


if __name__ == "__main__":
    unittest.main()
