// SPDX-License-Identifier: LGPL-2.1-or-later
// Float32 arithmetic that rounds every result, so that host and device give the same bits. On the host, the build
// option -ffp-contract=off prevents fused multiply-adds.
#pragma once

#include "kernels/core/host_device.hpp"

namespace cudavision {

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
/// Truncates toward zero.
CUDAVISION_HOST_DEVICE inline int to_int(float a) { return int(a); }
CUDAVISION_HOST_DEVICE inline float to_float(int a) { return float(a); }
CUDAVISION_HOST_DEVICE inline float least(float a, float b) { return b < a ? b : a; }
CUDAVISION_HOST_DEVICE inline float most(float a, float b) { return a < b ? b : a; }
/// The absolute value.
CUDAVISION_HOST_DEVICE inline float size(float a) { return a < 0 ? 0 - a : a; }

// Formulas are templates over the number type F: float for one pixel, or cpu::Lanes for several
// (kernels/cpu/lanes.hpp), which has the same functions. A bool for one pixel becomes a Mask for several, so formulas
// choose with pick() instead of `if`. They are always inlined: a function and its caller may be compiled for different
// processors, which pass vectors differently.
template <typename F>
struct NumbersOf {
  using Int = typename F::Int;
  using Mask = typename F::Mask;
};
template <>
struct NumbersOf<float> {
  using Int = int;
  using Mask = bool;
};
template <typename F>
using IntOf = typename NumbersOf<F>::Int;
template <typename F>
using MaskOf = typename NumbersOf<F>::Mask;

template <typename T>
CUDAVISION_FORMULA T pick(bool first, T a, T b) {
  return first ? a : b;
}
CUDAVISION_HOST_DEVICE inline bool both(bool a, bool b) { return a && b; }
CUDAVISION_HOST_DEVICE inline bool either(bool a, bool b) { return a || b; }
CUDAVISION_HOST_DEVICE inline bool no(bool a) { return !a; }
/// Whether a mask is set for all pixels.
CUDAVISION_HOST_DEVICE inline bool all(bool a) { return a; }

}  // namespace cudavision
