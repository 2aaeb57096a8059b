// SPDX-License-Identifier: LGPL-2.1-or-later
// The arithmetic of blending, once for both backends. See Blend for what it means.
#pragma once

#include <cstddef>
#include <cstdint>

#include "border.hpp"
#include "image.hpp"

namespace cudavision {

enum class BlendOperator : std::uint8_t { source, over, add, subtract, multiply, screen, difference, min, max, average };
enum class Interpolation : std::uint8_t { nearest, bilinear, area };

namespace detail {

/// Where a component's samples lie: Y, Cb, Cr or R, G, B, then alpha.
struct BlendChannel {
  std::uint8_t* data = nullptr;  ///< the first sample; nullptr: the format has none
  std::ptrdiff_t pitch = 0;
  std::uint8_t step = 1;  ///< bytes from sample to sample
  std::uint8_t shift_x = 0, shift_y = 0;
};

/// A picture of four interleaved samples a pixel, which lie so that each pixel is one word.
struct BlendPacked {
  std::uint8_t* data = nullptr;  ///< nullptr: it is not of this kind
  std::uint8_t order[4] = {};    ///< where in a pixel the components are; the last: alpha, or padding
};

/// Index of a role among a picture's channels; −1: none of them.
constexpr int blend_component(Role role) {
  switch (role) {
    case Role::luma:
    case Role::red:
      return 0;
    case Role::cb:
    case Role::green:
      return 1;
    case Role::cr:
    case Role::blue:
      return 2;
    case Role::alpha:
      return 3;
    default:
      return -1;
  }
}

/// Three components from three: rows of a matrix and an offset.
struct BlendMatrix {
  float m[3][4];

  CUDAVISION_HOST_DEVICE float row(int c, float x, float y, float z) const {
    return m[c][0] * x + (m[c][1] * y + (m[c][2] * z + m[c][3]));
  }
};

/// A pad, resolved.
struct BlendLayer {
  BlendChannel channels[4];
  BlendPacked packed;
  Rect place, crop;       ///< never empty
  Rect visible;           ///< of place, inside the output, not empty
  BlendMatrix to_target;  ///< the output's samples
  BlendMatrix to_key;     ///< R'G'B' of 0–255
  float key[3];
  float key_scale, key_offset;  ///< the key's weight is its distance · scale − offset, clamped to 0–1
  float coverage;               ///< of the pad's own alpha; average: of the sample
  float alpha_rounding;         ///< blend_rounding, where alpha is rounded before it is used, as compositor does it; else 0
  float alpha_scale;            ///< the pad's own alpha in steps of the output's
  float neutral, opaque;        ///< samples that stand for missing chroma, and alpha
  Format format;
  std::uint8_t sample_bytes, shift;
  BlendOperator op;
  Interpolation interpolation;
  bool identity;  ///< to_target changes nothing
  bool keyed, first_pixel;
  bool unscaled;
  bool hides;  ///< nothing of what is below shows
};

/// The output, and what lies below all pads.
struct BlendTarget {
  BlendChannel channels[4];
  BlendChannel padding;
  BlendPacked packed;
  int width, height;
  std::uint8_t sample_bytes, shift;
  std::uint8_t shift_x, shift_y;  ///< of chroma
  bool gray, alpha, yuv;
  float max, per_max;            ///< the largest sample, and its reciprocal
  BlendMatrix to_rgb, from_rgb;  ///< R'G'B' of 0–1
  float background[4], checker;  ///< checker: first component of the other squares
};

/// Added to a number below 2^22, and taken away again, it leaves the number rounded half to even, without a branch; 0 leaves the
/// number.
inline constexpr float blend_rounding = 0x1.8p23f;
CUDAVISION_HOST_DEVICE inline float blend_rounded(float x, float rounding = blend_rounding) {
  return (x + rounding) - rounding;
}
CUDAVISION_HOST_DEVICE inline float blend_reciprocal(float x) {
#ifdef __CUDA_ARCH__
  return __fdividef(1, x);  // to within an ulp or two
#else
  return 1 / x;
#endif
}
CUDAVISION_HOST_DEVICE inline float blend_clamped(float x, float most) {
  x = x > 0.0f ? x : 0.0f;
  return x < most ? x : most;
}

/// The key's weight of a pixel at this distance from the key, in steps of 1/255: 0 where it is like it.
CUDAVISION_HOST_DEVICE inline float blend_key_weight(const BlendLayer& layer, float distance) {
  return blend_clamped(distance * layer.key_scale - layer.key_offset, 1);
}
CUDAVISION_HOST_DEVICE inline float blend_key_weight(const BlendLayer& layer, const float* key, float r, float g, float b) {
  const auto size = [](float x) { return x < 0.0f ? -x : x; };
  float distance = size(r - key[0]);
  const float green = size(g - key[1]), blue = size(b - key[2]);
  distance = green > distance ? green : distance;
  distance = blue > distance ? blue : distance;
  return blend_key_weight(layer, distance);
}

/// Operators on one of R', G', B'.
template <BlendOperator Op>
CUDAVISION_HOST_DEVICE inline float blend_channel(float d, float s) {
  switch (Op) {
    case BlendOperator::subtract:
      return d > s ? d - s : 0;
    case BlendOperator::multiply:
      return d * s;
    case BlendOperator::screen:
      return d + (s - d * s);
    case BlendOperator::difference:
      return d > s ? d - s : s - d;
    case BlendOperator::min:
      return d < s ? d : s;
    case BlendOperator::max:
      return d > s ? d : s;
    default:
      return s;
  }
}

CUDAVISION_HOST_DEVICE constexpr bool blends_channels(BlendOperator op) {
  return op >= BlendOperator::subtract && op <= BlendOperator::max;
}

/// Lays one pixel over another: d and s hold the output's samples; alpha in steps of the output's. k: the key's weight.
template <BlendOperator Op, bool Alpha>
CUDAVISION_HOST_DEVICE inline void blend_pixel(const BlendTarget& target, const BlendLayer& layer, float k, const float (&s)[4],
                                               float (&d)[4]) {
  constexpr bool average = Op == BlendOperator::average;
  if (Op == BlendOperator::source || average) {
    const float weight = average ? layer.coverage * k : k;
    for (int c = 0; c < 3; ++c) d[c] += weight * (s[c] - d[c]);
    if (Alpha) d[3] += weight * ((average ? s[3] : s[3] * layer.coverage) - d[3]);
    return;
  }
  float over[3] = {s[0], s[1], s[2]};
  if (blends_channels(Op)) {
    float rgb[3];
    for (int c = 0; c < 3; ++c) {
      const float below = blend_clamped(target.to_rgb.row(c, d[0], d[1], d[2]), 1);
      const float above = blend_clamped(target.to_rgb.row(c, s[0], s[1], s[2]), 1);
      rgb[c] = blend_channel<Op>(below, above);
    }
    for (int c = 0; c < 3; ++c) over[c] = blend_clamped(target.from_rgb.row(c, rgb[0], rgb[1], rgb[2]), target.max);
    if (Alpha)
      for (int c = 0; c < 3; ++c) over[c] = s[c] + (over[c] - s[c]) * (d[3] * target.per_max);
  }
  float above = s[3] * layer.coverage * k;
  if (!Alpha) {
    const float weight = above * target.per_max;
    for (int c = 0; c < 3; ++c) d[c] += weight * (over[c] - d[c]);
    return;
  }
  above = blend_rounded(above, layer.alpha_rounding);
  const float below = blend_rounded(d[3] * (target.max - above) * target.per_max, layer.alpha_rounding);
  const float sum = above + below, reciprocal = blend_reciprocal(sum > 0.5f ? sum : 1.0f);
  for (int c = 0; c < 3; ++c) {
    const float color = (over[c] * above + d[c] * below) * reciprocal;
    d[c] = sum > 0.5f ? color : target.max;
  }
  const float added = d[3] + above;
  d[3] = Op != BlendOperator::add ? sum : added < target.max ? added : target.max;
}

/// What of an axis an output pixel shows: samples first … last, with their weights.
struct BlendTaps {
  int first, last;
  float first_weight, weight, last_weight;

