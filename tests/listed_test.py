#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks that meson knows each test:   listed_test.py PROJECT_FOLDER BUILD_FOLDER

Each file NAME_test.cpp, .py or .sh must be a source of a target, or in the command of a test. Folders of which meson
knows no test are left out: what they need is not installed. Exit status: 0; 1 with a line for each file."""
import json
import os
import subprocess
import sys
from pathlib import Path


def introspect(build, what):
    return json.loads(subprocess.run([*os.environ.get("MESON", "meson").split(), "introspect", build, f"--{what}"],
                                     check=True, stdout=subprocess.PIPE, text=True).stdout)


def main():
    project, build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    known = {Path(name) for target in introspect(build, "targets") for group in target["target_sources"]
             for name in group.get("sources", [])}
    known |= {(build / word).resolve() for test in introspect(build, "tests") for word in test["cmd"]}
    there = [path for folder in ("tests", "examples", "gst", "release", "docs") for suffix in ("cpp", "py", "sh")
             for path in sorted((project / folder).rglob(f"*_test.{suffix}"))]
    folders = {path.parent for path in there if path in known}
    checked = [path for path in there if path.parent in folders]
    missing = [path for path in checked if path not in known]
    for path in missing:
        print(f"{path.relative_to(project)} is in no meson.build: nothing runs it")
    print(f"{len(checked) - len(missing)} passed, {len(missing)} failed, 0 skipped")
    return not checked or bool(missing)


if __name__ == "__main__":
    sys.exit(main())
