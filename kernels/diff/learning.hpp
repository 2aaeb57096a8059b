// SPDX-License-Identifier: LGPL-2.1-or-later
// What a background may learn. The tracker decides this for each cell of the frame: see Tracker::learning().
#pragma once

#include <cstdint>

#include "kernels/core/host_device.hpp"

namespace cudavision::diff {

/// Each decision is one bit: `steady` can apply together with `hold` or `take`.
enum class Learning : std::uint8_t {
  usual = 0,   ///< learns slowly where pixels changed
  hold = 1,    ///< learns nothing: an object is there
  take = 2,    ///< learns the change immediately, as the new background
  steady = 4,  ///< learns other values than the background slowly, and variances stay small: objects cross the cell
               ///< repeatedly
};

CUDAVISION_HOST_DEVICE constexpr bool applies(Learning one, Learning to) { return (int(to) & int(one)) != 0; }
/// The decisions in `others`, except that Learning::take is set exactly where it is set in `taken`.
constexpr Learning taking(Learning others, Learning taken) {
  constexpr int take = int(Learning::take);
  return Learning((int(others) & ~take) | (int(taken) & take));
}

/// The decisions for a frame.
struct LearningMap {
  const Learning* cells = nullptr;  ///< for each cell, row-major; null: usual in all cells
  int width = 0;                    ///< cells in a row
  int cell_size = 1;                ///< side of a cell, in pixels of the frame
  int log2_scale = 0;               ///< a pixel of the analysis is 2^log2_scale frame pixels a side

  /// The decision for pixel (x, y) of the analysis.
  CUDAVISION_HOST_DEVICE Learning at(int x, int y) const {
    return cells ? row(y)[(x << log2_scale) / cell_size] : Learning::usual;
  }
  /// The cells in row y of the analysis.
  CUDAVISION_HOST_DEVICE const Learning* row(int y) const { return cells + ((y << log2_scale) / cell_size) * width; }
  /// The first pixel of the analysis in the next column of cells.
  int first_beyond(int column) const { return ((column + 1) * cell_size + (1 << log2_scale) - 1) >> log2_scale; }
};

}  // namespace cudavision::diff
