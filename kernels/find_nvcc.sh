#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Prints the absolute path of an nvcc from 12.1 on: on PATH, else in CUDA_HOME or /usr/local/cuda. With --version,
# prints the CUDA version of this nvcc, such as 13.0. Status 1 if there is none.
least=12.1
for nvcc in nvcc "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc"; do
  version=$("$nvcc" --version 2>/dev/null | sed -n 's/.*, release \([0-9.]*\),.*/\1/p')
  if [ "$(printf '%s\n' "$least" "$version" | sort -V | head -1)" = "$least" ]; then
    if [ "${1:-}" = --version ]; then echo "$version"; else realpath -s "$(command -v "$nvcc")"; fi
    exit
  fi
done
exit 1
