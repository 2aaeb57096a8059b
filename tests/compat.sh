#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Builds the plugin against Debian 13's GStreamer 1.26 and g++ 14, in a Debian made by debootstrap, and inspects and runs it there.
# A CUDA toolkit of this machine is lent to it, read-only. Exit status 77 (skipped) where such a Debian cannot be made: neither root
# nor sudo, no debootstrap, no network, no mounting.
# COMPAT_DIR is its folder (~/.cache/cudavision/trixie; 2.5 GB, used again), COMPAT_SUITE and COMPAT_MIRROR say which Debian.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
suite=${COMPAT_SUITE:-trixie}
chroot=$(realpath -m "${COMPAT_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/cudavision/$suite}")
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

# toolkit: where there is one; /usr itself (Debian's own nvcc) cannot be lent.
toolkit=$(find_nvcc || true)
if [[ -n $toolkit ]]; then toolkit=$(dirname "$(dirname "$(readlink -f "$toolkit")")"); fi
if [[ $toolkit == /usr ]]; then toolkit=; fi

if [[ ! -e $chroot/complete ]]; then
  echo "making $suite in $chroot"
  "${as_root[@]}" rm -rf "$chroot"
  mkdir -p "$chroot"
  "${as_root[@]}" debootstrap --variant=minbase "$suite" "$chroot" "$mirror" >/dev/null || skip "debootstrap could not make $suite from $mirror"
  "${as_root[@]}" mkdir -p "$chroot/src" "$chroot/usr/local/cuda"
  "${as_root[@]}" touch "$chroot/complete"
fi
"${as_root[@]}" cp /etc/resolv.conf "$chroot/etc/resolv.conf"

# Inside, as root: the mounts end with their namespace.
# shellcheck disable=SC2016
inside='
  set -euo pipefail
  . /src/tests/prepare.sh
  export HOME=/root GST_PLUGIN_PATH=/build/gst
  packages_run=(gstreamer1.0-tools gstreamer1.0-plugins-base)
  install_for_build "${packages_run[@]}"
  cuda=disabled
  if find_nvcc >/dev/null; then cuda=enabled; fi
  build_project /src /build -Dcuda=$cuda -Dcpu=enabled -Dcuda-arch=90 -Dtests=disabled -Dbenchmarks=disabled gst/libgstcudavision.so
  gst-inspect-1.0 --version
  gst-inspect-1.0 cudavision
  gst-launch-1.0 -q videotestsrc num-buffers=20 ! video/x-raw,format=NV12 ! cudagaussian sigma=3 kernel-size=15 ! \
    cudaconvolve preset=sharpen ! videoconvert ! fakesink
'
# shellcheck disable=SC2016
"${as_root[@]}" unshare --mount --fork bash -c '
  set -euo pipefail
  chroot=$1 root=$2 toolkit=$3 inside=$4
  mount -t proc proc "$chroot/proc"
  mount --bind -o ro "$root" "$chroot/src"
  if [[ $toolkit ]]; then mount --rbind -o ro "$toolkit" "$chroot/usr/local/cuda"; fi
  exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 chroot "$chroot" bash -c "$inside"' \
  compat "$chroot" "$root" "$toolkit" "$inside"
