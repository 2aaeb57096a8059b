// SPDX-License-Identifier: LGPL-2.1-or-later
// Private: what a backend computes, and the two backends.
#pragma once

#include <array>
#include <memory>

#include "kernels/integral/plan.hpp"
#include "kernels/local/local.hpp"
#include "kernels/local/window.hpp"

namespace cudavision::local {

/// Parameters resolved for a geometry.
struct Plan {
  Geometry geometry;
  Operation operation = Operation::box_mean;
  struct Radius {
    int x = 0, y = 0;
  };
  int pixels = 0;                        ///< the radius in pixels; 0 for box_mean and pixelate: it follows the region
  std::array<Radius, 3> radius, search;  ///< of each channel set; of a radius that follows the region, the largest
  double factor = 1;                     ///< 1 − sensitivity
  double scale = 0;                      ///< −1 / h² for differences of samples
  integral::Plan tables;                 ///< padded; empty for nlm
  /// The table of the sums of each channel; −1 for channels without one: chroma that becomes neutral,
  /// and channels that are copied.
  std::array<std::array<int, 4>, 3> table_of;
  int squares = 0;  ///< deviation: the table of the squares follows this many tables after that of the sums
};

/// The windows of a channel set for a region's box (Filter::box()). Not for nlm.
Window window_of(const Plan& plan, int set, const Rect& box);

Plan resolve(const Params& params, const Geometry& geometry);

/// For Operation::nlm. Errors: settings (radii that need more shared memory than the device has), resource.
Result<std::unique_ptr<Filter>> make_nlm_cuda(Plan plan);
/// For Operation::pixelate. Errors: resource.
Result<std::unique_ptr<Filter>> make_mosaic_cuda(Plan plan);
/// For the other operations. Errors: resource.
Result<std::unique_ptr<Filter>> make_box_cuda(Plan plan);
/// For all operations. Errors: resource.
Result<std::unique_ptr<Filter>> make_cpu(Plan plan);

}  // namespace cudavision::local
