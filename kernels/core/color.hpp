// SPDX-License-Identifier: LGPL-2.1-or-later
// Conversions between RGB, Y'CbCr and gray as 3 × 4 matrices, for samples of any format.
#pragma once

#include "kernels/core/format.hpp"
#include "kernels/core/luma.hpp"

namespace cudavision {

/// Maps three numbers to three: a 3 × 3 matrix and, in the last column, an offset.
struct Affine {
  double m[3][4] = {};

  /// The map that applies `first`, then this one.
  Affine after(const Affine& first) const;
};
/// A map that multiplies the three numbers by a, b and c.
Affine diagonal(double a, double b, double c);

/// How the three colour samples of a format encode numbers: number = (sample − offset) / scale. R', G', B' and luma are
/// 0–1, chroma is −½ to ½. The components are R, G, B or Y, Cb, Cr; for gray, Cb and Cr are not stored and are neutral.
struct ColorCoding {
  /// `matrix` is not used for RGB. `limited`: luma and RGB use 16–235 and chroma 16–240, in steps of 2^(depth − 8);
  /// otherwise the full range of the depth.
  ColorCoding(Format of, LumaMatrix matrix, bool limited);

  const FormatInfo& format;
  bool rgb, gray;
  double offset[3], scale[3];
  LumaWeights weights;
};

/// From samples to R'G'B' of 0–1.
Affine to_rgb(const ColorCoding& from);
/// From R'G'B' of 0–1 to samples.
Affine from_rgb(const ColorCoding& to);
/// From samples of one coding to samples of another. Between two RGB codings, and between gray or Y'CbCr codings with
/// equal luma weights, components are not mixed: each is only scaled and shifted. Equal codings give the exact
/// identity.
Affine conversion(const ColorCoding& from, const ColorCoding& to);

}  // namespace cudavision
