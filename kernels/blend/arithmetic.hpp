// SPDX-License-Identifier: LGPL-2.1-or-later
// The arithmetic of blending, once for both backends. See Blend for what it means.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/border.hpp"
#include "kernels/core/image.hpp"

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

/// Where along an axis an output pixel finds its samples, in a plane: at start + i · step, in units of 2^-32 samples, for pixel i
/// of the pad. Errors of less than 2^-32 a pixel add up, upwards: nowhere do they reach the next sample.
struct BlendAxis {
  std::int64_t start, step;
  int low, high;  ///< of the samples that are shown, the first and the last
  float weight;   ///< linear: of a unit of (at >> 8); 0: the axis has its own size, and shows its samples
  float per;      ///< area: 1 / the samples that an output pixel covers; 0: it is not made smaller
};

/// How a pad's samples are found: one a pixel, two by two, or all that it covers.
enum class BlendSampling : std::uint8_t { point, linear, area };

/// A pad, resolved.
struct BlendLayer {
  BlendChannel channels[4];
  BlendPacked packed;
  Rect place, crop;              ///< never empty
  Rect visible;                  ///< of place, inside the output, not empty
  BlendAxis across[2], down[2];  ///< of planes not subsampled, and subsampled
  BlendMatrix to_target;         ///< the output's samples
  BlendMatrix to_key;            ///< R'G'B' of 0–255
  float key[3];
  float key_scale, key_offset;   ///< the key's weight is its distance · scale − offset, clamped to 0–1
  float coverage;                ///< of the pad's own alpha; average: of the sample
  float rounding;                ///< blend_rounding, where alpha and colours become integers pad by pad, as in compositor; else 0
  float color_bias, alpha_bias;  ///< added to colours, and to alpha, before they are rounded: blend_down to round down
  float alpha_scale;             ///< the pad's own alpha in steps of the output's
  float neutral, opaque;         ///< samples that stand for missing chroma, and alpha
  Format format;
  std::uint8_t sample_bytes, shift;
  std::uint16_t max;  ///< the greatest sample: what is stored above it counts as it
  BlendOperator op;
  BlendSampling sampling;
  bool identity;  ///< to_target changes nothing
  bool keyed, first_pixel;
  bool unscaled;
  bool rounds_samples;  ///< as it does the result: samples that are scaled or converted
  bool opaque_below;    ///< what is below counts as opaque
  bool hides;           ///< nothing of what is below shows
  bool copies;          ///< and its samples go into the output as they lie
};

/// The output, and what lies below all pads.
struct BlendTarget {
  BlendChannel channels[4];
  BlendChannel padding;
  BlendPacked packed;
  int width, height;
  std::uint8_t sample_bytes, shift;
  std::uint8_t shift_x, shift_y;  ///< of chroma
  bool gray, alpha;
  float max, per_max;               ///< the largest sample, and its reciprocal
  BlendMatrix to_rgb, from_rgb;     ///< R'G'B' of 0–1
  float background[4], checker[4];  ///< checker: of every other square
};

/// Added to a number below 2^22, and taken away again, it leaves the number rounded half to even, without a branch; 0 leaves the
/// number.
inline constexpr float blend_rounding = 0x1.8p23f;
CUDAVISION_HOST_DEVICE inline float blend_rounded(float x, float rounding = blend_rounding) { return (x + rounding) - rounding; }
/// Added to a number before it is rounded to the nearest, it has the number rounded down. compositor's quotients are at least 1/256
/// apart: what float arithmetic loses of a whole number does not take it to the next one below.
inline constexpr float blend_down = -0.5f + 0x1p-10f;
CUDAVISION_HOST_DEVICE inline float blend_reciprocal(float x) {
#ifdef __CUDA_ARCH__
  return __fdividef(1, x);  // to within an ulp or two
#else
  return 1 / x;
#endif
}
CUDAVISION_HOST_DEVICE inline float blend_lesser(float a, float b) {
#ifdef __CUDA_ARCH__
  return fminf(a, b);  // one instruction; of the processor's there is one for the other
#else
  return a < b ? a : b;
#endif
}
CUDAVISION_HOST_DEVICE inline float blend_greater(float a, float b) {
#ifdef __CUDA_ARCH__
  return fmaxf(a, b);
#else
  return a > b ? a : b;
#endif
}
CUDAVISION_HOST_DEVICE inline float blend_clamped(float x, float most) { return blend_lesser(blend_greater(x, 0), most); }

