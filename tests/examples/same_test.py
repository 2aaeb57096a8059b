#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests that motion-report, motion-scan, motion-alarm and motion-alarm-service find the same objects, events and
numbers in a clip. MOTION_ALARM is the C++ program. Exit status 77 without the bindings of GStreamer or NumPy."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

from programs import EXAMPLES, HANGS, REPORT, InFolder, launch, rows_of, write_frames
import common
import numpy

ZONES, LINES = "left: 0.0,0.0 0.8,0.0 0.8,1.0 0.0,1.0; all: 0.0,0.0 1.0,0.0 1.0,1.0 0.0,1.0", "gate: 0.8,0.0 0.8,1.0"
# Nothing, a ball, nothing, two balls, and nothing: two motions with objects. The last one ends before the clip. 25
# frames per second.
CAPS = "video/x-raw,format=I420,width=320,height=240,framerate=25/1"
EMPTY = f"videotestsrc pattern=black num-buffers=40 ! {CAPS} ! all."
SCENE = f"""
  concat name=all ! jpegenc ! avimux ! filesink location=clip.avi {EMPTY}
  videotestsrc pattern=ball num-buffers=75 ! {CAPS} ! all. {EMPTY}
  compositor name=two sink_1::xpos=160 sink_1::ypos=120 ! {CAPS} ! all.
  videotestsrc pattern=ball num-buffers=75 ! {CAPS} ! two.sink_0
  videotestsrc pattern=ball motion=sweep num-buffers=75 ! video/x-raw,width=120,height=120,framerate=25/1
    ! two.sink_1 {EMPTY}"""
VISIT = "id", "zone", "entered", "left", "seconds", "path_length"


def rounded(rows, names):
    return sorted(tuple(round(row[name], 3) if isinstance(row[name], float) else row[name] for name in names)
                  for row in rows)


