# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tests of the programs in examples/ share this module. It makes the programs' modules importable, and ends a test
with status 77 if a module is missing."""
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
REPORT = EXAMPLES / "motion-report" / "motion_report.py"
ALARM = os.environ.get("MOTION_ALARM", "")  # the C++ program
ALARM_PY = [sys.executable, str(EXAMPLES / "motion_alarm.py")]
# The words that start each alarm, and the words before a setting of cudadiff. Both save snapshots in the folder.
ALARMS = [(ALARM_PY, "")] + ([([ALARM, "--snapshots=."], "--set=")] if ALARM else [])
HANGS = 3600  # longer than anything takes on the busiest machine, in seconds
sys.dont_write_bytecode = True
sys.path[:0] = [str(EXAMPLES)]
try:
    import numpy  # noqa: F401: the report needs it
    import common
except (ImportError, ValueError) as error:
    print(f"skipped: no Python bindings of GStreamer, or no NumPy ({error})")
    sys.exit(77)
common.Gst.init(None)


def use(program):
    """Also makes the modules of the program in this folder importable."""
    sys.path.insert(1, str(EXAMPLES / program))


def has(*elements):
    return all(map(common.Gst.ElementFactory.find, elements))


def launch(description, location=None, **options):
    """Runs a pipeline whose words are separated by blanks. Its last element has this location. Returns the result of
    subprocess.run()."""
    if "capture_output" not in options:
        options["stderr"] = subprocess.DEVNULL
    words = description.split() + ([f"location={location}"] if location else [])
    return subprocess.run(["gst-launch-1.0", "-q", *words], check=True, **options)


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def scan(path, **request):
    """The result of motion-scan for a clip. use() must have made its modules importable."""
    import analyse
    return analyse.analyse({"uri": pathlib.Path(path).absolute().as_uri(), "settings": {"preset": "outdoor"},
                            "backend": "cpu", "timeout": 10**6, "threads": 1, **request})


def write_frames(path, frames, size, encoder, muxer="matroskamux"):
    """Writes a clip of 25 frames per second from their luma (uint8, height × width); they are gray."""
    gray = bytes([128]) * (size[0] * size[1] // 2)
    launch(f"fdsrc ! rawvideoparse format=i420 width={size[0]} height={size[1]} framerate=25/1 ! {encoder} ! {muxer} ! "
           "filesink", location=path, input=b"".join(frame.tobytes() + gray for frame in frames))


class InFolder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_report(self, *arguments):
        """Runs motion-report in the folder. It writes into out/. Returns the result of subprocess.run()."""
        return subprocess.run([REPORT, *arguments, "--out=out", "--backend=cpu"], capture_output=True, text=True,
                              cwd=self.folder)

    def report(self, *arguments, status=0):
        """Like run_report(). Returns the output."""
        done = self.run_report(*arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def alarms(self, *arguments, settings=(), status=0):
        """The lines of both alarms, which must agree except for the names of snapshots; after a failure, the
        message."""
        found = []
        for program, option in ALARMS:
            done = subprocess.run([*program, *arguments, *(option + each for each in settings)], cwd=self.folder,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, status, done.stderr)
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            for line in lines:
                if "snapshot" in line:
                    self.assertTrue((self.folder / line["snapshot"]).is_file())
                    line["snapshot"] = line["snapshot"].removeprefix("./").removeprefix("1-")
            found.append(lines if not status else done.stderr.partition(": ")[2].partition("; see")[0].strip().replace(
                "argument --rate", "--rate").replace("The frames", "the frames").rstrip("."))
        self.assertEqual(found[1:], found[:1] * (len(found) - 1))
        return found[0]

    def page(self, folder="out"):
        return (self.folder / folder / "report.html").read_text(encoding="utf-8")

    def data(self, folder="out"):
        """The data in the page of a report."""
        return json.loads(re.search('id="data">(.*?)</script>', self.page(folder))[1])

    def events(self, *kinds):
        """The lines of motion.jsonl, or only the lines of these kinds."""
        lines = map(json.loads, (self.folder / "out/motion.jsonl").read_text().splitlines())
        return [event for event in lines if not kinds or event["event"] in kinds]

    def list_of_clips(self):
        return json.loads((self.folder / "out/clips/clips.json").read_text())

    def names(self, folder="out"):
        return sorted(path.name for path in (self.folder / folder).iterdir())
