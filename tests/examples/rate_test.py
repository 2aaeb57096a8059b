#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests clips without times, such as raw H.264: --rate gives them times in all programs. MOTION_ALARM is the C++
program. Exit status 77 without the bindings of GStreamer or NumPy."""
import argparse
import unittest
from fractions import Fraction

import programs
from programs import launch, rows_of
import damage
import part
from common import Gst

programs.use("motion-scan")
SCENE = "pattern=ball ! video/x-raw,format=I420,width=320,height=240,framerate=25/1"
# Raw streams, and their encoders.
KINDS = {"a.h264": damage.H264 + " ! video/x-h264,stream-format=byte-stream",
         "a.dav": damage.H264 + " ! video/x-h264,stream-format=byte-stream",
         "a.h265": damage.H265 + " ! video/x-h265,stream-format=byte-stream",
         "a.m4v": damage.MPEG4, "a.mjpeg": "jpegenc"}
GUESSED = ["a.h265"] + ["a.m4v"] * (Gst.version() >= (1, 24))  # GStreamer finds or guesses their rates
FRAMES, RATE = 60, 12.5


class Raw(programs.InFolder):
    def make(self, name, how=None):
        """Writes a clip. Returns its name."""
        how = how or KINDS[name]
        if not programs.has(how.split()[0]):
            self.skipTest(f"no {how.split()[0]}")
        launch(f"videotestsrc num-buffers={FRAMES} {SCENE} ! {how} ! filesink location={self.folder / name}")
        return name

    def times(self):
        return [float(row["time_s"]) for row in rows_of(self.folder / "out/frames.csv")]

    def test_times(self):
        for name in KINDS:
            with self.subTest(name):
                self.make(name)
                if name not in GUESSED:
                    self.assertIn("have no times; set its frames per second, such as --rate=25",
                                  self.report(name, status=1))
                self.report(name, f"--rate={RATE}")
                times = self.times()
                self.assertGreater(len(times), FRAMES - 3)  # a decoder may keep the last ones
                self.assertEqual(times, [round(frame / RATE, 3) for frame in range(len(times))])
                self.assertTrue(self.events()[-1]["complete"])
                scanned = programs.scan(self.folder / name, part={"rate": str(RATE)})
                self.assertEqual((scanned["frames"], scanned["complete"]), (len(times), True))
                self.assertAlmostEqual(scanned["duration"], len(times) / RATE)
                line = self.alarms(name, f"--rate={RATE}")[0]
                self.assertEqual((line["event"], line["time"], line["snapshot"]),
                                 ("begin", 1 / RATE, f"{name}-000000.080.jpg"))

    def test_snapshots_without_times_have_the_number_of_the_frame(self):
        """Without a rate, only the first frame has a time."""
        self.make("a.mjpeg")
        line = self.alarms("a.mjpeg")[0]
        self.assertEqual((line["event"], line["time"], line["snapshot"]),
                         ("begin", None, "a.mjpeg-frame000001.jpg"))

    def test_a_part(self):
        self.make("a.mjpeg")
        self.report("a.mjpeg", f"--rate={RATE}", "--start=1.6", "--end=2.4")
        self.assertEqual(self.times(), [round(frame / RATE, 3) for frame in range(20, 30)])
        begin = self.alarms("a.mjpeg", f"--rate={RATE}", "--start=1.6", "--end=2.4")[0]
        self.assertEqual((begin["event"], begin["time"]), ("begin", 1.68))
        self.assertEqual(self.alarms("a.mjpeg", "--end=1.0", status=1),
                         "the frames of the clip have no times; set --rate, its frames per second, or give its part in "
                         "frames")

    def test_frames_keep_their_times(self):
        self.make("a.mkv", "jpegenc ! matroskamux")
        self.report("a.mkv", "--rate=5")
        self.assertEqual(self.times(), [round(frame / 25, 3) for frame in range(FRAMES)])

    def test_a_recording(self):
        for name in "a.h264", "b.h264":
            self.make(name, KINDS["a.h264"])
        self.report("a.h264", "b.h264", "--join=all", f"--rate={RATE}")
        self.assertEqual(self.times(), [round(frame / RATE, 3) for frame in range(2 * FRAMES)])

    def test_rates(self):
        for text, rate in ("25", 25), ("12.5", 12.5), ("0.1", Fraction(1, 10)), ("30000/1001", Fraction(30000, 1001)):
            self.assertEqual(part.rate_of(text), rate)
            self.assertEqual(part.of_texts(part.Part(rate=part.rate_of(text)).as_texts()).rate, rate)
            self.assertEqual(self.alarms("test:2", f"--rate={text}"), self.alarms("test:2"))
        for text in "0", "1001", "1000.1", "25/0", "1/", "1e2", "-5", "x", "":
            with self.assertRaisesRegex(argparse.ArgumentTypeError, "is not a frame rate: it must be frames per"):
                part.rate_of(text)
            self.assertRegex(self.alarms("test:2", f"--rate={text}", status=2),
                             "^--rate: .*is not a frame rate: it must be frames per second above 0, up to 1000, such")


if __name__ == "__main__":
    unittest.main()
