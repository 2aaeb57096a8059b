// SPDX-License-Identifier: LGPL-2.1-or-later
// Short kernels are compiled together, because nvcc parses all headers three times for each object.
// clang-format off
#include "kernels/diff/cuda_boxes.cu"
#include "kernels/diff/cuda_enclosed.cu"
#include "kernels/diff/cuda_adaptive_outline.cu"
#include "kernels/diff/cuda_scale.cu"
#include "kernels/diff/cuda_mog2.cu"
