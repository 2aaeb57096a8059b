// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/core/color.hpp"

#include <algorithm>

namespace cudavision {

Affine Affine::after(const Affine& first) const {
  Affine both;
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 4; ++c) {
      both.m[r][c] = c == 3 ? m[r][3] : 0;
      for (int k = 0; k < 3; ++k) both.m[r][c] += m[r][k] * first.m[k][c];
    }
  return both;
}

Affine diagonal(double a, double b, double c) { return {{{a, 0, 0, 0}, {0, b, 0, 0}, {0, 0, c, 0}}}; }

ColorCoding::ColorCoding(Format of, LumaMatrix matrix, bool limited)
    : format(info(of)), rgb(format.is_rgb()), gray(format.is_gray()), weights(luma_weights(matrix)) {
  const double step = 1 << (format.depth - 8);
  offset[0] = limited ? 16 * step : 0;
  scale[0] = limited ? 219 * step : format.max_value();
  for (int c = 1; c < 3; ++c) {
    offset[c] = rgb ? offset[0] : format.neutral_chroma();
    scale[c] = limited && !rgb ? 224 * step : scale[0];
  }
}

Affine to_rgb(const ColorCoding& from) {
  Affine numbers = diagonal(1 / from.scale[0], 1 / from.scale[1], 1 / from.scale[2]);
  for (int c = 0; c < 3; ++c) numbers.m[c][3] = -from.offset[c] / from.scale[c];
  if (from.rgb) return numbers;
  if (from.gray) return Affine{{{1, 0, 0, 0}, {1, 0, 0, 0}, {1, 0, 0, 0}}}.after(numbers);
  const double kr = from.weights.red, kb = from.weights.blue, kg = 1 - kr - kb;
  const Affine rgb{
      {{1, 0, 2 * (1 - kr), 0}, {1, -2 * kb * (1 - kb) / kg, -2 * kr * (1 - kr) / kg, 0}, {1, 2 * (1 - kb), 0, 0}}};
  return rgb.after(numbers);
}

Affine from_rgb(const ColorCoding& to) {
  Affine samples = diagonal(to.scale[0], to.scale[1], to.scale[2]);
  for (int c = 0; c < 3; ++c) samples.m[c][3] = to.offset[c];
  if (to.rgb) return samples;
  const double kr = to.weights.red, kb = to.weights.blue, kg = 1 - kr - kb, cb = 2 * (1 - kb), cr = 2 * (1 - kr);
  const Affine yuv{{{kr, kg, kb, 0}, {-kr / cb, -kg / cb, (1 - kb) / cb, 0}, {(1 - kr) / cr, -kg / cr, -kb / cr, 0}}};
  return samples.after(yuv);
}

Affine conversion(const ColorCoding& from, const ColorCoding& to) {
  const auto same = [](const LumaWeights& a, const LumaWeights& b) { return a.red == b.red && a.blue == b.blue; };
  Affine result;
  if (from.rgb != to.rgb || (!from.rgb && !from.gray && !same(from.weights, to.weights))) {
    result = from_rgb(to).after(to_rgb(from));
  } else {
    for (int c = 0; c < 3; ++c) {
      result.m[c][c] = to.scale[c] / from.scale[c];
      result.m[c][3] = to.offset[c] - from.offset[c] * result.m[c][c];
    }
  }
  if (to.gray && !from.gray)  // gray stores no chroma: make it neutral
    for (int c = 1; c < 3; ++c) std::fill_n(result.m[c], 3, 0.0), result.m[c][3] = to.offset[c];
  return result;
}

}  // namespace cudavision
