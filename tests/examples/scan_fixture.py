# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests of examples/motion-scan share: clips, and a folder for each test."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
FOLDER = EXAMPLES / "motion-scan"
PROGRAM = FOLDER / "motion-scan"
LIMIT = 900  # seconds after which something hangs; no program needs nearly as many, on the busiest machine
FOREVER = 10**6  # seconds for a clip that ends by itself, however busy the machine is
FRAMES = 40


def make_clip(path, frames=FRAMES, size=160, muxer="avimux"):
    """Writes a clip of a ball that moves."""
    with open(path, "wb") as stream:
        subprocess.run(["gst-launch-1.0", "-q", "videotestsrc", "pattern=ball", f"num-buffers={frames}", "!",
                        f"video/x-raw,width={size},height=120,framerate=20/1", "!", "jpegenc", "!",
                        *muxer.split(), "!", "fdsink"], stdout=stream, check=True, timeout=LIMIT)


def make_sound(path):
    subprocess.run(["gst-launch-1.0", "-q", "audiotestsrc", "num-buffers=20", "!", "wavenc", "!", "filesink",
                    f"location={path}"],
                   check=True, timeout=LIMIT)


class Folder(unittest.TestCase):
    """A test in its own folder, which is the current one."""

    def setUp(self):
        self.before, self.folder = os.getcwd(), pathlib.Path(tempfile.mkdtemp())
        os.chdir(self.folder)

    def tearDown(self):
        os.chdir(self.before)
        shutil.rmtree(self.folder)

    def touch(self, *names):
        for name in names:
            path = pathlib.Path(os.fsdecode(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
