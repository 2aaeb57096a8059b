#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes the site of the pages, and tests that docs/check_site.py finds everything that is forbidden in a site. Exit
# status 77 without mkdocs.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
INSTALL=0 "$root/docs/site.sh" "$work/site" || status=$?
if ((status)); then exit "$status"; fi
grep -q cudagaussian "$work/site/search/search_index.json" || { echo 'the search does not find cudagaussian'; exit 1; }

finds() {  # PROBLEM HTML: the check reports this problem for a page with this HTML
  sed "s|</body>|$2</body>|" "$work/kept" >"$work/site/docs/start.html"
  if "$root/docs/check_site.py" "$work/site" >"$work/log"; then echo "not found: $2"; exit 1; fi
  grep -q "$1" "$work/log" || { cat "$work/log"; exit 1; }
}
cp "$work/site/docs/start.html" "$work/kept"
finds 'loads https://example.org' '<script src="https://example.org/a.js"></script>'
finds 'loads //example.org' '<img src="//example.org/a.png">'
finds 'which is not there' '<a href="nowhere.html">'
finds 'no such part' '<a href="install.html#nowhere">'
cp "$work/kept" "$work/site/docs/start.html"
"$root/docs/check_site.py" "$work/site"
