#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Downloads NVIDIA's compiler from PyPI into a folder:   release/cuda.sh FOLDER
# Then: export CUDA_HOME=FOLDER/nvidia/cu13
# Installs Debian's python3-pip if it is missing.
set -euo pipefail
folder=$(realpath -m "${1:?usage: release/cuda.sh FOLDER}")
# shellcheck source=tests/prepare.sh
. "$(dirname "${BASH_SOURCE[0]}")/../tests/prepare.sh"
install_nvcc "$folder"
