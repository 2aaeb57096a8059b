# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Sourced by the scripts that try something in a separate Debian, a folder made by debootstrap. COMPAT_DIR contains
# these folders (~/.cache/cudavision); COMPAT_MIRROR is the mirror. Exit status 77 (skipped) without root or sudo,
# debootstrap, a network, or mounts.
# shellcheck disable=SC2034  # the sourcing scripts use the variables
tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/prepare.sh
. "$tests/prepare.sh"
cache=$(realpath -m "${COMPAT_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/cudavision}")
mirror=${COMPAT_MIRROR:-http://deb.debian.org/debian}
this_suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
as_root=()
skip() { echo "skipped: $*"; exit 77; }

# needs_roots PROGRAM…: skips if these programs or mounts are missing. Each program must be the name of its package.
needs_roots() {
  if ((EUID)); then
    as_root=(sudo -n)
    sudo -n true 2>/dev/null ||
      skip 'only root can make a Debian in a folder, and sudo asks for a password or is not there'
  fi
  install_packages "$@" || skip "no $*"
  "${as_root[@]}" unshare --mount true 2>/dev/null || skip 'mounting is not allowed here'
}

# make_root SUITE FOLDER: makes a minimal Debian there, unless it is complete.
make_root() {
  if [[ -e $2/complete ]]; then return; fi
  echo "making $1 in $2"
  "${as_root[@]}" rm -rf "$2"
  mkdir -p "$2"
  "${as_root[@]}" debootstrap --variant=minbase "$1" "$2" "$mirror" >/dev/null ||
    skip "debootstrap could not make $1 from $mirror"
  # The mirror may be a snapshot with an expired signature.
  echo 'Acquire::Check-Valid-Until "false";' | "${as_root[@]}" tee "$2/etc/apt/apt.conf.d/snapshot" >/dev/null
  "${as_root[@]}" touch "$2/complete"
}

# source_into ROOT: copies the last commit to /src there.
source_into() {
  "${as_root[@]}" rm -rf "$1/src"
  "${as_root[@]}" mkdir "$1/src"
  git -C "$tests/.." archive HEAD | "${as_root[@]}" tar -x -C "$1/src"
}

# toolkit_folder: prints the folder of this machine's CUDA toolkit. Prints nothing without one, or for Debian's own,
# which is spread over /usr.
toolkit_folder() {
  local nvcc
  nvcc=$(find_nvcc) || return 0
  nvcc=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
  if [[ $nvcc != /usr ]]; then echo "$nvcc"; fi
}

# in_root ROOT COMMAND [VARIABLE=VALUE]…: runs a bash command there (tests/enter.sh).
in_root() {
  "${as_root[@]}" env MOUNT="${MOUNT:-}" PIP_CERT="${PIP_CERT:-}" http_proxy="${http_proxy:-}" \
    https_proxy="${https_proxy:-}" "$tests/enter.sh" "$@"
}
