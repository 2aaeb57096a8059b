#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks a built site:  check_site.py FOLDER

A browser that opens a page asks no other host: no script, style, picture, font or frame comes from one. Each link to a
file of the site, with its anchor, leads somewhere, and each page can be found by the search. Exit status 0; 1 with a
line for each problem.
"""
import html.parser
import json
import pathlib
import re
import sys
import urllib.parse

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "link": "href"}


class Page(html.parser.HTMLParser):
    def __init__(self, file):
        super().__init__()
        self.loaded, self.links, self.anchors = [], [], {""}
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors.update(filter(None, (values.get("id"), values.get("name"))))
        if tag in LOADED and not (tag == "link" and values.get("rel") == "canonical"):
            self.loaded.append(values.get(LOADED[tag]) or "")
        elif tag == "a" and values.get("href"):
            self.links.append(values["href"])


def problems_of(folder):
    pages = {file: Page(file) for file in sorted(folder.rglob("*.html"))}
    for file, page in pages.items():
        name = file.relative_to(folder)
        for target in page.loaded:
            if re.match(r"(\w+:)?//", target):
                yield f"{name} loads {target}"
        for target in page.loaded + page.links:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or parts.netloc or target.startswith("//"):
                continue
            top = folder if parts.path.startswith("/") else file.parent  # 404.html may be shown in any folder
            other = (top / urllib.parse.unquote(parts.path).lstrip("/")).resolve() if parts.path else file
            if other.is_dir():
                other = other / "index.html"
            if not other.exists():
                yield f"{name} leads to {target}, which is not there"
            elif other in pages and urllib.parse.unquote(parts.fragment) not in pages[other].anchors:
                yield f"{name} leads to {target}, which has no such part"
    for file in folder.rglob("*.css"):
        for target in re.findall(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\")]*)",
                                 file.read_text(encoding="utf-8")):
            yield f"{file.relative_to(folder)} loads {target}"
    index = folder / "search" / "search_index.json"
    known = ({entry["location"].partition("#")[0] for entry in json.loads(index.read_text())["docs"]}
             if index.exists() else set())
    for file in pages:
        name = str(file.relative_to(folder))
        if name not in known and name not in ("404.html", "search.html"):
            yield f"{name} cannot be found by the search"


def main():
    problems = sorted(set(problems_of(pathlib.Path(sys.argv[1]).resolve())))
    print("\n".join(problems) or "the site needs no other host, and all of its links lead somewhere")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
