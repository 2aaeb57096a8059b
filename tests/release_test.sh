#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tests each script of a release separately; tests/packages.sh tests the packages:
#   release_test.sh BUILD_FOLDER
# Exit status 77 without git, or outside a clone.
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
git rev-parse HEAD >/dev/null 2>&1 || { echo 'skipped: this is not a git clone'; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*" >&2; exit 1; }
same() { [[ $1 == "$2" ]] || fail "$3: $1, not $2"; }

# One command changes the version everywhere.
release/version.sh --check
mkdir "$work/tree"
cp --parents meson.build CHANGELOG.md debian/changelog release/conda/meta.yaml "$work/tree"
bump() { ROOT=$work/tree SOURCE_DATE_EPOCH=1800000000 release/version.sh "$@"; }
bump --next 9.8.7
same "$(bump)" 9.8.7 'the version'
grep -q '^## 9.8.7 (unreleased)$' "$work/tree/CHANGELOG.md" || fail 'there is no new section'
bump 9.9.0
grep -q '^## 9.9.0 (2027-01-15)$' "$work/tree/CHANGELOG.md" || fail 'the section has no date'
same "$(sed -n 's/^ -- .*>  //p' "$work/tree/debian/changelog")" 'Fri, 15 Jan 2027 08:00:00 +0000' \
  'the date of the packages'
bump 1.0 2>/dev/null && fail '1.0 is taken for a version'
for file in meson.build CHANGELOG.md debian/changelog release/conda/meta.yaml; do
  cp "$work/tree/$file" "$work/kept"
  sed -i 's/9\.9\.0/9.9.1/' "$work/tree/$file"
  bump --check 2>/dev/null && fail "a wrong version in $file is not found"
  cp "$work/kept" "$work/tree/$file"
done
bump --check

# The notes belong to a version.
release/notes.sh >"$work/notes"
grep -q '^- ' "$work/notes" || fail 'there are no notes'
grep -q '^## ' "$work/notes" && fail 'the notes have sections of other versions'
release/notes.sh 99.0.0 2>/dev/null && fail 'a version that is not there has notes'

# The list of a package's contents has the plugin and the libraries that it loads.
mkdir -p "$work/dist" "$work/wheel/cudavision"
cp "$build/gst/libgstcudavision.so" "$build/libgstcudavision-1.0.so.0" "$work/wheel/cudavision/"
python3 -m zipfile -c "$work/dist/cudavision-0-py3-none-any.whl" "$work/wheel/cudavision"
release/sbom.py "$work/dist/cudavision-0-py3-none-any.whl" >"$work/dist/sbom.json"
python3 - "$work/dist/sbom.json" "$(sha256sum <"$build/gst/libgstcudavision.so")" <<'END'
import json, shutil, sys
sbom = json.load(open(sys.argv[1]))
assert sbom["spdxVersion"] == "SPDX-2.3"
files = {file["fileName"]: file for file in sbom["files"]}
plugin = files["./cudavision/libgstcudavision.so"]
assert {"algorithm": "SHA256", "checksumValue": sys.argv[2].split()[0]} in plugin["checksums"], files
names = [package["name"] for package in sbom["packages"]]
assert names[0] == "cudavision" and any("gstreamer1.0" in name or "libgstreamer" in name for name in names), names
assert not any(name.startswith("lib32") for name in names), names  # libraries of another machine
assert all(package["licenseDeclared"] != "NOASSERTION" for package in sbom["packages"]), sbom["packages"]
if shutil.which("dpkg-query"):
    assert all(package["versionInfo"] != "NOASSERTION" for package in sbom["packages"]), sbom["packages"]
ids = [each["SPDXID"] for each in sbom["packages"] + sbom["files"]]
assert len(set(ids)) == len(ids)
for relation in sbom["relationships"]:
    assert relation["relatedSpdxElement"] in ids, relation
END

# Completing a folder adds the source, notes and checksums. The same commit must give the same bytes.
if command -v dpkg-source >/dev/null; then
  release/finish.sh "$work/dist"
  (cd "$work/dist" && sha256sum --quiet --check SHA256SUMS)
  cp "$work/dist/SHA256SUMS" "$work/first"
  sleep 1  # another second would show in the files
  release/finish.sh "$work/dist"
  cmp "$work/first" "$work/dist/SHA256SUMS" || fail 'the source packages differ'
  grep -q 'cudavision_.*\.dsc' "$work/first" || fail 'there is no source package for Debian'
  archived=$(tar -tf "$work/dist/"cudavision-[0-9]*.tar.xz)
  grep -q '/meson.build$' <<<"$archived" || fail 'the archive has no meson.build'
fi

echo 'the release scripts work'
