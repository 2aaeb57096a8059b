#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks that each message of the elements can be found in docs/:  docs_messages.py PROJECT_FOLDER

Reads the literals of errors and warnings in gst/base, gst/elements and kernels. The longest fixed piece of each one
must be in troubleshooting.md; a message about a wrong setting may be on the element's page instead. Exit status: 0; 1
with a list of the missing messages.
"""
import re
import sys
from pathlib import Path

CALL = re.compile(r"(Status::(?:resource|frame|settings)|GST_ELEMENT_(?:ERROR|WARNING)|\bcheck)\s*\(")
LITERAL = r'"(?:[^"\\]|\\.)*"'
# Messages that no user can cause, because the elements check this before the kernels.
INTERNAL = {
    ": it must be 0 to 1 in each of red, green and blue", "): it must lie inside the picture of ", "the plan has ",
    ": every weight must be a number", ": it must be 1, 2, 4 or 8", " corners: at most ", "1 to ", "at most ", "sink_",
    "border must be constant, replicate, reflect, wrap or reflect-101 for a Gaussian", " pads: at most ",
    "weights is empty: a custom kernel needs kernel-width × kernel-height weights, or choose a preset",
    " is 0 too: one of them must be set", ": it must be −1 (the middle) or 0 to ", ", or 0 to follow from weights",
}


def arguments_after(text, start):
    """The text from the parenthesis that ends before `start` to its partner."""
    depth = 1
    for match in re.finditer(rf"{LITERAL}|[()]", text[start:]):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return text[start:start + match.start()]
    return text[start:]


def messages(file):
    """The kind and the longest fixed piece of each message in a source file."""
    text = re.sub(r"//[^\n]*", "", file.read_text(encoding="utf-8"))
    for call in CALL.finditer(text):
        pieces = []
        for group in re.findall(rf"{LITERAL}(?:\s*{LITERAL})*", arguments_after(text, call.end())):
            whole = "".join(literal[1:-1].replace('\\"', '"') for literal in re.findall(LITERAL, group))
            pieces += re.split(r"%[a-z]+|%$", whole)
        longest = max(pieces, key=len, default="")
        if longest.strip():
            yield call[1], re.sub(r"^cannot launch the .*", "cannot launch the ", longest)


def main():
    project = Path(sys.argv[1])
    guide = (project / "docs" / "troubleshooting.md").read_text(encoding="utf-8").replace("`", "")
    elements = (project / "docs" / "elements").glob("*.md")
    pages = guide + "".join(page.read_text(encoding="utf-8") for page in elements).replace("`", "")
    files = [file for folder in ("gst/base", "gst/elements", "kernels") for file in (project / folder).rglob("*")
             if file.suffix in (".cpp", ".hpp", ".cu", ".cuh")]
    found = {(kind, piece) for file in files for kind, piece in messages(file)}
    missing = sorted(f"{kind}: {piece}" for kind, piece in found
                     if piece.strip() not in (pages if kind == "Status::settings" else guide) and piece not in INTERNAL)
    missing += [f"no longer a message: {piece}" for piece in INTERNAL - {piece for _, piece in found}]
    print(*(f"not in docs/: {line}" for line in missing),
          f"{len(found)} messages, {len(missing)} of them not in docs/", sep="\n")
    if len(found) < 60:
        print("too few: the pattern of messages does not match the sources")
    return bool(missing) or len(found) < 60


if __name__ == "__main__":
    sys.exit(main())