class Same(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        launch(SCENE, cwd=cls.folder)
        cls.report, cls.frames = cls.run_report()
        cls.scan = cls.run_scan()
        cls.service, cls.counted = cls.run_service()

    @classmethod
    def run_report(cls):
        """The events of motion.jsonl, and the rows of frames.csv."""
        subprocess.run([REPORT, "--clip=clip.avi", f"--zones={ZONES}", f"--lines={LINES}", "--backend=cpu"],
                       cwd=cls.folder, check=True, stdout=subprocess.DEVNULL)
        return ([json.loads(line) for line in (cls.folder / "out/motion.jsonl").read_text().splitlines()],
                rows_of(cls.folder / "out/frames.csv"))

    @classmethod
    def run_scan(cls):
        """The result that the scan's tables are made from."""
        request = {"number": 0, "uri": (cls.folder / "clip.avi").as_uri(), "backend": "cpu", "timeout": HANGS,
                   "threads": 1, "settings": {"preset": "outdoor", "zones": ZONES, "lines": LINES}}
        with subprocess.Popen([sys.executable, EXAMPLES / "motion-scan/analyse.py"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as program:
            program.stdin.write(json.dumps(request) + "\n")
            program.stdin.flush()
            return json.loads(program.stdout.readline())

    @classmethod
    def run_service(cls):
        """The events of the clip, played once like a camera, and the number of its frames."""
        sys.path.insert(0, str(EXAMPLES / "motion-alarm-service"))
        import camera
        import config
        told, ended = [], threading.Event()

        class Listener:
            snapshot = clip = staticmethod(lambda *_: None)
            event = staticmethod(lambda _, line: told.append(line))
            state = staticmethod(lambda door: door.frames and not door.up and ended.set())

        common.parse("cudadiff ! fakesink")
        settings = config.Camera(uri=str(cls.folder / "clip.avi"), key="door",
                                 cudadiff={"preset": "outdoor", "gap": 1, "zones": ZONES, "lines": LINES,
                                           "backend": "cpu"})
        door = camera.Camera(settings, config.Reconnect(first=3600, most=3600, timeout=3600), Listener)
        with mock.patch.object(camera.log, "warning"):  # the stream ended
            door.start()
            ended.wait(HANGS)
            door.stop()
            door.join(HANGS)
        return told, door.frames

    def of(self, rows, event):
        return [row for row in rows if row["event"] == event]

    def test_frames(self):
        self.assertEqual((self.scan["status"], self.scan["error"]), ("ok", None))
        self.assertEqual({270, self.scan["frames"], self.counted}, {len(self.frames)})
        self.assertEqual(self.scan["motion_frames"], sum(row["moving"] == "1" for row in self.frames))
        for second in self.scan["profile"]:
            rows = [float(row["changed_percent"])
                    for row in self.frames if int(float(row["time_s"])) == second["second"]]
            self.assertEqual(len(rows), second["frames"])
            self.assertAlmostEqual(sum(rows) / len(rows), 100 * second["changed_mean"], 3)
            self.assertAlmostEqual(max(rows), 100 * second["changed_max"], 3)

    def test_objects(self):
        rows = [self.of(self.report, "leave"), self.scan["objects"], self.of(self.service, "leave")]
        report, scan, service = (rounded([{**row, "path_length": round(row["path_length"], 1)} for row in each], VISIT)
                                 for each in rows)
        self.assertGreater(len({visit[0] for visit in report}), 2)
        self.assertEqual({visit[1] for visit in report}, {"left", "all"})
        self.assertEqual(report, service)
        self.assertEqual(report, scan)

    def test_motions(self):
        """The service and the report list each `begin` and `end`; the scan makes a motion of both."""
        for event in ("begin", "end"):
            self.assertEqual(*(rounded(self.of(rows, event), ("time",)) for rows in (self.report, self.service)))
        ends, motions = self.of(self.service, "end"), self.of(self.scan["events"], "motion")
        self.assertEqual(len(ends), 2)
        self.assertEqual([round(end["began"], 3) for end in ends], [round(motion["begin"], 3) for motion in motions])
        self.assertEqual([round(end["last_motion"] + 1 / 25, 3) for end in ends],
                         [round(motion["end"], 3) for motion in motions])

    def test_crossings(self):
        names = "time", "id", "line", "direction"
        crossings = [rounded(self.of(rows, "cross"), names) for rows in (self.report, self.service)]
        crossings.append(
            rounded([{**row, "time": row["begin"]} for row in self.of(self.scan["events"], "cross")], names))
        self.assertTrue(crossings[0])
        self.assertEqual(crossings, [crossings[0]] * 3)


class Camera(InFolder):
    """Tests events about the light and the camera."""

    def frames(self):
        """The camera turns by 24 pixels from frame 70 on, the light is switched at 150, and another scene begins at
        190."""
        blocks = numpy.random.default_rng(1).integers(40, 200, (40, 60))
        wall = numpy.kron(blocks, numpy.ones((10, 10))).astype(numpy.uint8)
        for index in range(230):
            shift = min(max(0, 2 * (index - 69)), 24)
            picture = wall[20:260, 40 + shift:360 + shift]
            yield picture if index < 150 else picture // 3 if index < 190 else 255 - wall[:240, 240:560]

    def test_events(self):
        write_frames(self.folder / "clip.mkv", self.frames(), (320, 240), "jpegenc quality=95")
        lines = self.alarms("clip.mkv", settings=["preset=outdoor"])
        self.assertEqual([line["event"] for line in lines], ["moves", "moved", "light", "scene"])
        self.assertEqual((lines[1]["x"], lines[1]["y"]), (-24, 0))
        self.report("clip.mkv")
        self.assertEqual(*(rounded(each, ("time", "event")) for each in (lines, self.events(*common.CAMERA_EVENTS))))


class Small(InFolder):
    """Tests the settings of docs/motion.md for an object of three pixels."""

    def entered(self, settings):
        return [line["event"] for line in self.alarms("a.mkv", settings=settings)].count("enter")

    def test_an_object_of_three_pixels(self):
        frames = []
        for index in range(110):
            picture = numpy.full((240, 320), 90, numpy.uint8)
            picture[::16] += 20
            if index >= 60:
                picture[100, index - 40:index - 37] = 220
            frames.append(picture)
        write_frames(self.folder / "a.mkv", frames, (320, 240), "jpegenc quality=98")
        page = " ".join((EXAMPLES.parent / "docs/motion.md").read_text(encoding="utf-8").split())
        settings = re.search("an object of three pixels is found with `([^`]*)`", page)[1].split()
        self.assertIn("open-radius=0", settings)
        self.assertEqual(self.entered(settings), 1)
        self.assertEqual(self.entered([each for each in settings if each != "open-radius=0"]), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
