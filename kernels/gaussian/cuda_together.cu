// SPDX-License-Identifier: LGPL-2.1-or-later
// Short kernels, which are compiled together: nvcc parses all headers three times for each object.
// clang-format off
#include "kernels/gaussian/cuda_large.cu"
#include "kernels/gaussian/cuda_strip.cu"
