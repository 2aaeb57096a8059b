#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Fuzzing by coverage:   tests/fuzz/fuzz.sh SECONDS [TARGET…]
# Installs clang, builds the targets with address and undefined sanitizers in a separate folder, and runs each one for
# SECONDS, starting from the kept corpus (0: only replays it). Then it minimises the corpus, and prints executions and
# the line coverage of the targeted files (docs/fuzzing.md). The Python targets run with atheris from PyPI; where it
# does not work they are skipped with the reason.
# CORPUS is the folder of the corpus (tests/fuzz/corpus; a new folder starts as a copy of it), BUILD_DIR the build
# folder (build-fuzz), JOBS the number of targets to run at a time (one per core). INSTALL=0 installs nothing.
# Exit status: 0; 1 after a finding, with the path of its reproducer, or if the coverage of a file is below its limit;
# 77 without clang.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
native=(grammars frames filters mixers)
python=(arrays configuration lists results)
# Files that the native targets aim at, and the required share of their lines in percent; 0: it is only printed.
aimed=(gst/base/shapes.cpp:90 gst/base/frame.cpp:90 gst/base/settings/properties.cpp:90 kernels/core/polygon.cpp:80
  gst/base/filter/video_filter_regions.cpp:90 gst/base/filter/video_filter_caps.cpp:0
  gst/base/filter/video_filter_frames.cpp:0 gst/base/mixer/video_mixer_caps.cpp:0
  gst/base/mixer/video_mixer_frames.cpp:0 gst/base/transfer.cpp:0 gst/base/element_backend.cpp:0
  gst/base/element_backend_pools.cpp:0 gst/frames/frames.cpp:0 gst/frames/maker.cpp:0 gst/frames/dlpack.cpp:0)

if [[ ! ${1:-} =~ ^[0-9]{1,6}$ ]]; then
  sed -n 's/^# \(Fuzzing by coverage.*\)/\1/p' "$0" >&2
  exit 2
fi
seconds=$1
shift
for target in "$@"; do
  if [[ " ${native[*]} ${python[*]} " != *" $target "* ]]; then
    echo "there is no target $target; there are ${native[*]} ${python[*]}" >&2
    exit 2
  fi
