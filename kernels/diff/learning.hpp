// SPDX-License-Identifier: LGPL-2.1-or-later
// What a background may learn. The tracker decides it for each cell of the frame: see Tracker::learning().
#pragma once

#include <cstdint>

#include "kernels/core/host_device.hpp"

namespace cudavision::diff {

/// Each decision is a bit: `steady` can apply together with `hold` or `take`.
enum class Learning : std::uint8_t {
  usual = 0,   ///< learns slowly where pixels changed
  hold = 1,    ///< learns nothing: an object is there
  take = 2,    ///< learns the change at once: it is the background
  steady = 4,  ///< learns slowly what is not the background, and variances stay small: objects cross the cell again
               ///< and again
};

CUDAVISION_HOST_DEVICE constexpr bool applies(Learning one, Learning to) { return (int(to) & int(one)) != 0; }
/// The decisions `others`, but with Learning::take where `taken` has it, and only there.
constexpr Learning taking(Learning others, Learning taken) {
  constexpr int take = int(Learning::take);
  return Learning((int(others) & ~take) | (int(taken) & take));
}

/// The decisions for a frame.
struct LearningMap {
  const Learning* cells = nullptr;  ///< for each cell, row-major; null: usual in all
  int width = 0;                    ///< cells in a row
  int cell_size = 1;                ///< pixels of the frame along the side of a cell
  int log2_scale = 0;               ///< of the analysis: a pixel of it is 2^log2_scale pixels of the frame a side

  /// The decision for pixel (x, y) of the analysis.
  CUDAVISION_HOST_DEVICE Learning at(int x, int y) const {
    return cells ? row(y)[(x << log2_scale) / cell_size] : Learning::usual;
  }
  /// The cells of row y of the analysis.
  CUDAVISION_HOST_DEVICE const Learning* row(int y) const { return cells + ((y << log2_scale) / cell_size) * width; }
  /// The first pixel of the analysis that lies in the next column of cells.
  int first_beyond(int column) const { return ((column + 1) * cell_size + (1 << log2_scale) - 1) >> log2_scale; }
};

}  // namespace cudavision::diff
