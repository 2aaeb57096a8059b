// SPDX-License-Identifier: LGPL-2.1-or-later
// Private: the parameters of a backend, and the two backends.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "kernels/convolve/convolve.hpp"

namespace cudavision::convolve {

/// Parameters resolved for a geometry. s = Σ weights·p and t = Σ vertical·p are sums over the window (correlation; p:
/// integer samples). For a sample of role r, a backend computes
///   v = s·scale + before[r]; then v = |v| if `absolute` is set and r is not chroma;
///   for a gradient: v = √(s² + t²)·scale, and v = 0 for chroma;
///   output = saturate(rint(v + after[r])).
struct Plan {
  Geometry geometry;
  int width = 1, height = 1;       ///< width and height of the kernel
  int anchor_x = 0, anchor_y = 0;  ///< the window of pixel x is [x − anchor_x, x − anchor_x + width)
  std::vector<double> weights;     ///< row-major, already flipped
  std::vector<double> vertical;    ///< gradient: the second kernel, of the same size; otherwise empty
  /// Rank 1: weights[y][x] = column[y]·row[x]; empty for other kernels and for gradients.
  std::vector<double> row, column;
  bool wide = false;  ///< sum in float64, because float32 sums are neither exact (integers) nor within the tolerance
  double scale = 1;   ///< 1 / divisor
  std::array<double, role_count> before{};  ///< added after scaling and before taking the absolute value
  std::array<double, role_count> after{};   ///< added last
  bool absolute = false;
  Border border = Border::reflect_101;
  BorderValue border_value{};
  bool filter_alpha = false;

  bool gradient() const { return !vertical.empty(); }
  bool separable() const { return !row.empty(); }
  /// Whether pixels whose window leaves the frame are filled or copied instead of computed.
  bool skips_edges() const { return !extrapolates(border); }
};

/// Checks the parameters and makes a plan. Errors: settings.
Result<Plan> resolve(const Params& params, const Geometry& geometry);

/// Make the backends. Errors: resource.
Result<std::unique_ptr<Filter>> make_cuda(Plan plan);
Result<std::unique_ptr<Filter>> make_cpu(Plan plan);

}  // namespace cudavision::convolve
