#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks lists against what they list:   listed_test.py PROJECT_FOLDER

Every test file must be in the build files. The file's name, or 'NAME' in a list, must be in the meson.build of the
folder of NAME_test.cpp, .py or .sh, or in one above it. If a build file adds the beginning of NAME, the list has its
end. In some folders a script finds the files.

Each operation of the top meson.build must have its files, and its element must be in each list of elements. Pages must
state the correct number of elements and formats. Exit status: 0; 1 with a line for each missing place."""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "bench"))
from report import CVCUDA_ALONE  # noqa: E402

# Folders, and the script that runs all test files there.
FOUND_BY = {"tests/examples/motion_alarm_service": "tests/examples.sh", "tests/gpu": "tests/gpu/run.sh"}
OPERATIONS = "kernels/meson.build"  # lists the operations; tests/kernels/meson.build makes names from them

# The places of an operation besides its element's name in LISTS: a file, and what the file must match. {0}: the
# operation.
PLACES = [("kernels/{0}/meson.build", r"kernel_sources"), ("kernels/{0}/{0}.hpp", ""), ("kernels/{0}/{0}.cpp", ""),
          ("kernels/{0}/plan.hpp", ""), ("kernels/{0}/cpu.cpp", ""), ("kernels/{0}/cuda.cpp", ""),
          ("gst/elements/{0}.cpp", r"register_{0}\b"), ("tests/kernels/reference/{0}.hpp", ""),
          ("tests/kernels/reference/{0}.cpp", ""), ("tests/kernels/{0}_test.cpp", ""),
          ("tests/elements/{0}_test.cpp", ""), ("tests/kernels/memory_test.cpp", r'"{0}\b'),
          ("tests/bench/{0}_rows.cpp", ""), ("docs/elements/cuda{0}.md", ""), ("docs/kernels.md", r"(?m)^\| `?{0}"),
          ("README.md", r"\[cuda{0}\]\(docs/elements/cuda{0}\.md\)"), ("CHANGELOG.md", "`cuda{0}`"),
          ("docs/design.md", r"One stem \([^)]*`{0}`"),
          ("docs/README.md", r"\[cuda{0}\]\(elements/cuda{0}\.md\)"), ("docs/mkdocs.yml", r"elements/cuda{0}\.md\b")]
# Files that name all elements.
LISTS = ["gst/python/cudavision/_selftest.py", "tests/bench/bench_pipelines.py", "tests/elements/properties_test.cpp",
         "tests/elements/profiles.hpp", "tests/gpu/run.sh", "tests/soak/*.cpp", "tests/validate/run.sh",
         "docs/pictures.sh"]
NOT_LISTED = {"tests/elements/profiles.hpp": ["blend"]}  # the mixer has its own tests
NUMBERS = dict(zip(["five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"], range(5, 13)))


def operations(project):
    """The only list of operations, in the top meson.build."""
    text = (Path(project) / "meson.build").read_text(encoding="utf-8")
    return re.findall(r"'(\w+)'", re.search(r"^operations = \[([^]]*)\]", text, re.MULTILINE)[1])


def own_rows(text):
    """A page without the table rows that only CV-CUDA has, which name no element."""
    return "\n".join(line for line in text.splitlines()
                     if tuple(cell.strip() for cell in line.split("|")[1:3]) not in CVCUDA_ALONE)


def read(project, pattern):
    """The text of all files that match a pattern; None if there are none."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(project.glob(pattern))]
    text = "\n".join(texts) if texts else None
    return own_rows(text) if pattern == "docs/kernels.md" else text


def missing_places(project, name):
    """A sentence for each missing place of an operation."""
    for path, pattern in PLACES:
        path, pattern = path.replace("{0}", name), pattern.replace("{0}", name)
        text = read(project, path)
        if text is None:
            yield f"there is no {path}"
        elif not re.search(pattern, text):
            yield f"{path} has nothing for {name}: no {pattern}"
    for path in LISTS:
        if name not in NOT_LISTED.get(path, []) and not re.search(rf"\bcuda{name}\b", read(project, path) or ""):
            yield f"{path} does not name cuda{name}"


def wrong_numbers(project, count):
    """The places on pages that state another number of elements."""
    for page in [project / "README.md", *sorted((project / "docs").rglob("*.md"))]:
        for number in re.findall(rf"\b({'|'.join(NUMBERS)}) elements", page.read_text(encoding="utf-8")):
            if NUMBERS[number] != count:
                yield f"{page.relative_to(project)} says {number} elements, and there are {count}"


def wrong_formats(project):
    """The pages that state another number of formats, or none."""
    table = (project / "kernels/core/format.hpp").read_text(encoding="utf-8")
    count = int(re.search(r"format_count = (\d+)", table)[1])
    for page in ("README.md", "CHANGELOG.md"):  # the newest number of CHANGELOG.md comes first
        number = re.search(r"\b(\d+) formats\b", (project / page).read_text(encoding="utf-8"))
        if not number:
            yield f"{page} does not say how many formats there are"
        elif int(number[1]) != count:
            yield f"{page} says {number[1]} formats, and there are {count}"


def main():
    project = Path(sys.argv[1]).resolve()
    names = operations(project)
    failures = [sentence for name in names for sentence in missing_places(project, name)]
    failures += [*wrong_numbers(project, len(names)), *wrong_formats(project)]
    # For an operation that does not exist, every place must be reported as missing.
    if len(list(missing_places(project, "nonesuch"))) != len(PLACES) + len(LISTS):
        failures.append("a place of PLACES or LISTS is there for every name")
    places = (len(PLACES) + len(LISTS)) * len(names)
    there = [path for folder in ("tests", "examples", "gst", "release", "docs") for suffix in ("cpp", "py", "sh")
             for path in sorted((project / folder).rglob(f"*_test.{suffix}"))]
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
            failures.append(f"{path.relative_to(project)} is in no meson.build: nothing runs it")
    print("\n".join(failures))
    print(f"{max(len(there) + places - len(failures), 0)} passed, {len(failures)} failed, 0 skipped")
    return not there or bool(failures)


if __name__ == "__main__":
    sys.exit(main())