/// The key's weight of a pixel at this distance from the key, in steps of 1/255: 0 where it is like it.
CUDAVISION_HOST_DEVICE inline float blend_key_weight(const BlendLayer& layer, float distance) {
  return blend_clamped(distance * layer.key_scale - layer.key_offset, 1);
}
CUDAVISION_HOST_DEVICE inline float blend_key_weight(const BlendLayer& layer, const float* key, float r, float g, float b) {
  const auto size = [](float x) { return x < 0.0f ? -x : x; };
  return blend_key_weight(layer, blend_greater(size(r - key[0]), blend_greater(size(g - key[1]), size(b - key[2]))));
}

/// Operators on one of R', G', B'.
template <BlendOperator Op>
CUDAVISION_HOST_DEVICE inline float blend_channel(float d, float s) {
  switch (Op) {
    case BlendOperator::subtract:
      return blend_greater(d - s, 0);
    case BlendOperator::multiply:
      return d * s;
    case BlendOperator::screen:
      return d + (s - d * s);
    case BlendOperator::difference:
      return blend_greater(d - s, s - d);
    case BlendOperator::min:
      return blend_lesser(d, s);
    case BlendOperator::max:
      return blend_greater(d, s);
    default:
      return s;
  }
}

CUDAVISION_HOST_DEVICE constexpr bool blends_channels(BlendOperator op) {
  return op >= BlendOperator::subtract && op <= BlendOperator::max;
}

/// A stored sample as its value. In formats of 10 bits the 6 bits above may be set in frames of careless sources.
template <typename T>
CUDAVISION_HOST_DEVICE inline std::uint32_t blend_sample(const BlendLayer& layer, T stored) {
  if (sizeof(T) == 1) return stored;
  const std::uint32_t value = stored >> layer.shift, max = layer.max;
  return value < max ? value : max;
}

/// A sample as an integer. What lies in the middle goes up, whatever arithmetic loses of it.
CUDAVISION_HOST_DEVICE inline float blend_rounded_sample(float x) { return blend_rounded(x + 0x1p-10f); }
/// What compositor's integers make of a colour; nothing where it is not rounded here.
CUDAVISION_HOST_DEVICE inline float blend_rounded_color(const BlendLayer& layer, float x) {
  return blend_rounded(x + layer.color_bias, layer.rounding);
}

/// What compositor's integers make of an alpha; nothing where it is not rounded here.
CUDAVISION_HOST_DEVICE inline float blend_rounded_alpha(const BlendLayer& layer, float x) {
  return blend_rounded(x + layer.alpha_bias, layer.rounding);
}

/// Lays one pixel over another: d and s hold the output's samples; alpha in steps of the output's. k: the key's weight. Channels: 1
/// for gray, 3, or 4 with alpha; of others nothing is looked at but the pad's own alpha.
template <BlendOperator Op, int Channels>
CUDAVISION_HOST_DEVICE inline void blend_pixel(const BlendTarget& target, const BlendLayer& layer, float k, const float (&s)[4],
                                               float (&d)[4]) {
  constexpr bool average = Op == BlendOperator::average, compositor = Op == BlendOperator::over || Op == BlendOperator::add;
  constexpr bool alpha = Channels == 4;
  constexpr int colors = Channels == 1 ? 1 : 3;
  if (Op == BlendOperator::source || average) {
    const float weight = average ? layer.coverage * k : k;
    for (int c = 0; c < colors; ++c) d[c] += weight * (s[c] - d[c]);
    if (alpha) d[3] += weight * ((average ? s[3] : blend_rounded_alpha(layer, s[3] * layer.coverage)) - d[3]);
    return;
  }
  float over[3] = {s[0], s[1], s[2]};
  if (blends_channels(Op)) {
    const auto row = [&](int c, const float(&v)[4]) {
      return colors == 1 ? target.to_rgb.m[c][0] * v[0] + target.to_rgb.m[c][3] : target.to_rgb.row(c, v[0], v[1], v[2]);
    };
    float rgb[3];
    for (int c = 0; c < colors; ++c) {
      const float below = blend_clamped(row(c, d), 1), above = blend_clamped(row(c, s), 1);
      rgb[c] = blend_channel<Op>(below, above);
    }
    if (colors == 1) rgb[1] = rgb[2] = rgb[0];
    for (int c = 0; c < colors; ++c) over[c] = blend_clamped(target.from_rgb.row(c, rgb[0], rgb[1], rgb[2]), target.max);
    if (alpha)
      for (int c = 0; c < 3; ++c) over[c] = s[c] + (over[c] - s[c]) * (d[3] * target.per_max);
  }
  float above = s[3] * layer.coverage * k;
  if (!alpha) {
    const float weight = above * target.per_max;
    for (int c = 0; c < colors; ++c) {
      const float color = d[c] + weight * (over[c] - d[c]);
      d[c] = compositor && weight > 0 ? blend_rounded_color(layer, color) : color;
    }
    return;
  }
  above = blend_rounded_alpha(layer, above);
  const float under = compositor && layer.opaque_below ? target.max : d[3];
  const float below = blend_rounded_alpha(layer, under * (target.max - above) * target.per_max);
  const float sum = above + below, reciprocal = blend_reciprocal(sum > 0.5f ? sum : 1.0f);
  for (int c = 0; c < 3; ++c) {
    const float color = d[c] + (over[c] - d[c]) * (above * reciprocal);
    d[c] = !(sum > 0.5f) ? target.max : compositor && above > 0 ? blend_rounded_color(layer, color) : color;
  }
  d[3] = Op != BlendOperator::add ? sum : blend_lesser(under + above, target.max);
}

