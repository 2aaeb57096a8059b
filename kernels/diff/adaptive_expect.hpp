// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::adaptive (see adaptive.hpp): the expected value of a pixel, and the distance of the
// frame from it.
#pragma once

#include "kernels/diff/adaptive_light.hpp"

namespace cudavision::diff::adaptive {

inline constexpr float least_variance = 6, bright = 203;
/// Weights in steps of 1/512. The mean evidence of noise is about the number of channels, seldom more than 2 away.
inline constexpr int weight_one = 512;
inline constexpr int most_evidence = 11 * weight_one;  ///< the largest evidence of a pixel
inline constexpr int most_unlike = 10 * weight_one;    ///< the largest unlikeness of a pixel
inline constexpr int unlike = 4 * weight_one;          ///< a pixel with at least this mean unlikeness is not in shadow
/// A shadow scales the expected values, but not exactly: at its soft edge, luma differs by this share. Where it blocks
/// all sunlight, the sky adds blue and removes red, by this many 8-bit steps.
inline constexpr float soft_share = 0.04f, sky = 16;
template <typename F>
CUDAVISION_FORMULA IntOf<F> weight(F value, int most_weight) {
  return to_int(least(mul(value, F(weight_one)), F(most_weight)));
}

/// A pixel of the frame, and its background before the frame.
template <int channels, typename F>
struct Pixel {
  F value[channels], mean[channels], variance[channels];

