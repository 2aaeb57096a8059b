// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/core/image.hpp"

namespace cudavision::diff {

/// Changed pixels of a frame, counted in square cells. Cells at the right and bottom edge end with the frame.
struct CellGrid {
  int frame_width = 0, frame_height = 0;  ///< pixels
  int cell_size = 1;                      ///< pixels a side
  int width = 0, height = 0;              ///< cells
  std::vector<std::uint32_t> changed;     ///< row-major, for each cell: pixels that changed
  std::vector<std::uint32_t> counted;     ///< for each cell: pixels outside the masked regions

  CellGrid() = default;
  /// A grid in which no pixel changed and all pixels are counted.
  CellGrid(int frame_width, int frame_height, int cell_size);

  /// Pixels of cell (x, y), clipped to the frame.
  Rect box(int x, int y) const;
};

/// A group of neighbouring moving cells.
struct MotionRegion {
  Rect box;          ///< around its cells, in pixels, clipped to the frame
  int area = 0;      ///< cells
  double score = 0;  ///< changed ÷ counted pixels of its cells, 0–1
};

struct MotionRegions {
  std::vector<MotionRegion> kept;  ///< the largest first; regions of equal area in the order of their first cells (row by row)
  std::size_t left_out = 0;        ///< number of regions that are not in `kept`
};

/// The 8-connected regions of moving cells.
/// A cell moves if any of its pixels changed, and if these are at least `cell_threshold` (0–1) of its counted pixels. Regions of
/// fewer than `min_area` cells are ignored. At most `most` regions are kept: the largest; if areas are equal, those of the highest
/// score; if scores are equal, the first.
MotionRegions find_regions(const CellGrid& grid, double cell_threshold, int min_area,
                           std::size_t most = std::numeric_limits<std::size_t>::max());

}  // namespace cudavision::diff
