#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Builds twice without a cache, in two folders of different names and depths, and compares the bytes:
#   release/reproduce.sh objects | wheel | deb
# `objects` compiles one C++ file, and one CUDA file if there is a toolkit; this takes seconds. `wheel` and `deb` build
# the whole package with gst/packaging, which uses CUDA and CUDA_ARCH. Prints the checksums. Exit status 1 if they
# differ.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
kind=${1:-}
case $kind in objects | wheel | deb) ;; *) echo 'usage: release/reproduce.sh objects | wheel | deb' >&2; exit 1 ;; esac
# shellcheck source=tests/prepare.sh
. "$root/tests/prepare.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CCACHE_DISABLE=1
# Whether there is a compiler with reproducible objects: CUDA 12.9 or newer.
knows_seed() {
  local version
  version=$("$root/kernels/find_nvcc.sh" --version) || return 1
  [[ $(printf '%s\n' 12.9 "$version" | sort -V | head -1) == 12.9 ]]
}
objects() {  # SOURCE BUILD
  local cuda=disabled targets=(gst/libgstcudavision.so.p/plugin.cpp.o)
  if [[ $(cuda_option) != disabled ]] && knows_seed; then cuda=enabled targets+=(kernels/cuda-cuda_together.o); fi
  if ! { meson setup --buildtype=release -Dtests=disabled -Dbenchmarks=disabled -Dcuda=$cuda \
    -Dcuda-arch="${CUDA_ARCH:-90}" "$2" "$1" &&
    ninja -C "$2" "${targets[@]}"; } >"$work/log" 2>&1; then
    cat "$work/log" >&2
    return 1
  fi
  (cd "$2" && sha256sum "${targets[@]}")
}
for folder in a another/folder; do
  copy_source "$work/$folder"
  if [[ $kind == objects ]]; then
    objects "$work/$folder" "$work/$folder/build"
  else
    "$work/$folder/gst/packaging/$kind.sh" "$work/$folder/dist" >"$work/log" 2>&1 ||
      { tail -50 "$work/log" >&2; exit 1; }
    (cd "$work/$folder/dist" && sha256sum -- *)
  fi | tee "$work/sums-${folder%%/*}"
done
cmp "$work/sums-a" "$work/sums-another" || { echo "the two builds differ"; exit 1; }
