#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests how tests/run.sh counts: tests/results.py."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parent


def line(**fields):
    return (json.dumps({"name": "small / a", "result": "OK", "duration": 1.5, "returncode": 0,
                        "stdout": "2 passed, 0 failed, 0 skipped\n", **fields}) + "\n")


# The output of a program, its result, and the numbers of cases, remark and reasons in its row.
GOOGLE = "".join(f"a.cpp:7: Skipped\n{why}\n\n[  SKIPPED ] A.b\n" for why in ("no GPU", "no NPP", "no GPU"))
UNIT = ("test_a (m.T.test_a) ... ok\ntest_b (m.T.test_b)\nIts text. ... skipped 'no encoder'\n"
        'test_c (m.T.test_c) ... a warning\nskipped "there\'s no clip"\n\n---\nRan 3 tests in 0.001s\n\nOK '
        "(skipped=2)\n")
NO_TEXT = "---\nRan 9 tests in 0.001s\n\n"
SAID = [
    ("OK", "2 passed, 0 failed, 0 skipped\n", "2 0 0 "),
    ("OK", GOOGLE + "4 passed, 0 failed, 9 skipped\n", "4 0 9 says no reason|2 no GPU|1 no NPP|6 says no reason"),
    ("OK", UNIT, "1 0 2 no encoder|1 no encoder|1 there's no clip"),
    ("OK", "..s\n" + NO_TEXT + "OK (skipped=1)\n", "8 0 1 says no reason|1 says no reason"),
    ("OK", NO_TEXT + "OK\n", "9 0 0 "),
    ("FAIL", NO_TEXT + "FAILED (failures=1, errors=2, skipped=1, expected failures=1, unexpected successes=1)\n",
     "4 4 1 fail, exit status 0|1 says no reason"),
    ("FAIL", "a/b_test.cpp:90:F:cudadiff cpu:keeps_metas:0: NV12: expected 1\n50%: Checks: 2, Failures: 1, Errors: 0\n",
     "1 1 0 fail, exit status 0; cudadiff cpu:keeps_metas:0: NV12: expected 1"),
    ("FAIL", "[  FAILED  ] Sum.Equals/3, where GetParam() = 1 (2 ms)\n[  FAILED  ] 1 test, listed below:\n"
     "[  FAILED  ] Sum.Equals/3\n", "0 1 0 fail, exit status 0; Sum.Equals/3"),
    ("FAIL", "".join(f"FAIL: test_{i} (m.T)\n" for i in range(5)),
     "0 1 0 fail, exit status 0; test_0 (m.T); test_1 (m.T); test_2 (m.T) and 2 more"),
    ("SKIP", "---\nRan 2 tests in 0.001s\n\nOK\nskipped: no Ray\n", "2 0 1 no Ray|1 no Ray"),
    ("SKIP", "skipped: no cv2\n", "0 0 1 no cv2|1 no cv2"),
    ("SKIP", "", "0 0 1 says no reason|1 says no reason"),
]


class Results(unittest.TestCase):
    def setUp(self):
        self.root = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def results(self, log, *arguments):
        path = self.root / "log.json"
        path.unlink(missing_ok=True)
        if log is not None:
            path.write_text(log, encoding="utf-8")
        return subprocess.run([sys.executable, TESTS / "results.py", *arguments, path], capture_output=True, text=True)

    def test_rows(self):
        done = self.results("".join(line(result=result, stdout=said) for result, said, _ in SAID))
        self.assertEqual(done.stderr, "")
        for (result, said, expected), row in zip(SAID, done.stdout.splitlines(), strict=True):
            with self.subTest(said=said):
                first, name, seconds, *counts = row.split("\t")
                self.assertEqual((first, name, seconds), ("PASS" if result == "OK" else result, "a", "1.5"))
                self.assertEqual(" ".join(counts[:3]) + " " + "|".join(counts[3:]), expected)

    def test_says_what_is_wrong_with_a_log(self):
        for log, words in [(line() + line()[:40] + line(), "line 2 is no result of one test"),
                           ('{"name": "a"}\n', "line 1 is no result"),
                           ("", "has no results"), (None, "No such file")]:
            with self.subTest(log=log):
                result = self.results(log)
                self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), result.stderr)
                self.assertRegex(result.stderr, f"log.json.*{words}|{words}.*log.json")

    def test_the_row_of_a_command(self):
        done = self.results("FAIL: test_a (m.T)\n\n", "--row", "a b", "124", "2.5")
        self.assertEqual(done.stdout, "FAIL\ta b\t2.5\t0\t1\t0\texit status 124; test_a (m.T)\n")
        self.assertEqual(self.results("no Ray\n", "--row", "a b", "77", "2").stdout.split("\t")[-1], "1 no Ray\n")

    def test_says_why_tests_were_skipped(self):
        """Programs that ran nothing come first, then cases of others by reason. The count stays the last line."""
        rows = ["PASS\tkernels_a\t1.0\t5\t0\t3\tno GPU\t2 no GPU\t1 no NPP",
                "SKIP\tmqtt\t0.1\t0\t0\t1\tno broker\t1 no broker",
                *(f"PASS\tk{i}\t1.0\t5\t0\t2\tno GPU\t2 no GPU" for i in range(4)),
                "FAIL\tf\t1.0\t0\t1\t1\texit status 1\t1 no NPP"]
        result = self.results("\n".join(rows) + "\n", "--table")
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        self.assertEqual(result.stdout.splitlines()[-6:],
                         ["skipped, and why:", "     1  mqtt: no broker",
                          "    10  no GPU (in kernels_a, k0, k1 and 2 more)", "     2  no NPP (in kernels_a, f)", "",
                          "25 passed, 1 failed, 13 skipped"])


if __name__ == "__main__":
    unittest.main()
