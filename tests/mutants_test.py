#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests tests/mutants.py:  mutants_test.py FOLDER_OF_UNIVERSALMUTATOR

It runs the tool on a small project, whose tests notice some changes and miss others. Skips with 77 without
universalmutator, which WITH=mutants tests/run.sh installs in the folder.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))
import mutants  # noqa: E402
from mutation import sample  # noqa: E402
from mutation.build import copy_of  # noqa: E402

package = Path(sys.argv.pop(1))

PROJECT = """project('small', 'cpp')
code = static_library('code', 'code/ages.cpp', include_directories: '.')
program = executable('ages', 'ages_test.cpp', link_with: code)
test('ages', program, suite: 'elements')
test('other', find_program('true'), suite: 'lint')
"""
AGES = """// An age < 18 in a comment is no place for a change.
#include "code/ages.hpp"
bool is_child(int age) {
  return age < legal;
}
bool is_old(int age) {
  return age > 100;
}
int never_called(int age) {
  return age + 7;
}
int same(int age) {
  return age + 0;
}
"""
HEADER = "#pragma once\nconstexpr int legal = 18;\n"
TEST = """bool is_child(int), is_old(int);
int same(int);
int main() { return is_child(17) && !is_child(18) && is_old(500) && !is_old(5) && same(3) == 3 ? 0 : 1; }
"""


class Mutants(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.source, self.build = folder / "source", folder / "build"
        (self.source / "code").mkdir(parents=True)
        for name, text in {"meson.build": PROJECT, "code/ages.cpp": AGES, "code/ages.hpp": HEADER,
                           "ages_test.cpp": TEST}.items():
            (self.source / name).write_text(text, encoding="utf-8")

    def run_tool(self, *arguments, status=0):
        result = subprocess.run([sys.executable, TESTS / "mutants.py", "--source", self.source, "--build", self.build,
                                 "--folder", "code", "--count", "100", *arguments],
                                env={**os.environ, "PYTHONPATH": str(package)}, capture_output=True, text=True)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout

    def journal(self):
        return [json.loads(line) for line in (self.build / "journal.jsonl").read_text(encoding="utf-8").splitlines()]

    def test_notices_and_lists(self):
        said = self.run_tool()
        self.assertIn("code: 6 of 8 lines run (75.0 %)", said)
        results = {(entry["file"], entry["line"], entry["after"].strip()): entry["result"] for entry in self.journal()}
        cpp, hpp = "code/ages.cpp", "code/ages.hpp"
        self.assertEqual(results, {
            (cpp, 4, "return age <= legal;"): "noticed",
            (hpp, 2, "constexpr int legal = (18 + 1);"): "noticed",
            (cpp, 7, "return age >= 100;"): "survived",
            (cpp, 7, "return age > (100 + 1);"): "survived",
            (cpp, 10, "return age - 7;"): "survived",
            (cpp, 10, "return age + (7 + 1);"): "survived",
            (cpp, 13, "return age - 0;"): "same",
            (cpp, 13, "return age + (0 + 1);"): "noticed"})
        self.assertIn("7 changes: 3 noticed (42.9 %), 4 survived, 0 of them with a reason. Not counted: "
                      "0 do not compile, 1 give the same object.", said)
        self.assertRegex(
            said, r"survived: code/ages\.cpp:7\n  - return age > 100;\n  \+ return age >= 100;\n  no reason is known")
        self.assertRegex(
            said, r"survived: code/ages\.cpp:10\n  - return age \+ 7;\n  \+ return age - 7;\n  no test runs this line")
        self.assertEqual({entry["tests"] for entry in self.journal() if entry["line"] == 10}, {0})

        before = len(self.journal())
        self.assertEqual(self.run_tool().split("code: ")[1], said.split("code: ")[1])  # from the journal
        self.assertEqual(len(self.journal()), before)
        self.run_tool("--must", "50", status=1)

        # A better test retries the survivors.
        (self.source / "ages_test.cpp").write_text(TEST.replace("is_old(500)", "is_old(101) && !is_old(100)"),
                                                   encoding="utf-8")
        reasons = self.source / "reasons.txt"
        reasons.write_text("code/ages.cpp\n- return age + 7;\n+ return age - 7;\nIt is never called.\n",
                           encoding="utf-8")
        said = self.run_tool("--again", "--reasons", reasons)
        self.assertIn("7 changes: 5 noticed (71.4 %), 2 survived, 1 of them with a reason", said)
        self.assertIn("\n  It is never called.\n", said)
        # All survivors are retried, except the one with a reason.
        self.assertEqual(sorted(entry["after"].strip() for entry in self.journal()[before:]),
                         ["return age + (7 + 1);", "return age > (100 + 1);", "return age >= 100;"])

    def test_goes_on(self):
        self.run_tool("--count", "2")
        path = self.build / "journal.jsonl"
        path.write_text(path.read_text(encoding="utf-8") + '\n{"key": "code/ag', encoding="utf-8")  # killed there
        first = path.read_text(encoding="utf-8")
        self.run_tool("--count", "3")
        self.assertTrue(path.read_text(encoding="utf-8").startswith(first))
        self.assertEqual(sum(entry["result"] != "same" for entry in mutants.Journal(path).entries.values()), 3)

    def test_a_copy_undoes_what_a_killed_run_left(self):
        copy = copy_of(self.source, self.build / "source")
        times = [(copy / name).stat().st_mtime_ns for name in ("ages_test.cpp", "code/ages.hpp")]
        (copy / "code/ages.cpp").write_text("changed", encoding="utf-8")
        copy_of(self.source, copy)
        self.assertEqual((copy / "code/ages.cpp").read_text(encoding="utf-8"), AGES)
        self.assertEqual([(copy / name).stat().st_mtime_ns for name in ("ages_test.cpp", "code/ages.hpp")], times)


class Parts(unittest.TestCase):
    def test_reasons(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "reasons.txt"
            path.write_text("# about this file\n\na.cpp\n- x < 1\n+ x <= 1\nx is never 1,\nas b.cpp says.\n",
                            encoding="utf-8")
            self.assertEqual(mutants.reasons(path), {("a.cpp", "x < 1", "x <= 1"): "x is never 1, as b.cpp says."})
        # A comment may be reworded.
        change = sample.Mutant("a.cpp", 3, "  x < 1  // now", "  x <= 1  // now")
        self.assertEqual(mutants.reason_of(change, {("a.cpp", "x < 1", "x <= 1"): "why"}), "why")
        # Reasons for removed code hide nothing, and must be removed.
        for file, before, after in mutants.reasons(mutants.REASONS):
            with self.subTest(file=file, before=before):
                self.assertIn(after, [mutants.code(mutant.after)
                                      for mutant in sample.mutants_of(sample.generator(package), mutants.ROOT, file)
                                      if mutants.code(mutant.before) == before])


if __name__ == "__main__":
    if not sample.generator(package):
        print(f"skipped: {sample.PACKAGE} is not in {package}; WITH=mutants tests/run.sh installs it")
        sys.exit(77)
    unittest.main()
