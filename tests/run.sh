#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs every test that works on this machine:
#   tests/run.sh [MESON_TEST_ARGUMENT]…      (such as --suite=kernels, a test's name, or --list)
# Installs missing Debian packages, builds, runs `meson test` and the examples, and prints a table and the reasons of
# skipped tests. The last line counts the test cases: N passed, N failed, N skipped. Exit status 0 only if none failed.
# With arguments the examples are not run. SANITIZE=address,undefined or SANITIZE=thread builds the CPU backend with
# these sanitizers in a separate folder (build-address, build-thread), and runs the tests of the kernels and the
# elements there.
# WITH='WORD…' also installs the large programs that single tests need (see packages_with in tests/prepare.sh); without
# them these tests skip. BUILD_DIR is the build folder (build); it uses what examples/quickstart.sh compiled there. If
# there is a GPU or a CUDA compiler, the CUDA backend is built, for this GPU or for one architecture; CUDA=0 never
# builds it. WERROR=1 makes warnings errors. INSTALL=0 installs nothing. FUZZ=30 also runs each fuzzing target for 30 s
# (tests/fuzz/fuzz.sh, in a separate build folder, BUILD_DIR-fuzz). COMPAT='trixie sid' also runs tests/compat.sh with
# these releases.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
sanitizers=${SANITIZE:-}
BUILD_DIR=$(realpath -m "${BUILD_DIR:-$root/build${sanitizers:+-${sanitizers%%,*}}}")
export BUILD_DIR
options=() suites=()
if [[ ${WERROR:-} ]]; then options+=(-Dwerror=true); fi
if [[ $sanitizers ]]; then
  options+=(-Ddebug=true -Dbenchmarks=disabled -Db_sanitize="$sanitizers" -Db_lundef=false)
  suites=(--suite=kernels --suite=elements)
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
results=$work/results  # rows of tests/results.py
: >"$results"
row() { local IFS=$'\t'; echo "$*" >>"$results"; }

# check NAME COMMAND…: runs a command as a test. Its exit status is 0, 77 (skipped; the last line is the reason), or a
# failure.
check() {
  local name=$1 began=$EPOCHREALTIME status=0 seconds
  shift
  timeout --kill-after=10 "${LIMIT:-1500}" "$@" >"$work/log" 2>&1 </dev/null || status=$?
  seconds=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
  python3 "$root/tests/results.py" --row "$name" "$status" "$seconds" "$work/log" >>"$results"
  if ((status != 0 && status != 77)); then
    printf '%s failed:\n' "$name"
    grep -aE -A20 '^(FAIL|ERROR):' "$work/log" | head -100 || true  # failures of unittest, anywhere in the log
    tail -50 "$work/log"
  fi
}

# prepare_sanitizers: sets the options of the sanitizers and makes the GStreamer registry that the tests share.
# GStreamer's own scanner could not load the plugin, because the scanner lacks the sanitizer's library.
prepare_sanitizers() {
  local folder=$root/tests/sanitizers
  local -A library=([address]=libasan.so [thread]=libtsan.so [undefined]=libubsan.so)
  # Some tests allocate more memory than exists. Debian's libraries have no frame pointers.
  export ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=1:fast_unwind_on_malloc=0
  export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
  export LSAN_OPTIONS=suppressions=$folder/leak.supp:print_suppressions=0
  TSAN_OPTIONS=allocator_may_return_null=1:suppressions=$folder/thread.supp
  export TSAN_OPTIONS+=:ignore_noninstrumented_modules=1:detect_deadlocks=0
  LD_PRELOAD=$(g++ -print-file-name="${library[${sanitizers%%,*}]}") ASAN_OPTIONS=detect_leaks=0 \
    GST_PLUGIN_PATH_1_0=$BUILD_DIR/gst GST_REGISTRY=$BUILD_DIR/tests/elements/registry.bin gst-inspect-1.0 \
    cudavision >/dev/null
  export GST_REGISTRY_UPDATE=no
}

# shellcheck source=tests/prepare.sh
. "$root/tests/prepare.sh"
if [[ $sanitizers ]]; then CUDA=0 cuda=0; elif has_gpu || find_nvcc >/dev/null; then cuda=1; else cuda=0; fi
if ! { choose_backends "$BUILD_DIR" "$cuda" &&
  install_for_build "${packages_run[@]}" "${packages_report[@]}" "${packages_test[@]}" &&
  install_asked_for "${WITH:-}" &&
  build_project "$root" "$BUILD_DIR" "${backend_options[@]}" "${options[@]}" && make_environments "$BUILD_DIR" &&
  { [[ ! $sanitizers ]] || prepare_sanitizers; }; }; then
  row FAIL build 0 0 1 0 'nothing was tested'
elif [[ " $* " == *' --list '* ]]; then  # leaves no log
  meson test -C "$BUILD_DIR" --no-rebuild "${suites[@]}" "$@"
  exit
else
  status=0
  # A separate log, because another `meson test` in this folder writes to testlog.json. Logs of earlier runs are kept
  # for a week.
  log=run-$(date +%Y%m%d-%H%M%S)-$$
  find "$BUILD_DIR/meson-logs" -name 'run-*' -mtime +7 -delete
  # Time limits only end hanging tests: a busy machine may take ten times as long as an idle one.
  export CK_TIMEOUT_MULTIPLIER=10
  meson test -C "$BUILD_DIR" --no-rebuild --print-errorlogs --timeout-multiplier=10 \
    --logbase="$log" "${suites[@]}" "$@" || status=$?
  python3 "$root/tests/results.py" "$BUILD_DIR/meson-logs/$log.json" >"$results" ||
    row FAIL 'log of the tests' 0 0 1 0 'cannot be counted'
  if ((status)) && ! grep -q ^FAIL "$results"; then row FAIL 'meson test' 0 0 1 0 "exit status $status"; fi
  if (($# == 0)) && [[ ! $sanitizers ]]; then
    check quickstart "$root/tests/examples.sh" quickstart
    check 'report in a browser' "$root/tests/examples/report_browser.py"
    for recipe in "$root"/examples/recipes/*.sh; do
      name=$(basename "$recipe" .sh)
      check "$name" "$root/tests/examples.sh" "$name"
    done
    for example in motion-alarm motion_alarm.py motion-alarm-service integral_numbers.py cross-fade.py \
      time-lapse.py torch_model.py cupy_kernel.py; do
      check "$example" "$root/tests/examples.sh" "$example"
    done
    python=/usr/bin/python3
    if [[ -x $BUILD_DIR/ray/bin/python ]]; then python=$BUILD_DIR/ray/bin/python; fi
    GST_PLUGIN_PATH=$BUILD_DIR/gst check motion-scan "$python" "$root/tests/examples/scan_test.py"
    if [[ " ${WITH:-} " == *' packages '* ]]; then
      for kind in wheel deb container; do LIMIT=3000 check "package $kind" "$root/tests/packages.sh" "$kind"; done
    fi
    if [[ ${FUZZ:-} ]]; then  # the tree's corpus is not changed
      LIMIT=86400 check fuzz env BUILD_DIR="$BUILD_DIR-fuzz" CORPUS="$BUILD_DIR-fuzz/kept" "$root/tests/fuzz/fuzz.sh" \
        "$FUZZ"
    fi
    for suite in ${COMPAT:-}; do LIMIT=5000 check "compat $suite" "$root/tests/compat.sh" "$suite"; done
  fi
fi

echo
python3 "$root/tests/results.py" --table "$results"
