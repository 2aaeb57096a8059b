#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests that the settings in docs/motion.md find an object of three pixels. Exit status 77 without the bindings or
NumPy."""
import re
import unittest

import programs
import numpy

ROOT = programs.EXAMPLES.parent
WIDTH, HEIGHT = 320, 240


class Small(programs.InFolder):
    def test_an_object_of_three_pixels(self):
        frames = []
        for index in range(110):
            picture = numpy.full((HEIGHT, WIDTH), 90, numpy.uint8)
            picture[::16] += 20
            if index >= 60:
                picture[100, index - 40:index - 37] = 220
            frames.append(picture.tobytes() + bytes([128]) * (WIDTH * HEIGHT // 2))
        programs.launch(f"fdsrc ! rawvideoparse format=i420 width={WIDTH} height={HEIGHT} framerate=25/1 ! jpegenc "
                        f"quality=98 ! matroskamux ! filesink location={self.folder}/a.mkv", input=b"".join(frames))
        page = " ".join((ROOT / "docs/motion.md").read_text(encoding="utf-8").split())
        settings = re.search("an object of three pixels is found with `([^`]*)`", page)[1].split()
        self.assertIn("open-radius=0", settings)
        self.assertEqual(self.entered(settings), 1)
        self.assertEqual(self.entered([each for each in settings if each != "open-radius=0"]), 0)

    def entered(self, settings):
        return [line["event"] for line in self.alarms("a.mkv", settings=settings)].count("enter")


if __name__ == "__main__":
    unittest.main()
