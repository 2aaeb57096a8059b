# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tests of examples/motion-scan share this module: clips, and a folder for each test."""
import os
import pathlib

import programs

FOLDER = programs.EXAMPLES / "motion-scan"
PROGRAM = FOLDER / "motion-scan"
LIMIT = 900  # seconds after which a program counts as hanging; none takes nearly as long, even on the busiest machine
FOREVER = 10**6  # enough seconds for a clip that ends by itself, even on the busiest machine
FRAMES = 40


def make_clip(path, frames=FRAMES, muxer="avimux"):
    """Writes a clip of a moving ball."""
    programs.launch(f"videotestsrc pattern=ball num-buffers={frames} ! video/x-raw,width=160,height=120,framerate=20/1 "
                    f"! jpegenc ! {muxer} ! filesink", location=path)


def make_sound(path):
    programs.launch("audiotestsrc num-buffers=20 ! wavenc ! filesink", location=path)


class Folder(programs.InFolder):
    """A test in its own folder, which is the current folder."""

    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    def touch(self, *names):
        for name in names:
            path = pathlib.Path(os.fsdecode(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
