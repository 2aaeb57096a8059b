// SPDX-License-Identifier: LGPL-2.1-or-later
// Arithmetic shared by both backends, so that they agree in every bit.
#pragma once

#include <algorithm>

#include "kernels/histogram/plan.hpp"

namespace cudavision::histogram {

/// The values of a bin are [first_value(bin), first_value(bin + 1)).
CUDAVISION_HOST_DEVICE inline int first_value(int bin, int bins, int depth) {
  return int(((std::uint64_t(bin) << depth) + unsigned(bins) - 1) / unsigned(bins));
}

/// The equalised value of a sample. `below`: number of samples with this or a lower value; `lowest`: number of samples
/// with the lowest value; `total`: number of all samples.
CUDAVISION_HOST_DEVICE inline int equalized(int value, std::uint32_t below, std::uint32_t lowest, std::uint32_t total,
                                            int max_value) {
  if (lowest == total) return value;
  if (below <= lowest) return 0;
  const float scale = float(max_value) / float(int(total - lowest));
  const float scaled = float(int(below - lowest)) * scale;
#ifdef __CUDA_ARCH__
  return min(__float2int_rn(scaled), max_value);
#else
  return std::min(int(__builtin_rintf(scaled)), max_value);
#endif
}

/// log2(n) in units of 2^−16, linear between powers of two. n ≥ 1.
CUDAVISION_HOST_DEVICE inline std::uint32_t log2_fixed(std::uint32_t n) {
  int exponent = 0;
  for (std::uint32_t m = n; m > 1; m >>= 1) ++exponent;
  return std::uint32_t(exponent) << 16 | std::uint32_t((std::uint64_t(n) << 16 >> exponent) & 0xffff);
}
/// The height of a bar in pixels, 0 to `height`. `largest`: the largest count of its channel.
CUDAVISION_HOST_DEVICE inline int bar_height(std::uint32_t count, std::uint32_t largest, int height, bool log) {
  if (largest == 0) return 0;
  const std::uint64_t part = log ? log2_fixed(count + 1) : count, whole = log ? log2_fixed(largest + 1) : largest;
  return int((part * unsigned(height) + whole / 2) / whole);
}
/// The bins of column x are [first_bin(x), max(first_bin(x) + 1, first_bin(x + 1))).
CUDAVISION_HOST_DEVICE inline int first_bin(int x, int bins, int width) { return int(std::int64_t(x) * bins / width); }

/// Blends `above` over `below`. `opacity`: opacity of `above`, 0–256.
CUDAVISION_HOST_DEVICE inline int blend(int below, int above, int opacity) {
  return (below * (256 - opacity) + above * opacity + 128) >> 8;
}

/// The channels that have a bar at pixel (x, y) of the overlay: bit c is channel c. `heights`: [channel][column].
CUDAVISION_HOST_DEVICE inline unsigned covering_bars(const OverlayPlan& plan, const std::uint16_t* heights, int x,
                                                     int y) {
  unsigned covering = 0;
  for (int c = 0; c < plan.channels; ++c)
    covering |= unsigned(heights[c * plan.position.width + x] >= plan.position.height - y) << c;
  return covering;
}

/// A sample of role `role` under the overlay. `covering`: see covering_bars().
CUDAVISION_HOST_DEVICE inline int overlaid(const OverlayPlan& plan, int sample, int role, unsigned covering) {
  sample = blend(sample, plan.values[0][role], plan.opacity / 2);
  if (covering & plan.luma) sample = blend(sample, plan.values[7][role], plan.opacity);
  int colour = 0;
  for (int c = 0; c < plan.channels; ++c)
    if (covering & ~plan.luma & 1u << c) colour |= plan.colour[c];
  return colour ? blend(sample, plan.values[colour][role], plan.opacity) : sample;
}

}  // namespace cudavision::histogram
