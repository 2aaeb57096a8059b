// SPDX-License-Identifier: LGPL-2.1-or-later
// Short kernels are compiled together, because nvcc parses all headers three times for each object.
// clang-format off
#include "kernels/histogram/cuda_overlay.cu"
#include "kernels/histogram/cuda_words.cu"
#include "kernels/histogram/cuda_equalize.cu"
#include "kernels/histogram/cuda_pixels.cu"
#include "kernels/histogram/cuda_sharpness.cu"
