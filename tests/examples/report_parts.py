#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks that a page of examples/motion-report is one file that needs no other:  report_parts.py PAGE [VIDEO POSTER]

Every link must be data or lead to a file beside the page. The page must have only its own scripts, no attributes with
scripts or styles, and no unclosed elements. Writes the video (empty if it is beside the page) and the picture of a
report to VIDEO and POSTER.
"""
import base64
import html.parser
import json
import os
import pathlib
import sys
import urllib.parse

# The types of the scripts.
OWN = {"report.html": ["application/json", "text/plain", "text/plain", "text/plain", None], "index.html": [None]}


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.path, self.open, self.scripts, self.texts, self.pictures = path, [], [], {}, []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        for name, value in attributes:
            assert not name.startswith("on") and name != "style", f"{tag} has the attribute {name}"
            if name in ("src", "href") and not value.startswith("data:"):
                file = os.path.join(os.fsencode(self.path.parent), urllib.parse.unquote_to_bytes(value))
                assert os.path.isfile(file), f"{tag} leads to {value}"
        if tag == "script":
            self.scripts.append(values.get("type"))
        if tag == "img":
            assert "alt" in values, "a picture has no text"
            self.pictures.append(values["src"])
        if tag not in ("meta", "link", "img", "input"):
            self.open.append((tag, values.get("id")))

    def handle_endtag(self, tag):
        if tag != "option":  # the last one of several
            while self.open and self.open[-1][0] == "option":
                self.open.pop()
        assert self.open and self.open.pop()[0] == tag, f"</{tag}> closes another element"

    def handle_data(self, text):
        if self.open and self.open[-1][0] == "script":
            self.texts[self.open[-1][1]] = self.texts.get(self.open[-1][1], "") + text


def main():
    path = pathlib.Path(sys.argv[1])
    page = Page(path)
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    assert not page.open, f"not closed: {page.open}"
    assert page.scripts == OWN[path.name], f"scripts: {page.scripts}"
    if path.name == "report.html":
        json.loads(page.texts["data"])
    if len(sys.argv) > 2:
        pathlib.Path(sys.argv[2]).write_bytes(base64.b64decode(page.texts.get("clip", "")))
        pathlib.Path(sys.argv[3]).write_bytes(base64.b64decode(page.pictures[0].partition(",")[2]))


if __name__ == "__main__":
    main()