  CUDAVISION_HOST_DEVICE float of(int i) const { return i == first ? first_weight : i == last ? last_weight : weight; }
};

/// n / d for 0 ≤ n < 2^31, d > 0, and quotients below 2^15.
CUDAVISION_HOST_DEVICE inline int blend_divided(int n, int d) {
#ifdef __CUDA_ARCH__
  const int estimate = int(__fdividef(float(n), float(d))), rest = n - estimate * d;  // off by one at most
  return rest < 0 ? estimate - 1 : rest >= d ? estimate + 1 : estimate;
#else
  return n / d;
#endif
}

/// The taps of output pixel i ≥ 0 of a pad, on an axis of `place` pixels that shows `crop` of the picture's from `begin` on, in a
/// plane subsampled by 2^shift. Integers but for the weights: all products are below 2^31.
CUDAVISION_HOST_DEVICE inline BlendTaps blend_taps(Interpolation interpolation, int i, int place, int begin, int crop, int shift) {
  if (place == crop || interpolation == Interpolation::nearest) {
    const int at = place == crop ? begin + i : begin + blend_divided((2 * i + 1) * crop, 2 * place);
    return {at >> shift, at >> shift, 1, 0, 0};
  }
  const int low = begin >> shift, high = (begin + crop - 1) >> shift;
  if (interpolation == Interpolation::area && place > 0 && crop > place) {
    const int one = place << shift;  // of a sample
    const int from = i * crop + begin * place, to = from + crop;
    const int first = blend_divided(from, one), last = blend_divided(to + one - 1, one) - 1;
    const float per = 1 / float(crop);
    if (first == last) return {first, last, 1, 0, 0};
    return {first, last, float((first + 1) * one - from) * per, float(one) * per, float(to - last * one) * per};
  }
  const int one = 2 * place << shift;
  const int at = (2 * i + 1) * crop + 2 * place * begin - (place << shift);  // the first sample's centre is at 0
  const int before = at >= 0 ? blend_divided(at, one) : -1;
  const float weight = float(at - before * one) / float(one);
  const int first = before < low ? low : before > high ? high : before;
  const int last = before + 1 < low ? low : before + 1 > high ? high : before + 1;
  if (first == last) return {first, last, 1, 0, 0};
  return {first, last, 1 - weight, 0, weight};
}

}  // namespace detail
}  // namespace cudavision
