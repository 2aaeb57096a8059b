#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests files with several video tracks: --track, and the messages of the programs. Exit status 77 without the bindings
of GStreamer or NumPy."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

import programs
from programs import EXAMPLES, has, launch, scan
programs.use("motion-scan")
import clips  # noqa: E402
import damage  # noqa: E402

SCAN = EXAMPLES / "motion-scan" / "motion-scan"
SIZES = (320, 240), (160, 120), (240, 176)  # of the tracks: a still picture, and two with a ball
FRAMES = 50


class Tracks(programs.InFolder):
    def make(self, name, muxer, count=2, encoder="jpegenc"):
        branches = " ".join(
            f"videotestsrc pattern={'ball' if number else 'smpte100'} num-buffers={FRAMES} ! "
            f"video/x-raw,format=I420,width={width},height={height},framerate=10/1 ! {encoder} ! "
            f"queue ! m.video_{number}"
            for number, (width, height) in enumerate(SIZES[:count]))
        path = self.folder / name
        launch(f"{muxer} name=m ! filesink location={path} {branches}")
        return path

    def test_each_track(self):
        for name, muxer, encoder in (("a.mkv", "matroskamux", "jpegenc"), ("a.mov", "qtmux", "jpegenc"),
                                     ("a.mp4", "mp4mux", "openh264enc ! h264parse")):
            if not has(encoder.split()[0]):
                continue
            path = self.make(name, muxer, 3, encoder)
            for track, (width, height) in enumerate(SIZES, 1):
                with self.subTest(name, track=track):
                    result = scan(path, track=track)
                    self.assertEqual((result["status"], result["width"], result["height"], result["frames"],
                                      result["incomplete"]), ("ok", width, height, FRAMES, ""))
                    self.assertEqual(result["motion_frames"] > 0, track > 1)
                    other = 2 if track == 1 else 1
                    self.assertEqual(result["track"], f"track {track} of 3; --track={other} analyses another one")

    def test_one_track_needs_no_word(self):
        path = self.make("a.mkv", "matroskamux", 1)
        self.assertEqual(scan(path, track=1)["track"], "")
        self.assertNotIn("track", self.report(path))

    def test_a_track_that_is_not_there(self):
        """Both programs print the same message."""
        for count, tracks in ((1, "1 video track"), (2, "2 video tracks")):
            path = self.make("a.mkv", "matroskamux", count)
            sentence = f"there is no track 3: it has {tracks}"
            result = scan(path, track=3)
            self.assertEqual((result["status"], result["error"]), ("failed", sentence))
            self.assertEqual(self.report(path, "--track=3", status=1), f"motion_report.py: {path}: {sentence}\n")

    def test_the_report_shows_the_track(self):
        path = self.make("a.mkv", "matroskamux")
        for track in 1, 2:
            said = self.report(path, f"--track={track}", "--clips")
            sentence = f"track {track} of 2; --track={3 - track} analyses the other one"
            self.assertRegex(said, f"(?m)^video +{sentence}$")
            self.assertIn(sentence, self.page())
            self.assertEqual(self.data()["size"], list(SIZES[track - 1]))
            cut = self.list_of_clips()
            self.assertEqual(bool(cut), track == 2)
        for row in cut:
            result = scan(self.folder / "out/clips" / row["file"])
            self.assertEqual((result["width"], result["height"]), SIZES[1])

    def test_what_is_lost_in_another_track_does_not_count(self):
        path = self.make("a.mov", "qtmux")
        data = path.read_bytes()
        begin = data.index(b"mdat")
        starts = [match.start() for match in re.finditer(b"\xff\xd8\xff", data[begin:])]
        self.assertEqual(len(starts), 2 * FRAMES)
        sizes = {}
        for number, start in enumerate(starts):  # each frame header has its width
            at = begin + start
            head = data.index(b"\xff\xc0", at)
            sizes[number] = int.from_bytes(data[head + 7:head + 9], "big")
        for track, (width, _) in enumerate(SIZES[:2], 1):
            broken, lost = bytearray(data), [number for number, size in sizes.items() if size == width][20:30]
            for number in lost:
                broken[begin + starts[number]:begin + starts[number] + 64] = bytes(64)
            bad = pathlib.Path(damage.write(self.folder / "bad.mov", bytes(broken)))
            self.assertEqual([scan(bad, track=each)["lost"] for each in (1, 2)],
                             [len(lost) if each == track else 0 for each in (1, 2)])

    def test_the_scan_keeps_tracks_apart(self):
        path = str(self.make("a.mkv", "matroskamux"))
        keys = [clips.clips_of([path], {}, chosen)[0].key for chosen in ({}, {"track": 2})]
        self.assertNotEqual(*keys)
        self.assertEqual(keys[0], clips.clip_of(path, {}).key)
        for options, text in ((("--clips", "--track=2"), "--clips cuts out the first video track"),
                              (("--track=0",), "0 is not a whole number of 1 or more")):
            done = subprocess.run([sys.executable, SCAN, path, f"--out={self.folder / 'out'}", *options],
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    os.environ.pop("GST_DEBUG", None)
    unittest.main()
