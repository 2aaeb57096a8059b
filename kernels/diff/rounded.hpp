// SPDX-License-Identifier: LGPL-2.1-or-later
// Arithmetic of float32 in which every result is rounded, so that host and device give the same bits. The build does not contract
// products and sums on the host (-ffp-contract=off).
#pragma once

#include "kernels/core/border.hpp"

namespace cudavision::diff {

#ifdef __CUDA_ARCH__
__device__ inline float mul(float a, float b) { return __fmul_rn(a, b); }
__device__ inline float add(float a, float b) { return __fadd_rn(a, b); }
__device__ inline float sub(float a, float b) { return __fsub_rn(a, b); }
__device__ inline float over(float a, float b) { return __fdiv_rn(a, b); }
__device__ inline float inverse(float a) { return __frcp_rn(a); }
#else
inline float mul(float a, float b) { return a * b; }
inline float add(float a, float b) { return a + b; }
inline float sub(float a, float b) { return a - b; }
inline float over(float a, float b) { return a / b; }
inline float inverse(float a) { return 1 / a; }
#endif
CUDAVISION_HOST_DEVICE inline float least(float a, float b) { return b < a ? b : a; }
CUDAVISION_HOST_DEVICE inline float most(float a, float b) { return a < b ? b : a; }

}  // namespace cudavision::diff
