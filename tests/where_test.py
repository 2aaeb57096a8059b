#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks the lists "Where to change what" in the sources, and the walks in CONTRIBUTING.md:
  where_test.py PROJECT_FOLDER

Each file that a list names must exist: beside the file of the list, in kernels/, or in the project. Each name in code
must occur there: in that folder, in kernels/core, kernels/cuda, kernels/cpu, or in a file that the list names. Names
are words with "()", "::" or "_"; "name_…" is the beginning of a name. A name before "(FILE)" or "in FILE" must occur in
that file. What a step of a walk names in code must occur in files of the walk. Exit status: 0; 1 with a line for each
name that does not exist.
"""
import re
import sys
from pathlib import Path

SUFFIXES = {".cpp", ".hpp", ".cu", ".cuh", ".h"}
FILE = re.compile(r"[\w./…*]*\w+\.(?:cpp|hpp|cuh|cu)\b")
NAME = re.compile(r"\b[A-Za-z]\w*(?:::\w+)*\(\)|\b[A-Za-z]\w*(?:::\w+)+|\b[A-Za-z]\w*_\w*…?")
PATH = re.compile(r"[\w./-]*\w+\.(?:cpp|hpp|cuh|cu|py|md)\b")
PLACED = re.compile(rf"({NAME.pattern}) (?:in |\()({FILE.pattern})")


def lists(text):
    """The text of each list of a file: the comment from "Where to change what" on."""
    for match in re.finditer(r"^// *Where to change what.*\n(?:^//.*\n)*", text, re.MULTILINE):
        yield match.group().replace("\n//", "\n")


def files_named(words, path, project):
    """The files that a list names, and the names of those that do not exist. `words`: the list without its
    names in code."""
    found, missing = [], []
    for name in FILE.findall(words):
        if "…" in name or "*" in name:
            continue
        places = [path.parent / name, project / "kernels" / name, project / name]
        existing = [place for place in places if place.exists()]
        found += existing[:1]
        missing += [] if existing else [name]
    return found, missing


def occurs(name, code):
    return all(re.search(rf"\b{part.removesuffix('…')}" + ("" if part.endswith("…") else r"\b"), code)
               for part in name.removesuffix("()").split("::"))


def code_of(files):
    """The text of files without comments."""
    return "\n".join(re.sub(r"//.*", "", file.read_text(encoding="utf-8")) for file in files)


def check(path, project):
    """The names in the lists of a file that do not exist."""
    for words in lists(path.read_text(encoding="utf-8")):
        found, missing = files_named(words, path, project)
        yield from missing
        folders = [path.parent, *(project / "kernels" / toolbox for toolbox in ("core", "cuda", "cpu"))]
        files = [file for folder in folders for file in sorted(folder.iterdir()) if file.suffix in SUFFIXES] + found
        code = code_of(files)
        yield from (name for name in dict.fromkeys(NAME.findall(FILE.sub("", words))) if not occurs(name, code))
        for name, file in PLACED.findall(words):
            place = [known for known in found if known.name == Path(file).name]
            if place and not occurs(name, code_of(place)):
                yield f"{name} in {file}"


def walks(text):
    """(title, [steps]) of each walk of CONTRIBUTING.md."""
    for walk in re.split(r"^(?=\*\*A )", text.split("\n## Walks\n")[1].split("\n## ")[0], flags=re.MULTILINE)[1:]:
        yield walk.split("**")[1], re.split(r"^\d+\. ", walk, flags=re.MULTILINE)[1:]


def check_walk(steps, sources):
    """The files and the names of a walk that do not exist. A file is named with its folder, or only by its name."""
    found = []
    for step in steps:
        for name in PATH.findall(step):
            existing = [source for source in sources if str(source).endswith(f"/{name}")]
            found += existing
            yield from [] if existing else [name]
    code = code_of(found)
    for step in steps:
        for words in re.findall(r"`([^`]*)`", PATH.sub("", step)):
            yield from (name for name in NAME.findall(words) if not occurs(name, code))


def main():
    project, failed, count = Path(sys.argv[1]).resolve(), 0, 0
    for path in sorted(path for path in (project / "kernels").rglob("*") if path.suffix in SUFFIXES):
        for name in check(path, project):
            print(f"{path.relative_to(project)}: its list names {name}, which does not exist")
            failed += 1
        count += "Where to change what" in path.read_text(encoding="utf-8")
    sources = [path for folder in ("kernels", "gst", "tests", "examples", "docs")
               for path in sorted((project / folder).rglob("*")) if path.suffix in SUFFIXES | {".py", ".md"}]
    sources.append(project / "CHANGELOG.md")
    for title, steps in walks((project / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        for name in check_walk(steps, sources):
            print(f"CONTRIBUTING.md: the walk \"{title}\" names {name}, which does not exist")
            failed += 1
        count += 1
    if not count:
        print("no file has a list")
        failed += 1
    print(f"{count - failed if failed < count else 0} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
