#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks that each row of the tables of faults and of attacks names an existing test:  promises_test.py ROOT"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
files = {}
for file in [*root.glob("tests/**/*_test.py"), *root.glob("tests/**/*_test.cpp")]:
    files.setdefault(file.name, []).append(file.read_text(encoding="utf-8"))
wrong, count = [], 0
for name in ("SECURITY.md", "docs/faults.md"):
    table = [line for line in (root / name).read_text(encoding="utf-8").splitlines()
             if re.match(r"\| .* test \|$", line)]
    if not table:
        wrong.append(f"{name} has no table with a column of tests")
    rows = (root / name).read_text(encoding="utf-8").partition(table[0])[2].splitlines()[2:] if table else []
    for row in rows:
        if not row.startswith("|"):
            break
        named = row.rsplit(" | ", 1)[1]
        tests = [(file, test) for file, some in re.findall(r"`([\w.]+_test[.]\w+)`: ((?:`\w+`(?:, )?)+)", named)
                 for test in re.findall(r"`(\w+)`", some)]
        if not tests and "](docs/" not in named:
            wrong.append(f"{name}: no test in: {row[:60]}")
        for file, test in tests:
            count += 1
            if not any(re.search(rf"(def |TEST\(|void ){test}\b", text) for text in files.get(file, [])):
                wrong.append(f"{name}: {file} has no test {test}")
for line in wrong:
    print("FAILED:", line)
print(f"{count} tests named")
sys.exit(bool(wrong) or not count)
