#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Builds the targets for OSS-Fuzz into $OUT, each with its corpus, its dictionary and the libraries that it needs.
# OSS-Fuzz sets $SRC, $WORK, $OUT, compilers, flags and the engine. Locally, only OUT is necessary:
#   OUT=/tmp/out tests/fuzz/oss-fuzz/build.sh
set -euo pipefail
if [[ ${SRC:-} ]]; then
  root=$SRC/cudavision
else
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
fi
build=${WORK:-$root}/build-oss-fuzz
export CC=${CC:-clang} CXX=${CXX:-clang++}
export CFLAGS=${CFLAGS:--O1 -fno-omit-frame-pointer -gline-tables-only -fsanitize=address,fuzzer-no-link}
# OpenCV's interface has std::string, and the installed library is built with libstdc++.
CXXFLAGS=${CXXFLAGS:-$CFLAGS}
export CXXFLAGS=${CXXFLAGS//-stdlib=libc++/}
# The machines that run the targets lack these libraries, so they are placed beside the targets.
export LDFLAGS="${LDFLAGS:-} -Wl,-rpath,\$ORIGIN/lib"
mkdir -p "$OUT/lib"
programs=()
if [[ -f $build/build.ninja ]]; then set -- --reconfigure; else set --; fi
meson setup "$@" "$build" "$root" -Dfuzzers=enabled -Dfuzzing-engine="${LIB_FUZZING_ENGINE:--fsanitize=fuzzer}" \
  -Dcuda=disabled -Dtests=disabled -Dbenchmarks=disabled -Db_lundef=false
ninja -C "$build" fuzzers
cp "$build/gst/libgstcudavision.so" "$OUT/"
cp -L "$build"/libgstcudavision-1.0.so.0 "$OUT/lib/"
for target in grammars frames filters mixers; do
  cp "$build/tests/fuzz/targets/fuzz_$target" "$OUT/"
  programs+=("$OUT/fuzz_$target")
  python3 -m zipfile -c "$OUT/fuzz_${target}_seed_corpus.zip" "$root/tests/fuzz/corpus/$target"/*
  if [[ -f $root/tests/fuzz/targets/$target.dict ]]; then
    cp "$root/tests/fuzz/targets/$target.dict" "$OUT/fuzz_$target.dict"
  fi
done
# exclude the C library and the compiler's libraries
ldd "${programs[@]}" "$OUT/libgstcudavision.so" | awk '$2 == "=>" && $3 ~ "^/" { print $3 }' | sort -u |
  grep -vE '/(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux[^/]*)\.so' | grep -v "^$OUT" |
  xargs -r cp -Lt "$OUT/lib/"
