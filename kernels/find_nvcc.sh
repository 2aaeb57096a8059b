#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Prints the path of an nvcc from 12.1 on: on PATH, else in CUDA_HOME or /usr/local/cuda. Status 1 if there is none.
least=12.1
for nvcc in nvcc "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc"; do
  version=$("$nvcc" --version 2>/dev/null | sed -n 's/.*, release \([0-9.]*\),.*/\1/p')
  if [ "$(printf '%s\n' "$least" "$version" | sort -V | head -1)" = "$least" ]; then
    command -v "$nvcc"
    exit
  fi
done
exit 1
