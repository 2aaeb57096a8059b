// SPDX-License-Identifier: LGPL-2.1-or-later
// Short kernels are compiled together, because nvcc parses all headers three times for each object.
// clang-format off
#include "kernels/blend/cuda_operate.cu"
#include "kernels/blend/cuda_pair.cu"
