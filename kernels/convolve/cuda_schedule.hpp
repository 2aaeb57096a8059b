// SPDX-License-Identifier: LGPL-2.1-or-later
// What runs on the device and how a frame is cut into blocks: plain C++, without CUDA. Units: samples of a set's grid, bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/convolve/cuda_tuning.hpp"
#include "kernels/convolve/plan.hpp"

namespace cudavision::convolve {

/// The kernel families, one .cu file each (two_pass and direct share cuda_tile.cu).
enum class Family {
  small,         ///< 16-bit samples, kernels up to 7 × 7: unrolled
  matrix_strip,  ///< 8-bit samples, kernels up to 7 × 7: weights stay in registers
  matrix_tile,   ///< 8-bit samples, larger kernels
  two_pass,      ///< kernels of rank 1: rows, then columns
  direct,        ///< everything else
};
/// How Family::small sums.
enum class Small { direct, two_pass, gradient };
/// How the matrix units hold weights in half precision: one number each, the sum of two, or two kernels of one number each.
enum class Matrix { single, pair, gradient };

/// Results across of a block of tiles: four for each lane of a warp.
inline constexpr int tile_width = 128;

/// What a plan runs.
struct Schedule {
  Family family = Family::direct;
  int side = 3;  ///< small, matrix_strip: side of the unrolled square around the anchor, 3, 5 or 7
  Small small = Small::direct;
  Matrix matrix = Matrix::single;
  bool wide = false;             ///< two_pass, direct: float64 sums
  int warps = 1;                 ///< of a block
  std::size_t shared_bytes = 0;  ///< dynamic shared memory of a block
};

/// Whether 8-bit samples go to the matrix units.
bool uses_matrix_units(const Plan& plan);
/// Which weights the matrix units need. `error`: the largest error of a result, in sample values, that one number for each weight
/// makes.
Matrix matrix_weights(const Plan& plan, double error);
/// Chooses the kernel and the block. `matrix` counts only if uses_matrix_units(). `shared_limit`: bytes that a block may ask for.
/// Errors: resource.
Result<Schedule> make_schedule(const Plan& plan, Matrix matrix, std::size_t shared_limit);

/// How a rectangle of a set is cut into blocks.
struct Cut {
  int tiles_x = 0, tiles_y = 0;
  int rows = 1;  ///< of results of a warp
  int blocks() const { return tiles_x * tiles_y; }
};
/// Rows of a warp for all sets of a frame; `threads`: how many run on the device at once. Only Family::matrix_strip adapts to the
/// frame.
int strip_rows(const FormatInfo& format, const SetRects& rects, int threads);
/// Blocks begin at the multiple of 4 at or before the rectangle. `strip_rows`: see above; other families ignore it.
Cut cut(const Schedule& schedule, const FormatInfo& format, int channels, const Rect& rect, int strip_rows);

/// Results across of a block.
int block_width(const Schedule& schedule, const FormatInfo& format, int channels);

/// Place of a block among the tiles of its set.
struct Place {
  int x, y;
};
/// Block → tile, row by row. (Family::matrix_strip has its own order, in the kernel.)
CUDAVISION_HOST_DEVICE inline Place tile_place(int block, int tiles_x) {
  Place place;
  place.y = block / tiles_x;
  place.x = block - place.y * tiles_x;
  return place;
}

// ---- Shared memory of two_pass and direct (cuda_tile.cu)

/// Floats from row to row of a tile: the windows, and what four weights at a time read past them.
CUDAVISION_HOST_DEVICE constexpr int tile_pitch(int kernel_width) { return tile_width + (kernel_width + 3) / 4 * 4; }
/// Bytes of a block: the tile, the row results of two passes, and the source row of each row.
constexpr std::size_t tile_bytes(int warps, int kernel_width, int kernel_height, bool two_pass, bool wide) {
  const std::size_t rows = std::size_t(warps) * tile_rows(wide) + kernel_height - 1, sum_bytes = wide ? 8 : 4;
  return rows * (tile_pitch(kernel_width) * sizeof(float) + (two_pass ? tile_width * sum_bytes : 0) + sizeof(int));
}

// ---- Shared memory of matrix_tile

/// Steps of 16 samples that the windows of 8 results take.
CUDAVISION_HOST_DEVICE constexpr int matrix_steps(int kernel_width) { return (8 + kernel_width - 1 + 15) / 16; }
/// Quads of samples across a tile.
CUDAVISION_HOST_DEVICE constexpr int matrix_tile_quads(int kernel_width) { return (120 + 16 * matrix_steps(kernel_width)) / 4; }
/// Words from row to row of a tile.
CUDAVISION_HOST_DEVICE constexpr int matrix_pitch(int kernel_width) { return 56 + 16 * matrix_steps(kernel_width); }
/// Words of a row of weights with zeros on both sides.
CUDAVISION_HOST_DEVICE constexpr int matrix_weight_row(int kernel_width) { return 8 * matrix_steps(kernel_width) + 5; }
/// Bytes of a block: the tile, the weights (twice: from even and from odd places), and the source row of each row.
constexpr std::size_t matrix_tile_bytes(int warps, int kernel_width, int kernel_height, int parts) {
  const std::size_t rows = std::size_t(warps) * tuning.matrix_tile_rows + kernel_height - 1;
  return sizeof(std::uint32_t) *
         (rows * (matrix_pitch(kernel_width) + 1) + 2 * parts * kernel_height * matrix_weight_row(kernel_width));
}

}  // namespace cudavision::convolve
