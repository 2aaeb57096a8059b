#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Completes a folder of packages (made with release/build.sh on each machine):   release/finish.sh [OUT_FOLDER]
# (dist)
# Adds the source archive, NOTES.md and SHA256SUMS.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$(realpath -m "${1:-dist}")
release/version.sh --check
release/source.sh "$out"
release/notes.sh >"$out/NOTES.md"
cd "$out"
rm -f SHA256SUMS
mapfile -d '' files < <(find . -type f -printf '%P\0' | LC_ALL=C sort -z)
sha256sum -- "${files[@]}" >SHA256SUMS
sha256sum --quiet --check SHA256SUMS
