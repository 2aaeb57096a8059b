#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs a bash command on the last commit in a Debian for arm64, which qemu emulates:   tests/arm64.sh [COMMAND]
# Without COMMAND it builds the CPU backend and tests the kernels and the elements. Other commands:
#   tests/arm64.sh 'gst/packaging/deb.sh dist'      the Debian package; files that it leaves in dist are copied to dist
#                                                   here; the same applies to wheel.sh
# CUDA=1 also builds the CUDA backend for SBSA (90), which nothing here can run: NVIDIA's compiler for this machine and
# its libraries for arm64 come from PyPI into COMPAT_DIR/cuda-arm64. An example:
#   CUDA=1 tests/arm64.sh 'gst/packaging/deb.sh dist'
# The compiler is this machine's g++-aarch64-linux-gnu, so compiling is as fast as for this machine; everything else is
# emulated. mmdebstrap makes the Debian in COMPAT_DIR (~/.cache/cudavision; 3 GB). It only unpacks the packages, because
# running their scripts would take half an hour. SUITE is the release (bookworm). Exit status 77 (skipped) as in
# tests/roots.sh.
set -euo pipefail
# shellcheck source=tests/roots.sh
. "$(dirname "${BASH_SOURCE[0]}")/roots.sh"
command=${1:-tests/run.sh --suite=kernels --suite=elements --timeout-multiplier=20}
suite=${SUITE:-bookworm}
debian=$cache/$suite-arm64
((EUID == 0)) || skip 'only root can make a Debian in a folder'
needs_roots mmdebstrap qemu-user-static g++-aarch64-linux-gnu dpkg-dev

# Registers unpacked packages as installed, so that Debian's tools know which package has a library.
enter_into_database() {
  local file name info
  cd "$debian"
  for file in var/cache/apt/archives/*.deb; do
    name=$(dpkg-deb --field "$file" Package)
    if [[ $(dpkg-deb --field "$file" Multi-Arch) == same ]]; then name+=:arm64; fi
    info=var/lib/dpkg/info/$name
    dpkg-deb --control "$file" unpacked
    for part in shlibs symbols; do
      if [[ -e unpacked/$part ]]; then mv "unpacked/$part" "$info.$part"; fi
    done
    rm -r unpacked
    dpkg-deb --fsys-tarfile "$file" | tar -t | sed -e 's|^\.||' -e 's|/$||' >"$info.list"
    dpkg-deb --field "$file" | sed '1a Status: install ok installed'
    echo
  done >var/lib/dpkg/status
}

# Does the necessary part of what the packages' own scripts would do.
set_up() {
  cp usr/share/base-passwd/passwd.master etc/passwd
  cp usr/share/base-passwd/group.master etc/group
  ln -sf mawk usr/bin/awk
  ln -sf fakeroot-sysv usr/bin/fakeroot
  printf '%s\n' /usr/lib/aarch64-linux-gnu/{blas,lapack} >etc/ld.so.conf.d/alternatives.conf
  "$tests/enter.sh" "$debian" ldconfig
}

if [[ ! -e $debian/complete ]]; then
  rm -rf --one-file-system "$debian"
  mkdir -p "$cache"
  wanted=("${packages_build[@]}" "${packages_cuda[@]}" "${packages_run[@]}" "${packages_report[@]}"
    libgtest-dev libbenchmark-dev apt build-essential dpkg-dev debhelper dh-python fakeroot python3 python3-pip
    python3-venv xz-utils git)
  echo "making $suite for arm64 in $debian"
  mmdebstrap --quiet --mode=root --variant=extract --architectures=arm64 --skip=check/empty,cleanup/apt \
    --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
    --aptopt='APT::Install-Recommends "false"' --include='?essential' --include="$(IFS=,; echo "${wanted[*]}")" \
    "$suite" "$debian" "$mirror" ||
    skip "mmdebstrap could not make $suite from $mirror"
  (cd "$debian" && enter_into_database && set_up)
  rm -f "$debian"/var/cache/apt/archives/*.deb
  touch "$debian/complete"
fi

# nvcc runs on this machine's processor, and finds the files for the other processor in the folder of that target.
make_toolkit() {  # FOLDER
  local pip=(/usr/bin/python3 -m pip install --quiet --disable-pip-version-check) platform others=()
  install_nvcc "$1"
  for platform in manylinux2014 manylinux_2_17 manylinux_2_27 manylinux_2_28; do
    others+=("--platform=${platform}_aarch64")
  done
  "${pip[@]}" --target="$1/arm64" "${others[@]}" --only-binary=:all: --no-deps "${packages_nvcc[@]:2}"
  # The compiler's own header is the same for all processors.
  mv "$1/nvidia/cu13/include/fatbinary_section.h" "$1/arm64/nvidia/cu13/include/"
  rm -r "$1"/nvidia/cu13/{include,lib}
  ln -s ../../arm64/nvidia/cu13/{include,lib} "$1/nvidia/cu13/"
  mkdir "$1/nvidia/cu13/targets"
  ln -s ../../../arm64/nvidia/cu13 "$1/nvidia/cu13/targets/aarch64-linux"
  touch "$1/complete"
}
cuda=(CUDA=0)
if [[ ${CUDA:-} == 1 ]]; then
  if [[ ! -e $cache/cuda-arm64/complete ]]; then
    rm -rf "$cache/cuda-arm64"
    make_toolkit "$cache/cuda-arm64"
  fi
  export MOUNT=$cache/cuda-arm64:/opt/cuda
  cuda=(CUDA=1 CUDA_ARCH="${CUDA_ARCH:-90}" CUDA_HOME=/opt/cuda/nvidia/cu13)
fi
source_into "$debian"
status=0
# qemu is ten times slower than the processor.
in_root "$debian" "cd /src; $command" "${cuda[@]}" INSTALL=0 CK_TIMEOUT_MULTIPLIER=20 || status=$?
if [[ -d $debian/src/dist ]]; then
  mkdir -p "$tests/../dist"
  cp -r "$debian"/src/dist/. "$tests/../dist/"
fi
exit "$status"
