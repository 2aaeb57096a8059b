#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs a program under valgrind's memcheck:   valgrind.sh PROGRAM [ARGUMENT …]
# Fails on any invalid access or use of uninitialised memory. Also fails on memory that is definitely lost if its stack
# has a function of this project (namespace cudavision, the API of the metas, or plugin_init). Exit status 77 (skipped)
# without valgrind.
set -euo pipefail
if [[ ${SANITIZE:-} ]]; then echo 'skipped: valgrind does not run programs that are built with sanitizers'; exit 77; fi
command -v valgrind >/dev/null || { echo 'skipped: no valgrind'; exit 77; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT

suppressions=(--suppressions="$(dirname "${BASH_SOURCE[0]}")/valgrind.supp")
glib=$(pkg-config --variable=prefix glib-2.0 2>/dev/null || echo /usr)/share/glib-2.0/valgrind/glib.supp
[[ -f $glib ]] && suppressions+=(--suppressions="$glib")

# Avoid false errors for ORC's generated code and GLib's own allocator.
export ORC_CODE=backup G_SLICE=always-malloc G_DEBUG=gc-friendly
status=0
valgrind --tool=memcheck --error-exitcode=3 --errors-for-leak-kinds=none --leak-check=full --show-leak-kinds=definite \
  --num-callers=40 --child-silent-after-fork=yes --log-file="$log" "${suppressions[@]}" "$@" || status=$?
# A leak record begins with its size and ends with an empty line.
ours=$(sed 's/^==[0-9]*== \?//' "$log" |
  awk 'BEGIN { RS = "" } /definitely lost in loss record/ && /cuda_?vision|plugin_init/')
if ((status == 77)); then exit 77; fi
if ((status != 0)) || [[ -n $ours ]]; then
  if [[ -n $ours ]]; then printf 'lost by the plugin:\n%s\n' "$ours"; else cat "$log"; fi
  exit 1
fi
grep 'ERROR SUMMARY' "$log"
