// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/core/image.hpp"
#include "kernels/diff/looks.hpp"

namespace cudavision::diff {

/// A frame divided into square cells. Cells at the right and bottom edges end with the frame.
struct Cells {
  int frame_width = 0, frame_height = 0;  ///< pixels
  int cell_size = 1;                      ///< side of a cell, in pixels
  int analysis_scale = 1;  ///< side of the square of frame pixels that a pixel of the analysis covers; see CellLooks

  /// The pixels of cell (x, y), clipped to the frame.
  Rect box(int x, int y) const;
  /// The box around the changed pixels of cell (x, y), in pixels of the frame.
  Rect box(int x, int y, const CellLooks& looks) const;
};

/// The smallest rectangle around both. An empty rectangle adds nothing.
Rect around(const Rect& a, const Rect& b);

/// The changed pixels of a frame, counted for each cell.
struct CellGrid : Cells {
  int width = 0, height = 0;            ///< cells
  std::vector<std::uint32_t> changed;   ///< row-major, for each cell: pixels that changed
  std::vector<std::uint32_t> unmasked;  ///< for each cell: pixels outside the masked regions
  /// For each cell, valid where `changed` is not 0. Cells that do not move may have only their extent, with other
  /// values 0. Empty: cells have no looks, and count as changed as a whole.
  std::vector<CellLooks> looks;

  CellGrid() = default;
  /// A grid in which no pixel changed and all pixels are counted.
  CellGrid(int frame_width, int frame_height, int cell_size);

  /// The index of cell (x, y) in the lists.
  std::size_t at(int x, int y) const { return std::size_t(y) * width + x; }
};

/// A group of moving cells that are near each other.
struct MotionRegion {
  Rect box;               ///< around the boxes of its cells (see MotionRegions::boxes), in pixels of the frame
  int area = 0;           ///< cells
  double score = 0;       ///< changed ÷ counted pixels of its cells, 0–1
  Structure structure{};  ///< the sum over its cells
};

/// Consecutive cells of a row, `first` to `last`, that belong to a region.
struct CellRun {
  int y, first, last;
  std::uint32_t region;   ///< the index of the region in MotionRegions::kept
  std::size_t cells = 0;  ///< the index of the first cell in the lists of cells of MotionRegions
};

struct MotionRegions {
  /// The largest first; regions of equal area are in the order of their first cells (row by row).
  std::vector<MotionRegion> kept;
  std::vector<CellRun> runs;  ///< their cells, row by row
  /// For each cell of the runs, in order: the box around its changed pixels and around the changed pixels of adjacent
  /// cells (at a side or a corner) that do not move but continue its changed pixels; in pixels of the frame.
  std::vector<Rect> boxes;
  std::vector<CellLooks> looks;  ///< of these cells, without adjacent cells; empty if the grid has no looks
  std::size_t left_out = 0;      ///< number of regions that are not in `kept`
  /// The boxes of the cells of regions that do not count, and of cells where clearly only the light changed.
  std::vector<Rect> light;
};

/// The rules that decide which cells move, which of them form a region, and which regions count.
struct RegionRules {
  /// A cell moves if any of its pixels changed, and at least this share of its counted pixels, 0–1.
  double cell_threshold = 0.2;
  int distance = 1;                                            ///< 1–max_region_distance cells; see find_regions()
  int min_area = 1;                                            ///< regions of fewer cells are ignored
  int max_area = std::numeric_limits<int>::max();              ///< regions of more cells are ignored
  std::size_t most = std::numeric_limits<std::size_t>::max();  ///< regions that are kept; see find_regions()
};
inline constexpr int max_region_distance = 64;

class SizeLimit;

/// The regions of moving cells. Two moving cells belong to the same region if fewer than `distance` cells lie between
/// them across and down, or if other moving cells link them in this way. So a distance of 1 links cells that touch at a
/// side or a corner. At most `most` regions are kept: the largest ones; among equal areas, those with the highest
/// score; among equal scores, the first ones.
/// `limit`: decides which regions are too large, with the earlier frames in mind; nullptr: only their areas decide.
MotionRegions find_regions(const CellGrid& grid, const RegionRules& rules, SizeLimit* limit = nullptr);

}  // namespace cudavision::diff
