// SPDX-License-Identifier: LGPL-2.1-or-later
// The arithmetic of one pixel, shared by both backends: rounding, key, operators, and laying a pixel over another.
// class Blend has the formulas. Both backends must call these functions in the same order to give the same results.
#pragma once

#include <cmath>
#include <type_traits>

#include "kernels/blend/plan.hpp"

namespace cudavision::blend {

// ---- Rounding -------------------------------------------------------------------------------------------------------

/// Floats around 1.5 · 2^23 differ by 1. So adding this to a number below 2^22 and subtracting it again rounds the
/// number half to even, without a branch. Adding 0 instead leaves the number unchanged.
inline constexpr float round_bias = 0x1.8p23f;
CUDAVISION_HOST_DEVICE inline float rounded(float x, float rounding = round_bias) { return (x + rounding) - rounding; }
/// Added before rounding to nearest, this rounds the result down. compositor's quotients are at least 1/256 apart, so
/// an integer that float arithmetic made slightly too small is not rounded to the next lower integer.
inline constexpr float down_bias = -0.5f + 0x1p-10f;

/// Rounds a sample to an integer. A half is rounded up, even if float arithmetic made it slightly too small.
CUDAVISION_HOST_DEVICE inline float rounded_sample(float x) { return rounded(x + 0x1p-10f); }
/// Rounds a colour as compositor does, if the layer rounds.
CUDAVISION_HOST_DEVICE inline float rounded_color(const Layer& layer, float x) {
  return rounded(x + layer.color_bias, layer.rounding);
}
/// Rounds an alpha as compositor does, if the layer rounds.
CUDAVISION_HOST_DEVICE inline float rounded_alpha(const Layer& layer, float x) {
  return rounded(x + layer.alpha_bias, layer.rounding);
}

// ---- Numbers --------------------------------------------------------------------------------------------------------

CUDAVISION_HOST_DEVICE inline float reciprocal(float x) {
#ifdef __CUDA_ARCH__
  float y;  // accurate to two units in the last place, like __fdividef(1, x); not for numbers below 2^-126
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1 / x;
#endif
}
CUDAVISION_HOST_DEVICE inline float lesser(float a, float b) {
#ifdef __CUDA_ARCH__
  return fminf(a, b);  // one instruction; on x86 the expression below is one instruction
#else
  return a < b ? a : b;
#endif
}
CUDAVISION_HOST_DEVICE inline float greater(float a, float b) {
#ifdef __CUDA_ARCH__
  return fmaxf(a, b);
#else
  return a > b ? a : b;
#endif
}
CUDAVISION_HOST_DEVICE inline float clamped(float x, float most) { return lesser(greater(x, 0), most); }
/// Clamps to 0–1.
CUDAVISION_HOST_DEVICE inline float saturated(float x) {
#ifdef __CUDA_ARCH__
  return __saturatef(x);  // costs nothing: the instruction that computes x also saturates it
#else
  return clamped(x, 1);
#endif
}

/// The value of a stored sample. In 10-bit formats, the 6 bits above the sample may be set.
template <typename T>
CUDAVISION_HOST_DEVICE inline std::uint32_t sample_value(const Layer& layer, T stored) {
  if (sizeof(T) == 1) return stored;
  const std::uint32_t value = stored >> layer.shift, max = layer.max;
  return value < max ? value : max;
}

// ---- Key ------------------------------------------------------------------------------------------------------------

/// The key's weight for a pixel at this distance from the key, in steps of 1/255: 0 if the pixel matches, up to 1.
CUDAVISION_HOST_DEVICE inline float key_weight(const Layer& layer, float distance) {
  return saturated(distance * layer.key_scale - layer.key_offset);
}
CUDAVISION_HOST_DEVICE inline float key_weight(const Layer& layer, const float* key, float r, float g, float b) {
  const auto size = [](float x) { return x < 0.0f ? -x : x; };
  return key_weight(layer, greater(size(r - key[0]), greater(size(g - key[1]), size(b - key[2]))));
}

// ---- Operators ------------------------------------------------------------------------------------------------------

/// Whether an operator computes R', G' and B' with operate(). Other operators blend samples of the output's format.
CUDAVISION_HOST_DEVICE constexpr bool operates_on_rgb(Operator op) {
  return op >= Operator::subtract && op <= Operator::max;
}

/// Applies an operator to one of R', G', B' (0–1). d: the picture below, s: the pad.
template <Operator Op>
CUDAVISION_HOST_DEVICE inline float operate(float d, float s) {
  switch (Op) {
    case Operator::subtract:
      return greater(d - s, 0);
    case Operator::multiply:
      return d * s;
    case Operator::screen:
      return d + (s - d * s);
    case Operator::difference:
      return greater(d - s, s - d);
    case Operator::min:
      return lesser(d, s);
    case Operator::max:
      return greater(d, s);
    case Operator::source:
    case Operator::over:
    case Operator::add:
    case Operator::average:  // these mix the unchanged pad
      break;
  }
  return s;
}

/// Properties of the matrices between the output's samples and R', G', B'. They save instructions and change no bit.
enum class Matrices {
  any,
  /// R' is computed without Cb, and B' without Cr. R', G', B' of 0–1 give valid samples,
  /// except that chroma can exceed the largest sample.
  bounded,
  /// Samples are R', G', B' with the same scale and offset; R', G', B' of 0–1 give valid samples.
  equal,
};
/// The properties of the target's matrices. The results of fused multiply-adds are monotonic in each argument, so
/// testing the corners is sufficient.
inline Matrices matrices_of(const Target& target) {
  const Matrix &to = target.to_rgb, &from = target.from_rgb;
  bool scales = true, bounded = to.m[0][1] == 0 && to.m[2][2] == 0;
  for (int r = 0; r < 3; ++r) {
    float least = from.m[r][3], most = from.m[r][3];
    for (int c = 2; c >= 0; --c) {
      const float m = from.m[r][c];
      least = std::fma(m, m < 0.0f ? 1.0f : 0.0f, least), most = std::fma(m, m > 0.0f ? 1.0f : 0.0f, most);
      scales = scales && (r == c ? to.m[r][c] == to.m[0][0] && m == from.m[0][0] : to.m[r][c] == 0 && m == 0);
    }
    scales = scales && to.m[r][3] == to.m[0][3] && from.m[r][3] == from.m[0][3] && most <= target.max;
    bounded = bounded && least >= 0 && (r > 0 || most <= target.max);
    scales = scales && least >= 0;
  }
  return scales ? Matrices::equal : bounded ? Matrices::bounded : Matrices::any;
}

/// Lays pixel s over pixel d. Both hold samples of the output; s[3] is the pad's own alpha in steps of the output's
/// alpha. k: the key's weight. Channels: channels of the output, 1 for gray, 3 for colours, 4 with alpha. With
/// Matrices::equal, the colours of a pixel whose alpha becomes 0 are undefined. to_rgb: the factors from the colours of
/// s to R', G', B'; the constants belong to the target.
template <Operator Op, int Channels, Matrices Known = Matrices::any>
CUDAVISION_HOST_DEVICE inline void lay_pixel(const Target& target, const Layer& layer, float k, const Matrix& to_rgb,
                                             const float (&s)[4], float (&d)[4]) {
  constexpr bool average = Op == Operator::average, compositor = Op == Operator::over || Op == Operator::add;
  constexpr bool alpha = Channels == 4;
  constexpr int colors = Channels == 1 ? 1 : 3;
  if (Op == Operator::source || average) {
    const float weight = average ? layer.opacity * k : k;
    for (int c = 0; c < colors; ++c) d[c] += weight * (s[c] - d[c]);
    if (alpha) d[3] += weight * ((average ? s[3] : rounded_alpha(layer, s[3] * layer.opacity)) - d[3]);
    return;
  }
  float over[3] = {s[0], s[1], s[2]};
  if (operates_on_rgb(Op)) {
    const float(&from)[3][4] = target.from_rgb.m;
    const auto row = [&](const Matrix& matrix, int c, const float(&v)[4]) {
      const bool same = colors == 1 || Known == Matrices::equal;  // all colours have the same weight
      const float(&to)[3][4] = matrix.m, constant = target.to_rgb.m[same ? 0 : c][3];
      if (same) return to[0][0] * v[c] + constant;
      if (Known == Matrices::bounded && c != 1) return to[c][0] * v[0] + (to[c][2 - c / 2] * v[2 - c / 2] + constant);
      return to[c][0] * v[0] + (to[c][1] * v[1] + (to[c][2] * v[2] + constant));
    };
    const auto back = [&](int c, const float(&v)[3]) {
      if (Known == Matrices::equal) return from[0][0] * v[c] + from[0][3];
      const float sample = target.from_rgb.row(c, v[0], v[1], v[2]);
      return Known == Matrices::any ? clamped(sample, target.max) : c > 0 ? lesser(sample, target.max) : sample;
    };
    float rgb[3];
    for (int c = 0; c < colors; ++c) {
      const float below = saturated(row(target.to_rgb, c, d)), above = saturated(row(to_rgb, c, s));
      rgb[c] = operate<Op>(below, above);
    }
    if (colors == 1) rgb[1] = rgb[2] = rgb[0];
    for (int c = 0; c < colors; ++c) over[c] = back(c, rgb);
    if (alpha)
      for (int c = 0; c < 3; ++c) over[c] = s[c] + (over[c] - s[c]) * (d[3] * target.per_max);
  }
  float above = s[3] * layer.opacity * k;
  if (!alpha) {
    const float weight = above * target.per_max;
    for (int c = 0; c < colors; ++c) {
      const float color = d[c] + weight * (over[c] - d[c]);
      d[c] = compositor && weight > 0 ? rounded_color(layer, color) : color;
    }
    return;
  }
  above = rounded_alpha(layer, above);
  const float under = compositor && layer.opaque_below ? target.max : d[3];
  const float below = rounded_alpha(layer, under * (target.max - above) * target.per_max);
  const float sum = above + below;
  const bool shows = Known == Matrices::equal || sum > 0.5f;
  const float per_sum = reciprocal(shows ? sum : 1.0f);
  for (int c = 0; c < 3; ++c) {
    const float color = d[c] + (over[c] - d[c]) * (above * per_sum);
    d[c] = !shows ? target.max : compositor && above > 0 ? rounded_color(layer, color) : color;
  }
  d[3] = Op != Operator::add ? sum : lesser(under + above, target.max);
}

/// Lays pixel s over pixel d, with the target's factors.
template <Operator Op, int Channels, Matrices Known = Matrices::any>
CUDAVISION_HOST_DEVICE inline void lay_pixel(const Target& target, const Layer& layer, float k, const float (&s)[4],
                                             float (&d)[4]) {
  lay_pixel<Op, Channels, Known>(target, layer, k, target.to_rgb, s, d);
}

/// Calls f with the operator as an integral constant, so that lay_pixel() is compiled once for each operator.
template <typename F>
CUDAVISION_HOST_DEVICE inline void with_operator(Operator op, F&& f) {
  switch (op) {
    case Operator::source:
      return f(std::integral_constant<Operator, Operator::source>());
    case Operator::over:
      return f(std::integral_constant<Operator, Operator::over>());
    case Operator::add:
      return f(std::integral_constant<Operator, Operator::add>());
    case Operator::subtract:
      return f(std::integral_constant<Operator, Operator::subtract>());
    case Operator::multiply:
      return f(std::integral_constant<Operator, Operator::multiply>());
    case Operator::screen:
      return f(std::integral_constant<Operator, Operator::screen>());
    case Operator::difference:
      return f(std::integral_constant<Operator, Operator::difference>());
    case Operator::min:
      return f(std::integral_constant<Operator, Operator::min>());
    case Operator::max:
      return f(std::integral_constant<Operator, Operator::max>());
    case Operator::average:
      return f(std::integral_constant<Operator, Operator::average>());
  }
}

}  // namespace cudavision::blend
