// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/core/image.hpp"

namespace cudavision {

/// Changed pixels of a frame, counted in square cells. Cells at the right and bottom edge end with the frame.
struct CellGrid {
  int frame_width = 0, frame_height = 0;  ///< pixels
  int cell_size = 1;                      ///< pixels a side
  int width = 0, height = 0;              ///< cells
  std::vector<std::uint32_t> changed;     ///< row-major, one a cell: pixels that changed …
  std::vector<std::uint32_t> counted;     ///< … of so many that are looked at

  CellGrid() = default;
  /// No pixel changed, all of them counted.
  CellGrid(int frame_width, int frame_height, int cell_size);

  /// Pixels of cell (x, y), clipped to the frame.
  Rect box(int x, int y) const;
};

/// Neighbouring cells that move.
struct MotionRegion {
  Rect box;          ///< around its cells, in pixels, clipped to the frame
  int area = 0;      ///< cells
  double score = 0;  ///< share of changed pixels among those counted in its cells, 0–1
};

struct MotionRegions {
  std::vector<MotionRegion> kept;  ///< the largest first, those of equal area in the order of their first cell (row by row)
  std::size_t left_out = 0;        ///< how many more there are
};

/// The 8-connected regions of moving cells.
/// A cell moves if any of its pixels changed, and at least `cell_threshold` (0–1) of those counted. Regions of fewer than
/// `min_area` cells do not count. Of more than `most` regions the largest are kept; of those of equal area the ones of the highest
/// score, and of those the first.
MotionRegions find_regions(const CellGrid& grid, double cell_threshold, int min_area,
                           std::size_t most = std::numeric_limits<std::size_t>::max());

}  // namespace cudavision
