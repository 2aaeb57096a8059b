#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Builds the Debian package gstreamer1.0-cudavision for this machine's release, in one command:
#   gst/packaging/deb.sh [OUT_FOLDER]      (dist)
# It has the plugin in GStreamer's own folder, the library of metas with its headers, the Python module and the pages.
# debian/ describes it. Installs missing Debian packages. With a CUDA toolkit (nvcc) it has code for all GPUs from
# Turing on; CUDA_ARCH=90 or another single architecture compiles faster (the meson option cuda-arch), and CUDA=disabled
# builds only the CPU backend. INSTALL=0 installs nothing. The build folder is BUILD_DIR (build-deb).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
out=$(realpath -m "${1:-$root/dist}")
build=$(realpath -m "${BUILD_DIR:-$root/build-deb}")
# shellcheck source=tests/prepare.sh
. "$root/tests/prepare.sh"
install_for_build build-essential dpkg-dev debhelper dh-python
CUDA=$(cuda_option)
export CUDA

# dpkg-buildpackage writes into the tree and beside it. A build in the same folder gives the same bytes again.
rm -rf "$build/tree" "$build"/gstreamer1.0-cudavision_*
mkdir -p "$out"
copy_source "$build/tree"
nvcc=$(find_nvcc || true)
(cd "$build/tree" && umask 022 && PATH=$PATH${nvcc:+:$(dirname "$nvcc")} \
  DEB_BUILD_OPTIONS="parallel=${JOBS:-$(nproc)} noautodbgsym" \
  dpkg-buildpackage --build=binary --no-sign --no-pre-clean)
mv "$build"/gstreamer1.0-cudavision_*.deb "$out"
