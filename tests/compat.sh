#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs the whole suite (tests/run.sh) in other Debian releases:   tests/compat.sh [SUITE …]      (trixie sid)
# debootstrap makes each release in a folder. The script tests the last commit, which installs the packages that it needs. If this machine
# has a CUDA toolkit, the releases use it, read-only. Exit status 77 (skipped) if a release cannot be made: without root or sudo, without
# debootstrap, without a network, or where mounting is forbidden.
# BUNDLE=1 also packs dist/cudavision-gpu-SUITE.tar.xz (tests/gpu-bundle.sh). COMPAT_RUN is the command to run instead of tests/run.sh.
# COMPAT_DIR holds the releases (~/.cache/cudavision; 3 GB each): remove a folder there to make it again. COMPAT_MIRROR is the mirror.
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
chroot=$(realpath -m "${COMPAT_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/cudavision}/$suite")
mirror=${COMPAT_MIRROR:-http://deb.debian.org/debian}
skip() { echo "skipped: $*"; exit 77; }
# shellcheck source=tests/prepare.sh
. "$root/tests/prepare.sh"

as_root=()
if ((EUID)); then
  as_root=(sudo -n)
  sudo -n true 2>/dev/null || skip 'only root can make a Debian in a folder, and sudo asks for a password or is not there'
fi
install_packages debootstrap || skip 'no debootstrap'
"${as_root[@]}" unshare --mount true 2>/dev/null || skip 'mounting is not allowed here'

# toolkit: the folder of the CUDA toolkit, or empty. /usr (Debian's own nvcc) cannot be mounted into a release.
toolkit=$(find_nvcc || true)
if [[ -n $toolkit ]]; then toolkit=$(dirname "$(dirname "$(readlink -f "$toolkit")")"); fi
if [[ $toolkit == /usr ]]; then toolkit=; fi

if [[ ! -e $chroot/complete ]]; then
  echo "making $suite in $chroot"
  "${as_root[@]}" rm -rf "$chroot"
  mkdir -p "$chroot"
  "${as_root[@]}" debootstrap --variant=minbase "$suite" "$chroot" "$mirror" >/dev/null || skip "debootstrap could not make $suite from $mirror"
  "${as_root[@]}" mkdir -p "$chroot/usr/local/cuda"
  # The mirror may be a snapshot with an expired signature.
  echo 'Acquire::Check-Valid-Until "false";' | "${as_root[@]}" tee "$chroot/etc/apt/apt.conf.d/snapshot" >/dev/null
  "${as_root[@]}" touch "$chroot/complete"
fi
"${as_root[@]}" cp /etc/resolv.conf "$chroot/etc/resolv.conf"
"${as_root[@]}" rm -rf "$chroot/src"
"${as_root[@]}" mkdir "$chroot/src"
git -C "$root" archive HEAD | "${as_root[@]}" tar -x -C "$chroot/src"

# Run the tests in the release, as root. The mounts disappear with their namespace.
status=0
# shellcheck disable=SC2016
"${as_root[@]}" unshare --mount --fork bash -c '
  set -euo pipefail
  mount -t proc proc "$1/proc"
  mount -t tmpfs tmpfs "$1/dev/shm"
  if [[ $2 ]]; then mount --rbind -o ro "$2" "$1/usr/local/cuda"; fi
  exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "${@:3}" chroot "$1" bash -euo pipefail -c "
    cd /src
    apt-get -qq update || { echo skipped: apt-get update failed; exit 77; }
    apt-get -qqy dist-upgrade >/dev/null
    status=0
    \$RUN || status=\$?
    if [[ \$BUNDLE ]]; then tests/gpu-bundle.sh; fi
    exit \$status"' \
  compat "$chroot" "$toolkit" RUN="${COMPAT_RUN:-tests/run.sh}" BUNDLE="${BUNDLE:-}" VERSION="$(git -C "$root" describe --always)" \
  DEBIAN_FRONTEND=noninteractive http_proxy="${http_proxy:-}" || status=$?
if [[ ${BUNDLE:-} && -e $chroot/src/dist/cudavision-gpu.tar.xz ]]; then
  mkdir -p "$root/dist"
  cp "$chroot/src/dist/cudavision-gpu.tar.xz" "$root/dist/cudavision-gpu-$suite.tar.xz"
fi
exit "$status"
