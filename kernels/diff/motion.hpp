// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/core/image.hpp"
#include "kernels/diff/looks.hpp"

namespace cudavision::diff {

/// A frame cut into square cells. Cells at the right and bottom edge end with the frame.
struct Cells {
  int frame_width = 0, frame_height = 0;  ///< pixels
  int cell_size = 1;                      ///< pixels a side
  int analysis_scale = 1;  ///< pixels of the frame, a side, for each pixel of the analysis; see CellLooks

  /// Pixels of cell (x, y), clipped to the frame.
  Rect box(int x, int y) const;
  /// The extent of the changed pixels of cell (x, y), in pixels of the frame.
  Rect box(int x, int y, const CellLooks& looks) const;
};

/// The smallest rectangle around both; an empty one adds nothing.
Rect around(const Rect& a, const Rect& b);

/// Changed pixels of a frame, counted in its cells.
struct CellGrid : Cells {
  int width = 0, height = 0;            ///< cells
  std::vector<std::uint32_t> changed;   ///< row-major, for each cell: pixels that changed
  std::vector<std::uint32_t> unmasked;  ///< for each cell: pixels outside the masked regions
  /// For each cell, valid where `changed` is not 0. Cells that do not move may have only the extent, with the rest 0.
  /// Empty: cells changed as a whole, and have no looks.
  std::vector<CellLooks> looks;

  CellGrid() = default;
  /// A grid in which no pixel changed and all pixels are counted.
  CellGrid(int frame_width, int frame_height, int cell_size);

  /// The place of cell (x, y) in the lists.
  std::size_t at(int x, int y) const { return std::size_t(y) * width + x; }
};

/// A group of moving cells near each other.
struct MotionRegion {
  Rect box;               ///< around the boxes of its cells, see MotionRegions::boxes; in pixels of the frame
  int area = 0;           ///< cells
  double score = 0;       ///< changed ÷ counted pixels of its cells, 0–1
  Structure structure{};  ///< the sum of its cells
};

/// Cells of a row that belong to a region and follow each other: `first` to `last`.
struct CellRun {
  int y, first, last;
  std::uint32_t region;   ///< its place in MotionRegions::kept
  std::size_t cells = 0;  ///< the place of its first cell in the lists of cells of MotionRegions
};

struct MotionRegions {
  /// The largest first; regions of equal area in the order of their first cells (row by row).
  std::vector<MotionRegion> kept;
  std::vector<CellRun> runs;  ///< their cells, row by row
  /// For each cell of the runs, in their order: the box around its changed pixels, and around the changed pixels of the
  /// cells beside it (at a side or a corner) that do not move but continue its changed pixels; in pixels of the frame.
  std::vector<Rect> boxes;
  std::vector<CellLooks> looks;  ///< of these cells, without those beside them; empty if the grid has none
  std::size_t left_out = 0;      ///< number of regions that are not in `kept`
  /// The boxes of the cells of regions that do not count, and where clearly only the light changed.
  std::vector<Rect> light;
};

/// The rules for which cells move, which of them form a region, and which regions count.
struct RegionRules {
  /// A cell moves if any of its pixels changed, and at least this share of its counted pixels, 0–1.
  double cell_threshold = 0.2;
  int distance = 1;                                            ///< 1–max_region_distance cells; see find_regions()
  int min_area = 1;                                            ///< regions of fewer cells are ignored
  int max_area = std::numeric_limits<int>::max();              ///< regions of more cells are ignored
  std::size_t most = std::numeric_limits<std::size_t>::max();  ///< regions that are kept, see find_regions()
};
inline constexpr int max_region_distance = 64;

/// The regions of moving cells. Two moving cells belong to the same region if fewer than `distance` cells lie between
/// them across and down, or if other moving cells link them in this way. So a distance of 1 links cells that touch each
/// other at a side or a corner. At most `most` regions are kept: the largest; if areas are equal, the regions with the
/// highest score; if scores are equal, the first.
MotionRegions find_regions(const CellGrid& grid, const RegionRules& rules);

}  // namespace cudavision::diff
