#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs the whole suite (tests/run.sh) in other Debian releases:   tests/compat.sh [SUITE …]      (trixie sid)
# debootstrap makes each release in a folder. The script tests the last commit, which installs the packages that it
# needs. If this machine has a CUDA toolkit, the releases use it read-only. Exit status 77 (skipped) if a release cannot
# be made: without root or sudo, debootstrap or a network, or where mounting is forbidden. BUNDLE=1 also packs
# dist/cudavision-gpu-SUITE.tar.xz (tests/gpu-bundle.sh). COMPAT_RUN is a command to run instead of tests/run.sh.
# COMPAT_DIR contains the releases (~/.cache/cudavision; 3 GB each): remove a folder there to make it again.
# COMPAT_MIRROR is the mirror.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if (($# == 0)); then set -- trixie sid; fi
if (($# > 1)); then
  worst=77
  for suite in "$@"; do
    status=0
    "$0" "$suite" || status=$?
    if ((status != 77 && (worst == 77 || worst == 0))); then worst=$status; fi
  done
  exit "$worst"
fi
suite=$1
# shellcheck source=tests/roots.sh
. "$root/tests/roots.sh"
needs_roots debootstrap
chroot=$cache/$suite
make_root "$suite" "$chroot"
source_into "$chroot"

toolkit=$(toolkit_folder)
export MOUNT=${toolkit:+$toolkit:/usr/local/cuda}
status=0
# shellcheck disable=SC2016
in_root "$chroot" '
  cd /src
  apt-get -qq update || { echo skipped: apt-get update failed; exit 77; }
  apt-get -qqy dist-upgrade >/dev/null
  status=0
  $RUN || status=$?
  if [[ $BUNDLE ]]; then tests/gpu-bundle.sh; fi
  exit $status' RUN="${COMPAT_RUN:-tests/run.sh}" BUNDLE="${BUNDLE:-}" VERSION="$(git -C "$root" describe --always)" ||
  status=$?
if [[ ${BUNDLE:-} && -e $chroot/src/dist/cudavision-gpu.tar.xz ]]; then
  mkdir -p "$root/dist"
  cp "$chroot/src/dist/cudavision-gpu.tar.xz" "$root/dist/cudavision-gpu-$suite.tar.xz"
fi
exit "$status"
