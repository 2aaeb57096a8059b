// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <climits>
#include <cstdint>

#include "kernels/core/host_device.hpp"

namespace cudavision {

/// How luma is computed from RGB. The luma of YUV and gray is the Y plane itself.
enum class LumaMatrix { bt601, bt709, bt2020, smpte240m };
inline constexpr LumaMatrix luma_matrices[] = {LumaMatrix::bt601, LumaMatrix::bt709, LumaMatrix::bt2020,
                                               LumaMatrix::smpte240m};

struct LumaWeights {
  float red, green, blue;
};
CUDAVISION_HOST_DEVICE constexpr LumaWeights luma_weights(LumaMatrix matrix) {
  switch (matrix) {  // no default: the compiler warns about a matrix without weights
    case LumaMatrix::bt601:
      break;
    case LumaMatrix::bt709:
      return {0.2126f, 0.7152f, 0.0722f};
    case LumaMatrix::bt2020:
      return {0.2627f, 0.678f, 0.0593f};
    case LumaMatrix::smpte240m:
      return {0.212f, 0.701f, 0.087f};
  }
  return {0.299f, 0.587f, 0.114f};
}

#ifdef __CUDACC__
/// luma_of() on the device. The samples are passed as the floats 2^23 + sample, whose bits are 0x4b000000 | sample:
/// this avoids slow conversions. A fused multiply-add rounds only its result, so fma(w, 2^23 + s, −w · 2^23) is the
/// rounded product w · s.
__device__ __forceinline__ int luma_of_biased(float r, float g, float b, const LumaWeights& w) {
  constexpr float bias = 0x1p23f;  // adjacent floats from here to 2^24 differ by 1
  const float red = __fmaf_rn(w.red, r, -w.red * bias), green = __fmaf_rn(w.green, g, -w.green * bias),
              blue = __fmaf_rn(w.blue, b, -w.blue * bias);
  return __float_as_int(__fadd_rd(__fadd_rn(__fadd_rn(red, green), blue), bias)) & 0x7fffff;
}
#endif

/// The luma of an RGB pixel: floor(wr·R + wg·G + wb·B), at most max_value. Computed in float32 from left to right, with
/// every product and sum rounded, so that the host and the device give the same bits. (The host build disables
/// contraction to multiply-adds.)
CUDAVISION_HOST_DEVICE inline int luma_of(int r, int g, int b, const LumaWeights& w = luma_weights(LumaMatrix::bt601),
                                          int max_value = INT_MAX) {
#ifdef __CUDA_ARCH__
  const auto biased = [](int sample) { return __int_as_float(0x4b000000 | sample); };
  return min(luma_of_biased(biased(r), biased(g), biased(b), w), max_value);
#else
  const float red = w.red * float(r), green = w.green * float(g), blue = w.blue * float(b);
  return std::min(int(red + green + blue), max_value);
#endif
}

}  // namespace cudavision
