// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "../histogram.hpp"

namespace cudavision::cuda {

#ifdef __CUDACC__

/// A sample as float32 without the slow conversion: samples have fewer bits than the mantissa.
__device__ __forceinline__ float exact_float(std::uint32_t sample) {
  return __uint_as_float(0x4b000000u | sample) - 8388608.f;
}

/// floor(wr·R + wg·G + wb·B) as numerics ask for it: left to right, every result rounded.
__device__ __forceinline__ std::uint32_t luma_of(const LumaWeights& w, std::uint32_t red, std::uint32_t green, std::uint32_t blue,
                                                 std::uint32_t max_value) {
  const float sum = __fadd_rn(__fadd_rn(__fmul_rn(w.red, exact_float(red)), __fmul_rn(w.green, exact_float(green))),
                              __fmul_rn(w.blue, exact_float(blue)));
  return min(__float_as_uint(__fadd_rd(sum, 8388608.f)) & 0x7fffffu, max_value);
}

#endif  // __CUDACC__

}  // namespace cudavision::cuda
