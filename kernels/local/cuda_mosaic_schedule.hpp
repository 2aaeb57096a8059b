// SPDX-License-Identifier: LGPL-2.1-or-later
// How the work of mosaics is divided (cuda_mosaic.cu). Plain C++, tested without a GPU.
//
//   a shape      a rectangle, an ellipse or a polygon. Its cells, the squares of its mosaic, are adjacent and begin at
//                the corner of its box
//   a span       adjacent cells in a row of cells, which a block computes; for large cells, a piece of one cell
//   a launch     shapes that do not overlap each other, and all channel sets
#pragma once

#include <vector>

#include "kernels/core/outline.hpp"
#include "kernels/local/cuda_tuning.hpp"
#include "kernels/local/plan.hpp"

namespace cudavision::local {

inline constexpr int mosaic_threads = 256;
inline constexpr int mosaic_chunk = 16;                             ///< bytes of a row that a thread reads at once
inline constexpr int mosaic_row = mosaic_threads * mosaic_chunk;    ///< largest number of bytes of a row in a block
inline constexpr int mosaic_piece = mosaic_row - 2 * mosaic_chunk;  ///< largest number of bytes at any address
inline constexpr int mosaic_parts = 24;                             ///< largest number of shapes in a launch
inline constexpr int mosaic_fused_side = 256;  ///< largest side of a cell that one block sums and writes, in pixels
inline constexpr int mosaic_piece_rows = 64;   ///< rows of a piece of a larger cell

/// The cells of a channel set that a shape needs, and their division.
struct MosaicGrid {
  std::uint16_t x0 = 0, y0 = 0, x1 = 0, y1 = 0;  ///< the samples to write; empty: no cells
  std::uint16_t span = 1;                        ///< cells in a span
  std::uint16_t pieces_x = 1, pieces_y = 1;      ///< pieces of a cell across and down, if span is 1
};

/// A shape as an argument of the kernel.
struct MosaicPart {
  Rect box;      ///< box of the shape; the cells begin at its corner
  int side = 1;  ///< side of a cell, in pixels
  MosaicGrid sets[3];
  std::uint16_t corner = 0, corners = 0;  ///< polygon: index of its first corner, and number of corners
  bool cut = false;                       ///< whether the shape is an ellipse or a polygon
};

/// The cells along one axis.
struct MosaicAxis {
  int origin = 0, side = 1, shift = 0;  ///< as in Axis
  int length = 0;                       ///< length of the grid, in samples

  /// The cell that contains a sample.
  CUDAVISION_HOST_DEVICE int cell(int sample) const { return ((sample << shift) - origin) / side; }
  /// The first sample of a cell that is inside the frame.
  CUDAVISION_HOST_DEVICE int begin(int cell) const {
    const int sample = (origin + cell * side + (1 << shift) - 1) >> shift;
    return sample < 0 ? 0 : sample < length ? sample : length;
  }
};

/// The shape with its grids. `side`: side of a cell; `multiprocessors`: their number on the device; `parts`: number of
/// shapes in the launch.
MosaicPart schedule_mosaic(const Geometry& geometry, const Rect& box, const SetRects& rects, int side,
                           int multiprocessors, int parts);
/// The numbers of cells and of blocks of a channel set.
int mosaic_cells(const Geometry& geometry, const MosaicPart& part, int set);
int mosaic_blocks(const Geometry& geometry, const MosaicPart& part, int set);
/// Whether one launch adds up sums in memory and another launch reads them.
inline bool is_apart(const MosaicPart& part) { return part.side > mosaic_fused_side; }
/// The bytes of these sums for all sets of one shape.
std::size_t mosaic_sums(const Geometry& geometry);

/// Numbers the boxes so that a box that overlaps an earlier box has a higher number. Sets `layers` to the numbers.
/// Returns the highest number.
int find_layers(const std::vector<Rect>& boxes, std::vector<int>& layers);

}  // namespace cudavision::local
