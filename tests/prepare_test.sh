#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tests which backends examples/quickstart.sh and tests/run.sh choose (choose_backends in tests/prepare.sh) on simulated
# machines: with and without a GPU (a program nvidia-smi that claims one) and a compiler (a program nvcc).
set -euo pipefail
# shellcheck source=tests/prepare.sh
. "$(dirname "${BASH_SOURCE[0]}")/prepare.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/tools" "$work/empty"
export PATH=$work/tools:$PATH CUDA_HOME=$work/empty
unset CUDA INSTALL
failures=0

make_nvcc() {
  printf '#!/bin/sh\necho "Cuda compilation tools, release %s, V%s.99"\n' "$2" "$2" >"$1"
  chmod +x "$1"
}
# machine DRIVER NVCC: the CUDA versions of the driver, or 0 without a GPU, and of the compiler, or 0 without one.
machine() {
  rm -f "$work"/tools/*
  if (($1)); then
    # shellcheck disable=SC2016
    printf '#!/bin/sh\nif [ "${1:-}" = -L ]; then echo "GPU 0: a GPU"; else echo "| CUDA Version: %s.0 |"; fi\n' \
      "$1" >"$work/tools/nvidia-smi"
  else
    printf '#!/bin/sh\nexit 9\n' >"$work/tools/nvidia-smi"
  fi
  chmod +x "$work/tools/nvidia-smi"
  make_nvcc "$work/tools/nvcc" "$2"  # 0 hides a compiler of this machine
}
# Replaces PyPI: makes a folder that looks like pip's.
install_nvcc() {
  mkdir -p "$1/nvidia/cu13/bin"
  make_nvcc "$1/nvidia/cu13/bin/nvcc" 13.0
}

# expect BUILD DEFAULT STATUS OPTIONS: checks choose_backends. OPTIONS are the expected words, unless STATUS is a
# failure.
expect() {
  local status=0
  CUDA_HOME=$work/empty backend_options=()
  choose_backends "$work/$1" "$2" >"$work/out" 2>&1 || status=$?
  if [[ $status != "$3" || "${backend_options[*]}" != "$4" ]]; then
    wrong "status $status and ${backend_options[*]:-nothing}, not $3 and ${4:-nothing}; it said: $(<"$work/out")"
  fi
}
wrong() {  # TEXT
  echo "line ${BASH_LINENO[1]}: $1"
  failures=$((failures + 1))
}
says() { grep -qF -- "$1" "$work/out" || wrong "\"$1\" is not in: $(<"$work/out")"; }
is() { [[ $1 == "$2"* ]] || wrong "it is $1, not $2…"; }

machine 0 12.1
expect laptop 0 0 -Dcuda=disabled
touch "$work/laptop/build.ninja"
expect laptop 0 0 -Dcuda=disabled
expect laptop 1 0 '-Dcuda=auto -Dcuda-arch=90 -Dcuda-optimize=false'  # the tests, in the same folder
expect laptop 0 0 ''                            # quickstart again: the folder keeps its backends
CUDA=1 expect other 0 0 '-Dcuda=enabled -Dcuda-arch=90 -Dcuda-optimize=true'
CUDA=0 expect laptop 1 0 -Dcuda=disabled
CUDA=yes expect laptop 1 1 ''
says 'CUDA=yes is not valid'

machine 13 13.0
expect workstation 1 0 -Dcuda=auto
expect laptop 1 0 -Dcuda=auto

machine 13 0
expect gpu 1 0 -Dcuda=auto
says "installing NVIDIA's from PyPI"
is "$CUDA_HOME" "$work/gpu/"
[[ -x $CUDA_HOME/bin/nvcc ]] || wrong "there is no $CUDA_HOME/bin/nvcc"
touch "$work/gpu/build.ninja"
expect gpu 1 0 ''  # and the compiler is found again
is "$CUDA_HOME" "$work/gpu/"
INSTALL=0 expect no-network 1 0 -Dcuda=disabled
says 'INSTALL=0 installs none'

machine 13 11.8  # Debian's is too old
expect old-toolkit 1 0 -Dcuda=auto
says "installing NVIDIA's from PyPI"

machine 12 0
expect old-driver 1 0 -Dcuda=disabled
says 'one for CUDA 13 (580 or newer)'
CUDA=1 expect old-driver 1 1 ''

machine 12 13.0
expect new-toolkit 1 0 -Dcuda=disabled
says 'is for CUDA 13.0: its code does not run here'
CUDA=1 expect new-toolkit 1 0 -Dcuda=enabled  # for another machine
machine 12 12.9  # every driver for CUDA 12 runs it
expect minor 1 0 -Dcuda=auto

# The build runs in another folder.
machine 0 12.1
finder=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../kernels/find_nvcc.sh")
is "$(cd "$work" && PATH=tools:$PATH "$finder")" "$work/tools/nvcc"

# Unoptimized kernels must not go to a GPU host.
echo 'command = nvcc --Ofast-compile=max' >"$work/laptop/build.ninja"
if "$(dirname "${BASH_SOURCE[0]}")/gpu-bundle.sh" -b "$work/laptop" -o "$work/bundle.tar.gz" >"$work/out" 2>&1; then
  wrong 'gpu-bundle.sh packs kernels that are not optimized'
fi
says 'are not optimized'
exit $((failures > 0))
