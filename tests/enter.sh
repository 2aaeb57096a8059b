#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs a bash command as root in a Debian in a folder:   enter.sh ROOT COMMAND [VARIABLE=VALUE]…
# MOUNT='FOLDER:PLACE …' mounts folders of this machine there, read-only. All mounts disappear with the command. A
# Debian for arm64 (tests/arm64.sh) runs in qemu. Its compiler is this machine's g++-aarch64-linux-gnu, which qemu does
# not slow down.
set -euo pipefail
if [[ ${ENTERED:-} != "$$" ]]; then
  exec unshare --mount --fork bash -euc "ENTERED=\$\$ exec \"\$@\"" enter "$0" "$@"
fi
root=$(realpath "$1") command=$2
shift 2
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/dev/shm"
for pair in ${MOUNT:-}; do
  mkdir -p "$root/${pair#*:}"
  mount --rbind -o ro "${pair%%:*}" "$root/${pair#*:}"
done
cp /etc/resolv.conf "$root/etc/"
# debootstrap does not create this file, and nothing else there knows localhost.
[[ -e $root/etc/hosts ]] || printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"
if [[ ${PIP_CERT:-} ]]; then  # a network may have its own certificate
  cp "$PIP_CERT" "$root/pip.crt"
  set -- "$@" PIP_CERT=/pip.crt
fi
path=/usr/sbin:/usr/bin:/sbin:/bin

if [[ -e $root/lib/ld-linux-aarch64.so.1 && $(uname -m) != aarch64 ]]; then
  binfmt=/proc/sys/fs/binfmt_misc
  if [[ ! -e $binfmt/register ]]; then mount -t binfmt_misc binfmt_misc $binfmt; fi
  # Debian registers it where systemd runs. The magic number is for 64-bit ARM; F is necessary because qemu is not in
  # the root.
  if [[ ! -e $binfmt/qemu-aarch64 ]]; then
    magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    printf %s ":qemu-aarch64:M::$magic:$mask:$(command -v qemu-aarch64-static):F" >$binfmt/register
  fi
  # The programs of this machine find their own files in /cross, and their loader and libraries at the paths of x86-64.
  mkdir -p "$root/cross/usr" "$root/lib64" "$root/usr/local/bin"
  mount --bind -o ro /usr "$root/cross/usr"
  ln -sfn /cross/usr/lib/x86_64-linux-gnu "$root/usr/lib/x86_64-linux-gnu"
  ln -sfn /cross/usr/aarch64-linux-gnu "$root/usr/aarch64-linux-gnu"  # libc.so there names files by these paths
  ln -sfn /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 "$root/lib64/ld-linux-x86-64.so.2"
  for name in {,aarch64-linux-gnu-}{gcc,g++} cc c++; do
    language=gcc
    if [[ $name == *++ ]]; then language=g++; fi
    ln -sfn "/cross/usr/bin/aarch64-linux-gnu-$language" "$root/usr/local/bin/$name"
  done
  path=/usr/local/bin:$path
fi
exec env -i PATH="$path" HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive http_proxy="${http_proxy:-}" \
  https_proxy="${https_proxy:-}" "$@" chroot "$root" bash -euo pipefail -c "$command"