/// What of an axis an output pixel shows: samples first … last, with their weights.
struct BlendTaps {
  int first, last;
  float first_weight, weight, last_weight;

  CUDAVISION_HOST_DEVICE float of(int i) const { return i == first ? first_weight : i == last ? last_weight : weight; }
};

/// Where output pixel i ≥ 0 of a pad lies.
CUDAVISION_HOST_DEVICE inline std::int64_t blend_position(const BlendAxis& axis, int i) {
  return axis.start + std::uint32_t(i) * axis.step;
}
/// The sample there (BlendSampling::point).
CUDAVISION_HOST_DEVICE inline int blend_point(const BlendAxis& axis, int i) { return int(blend_position(axis, i) >> 32); }

/// The two samples next to it, and the weight of the second (BlendSampling::linear).
struct BlendPoints {
  int first, second;
  float weight;
};
CUDAVISION_HOST_DEVICE inline BlendPoints blend_points(const BlendAxis& axis, int i) {
  const std::int64_t at = blend_position(axis, i);
  const int before = int(at >> 32);
  const auto clamped = [&](int x) {
#ifdef __CUDA_ARCH__
    return min(max(x, axis.low), axis.high);  // without a branch
#else
    return x < axis.low ? axis.low : x > axis.high ? axis.high : x;
#endif
  };
  return {clamped(before), clamped(before + 1), float(std::uint32_t(at) >> 8) * axis.weight};
}

/// All taps, of any way of sampling: area where the axis becomes smaller, else linear.
CUDAVISION_HOST_DEVICE inline BlendTaps blend_taps(BlendSampling sampling, const BlendAxis& axis, int i) {
  constexpr std::int64_t one = std::int64_t(1) << 32;
  if (sampling == BlendSampling::point) {
    const int at = blend_point(axis, i);
    return {at, at, 1, 0, 0};
  }
  if (sampling == BlendSampling::linear || axis.per == 0) {
    const BlendPoints points = blend_points(axis, i);
    if (points.first == points.second || points.weight == 0) return {points.first, points.first, 1, 0, 0};
    return {points.first, points.second, 1 - points.weight, 0, points.weight};
  }
  const std::int64_t from = blend_position(axis, i), to = from + axis.step - 1;
  const int first = int(from >> 32), end = int(to >> 32), last = end < axis.high ? end : axis.high;
  if (first == last) return {first, last, 1, 0, 0};
  const auto part = [](std::int64_t of_one) { return float(std::uint32_t(of_one >> 8)) * 0x1p-24f; };
  const float head = part(one - std::uint32_t(from)), tail = last < end ? 1 : part(std::int64_t(std::uint32_t(to)) + 1);
  return {first, last, head * axis.per, axis.per, tail * axis.per};
}

}  // namespace detail
}  // namespace cudavision
