// SPDX-License-Identifier: LGPL-2.1-or-later
// How the work of mosaics is divided (cuda_mosaic.cu). Plain C++, tested without a GPU.
//
//   a shape      a rectangle, an ellipse or a polygon; its cells, the squares of its mosaic, lie
//                side by side and begin at the corner of its box
//   a span       neighbouring cells of a row of cells, which a block computes; if cells are large: a piece of one cell
//   a launch     shapes that do not overlap each other, and all channel sets
#pragma once

#include <vector>

#include "kernels/core/outline.hpp"
#include "kernels/local/cuda_tuning.hpp"
#include "kernels/local/plan.hpp"

namespace cudavision::local {

inline constexpr int mosaic_threads = 256;
inline constexpr int mosaic_chunk = 16;                             ///< bytes of a row that a thread reads at once
inline constexpr int mosaic_row = mosaic_threads * mosaic_chunk;    ///< the most bytes of a row in a block
inline constexpr int mosaic_piece = mosaic_row - 2 * mosaic_chunk;  ///< the most that begin anywhere
inline constexpr int mosaic_parts = 24;                             ///< the most shapes of a launch
inline constexpr int mosaic_fused_side = 256;  ///< a block sums and writes cells of at most so many pixels
inline constexpr int mosaic_piece_rows = 64;   ///< of a piece of a larger cell

/// The cells of a channel set that a shape needs, and their division.
struct MosaicGrid {
  std::uint16_t x0 = 0, y0 = 0, x1 = 0, y1 = 0;  ///< the samples to write; none: no cells
  std::uint16_t span = 1;                        ///< cells
  std::uint16_t pieces_x = 1, pieces_y = 1;      ///< of a cell, if span is 1
};

/// A shape as an argument of the kernel.
struct MosaicPart {
  Rect box;      ///< of the shape; the cells begin at its corner
  int side = 1;  ///< of a cell, in pixels
  MosaicGrid sets[3];
  std::uint16_t corner = 0, corners = 0;  ///< of a polygon: the first and their number
  bool cut = false;                       ///< it is an ellipse or a polygon
};

/// The cells of one axis.
struct MosaicAxis {
  int origin = 0, side = 1, shift = 0;  ///< as Axis has them
  int length = 0;                       ///< of the grid, in samples

  /// The cell of a sample.
  CUDAVISION_HOST_DEVICE int cell(int sample) const { return ((sample << shift) - origin) / side; }
  /// The first sample of a cell that is inside the frame.
  CUDAVISION_HOST_DEVICE int begin(int cell) const {
    const int sample = (origin + cell * side + (1 << shift) - 1) >> shift;
    return sample < 0 ? 0 : sample < length ? sample : length;
  }
};

/// The shape with its grids. `side`: of a cell. `multiprocessors`: of the device; `parts`: shapes of the launch.
MosaicPart schedule_mosaic(const Geometry& geometry, const Rect& box, const SetRects& rects, int side,
                           int multiprocessors, int parts);
/// The cells and the blocks of a channel set.
int mosaic_cells(const Geometry& geometry, const MosaicPart& part, int set);
int mosaic_blocks(const Geometry& geometry, const MosaicPart& part, int set);
/// Whether sums are added up in memory by one launch and read by another.
inline bool is_apart(const MosaicPart& part) { return part.side > mosaic_fused_side; }
/// Bytes of these sums: of one shape, all sets.
std::size_t mosaic_sums(const Geometry& geometry);

/// A number for each box, such that a box that overlaps an earlier one has a higher number than it. Sets `layers`;
/// returns the highest number.
int find_layers(const std::vector<Rect>& boxes, std::vector<int>& layers);

}  // namespace cudavision::local
