#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Packs the last commit:   release/source.sh [OUT_FOLDER]      (dist)
# Makes OUT_FOLDER/cudavision-VERSION.tar.xz, and Debian's source package: cudavision_VERSION.orig.tar.xz,
# .debian.tar.xz, .dsc (needs dpkg-dev). The same commit gives the same bytes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$(realpath -m "${1:-dist}")
version=$(git show HEAD:meson.build | sed -n "s/^  version: '\(.*\)',$/\1/p")  # of the commit, not of the working tree
mkdir -p "$out"
git archive --format=tar --prefix="cudavision-$version/" HEAD | xz -T1 -6 >"$out/cudavision-$version.tar.xz"
cp "$out/cudavision-$version.tar.xz" "$out/cudavision_$version.orig.tar.xz"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -C "$work" -xf "$out/cudavision-$version.tar.xz"
SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -l debian/changelog -S Timestamp)
export SOURCE_DATE_EPOCH
(cd "$out" && dpkg-source --build "$work/cudavision-$version" >/dev/null)
