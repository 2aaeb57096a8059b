// SPDX-License-Identifier: LGPL-2.1-or-later
// The samples of a pad that form an output pixel, along one axis, for both backends. A tap is a sample and its weight.
#pragma once

#include "kernels/blend/plan.hpp"

namespace cudavision::blend {

/// The position of output pixel i ≥ 0 of a pad, in units of 2^-32 samples.
CUDAVISION_HOST_DEVICE inline std::int64_t position_of(const Axis& axis, int i) {
  return axis.start + std::uint32_t(i) * axis.step;
}

/// The single sample of Sampling::point.
CUDAVISION_HOST_DEVICE inline int point_tap(const Axis& axis, int i) { return int(position_of(axis, i) >> 32); }

/// The two samples of Sampling::linear, and the weight of the second sample.
struct LinearTaps {
  int first, second;
  float weight;
};
CUDAVISION_HOST_DEVICE inline LinearTaps linear_taps(const Axis& axis, int i) {
  const std::int64_t at = position_of(axis, i);
  const int before = int(at >> 32);
  const auto inside = [&](int x) {
#ifdef __CUDA_ARCH__
    return min(max(x, axis.low), axis.high);  // without a branch
#else
    return x < axis.low ? axis.low : x > axis.high ? axis.high : x;
#endif
  };
  return {inside(before), inside(before + 1), float(std::uint32_t(at) >> 8) * axis.weight};
}

/// Samples first … last, with three weights: for the first sample, for the last sample, and for all samples between.
struct Taps {
  int first, last;
  float first_weight, weight, last_weight;

  CUDAVISION_HOST_DEVICE float of(int i) const { return i == first ? first_weight : i == last ? last_weight : weight; }
};

/// The samples of output pixel i, for any sampling. Sampling::area is linear on an axis that does not shrink.
CUDAVISION_HOST_DEVICE inline Taps taps_of(Sampling sampling, const Axis& axis, int i) {
  constexpr std::int64_t one = std::int64_t(1) << 32;
  if (sampling == Sampling::point) {
    const int at = point_tap(axis, i);
    return {at, at, 1, 0, 0};
  }
  if (sampling == Sampling::linear || axis.per == 0) {
    const LinearTaps taps = linear_taps(axis, i);
    if (taps.first == taps.second || taps.weight == 0) return {taps.first, taps.first, 1, 0, 0};
    return {taps.first, taps.second, 1 - taps.weight, 0, taps.weight};
  }
  const std::int64_t from = position_of(axis, i), to = from + axis.step - 1;
  const int first = int(from >> 32), end = int(to >> 32), last = end < axis.high ? end : axis.high;
  if (first == last) return {first, last, 1, 0, 0};
  const auto part = [](std::int64_t of_one) { return float(std::uint32_t(of_one >> 8)) * 0x1p-24f; };
  const float head = part(one - std::uint32_t(from)), tail = last < end ? 1 : part(std::int64_t(std::uint32_t(to)) + 1);
  return {first, last, head * axis.per, axis.per, tail * axis.per};
}

}  // namespace cudavision::blend
