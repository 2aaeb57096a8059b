#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Builds all files of a release that belong to this machine's Debian and processor:
#   release/build.sh [OUT_FOLDER]      (dist)
# These are the wheel and the Debian package, and a list of their contents (SPDX). gst/packaging/*.sh use CUDA,
# CUDA_ARCH and INSTALL; CUDA=enabled fails without a toolkit. release/finish.sh adds the source archive, the notes and
# the checksums, once for all machines.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=$(realpath -m "${1:-dist}")
gst/packaging/wheel.sh "$out"
gst/packaging/deb.sh "$out"
for file in "$out"/cudavision-*.whl "$out"/gstreamer1.0-cudavision_*.deb; do
  release/sbom.py "$file" >"$file.spdx.json"
done
