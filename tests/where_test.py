#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks the lists "Where to change what" in the sources, and the walks in CONTRIBUTING.md:
  where_test.py PROJECT_FOLDER

Each file that a list names must exist beside the file with the list, in kernels/, or in the project. A walk names files
with their folders, or only by their names. Each name of code must occur in code: names are words with "()", "::" or
"_", and in walks those between backquotes. "name_…" is the beginning of a name. Exit status: 0; 1 with a line for each
name that does not exist.
"""
import re
import sys
from pathlib import Path

CODE = {".cpp", ".hpp", ".cu", ".cuh", ".h"}
FILE = re.compile(r"[\w./…*-]*\w+\.(?:cpp|hpp|cuh|cu|py|md)\b")
NAME = re.compile(r"\b[A-Za-z]\w*(?:::\w+)*\(\)|\b[A-Za-z]\w*(?:::\w+)+|\b[A-Za-z]\w*_\w*…?")


def lists(text):
    """The text of each list in a file: the comment that starts with "Where to change what"."""
    for match in re.finditer(r"^// *Where to change what.*\n(?:^//.*\n)*", text, re.MULTILINE):
        yield match.group().replace("\n//", "\n")


def walks(text):
    """(title, text) of each walk of CONTRIBUTING.md."""
    for walk in re.split(r"^(?=\*\*A )", text.split("\n## Walks\n")[1].split("\n## ")[0], flags=re.MULTILINE)[1:]:
        yield walk.split("**")[1], walk


def occurs(name, code):
    return all(re.search(rf"\b{part.removesuffix('…')}" + ("" if part.endswith("…") else r"\b"), code)
               for part in name.removesuffix("()").split("::"))


def main():
    project, wrong, count = Path(sys.argv[1]).resolve(), [], 0
    sources = [path for folder in ("kernels", "gst", "tests", "examples", "docs")
               for path in sorted((project / folder).rglob("*")) if path.suffix in CODE | {".py", ".md"}]
    texts = {path: path.read_text(encoding="utf-8") for path in sources}
    sources.append(project / "CHANGELOG.md")
    code = "\n".join(re.sub(r"//.*", "", text) for path, text in texts.items() if path.suffix in CODE | {".py"})
    for path, words in ((path, words) for path in texts if path.is_relative_to(project / "kernels")
                        for words in lists(texts[path])):
        missing = [name for name in FILE.findall(words) if not re.search("[…*]", name) and not any(
            (place / name).exists() for place in (path.parent, project / "kernels", project))]
        missing += [name for name in NAME.findall(FILE.sub("", words)) if not occurs(name, code)]
        wrong += [f"{path.relative_to(project)}: its list names {name}, which does not exist" for name in missing]
        count += 1
    for title, text in walks((project / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        missing = [name for name in FILE.findall(text) if not any(str(path).endswith(f"/{name}") for path in sources)]
        missing += [name for words in re.findall(r"`([^`]*)`", FILE.sub("", text)) for name in NAME.findall(words)
                    if not occurs(name, code)]
        wrong += [f'CONTRIBUTING.md: the walk "{title}" names {name}, which does not exist' for name in missing]
        count += 1
    print(*wrong, f"{max(count - len(wrong), 0)} passed, {len(wrong)} failed, 0 skipped", sep="\n")
    return not count or bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