done
targets=("$@") whole=$(($# == 0))
((${#targets[@]})) || targets=("${native[@]}" "${python[@]}")
build=$(realpath -m "${BUILD_DIR:-$root/build-fuzz}")
corpus=$(realpath -m "${CORPUS:-$root/tests/fuzz/corpus}")
jobs=${JOBS:-$(nproc)}
most_length=1024  # bytes of a case

# shellcheck source=tests/prepare.sh
. "$root/tests/prepare.sh"
install_for_build "${packages_report[@]}" "${packages_fuzz[@]}"
for program in clang++ llvm-cov llvm-profdata; do
  command -v "$program" >/dev/null || { echo "skipped: there is no $program"; exit 77; }
done
mkdir -p "$build"
if [[ ! -f $build/build.ninja ]]; then export CC=clang CXX=clang++; fi
build_project "$root" "$build" -Ddebug=true -Dfuzzers=enabled -Dcuda=disabled -Dtests=disabled -Dbenchmarks=disabled \
  -Db_lundef=false fuzzers >"$build/build.log" 2>&1 ||
  { tail -40 "$build/build.log" >&2; exit 1; }
findings=$build/findings logs=$build/fuzz-logs
mkdir -p "$findings" "$logs"
if [[ ! -d $corpus ]]; then cp -r "$root/tests/fuzz/corpus" "$corpus"; fi

# The targets set the options of sanitizers. Python and its modules free little memory at exit. Memory that GLib keeps
# for an ending thread looks like a leak.
export GST_PLUGIN_PATH_1_0=$build/gst GST_REGISTRY_DISABLE=yes CUDAVISION_LIBRARY=$build/gst/libgstcudavision.so \
  G_SLICE=always-malloc \
  LLVM_PROFILE_FILE=/dev/null
interpreter=$build/python/bin/python
if [[ " ${targets[*]} " =~ \ (arrays|configuration|lists|results)\  &&
  ${INSTALL:-1} != 0 && ! -e $build/python/done ]]; then
  { /usr/bin/python3 -m venv --system-site-packages "$build/python" &&
    "$interpreter" -m pip install --quiet --disable-pip-version-check atheris==3.0.0 &&
    touch "$build/python/done"; } >"$logs/atheris" 2>&1 ||
    echo "atheris cannot be installed: $(tail -1 "$logs/atheris")"
fi

is_native() { [[ " ${native[*]} " == *" $1 "* ]]; }
# engine TARGET ARGUMENT…: runs a target with libFuzzer.
engine() {
  local target=$1
  shift
  if is_native "$target"; then
    "$build/tests/fuzz/targets/fuzz_$target" "$@"
  else
    LD_PRELOAD=$("$interpreter" -c 'import atheris; print(atheris.path())')/asan_with_fuzzer.so PYTHONMALLOC=malloc \
      ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
      "$interpreter" "$root/tests/fuzz/targets/python/run.py" "$target" "$@"
  fi
}
# skipped TARGET: whether the target cannot run here. Its log has the reason.
skipped() {
  if is_native "$1"; then return 1; fi
  if [[ ! -e $build/python/done ]]; then echo 'skipped: there is no atheris' >"$logs/$1"; return 0; fi
  local status=0
  engine "$1" -runs=0 >"$logs/$1" 2>&1 || status=$?
  ((status == 77))
}
# fuzz TARGET: runs it for the given time, and minimises its corpus. Status 1 after a finding.
fuzz() {
  local target=$1 grown=$build/corpus/$1 status=0 dictionary=$root/tests/fuzz/targets/$1.dict options folders
  mkdir -p "$grown" "$corpus/$target"
  options=("-max_len=$most_length" -timeout=600 -rss_limit_mb=6144 -print_final_stats=1
    -artifact_prefix="$findings/$target-")
  # A stream takes many bytes, so begin with long cases.
  if [[ $target == filters || $target == mixers ]]; then options+=(-len_control=0); fi
  if [[ -f $dictionary ]]; then options+=(-dict="$dictionary"); fi
  if ((seconds)); then options+=(-max_total_time="$seconds"); else options+=(-runs=0); fi
  folders=("$grown" "$corpus/$target")
  if [[ -d $root/tests/fuzz/mended/$target ]]; then folders+=("$root/tests/fuzz/mended/$target"); fi
  engine "$target" "${options[@]}" "${folders[@]}" >"$logs/$target" 2>&1 || status=1
  if ((status == 0 && seconds)); then
    rm -rf "$build/merged-$target"
    mkdir "$build/merged-$target"
    if is_native "$target"; then  # by edges alone, without their counts: a third of the files
      set -- -set_cover_merge=1 -use_counters=0 -max_len=$most_length -timeout=600 \
        -rss_limit_mb=6144 "$build/merged-$target"
    else
      set -- --minimise "$build/merged-$target"
    fi
    if engine "$target" "$@" "$corpus/$target" "$grown" >"$logs/$target-merge" 2>&1; then
      rm -rf "${corpus:?}/$target" "$grown"
      mv "$build/merged-$target" "$corpus/$target"
    else
      status=1
    fi
  fi
  return "$status"
}

failed=0 runs=()
for target in "${targets[@]}"; do
  if skipped "$target"; then continue; fi
  while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
  (fuzz "$target" && echo 0 >"$logs/$target-status" || echo 1 >"$logs/$target-status") &
  runs+=("$target")
done
wait

printf '%-16s%12s%10s%10s  %s\n' target executions files bytes ''
for target in "${targets[@]}"; do
  if [[ " ${runs[*]} " != *" $target "* ]]; then
    printf '%-16s%12s%10s%10s  %s\n' "$target" - - - "$(grep -a ^skipped "$logs/$target" | tail -1)"
    continue
  fi
  found=''
  if [[ $(<"$logs/$target-status") != 0 ]]; then
    failed=1
    found="FINDING: $(sed -n 's/.*Test unit written to //p' "$logs/$target" | tail -1) ($logs/$target)"
  fi
  printf '%-16s%12s%10s%10s  %s\n' "$target" \
    "$(sed -n 's/^stat::number_of_executed_units: *//p' "$logs/$target" | tail -1)" \
    "$(find "$corpus/$target" -type f | wc -l)" \
    "$(find "$corpus/$target" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }')" "$found"
done

if ((failed)); then exit 1; fi

# the coverage of the corpus
profiles=$build/profiles
rm -rf "$profiles"
mkdir "$profiles"
printf '\n%-44s%8s%8s%11s\n' file lines covered ''
for target in "${targets[@]}"; do
  if [[ " ${runs[*]} " != *" $target "* ]]; then continue; fi
  if is_native "$target"; then set -- -runs=0 -max_len=$most_length; else set -- --coverage; fi
  LLVM_PROFILE_FILE=$profiles/$target-%m.profraw engine "$target" "$@" \
    "$corpus/$target" >"$logs/$target-coverage" 2>&1 ||
    { failed=1; tail -20 "$logs/$target-coverage" >&2; }
  if ! is_native "$target"; then grep -a ' %$' "$logs/$target-coverage"; fi
done
objects=("$build/gst/libgstcudavision.so")
for target in "${native[@]}"; do objects+=(-object "$build/tests/fuzz/targets/fuzz_$target"); done
if compgen -G "$profiles/*.profraw" >/dev/null; then
  llvm-profdata merge -sparse -o "$profiles/all" "$profiles"/*.profraw
  llvm-cov export -summary-only -instr-profile="$profiles/all" "${objects[@]}" 2>"$logs/coverage" | python3 -c '
import json, sys
whole, *aimed = sys.argv[1:]
files, failed = json.load(sys.stdin)["data"][0]["files"], False
for file, _, least in (name.partition(":") for name in aimed):
    lines = next(each["summary"]["lines"] for each in files if each["filename"].endswith("/" + file))
    below = whole == "1" and lines["percent"] < float(least)
    failed = failed or below
    print("{:<44}{count:>8}{covered:>8}{percent:>9.1f} %".format(file, **lines)
          + (f"  BELOW {least} %" if below else ""))
sys.exit(failed)' "$whole" "${aimed[@]}" || failed=1
fi
exit "$failed"
