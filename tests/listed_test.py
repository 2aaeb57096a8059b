#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks that no file of tests is forgotten in the build files:   listed_test.py PROJECT_FOLDER

The meson.build of the folder of NAME_test.cpp, .py or .sh, or one above it, must have the file's name, or 'NAME' in a
list; a build file that makes the beginning of NAME has its end in the list. The files of some folders are found by a
script. Exit status: 0; 1 with a line for each file."""
import re
import sys
from pathlib import Path

# Folders and what runs all files of tests there.
FOUND_BY = {"tests/examples/motion_alarm_service": "tests/examples.sh", "tests/gpu": "tests/gpu/run.sh"}
OPERATIONS = "kernels/meson.build"  # lists the operations, for which tests/kernels/meson.build makes names


def main():
    project = Path(sys.argv[1]).resolve()
    there = [path for folder in ("tests", "examples", "gst", "release", "docs") for suffix in ("cpp", "py", "sh")
             for path in sorted((project / folder).rglob(f"*_test.{suffix}"))]
    missing = []
    for path in there:
        folder = path.parent
        if str(folder.relative_to(project)) in FOUND_BY:
            continue
        files = [project / OPERATIONS, *(each / "meson.build" for each in (folder, *folder.parents)
                                         if each.is_relative_to(project))]
        text = "\n".join(file.read_text(encoding="utf-8") for file in files if file.is_file())
        words = path.stem.removesuffix("_test").split("_")
        listed = "|".join("_".join(words[i:]) for i in range(len(words)))
        if not re.search(rf"[/']{re.escape(path.name)}'|'({listed})'", text):
            missing.append(path)
    for path in missing:
        print(f"{path.relative_to(project)} is in no meson.build: nothing runs it")
    print(f"{len(there) - len(missing)} passed, {len(missing)} failed, 0 skipped")
    return not there or bool(missing)


if __name__ == "__main__":
    sys.exit(main())
