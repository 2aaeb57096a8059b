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

    def page(self, folder="out"):
        return (self.folder / folder / "report.html").read_text(encoding="utf-8")

    def data(self, folder="out"):
        """The data in the page of a report."""
        return json.loads(re.search('id="data">(.*?)</script>', self.page(folder))[1])

    def events(self, *kinds):
        """The lines of motion.jsonl, or only those of these kinds."""
        lines = map(json.loads, (self.folder / "out/motion.jsonl").read_text().splitlines())
        return [event for event in lines if not kinds or event["event"] in kinds]

    def list_of_clips(self):
        return json.loads((self.folder / "out/clips/clips.json").read_text())

    def names(self, folder="out"):
        return sorted(path.name for path in (self.folder / folder).iterdir())