  /// The variance that differences are divided by.
  CUDAVISION_FORMULA F spread(int c) const { return most(F(least_variance), variance[c]); }
};

/// Σ a ÷ b, computed with one division.
template <int channels, typename F>
CUDAVISION_FORMULA F sum_of_ratios(const F (&a)[channels], const F (&b)[channels]) {
  if constexpr (channels == 1) {
    return over(a[0], b[0]);
  } else {
    const F pair = mul(b[1], b[2]);
    const F sum = add(add(mul(a[0], pair), mul(mul(a[1], b[0]), b[2])), mul(mul(a[2], b[0]), b[1]));
    return over(sum, mul(b[0], pair));
  }
}

/// The expected value of a pixel.
template <int channels, typename F>
struct Expected {
  F value[channels];
};
template <int channels, typename F>
CUDAVISION_FORMULA Expected<channels, F> expect(const Pixel<channels, F>& pixel, const Light<F>& light) {
  Expected<channels, F> expected;
  expected.value[0] = sub(mul(light.gain, add(pixel.mean[0], F(4))), F(4));
  CUDAVISION_CHANNELS
  for (int c = 1; c < channels; ++c) expected.value[c] = add(mul(light.gain, pixel.mean[c]), light.offset[c]);
  // Saturated samples carry no information.
  const MaskOf<F> saturated = both(expected.value[0] > F(bright), pixel.value[0] > F(bright));
  if (all(no(saturated))) return expected;
  CUDAVISION_CHANNELS
  for (int c = 0; c < channels; ++c) expected.value[c] = pick(saturated, pixel.value[c], expected.value[c]);
  return expected;
}
/// The evidence of change.
template <int channels, typename F>
CUDAVISION_FORMULA IntOf<F> evidence_of(const Pixel<channels, F>& pixel, const Expected<channels, F>& expected) {
  F square[channels], variance[channels];
  CUDAVISION_CHANNELS
  for (int c = 0; c < channels; ++c) {
    const F away = sub(pixel.value[c], expected.value[c]);
    square[c] = mul(away, away), variance[c] = pixel.spread(c);
  }
  return weight(sum_of_ratios(square, variance), most_evidence);
}

/// The difference between the samples of the frame and the means: the largest over the channels, in fixed point.
template <int channels, typename F>
CUDAVISION_FORMULA IntOf<F> largest_difference(const Pixel<channels, F>& pixel) {
  F largest = size(sub(pixel.value[0], pixel.mean[0]));
  CUDAVISION_CHANNELS
  for (int c = 1; c < channels; ++c) largest = most(largest, size(sub(pixel.value[c], pixel.mean[c])));
  return to_int(add(mul(largest, F(128)), F(0.5f)));
}

/// The luma of the frame in steps of 1/32: a sum of five fits in 16 bits.
template <typename Int>
CUDAVISION_FORMULA Int coarse_luma_of(Int fixed) {
  return pick(fixed < Int(0), Int(0), fixed >> 2);
}
/// The luma of the expected value, in the same steps.
template <typename F>
CUDAVISION_FORMULA IntOf<F> coarse_luma(F expected) {
  return to_int(add(mul(most(F(0), least(expected, F(255.9f))), F(32)), F(0.125f)));
}
/// The value of Job::expected for a coarse luma.
template <typename Int>
CUDAVISION_FORMULA Int expected_byte(Int coarse) {
  return coarse >> 5;
}
/// The number of frame pixels, along one axis, in a square of 2·radius + 1 pixels around a coordinate.
CUDAVISION_HOST_DEVICE inline int count_along(int radius, int at, int size) {
  return (at + radius < size ? at + radius : size - 1) - (at < radius ? 0 : at - radius) + 1;
}
/// The number of frame pixels in the square around (x, y).
CUDAVISION_HOST_DEVICE inline int count_around(const Job& job, int radius, int x, int y) {
  return count_along(radius, x, job.width) * count_along(radius, y, job.height);
}
/// How far a channel is from the values that a shadow can produce. `off`: distance from exact scaling.
template <typename F>
CUDAVISION_FORMULA F beyond_shadow(int channel, F off, F expected_luma, F dark) {
  const F soft = mul(F(soft_share), expected_luma), tint = mul(F(sky), sub(F(1), dark));
  const F above = channel == 0   ? soft
                  : channel == 1 ? tint
                                 : F(0),
          below = channel == 0   ? soft
                  : channel == 1 ? F(0)
                                 : tint;
  return most(F(0), most(sub(off, above), sub(sub(F(0), below), off)));
}

/// How unlike a shadow a pixel is. `frame`, `luma`: sums of coarse luma over `count` pixels, of the frame and as
/// expected.
template <int channels, typename F>
CUDAVISION_FORMULA IntOf<F> unlike_shadow(const Job& job, const Pixel<channels, F>& pixel,
                                          const Expected<channels, F>& expected, IntOf<F> frame, IntOf<F> luma,
                                          IntOf<F> count) {
  const F dark = over(to_float(frame + (count << 5)), to_float(luma + (count << 5)));
  const MaskOf<F> outside =
      either(either(dark < F(job.shadow_threshold), dark >= F(0.97f)), expected.value[0] <= F(30));
  if (all(outside)) return most_unlike;
  F square[channels], variance[channels];
  CUDAVISION_CHANNELS
  for (int c = 0; c < channels; ++c) {
    const F away = beyond_shadow(c, sub(pixel.value[c], mul(dark, expected.value[c])), expected.value[0], dark);
    square[c] = mul(away, away), variance[c] = most(F(least_variance), mul(mul(dark, dark), pixel.spread(c)));
  }
  return pick(outside, IntOf<F>(most_unlike), weight(sum_of_ratios(square, variance), most_unlike));
}

/// Calls work(channels) with the number of channels as a compile-time constant.
template <typename Work>
auto with_channels(int channels, Work work) {
  return channels == 1 ? work(std::integral_constant<int, 1>()) : work(std::integral_constant<int, 3>());
}
/// Calls work(scale) with the scale of the analysis as a compile-time constant.
template <typename Work>
auto with_scale(int log2_scale, Work work) {
  if (log2_scale == 0) return work(std::integral_constant<int, 1>());
  if (log2_scale == 1) return work(std::integral_constant<int, 2>());
  return log2_scale == 2 ? work(std::integral_constant<int, 4>()) : work(std::integral_constant<int, 8>());
}

}  // namespace cudavision::diff::adaptive
