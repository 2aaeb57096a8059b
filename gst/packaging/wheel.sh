#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Builds the wheel for this machine's Debian release, in one command:   gst/packaging/wheel.sh [OUT_FOLDER]      (dist)
# Installs missing Debian packages. With a CUDA toolkit (nvcc) the wheel has code for all GPUs since Turing;
# CUDA_ARCH=90 or another single architecture compiles faster (the meson option cuda-arch), and CUDA=disabled builds
# only the CPU backend. INSTALL=0 installs nothing.
# The build folder is BUILD_DIR (build-wheel), and stays for the next time.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
out=$(realpath -m "${1:-$root/dist}")
build=$(realpath -m "${BUILD_DIR:-$root/build-wheel}")
# shellcheck source=tests/prepare.sh
. "$root/tests/prepare.sh"
install_for_build python3-venv
cuda=$(cuda_option)

# The wheel is for Debian's own Python. The builder comes from PyPI into a separate environment.
if [[ ! -x $build-venv/bin/pyproject-build ]]; then
  /usr/bin/python3 -m venv "$build-venv"
  "$build-venv/bin/pip" install --quiet build
fi
mkdir -p "$out"
# The same source gives the same bytes, because files get the date of the release.
SOURCE_DATE_EPOCH=$(date --date="$(sed -n 's/^ -- .*>  //p' "$root/debian/changelog" | head -1)" +%s)
export SOURCE_DATE_EPOCH
umask 022
"$build-venv/bin/pyproject-build" --wheel --outdir "$out" -Cbuild-dir="$build" -Csetup-args=-Dcuda="$cuda" \
  -Csetup-args=-Dcuda-arch="${CUDA_ARCH-all}" -Ccompile-args="-j${JOBS:-$(nproc)}" "$root"
