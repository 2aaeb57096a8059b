#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests the soak's journal: an injected fault is found, and found again from the journal; the twins show whose fault it
is; run.sh keeps the journal beside its log.

  journal_test.py SOAK RUN.SH"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOAK, RUN_SH = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
FAILED = re.compile(
    r"FAILED: ([^,]+), seed (\d+), frame \d+, action \d+ .*: frame \d+ is wrong: the fault that was put in")


def soak(*arguments, **environment):
    return subprocess.run([SOAK, "--patience", "20", *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, **environment})


def actions(journal, pipeline):
    """The actions of a pipeline up to its first failure."""
    lines = [line.split("\t") for line in journal.read_text().splitlines()[1:]]
    own = [line[3] for line in lines if int(line[0]) == pipeline]
    first = next((i for i, line in enumerate(own) if line.startswith("! ")), len(own))
    return [line[2:] for line in own[:first] if line.startswith("> ") and line != "> end"]


class JournalTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.journal = self.folder / "run.journal"

    def test_a_fault_is_found_again_from_the_journal(self):
        first = soak("--backend", "cpu", "--pipelines", 4, "--seed", 5, "--actions", 60, "--fault", "seek", "--journal",
                     self.journal)
        self.assertEqual(first.returncode, 1, first.stdout + first.stderr)
        found = set(FAILED.findall(first.stdout))
        self.assertEqual({name for name, _ in found}, {"chain", "queues", "difference", "blend"}, first.stdout)
        self.assertIn(str(self.journal), first.stdout)
        # The twins contain no elements of this plugin, so they do not have the fault.
        self.assertEqual(len(re.findall("without our elements: does not fail$", first.stdout, re.M)), 4, first.stdout)
        text = self.journal.read_text()
        for mark in ("> seek ", "# flushing seek to frame ", "= PLAYING", "! frame "):
            self.assertIn("\t" + mark, text)

        with self.subTest("again"):
            again = self.journal.with_name("again.journal")
            second = soak("--replay", self.journal, "--fault", "seek", "--journal", again)
            self.assertEqual(second.returncode, 1, second.stdout + second.stderr)
            self.assertEqual(set(FAILED.findall(second.stdout)), found, second.stdout)
            for pipeline in range(4):
                # The frame after the third seek may arrive when the next action has begun.
                first_time, second_time = actions(self.journal, pipeline), actions(again, pipeline)
                shorter = min(len(first_time), len(second_time))
                self.assertEqual(first_time[:shorter], second_time[:shorter])
                self.assertGreaterEqual(sum(action.startswith("seek ") for action in second_time), 3)
        with self.subTest("one pipeline"):
            one = soak("--replay", self.journal, "--only", 3, "--fault", "seek")
            self.assertEqual({name for name, _ in FAILED.findall(one.stdout)}, {"blend"}, one.stdout)
        with self.subTest("without the fault"):
            healed = soak("--replay", self.journal)
            self.assertEqual(healed.returncode, 0, healed.stdout + healed.stderr)
            self.assertIn("4 passed, 0 failed", healed.stdout)
        with self.subTest("a fault that GStreamer's elements have, too"):
            twin = soak("--replay", self.journal, "--twin", "--fault", "seek")
            self.assertEqual(twin.returncode, 1)
            self.assertEqual(twin.stdout.count(" without our elements: also fails: frame"), 4, twin.stdout)

    def test_a_run_that_is_skipped_leaves_no_journal(self):
        done = soak("--backend", "cpu", "--journal", self.journal, GST_PLUGIN_PATH_1_0="",
                    GST_REGISTRY=f"{self.folder}/registry")
        self.assertEqual(done.returncode, 77, done.stdout + done.stderr)
        self.assertFalse(self.journal.exists())

    def test_run_sh_keeps_the_journal_of_a_failure_beside_its_log(self):
        bundle = self.folder / "bundle"
        (bundle / "tests/soak").mkdir(parents=True)
        shutil.copy(RUN_SH, bundle)
        (bundle / "VERSION").write_text("1")
        (bundle / "tests/soak/soak").symlink_to(SOAK)
        (bundle / "plugin").symlink_to(os.environ["GST_PLUGIN_PATH_1_0"])
        (bundle / "gst").symlink_to(subprocess.check_output(["pkg-config", "--variable=pluginsdir", "gstreamer-1.0"],
                                                            text=True).strip())
        logs = bundle / "the logs"

        def run(arguments):
            # These arguments replace the arguments of run.sh.
            return subprocess.run([bundle / "run.sh", "soak"], capture_output=True, text=True, env={
                **os.environ, "OUT": str(logs),
                "SOAK_ARGS": f"--backend cpu --pipelines 1 --patience 20 --actions 30 {arguments}"})

        failed = run("--fault set")
        self.assertEqual(failed.returncode, 1, failed.stdout + failed.stderr)
        self.assertIn("the fault that was put in", (logs / "soak.log").read_text())
        self.assertIn("the fault that was put in", (logs / "soak.journal").read_text())
        self.assertIn(f"the journal: {logs}/soak.journal", failed.stdout)
        passed = run("")
        self.assertEqual(passed.returncode, 0, passed.stdout + passed.stderr)
        self.assertFalse((logs / "soak.journal").exists())
        self.assertNotIn("the journal", passed.stdout)

    def test_a_replay_does_not_overwrite_its_journal(self):
        text = "soak-journal 1 backend=cpu seed=1 pipelines=1\n0\t0.1\t0\t> play\n"
        self.journal.write_text(text)
        (self.journal.parent / "same").symlink_to(self.journal)
        for name in (self.journal, self.journal.parent / "same"):
            done = soak("--replay", self.journal, "--journal", name)
            self.assertEqual((done.returncode, "--journal names the file" in done.stderr), (1, True), done.stderr)
            self.assertEqual(self.journal.read_text(), text)

    def test_what_is_no_journal(self):
        head = "soak-journal 1 backend=cpu seed=1 pipelines=1\n"
        for text, message in (("", "no journal"), ("soak-journal 2 backend=cpu\n", "no journal"),
                              (head + "0\t0.1\tmany\t> play\n", "line 2")):
            self.journal.write_text(text)
            done = soak("--replay", self.journal)
            self.assertEqual((done.returncode, message in done.stderr), (1, True), done.stderr)
        self.journal.unlink()
        self.assertIn("No such file", soak("--replay", self.journal).stderr)
        # An unknown action, or one with a wrong number, is a failure, but does not end the process.
        for action in ("jump 3", "set 9 9", "seek", "seek 99999999"):
            self.journal.write_text(f"{head}0\t0.1\t0\t> play\n0\t0.2\t3\t> {action}\n0\t0.3\t9\t> end\n")
            done = soak("--replay", self.journal)
            self.assertEqual((done.returncode, f'the action "{action}"' in done.stdout), (1, True), done.stdout)


if __name__ == "__main__":
    if (run := soak("--backend", "cpu", "--pipelines", 1, "--actions", 1)).returncode == 77:
        print(run.stdout)
        sys.exit(77)
    unittest.main()
