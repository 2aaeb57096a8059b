// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/core/image.hpp"

namespace cudavision::diff {

/// A frame cut into square cells. Cells at the right and bottom edge end with the frame.
struct Cells {
  int frame_width = 0, frame_height = 0;  ///< pixels
  int cell_size = 1;                      ///< pixels a side

  /// Pixels of cell (x, y), clipped to the frame.
  Rect box(int x, int y) const;
};

/// Changed pixels of a frame, counted in its cells.
struct CellGrid : Cells {
  int width = 0, height = 0;           ///< cells
  std::vector<std::uint32_t> changed;  ///< row-major, for each cell: pixels that changed
  std::vector<std::uint32_t> counted;  ///< for each cell: pixels outside the masked regions

  CellGrid() = default;
  /// A grid in which no pixel changed and all pixels are counted.
  CellGrid(int frame_width, int frame_height, int cell_size);
};

/// A group of moving cells near each other.
struct MotionRegion {
  Rect box;          ///< around its cells, in pixels, clipped to the frame
  int area = 0;      ///< cells
  double score = 0;  ///< changed ÷ counted pixels of its cells, 0–1
};

/// Cells of a row that belong to a region and follow each other: `first` to `last`.
struct CellRun {
  int y, first, last;
  std::uint32_t region;  ///< its place in MotionRegions::kept
};

struct MotionRegions {
  std::vector<MotionRegion> kept;  ///< the largest first; regions of equal area in the order of their first cells (row by row)
  std::vector<CellRun> runs;       ///< their cells, row by row
  std::size_t left_out = 0;        ///< number of regions that are not in `kept`
};

/// Which cells move, which of them are one region, and which regions count.
struct RegionRules {
  double cell_threshold = 0.2;  ///< a cell moves if any of its pixels changed, and at least this share of its counted pixels, 0–1
  int distance = 1;             ///< 1–max_region_distance cells; see find_regions()
  int min_area = 1;             ///< regions of fewer cells are ignored
  int max_area = std::numeric_limits<int>::max();              ///< regions of more cells are ignored
  std::size_t most = std::numeric_limits<std::size_t>::max();  ///< regions that are kept, see find_regions()
};
inline constexpr int max_region_distance = 64;

/// The regions of moving cells. Two moving cells belong to the same region if fewer than `distance` cells lie between them across
/// and down, or if other moving cells link them in this way. So with a distance of 1 those cells are linked that touch each other
/// at a side or a corner. At most `most` regions are kept: the largest; if areas are equal, those of the highest score; if scores
/// are equal, the first.
MotionRegions find_regions(const CellGrid& grid, const RegionRules& rules);

}  // namespace cudavision::diff
