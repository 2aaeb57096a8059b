#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes a site of the pages, which can be searched and needs no other host:   docs/site.sh [OUT_FOLDER]      (site)
# Debian's mkdocs makes it. Needs a clone, because only files of the project are copied. INSTALL=0 installs nothing.
# Exit status: 0; 1 if a page is not in the list (docs/mkdocs.yml), a link leads nowhere, or a page asks another host;
# 77 without mkdocs.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$(realpath -m "${1:-$root/site}")
# shellcheck source=tests/prepare.sh
. "$root/tests/prepare.sh"
if ! command -v mkdocs >/dev/null; then install_packages mkdocs || true; fi
command -v mkdocs >/dev/null || { echo 'skipped: there is no mkdocs'; exit 77; }
files=$(git -c safe.directory="$root" -C "$root" ls-files 2>/dev/null) ||
  { echo 'skipped: this is not a git clone'; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Copies the pages and the files that they show or link to, as they lie in the tree, but nothing that would hide an
# index.html.
mkdir "$work/pages"
mapfile -t copied < <(grep -E -e '\.md$|^docs/.*\.(png|svg|css)$|^LICENSE$|^gst/packaging/' \
  -e '^(examples|gst/meta)/.*\.(py|sh|c|cpp|hpp|h|toml|service|yaml|txt)$' <<<"$files" |
  grep -v '^\.github/')
(cd "$root" && cp --parents -- "${copied[@]}" "$work/pages")
cp "$root/docs/mkdocs.yml" "$work/mkdocs.yml"
# A link to a folder of the examples leads to its page, or else to the list of examples in the front page.
find "$work/pages" -name '*.md' -exec sed -i -E \
  -e 's#(\]\((\.\./)*(examples/)?motion-(alarm|alarm-service|report|scan))/?\)#\1/README.md)#g' \
  -e 's#\]\(examples/recipes\)#](docs/README.md)#g' {} +
if ! mkdocs build --strict --clean --config-file "$work/mkdocs.yml" --site-dir "$out" >"$work/log" 2>&1 ||
  grep -q 'not included in the "nav"' "$work/log"; then
  cat "$work/log" >&2
  exit 1
fi
"$root/docs/check_site.py" "$out"
