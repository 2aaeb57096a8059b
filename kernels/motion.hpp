// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "image.hpp"

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

/// The 8-connected regions of moving cells, the largest first, those of equal area in the order of their first cell (row by row).
/// A cell moves if any of its pixels changed, and at least `cell_threshold` (0–1) of those counted. Regions of fewer than
/// `min_area` cells are left out.
std::vector<MotionRegion> find_regions(const CellGrid& grid, double cell_threshold, int min_area);

}  // namespace cudavision
