#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests how tests/run.sh counts:  results_test.py MESON

Runs tests/run.sh in a small project with two tests (one runs `meson test` in the same folder meanwhile), and
tests/results.py with logs that are broken.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parent
meson = sys.argv.pop(1)

PROJECT = f"""project('small')
test('outer', find_program('outer.sh'), env: {{'BUILD': meson.project_build_root(), 'MESON': '{meson}'}})
test('inner', find_program('inner.sh'))
"""
# `meson test` restarts its log, and then adds to it at the place that it has reached itself. So two that share a log
# spoil it.
# What tests/run.sh may set.
OPTIONS = "option('cuda', type: 'feature')\noption('cuda-arch', type: 'string')\n" \
          "option('cuda-optimize', type: 'boolean')\n"
OUTER = '#!/bin/sh\nset -e\n"$MESON" test -C "$BUILD" --no-rebuild inner\necho "3 passed, 0 failed, 0 skipped"\n'
INNER = "#!/bin/sh\nseq 10000\n"


def line(**fields):
    return (json.dumps({"name": "small / a", "result": "OK", "duration": 1.5, "returncode": 0,
                        "stdout": "2 passed, 0 failed, 0 skipped\n", **fields}) + "\n")


# What a program says, its result, and the row's numbers of cases, remark and reasons.
GOOGLE = "".join(f"a.cpp:7: Skipped\n{why}\n\n[  SKIPPED ] A.b\n" for why in ("no GPU", "no NPP", "no GPU"))
UNIT = ("test_a (m.T.test_a) ... ok\ntest_b (m.T.test_b)\nIts text. ... skipped 'no encoder'\n"
        'test_c (m.T.test_c) ... a warning\nskipped "there\'s no clip"\n\n---\nRan 3 tests in 0.001s\n\nOK '
        "(skipped=2)\n")
NO_TEXT = "---\nRan 9 tests in 0.001s\n\n"
SAID = [
    ("OK", "2 passed, 0 failed, 0 skipped\n", "2 0 0 "),
    ("OK", GOOGLE + "4 passed, 0 failed, 3 skipped\n", "4 0 3 no GPU|2 no GPU|1 no NPP"),
    ("OK", GOOGLE + "4 passed, 0 failed, 9 skipped\n", "4 0 9 says no reason|2 no GPU|1 no NPP|6 says no reason"),
    ("OK", UNIT, "1 0 2 no encoder|1 no encoder|1 there's no clip"),
    ("OK", UNIT + UNIT.replace("encoder", "broker"),
     "2 0 4 there's no clip|1 no encoder|2 there's no clip|1 no broker"),
    ("OK", "..s\n" + NO_TEXT + "OK (skipped=1)\n", "8 0 1 says no reason|1 says no reason"),
    ("OK", NO_TEXT + "OK\n", "9 0 0 "),
    ("FAIL", "", "0 1 0 fail, exit status 0"),
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
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

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
                           (line() + "[1]\n", "line 2 is no result"),
                           ('{"name": "a"}\n', "line 1 is no result"), (line(duration="long"), "line 1 is no result"),
                           ("", "has no results"), (None, "No such file")]:
            with self.subTest(log=log):
                result = self.results(log)
                self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), result.stderr)
                self.assertRegex(result.stderr, f"log.json.*{words}|{words}.*log.json")

    def test_the_row_of_a_command(self):
        for status, said, row in [
                ("0", "", "PASS\ta b\t2.5\t1\t0\t0\t"),
                ("77", "no Ray\n", "SKIP\ta b\t2.5\t0\t0\t1\tno Ray\t1 no Ray"),
                ("124", "FAIL: test_a (m.T)\n\n", "FAIL\ta b\t2.5\t0\t1\t0\texit status 124; test_a (m.T)")]:
            done = self.results(said, "--row", "a b", status, "2.5")
            self.assertEqual((done.stdout, done.stderr), (row + "\n", ""), said)

    def test_says_why_tests_were_skipped(self):
        """Programs that ran nothing, and cases of others by their reason; the count stays the last line."""
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

    def small_project(self, inner=INNER):
        (self.root / "tests").mkdir(exist_ok=True)
        for name in ["run.sh", "results.py", "prepare.sh"]:
            shutil.copy(TESTS / name, self.root / "tests")
        (self.root / "kernels").mkdir(exist_ok=True)
        shutil.copy(TESTS.parent / "kernels/find_nvcc.sh", self.root / "kernels")
        (self.root / "meson.build").write_text(PROJECT)
        (self.root / "meson_options.txt").write_text(OPTIONS)
        for name, text in [("outer.sh", OUTER), ("inner.sh", inner)]:
            (self.root / name).write_text(text)
            (self.root / name).chmod(0o755)

    def run_sh(self, *arguments, **environment):
        inherited = {name: value for name, value in os.environ.items()
                     if name not in ("BUILD_DIR", "WITH", "COMPAT", "SANITIZE", "FUZZ", "CUDA", "CUDA_HOME")}
        return subprocess.run([self.root / "tests/run.sh", *arguments], capture_output=True, text=True,
                              env={**inherited, "INSTALL": "0", "PATH": f"{Path(meson).parent}:{os.environ['PATH']}",
                                   **environment})

    def test_runs_beside_meson_test(self):
        self.small_project()
        logs = []
        for _ in range(2):
            result = self.run_sh("outer")
            self.assertEqual(result.stdout.splitlines()[-1:], ["3 passed, 0 failed, 0 skipped"],
                             result.stdout + result.stderr)
            self.assertNotIn("skipped, and why", result.stdout)
            self.assertEqual(result.returncode, 0)
            logs.append({path.name for path in (self.root / "build/meson-logs").glob("run-*.json")})
        self.assertLess(logs[0], logs[1])  # each run has its own log

    def test_a_missing_log_is_a_failure(self):
        self.small_project()
        result = self.run_sh("inner", "--logbase=elsewhere")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"run-.*\.json.*No such file|No such file.*run-.*\.json")
        self.assertNotIn("Traceback", result.stderr)
        self.assertEqual(result.stdout.splitlines()[-1:], ["0 passed, 1 failed, 0 skipped"], result.stdout)


if __name__ == "__main__":
    unittest.main()
