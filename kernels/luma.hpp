// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "border.hpp"

namespace cudavision {

/// The luma of an RGB pixel, floor(0.299f·R + 0.587f·G + 0.114f·B) in float32, left to right, each product and sum rounded:
/// the same bits wherever it is computed. (On the host x86-64 has no fused multiply-add unless asked for.)
CUDAVISION_HOST_DEVICE inline int luma_of(int r, int g, int b) {
#ifdef __CUDA_ARCH__
  return int(__fadd_rn(__fadd_rn(__fmul_rn(0.299f, float(r)), __fmul_rn(0.587f, float(g))), __fmul_rn(0.114f, float(b))));
#else
  const float red = 0.299f * float(r), green = 0.587f * float(g), blue = 0.114f * float(b);
  return int(red + green + blue);
#endif
}

}  // namespace cudavision
