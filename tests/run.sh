#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs every test that this machine can:  tests/run.sh [MESON_TEST_ARGUMENT]…      (such as --suite=kernels, or a test's name)
# Installs what is missing (Debian's packages), builds, runs `meson test` and the examples, and prints a table. The last line is the
# count of test cases: N passed, N failed, N skipped. Exit status 0 only where none failed. With arguments the examples are left out.
# BUILD_DIR is the build folder (build); INSTALL=0 installs nothing; COMPAT=1 runs tests/compat.sh, too.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD_DIR=$(realpath -m "${BUILD_DIR:-$root/build}")
export BUILD_DIR
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
results=$work/results  # a line each: result, name, seconds, passed, failed, skipped, remark
: >"$results"
row() { local IFS=$'\t'; echo "$*" >>"$results"; }

# check NAME COMMAND…: one case, by the command's exit status: 0, 77 (skipped; the last line says why), or any other.
check() {
  local name=$1 began=$EPOCHREALTIME status=0 seconds
  shift
  timeout --kill-after=10 "${LIMIT:-300}" "$@" >"$work/log" 2>&1 </dev/null || status=$?
  seconds=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
  case $status in
    0) row PASS "$name" "$seconds" 1 0 0 '' ;;
    77) row SKIP "$name" "$seconds" 0 0 1 "$(tail -1 "$work/log")" ;;
    *)
      row FAIL "$name" "$seconds" 0 1 0 "exit status $status"
      printf '%s failed:\n' "$name"
      tail -50 "$work/log"
      ;;
  esac
}

# shellcheck source=tests/prepare.sh
. "$root/tests/prepare.sh"
if ! { install_for_build "${packages_run[@]}" "${packages_report[@]}" "${packages_test[@]}" && build_project "$root" "$BUILD_DIR"; }; then
  row FAIL build 0 0 1 0 'nothing was tested'
else
  status=0
  meson test -C "$BUILD_DIR" --no-rebuild --print-errorlogs "$@" || status=$?
  python3 "$root/tests/results.py" "$BUILD_DIR/meson-logs/testlog.json" >"$results"
  if ((status)) && ! grep -q ^FAIL "$results"; then row FAIL 'meson test' 0 0 1 0 "exit status $status"; fi
  if (($# == 0)); then
    check quickstart "$root/tests/examples.sh" quickstart
    for recipe in "$root"/examples/recipes/*.sh; do
      name=$(basename "$recipe" .sh)
      check "$name" "$root/tests/examples.sh" "$name"
    done
    for example in motion-alarm motion_alarm.py integral_numbers.py cross-fade.py; do
      check "$example" "$root/tests/examples.sh" "$example"
    done
    if [[ ${COMPAT:-0} != 0 ]]; then LIMIT=3600 check compat "$root/tests/compat.sh"; fi
  fi
fi

echo
awk -F '\t' '
  BEGIN { line = "%-6s%-28s%9s%9s%9s%9s  %s\n"; printf line, "", "test", "passed", "failed", "skipped", "seconds", "" }
  { printf line, $1, $2, $4, $5, $6, $3, $7; passed += $4; failed += $5; skipped += $6 }
  END { printf "\n%d passed, %d failed, %d skipped\n", passed, failed, skipped; exit failed > 0 }' "$results"
