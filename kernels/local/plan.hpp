// SPDX-License-Identifier: LGPL-2.1-or-later
// Private: the parameters of a backend, and the two backends.
#pragma once

#include <algorithm>
#include <array>
#include <memory>

#include "kernels/core/host_device.hpp"
#include "kernels/integral/plan.hpp"
#include "kernels/local/local.hpp"

namespace cudavision::local {

/// The window of a sample along one axis.
///
///   sliding, radius 2:       ├──── x ────┤                     around each sample; cut at the edges of the frame
///   blocks of 5 pixels:   │▒▒▒▒▒▒▒▒▒▒│▒▒▒▒▒▒▒▒▒▒│▒▒▒▒▒▒▒▒▒▒│   from the origin on; the block that contains the sample
///                         origin                              (or the first pixel of a subsampled sample)
struct Axis {
  int radius = 0;  ///< radius of a sliding window, in samples
  int side = 0;    ///< side of a block, in pixels; 0: windows slide
  int origin = 0;  ///< corner of the blocks, in pixels; may lie outside the frame
  int shift = 0;   ///< log2 of the subsampling

  /// Sets [begin, end) to the window of sample x of `length` samples. It is never empty.
  CUDAVISION_HOST_DEVICE void window(int x, int length, int& begin, int& end) const {
    begin = x - radius;
    end = x + radius + 1;
    if (side > 0) {
      const int first = origin + ((x << shift) - origin) / side * side, last_bit = (1 << shift) - 1;
      begin = (first + last_bit) >> shift;
      end = (first + side + last_bit) >> shift;
    }
    begin = begin > 0 ? begin : 0;
    end = end < length ? end : length;
  }
};

/// The windows of a channel set.
struct Window {
  Axis x, y;
};

/// Whether chroma becomes neutral.
constexpr bool makes_neutral(Operation operation) {
  return operation == Operation::threshold || operation == Operation::deviation;
}

/// Parameters resolved for a geometry.
struct Plan {
  Geometry geometry;
  Operation operation = Operation::box_mean;
  struct Radius {
    int x = 0, y = 0;
  };
  int pixels = 0;  ///< the radius in pixels. 0 for box_mean and pixelate: the radius follows the region
  std::array<Radius, max_sets> radius,
      search;             ///< radii for each channel set; the largest radii if the radius follows the region
  double factor = 1;      ///< 1 − sensitivity
  double scale = 0;       ///< −1 / h², for differences in sample values
  integral::Plan tables;  ///< padded; empty for nlm
  /// The index of the table with the sums of each channel; −1 for channels that need no table.
  std::array<std::array<int, 4>, max_sets> table_of;
  int squares = 0;  ///< deviation: distance from a table of sums to its table of squares, in tables

  /// Whether the chroma of a set becomes neutral.
  bool fills(int set) const {
    const ChannelSet& channels = info(geometry.format).sets[set];
    return makes_neutral(operation) &&
           std::any_of(channels.roles.begin(), channels.roles.begin() + channels.channels, is_chroma);
  }
};

/// The windows of a channel set for a region's box (Filter::box()). Not for nlm.
Window window_of(const Plan& plan, int set, const Rect& box);

Plan resolve(const Params& params, const Geometry& geometry);

/// Makes a filter for Operation::nlm. Errors: settings (radii that need more shared memory than the device has),
/// resource.
Result<std::unique_ptr<Filter>> make_nlm_cuda(Plan plan);
/// Makes a filter for Operation::pixelate. Errors: resource.
Result<std::unique_ptr<Filter>> make_mosaic_cuda(Plan plan);
/// Makes a filter for the other operations. Errors: resource.
Result<std::unique_ptr<Filter>> make_box_cuda(Plan plan);
/// Makes a filter for any operation. Errors: resource.
Result<std::unique_ptr<Filter>> make_cpu(Plan plan);

}  // namespace cudavision::local
