// SPDX-License-Identifier: LGPL-2.1-or-later
// Chooses the kernel, and cuts a frame into blocks: plain C++, without CUDA. Units: samples of a set's grid, or bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/convolve/cuda_tuning.hpp"
#include "kernels/convolve/plan.hpp"

namespace cudavision::convolve {

/// The kernel families, with one .cu file each (two_pass and direct share cuda_tile.cu). "Up to 7 × 7": no weight is
/// farther than 3 samples from the anchor. The first three sum in float32, so none of them serves Plan::wide. The last
/// two serve the remaining cases: larger kernels on 16-bit samples; on 8-bit samples, kernels of rank 1 with a side
/// above tuning.matrix_most_separable; Plan::wide.
enum class Family {
  small,         ///< 16-bit samples, kernels up to 7 × 7: unrolled
  matrix_strip,  ///< 8-bit samples, kernels up to 7 × 7: weights stay in registers
  matrix_tile,   ///< 8-bit samples, larger kernels
  two_pass,      ///< of the remaining cases, kernels of rank 1 whose tile fits in shared memory: rows, then columns
  direct,        ///< all others
};
/// How kernels of Family::small compute sums.
enum class Small { direct, rows_then_columns, gradient };
/// How the matrix units hold weights in half precision: one number each, the sum of two,
/// or two kernels of one number each.
enum class Matrix { single, pair, gradient };

/// The results of a block of tiles across: four for each lane of a warp.
inline constexpr int tile_width = 128;

/// The kernel of a plan, and its block.
struct Schedule {
  Family family = Family::direct;
  int side = 3;  ///< small, matrix_strip: side of the unrolled square around the anchor, 3, 5 or 7
  Small small = Small::direct;
  Matrix matrix = Matrix::single;
  bool wide = false;  ///< two_pass, direct: whether sums are float64
  int warps = 1;      ///< warps of a block
  int buffers = 1;    ///< matrix_tile: tiles in shared memory; with 2, one is copied while the other is multiplied
  std::size_t shared_bytes = 0;  ///< dynamic shared memory of a block
};

/// Whether the matrix units process the plan's 8-bit samples.
bool uses_matrix_units(const Plan& plan);
/// How the matrix units must hold the weights. `error`: the largest error of a result, in sample values, if each weight
/// is one number.
Matrix matrix_weights(const Plan& plan, double error);
/// Chooses the kernel and the block. `matrix` matters only if uses_matrix_units(). `shared_limit`: the largest size of
/// the shared memory of a block, in bytes. Errors: resource.
Result<Schedule> make_schedule(const Plan& plan, Matrix matrix, std::size_t shared_limit);

// ---- Strips of matrix_strip

/// The width of a block in pixels.
inline constexpr int strip_width = 128 * tuning.strip_warps;
/// The bytes of a tile before the block's first pixel and after its last one: a sector of the L2 cache.
inline constexpr int strip_lead = 32;

/// Shared memory of a block for a set of C channels: a ring of groups of source rows, the complete rows of a group, and
/// the map of the sides. The fields give the first byte of each part; the ring begins at 0.
template <int C>
struct StripLayout {
  static constexpr int group = strip_group(C), ahead = strip_ahead(C);  ///< rows of a group; groups copied ahead
  static constexpr int slots = ahead + 2;  ///< groups in the ring, including the one being summed and the previous one
  static constexpr int pitch = strip_width * C + 2 * strip_lead;
  static constexpr int stage = slots * group * pitch, map = stage + group * strip_width * C;
  static constexpr int size = map + 64 * 4;
};
std::size_t strip_bytes(const FormatInfo& format);

/// The division of a rectangle of a set into blocks.
struct Cut {
  int tiles_x = 0, tiles_y = 0;
  int rows = 1;                  ///< rows of results of a warp (Family::matrix_strip: of a block)
  int edges = 0, edge_rows = 1;  ///< Family::matrix_strip: columns of blocks at the sides, and rows of these blocks
  int edge_tiles_y = 0;
  CUDAVISION_HOST_DEVICE int blocks() const { return edges * edge_tiles_y + (tiles_x - edges) * tiles_y; }
};
/// The height of blocks of Family::matrix_strip and Family::matrix_tile.
struct StripHeight {
  int rows = 1;              ///< rows of results; Family::matrix_tile: number of tiles
  int first_rows = 1;        ///< `rows` for sets with fewer channels than the last set; only Family::matrix_strip
  bool short_edges = false;  ///< whether blocks at the sides are shorter, however few rows they have
};
/// Chooses the height for all sets of a frame. `blocks`: the number of blocks that can run on the device at once.
StripHeight strip_height(const Schedule& schedule, const FormatInfo& format, const SetRects& rects, int blocks);
/// Chooses how many tiles a block of Family::matrix_tile processes from top to bottom, for all sets of a frame.
StripHeight tiles_height(const Schedule& schedule, const FormatInfo& format, const SetRects& rects, int blocks);
/// Divides a rectangle into blocks. The first column of blocks begins at the multiple of 4 pixels (matrix units: 16) at
/// or before the rectangle. `strip`: used by Family::matrix_strip and Family::matrix_tile only.
Cut cut(const Schedule& schedule, const FormatInfo& format, int channels, const Rect& rect, StripHeight strip);

/// The results of a block across. Blocks begin at multiples of this number of pixels.
int block_width(const Schedule& schedule);
int block_alignment(const Schedule& schedule);

/// The position of a block among the tiles of its set.
struct Place {
  int x, y;
};
/// The tile of a block, numbered row by row. Not for Family::matrix_strip.
CUDAVISION_HOST_DEVICE inline Place tile_place(int block, int tiles_x) {
  Place place;
  place.y = block / tiles_x;
  place.x = block - place.y * tiles_x;
  return place;
}

/// The position of a block of Family::matrix_strip: its column among the blocks, and its rows in the rectangle.
struct StripPlace {
  int x, y, rows;
};
/// The blocks of the first and the last column come first, because they take longest.
CUDAVISION_HOST_DEVICE inline StripPlace strip_place(int block, const Cut& cut) {
  const int inner = block - cut.edges * cut.edge_tiles_y;
  if (inner < 0) return {block % cut.edges ? cut.tiles_x - 1 : 0, block / cut.edges * cut.edge_rows, cut.edge_rows};
  const int columns = cut.tiles_x - cut.edges, row = inner / columns;
  return {inner - row * columns + 1, row * cut.rows, cut.rows};
}

// ---- Shared memory of two_pass and direct (cuda_tile.cu)

/// The distance between rows of a tile, in floats: the windows, and the samples beyond them that a loop over four
/// weights at a time reads.
CUDAVISION_HOST_DEVICE constexpr int tile_pitch(int kernel_width) { return tile_width + (kernel_width + 3) / 4 * 4; }
/// The bytes of a block: the tile, the row results of two passes, and the source row of each row.
constexpr std::size_t tile_bytes(int warps, int kernel_width, int kernel_height, bool two_pass, bool wide) {
  const std::size_t rows = std::size_t(warps) * tile_rows(wide) + kernel_height - 1, sum_bytes = wide ? 8 : 4;
  return rows * (tile_pitch(kernel_width) * sizeof(float) + (two_pass ? tile_width * sum_bytes : 0) + sizeof(int));
}

// ---- Shared memory of matrix_tile

/// The number of samples from the start of a tile's windows to the first needed sample, so that windows begin at a
/// multiple of 4.
CUDAVISION_HOST_DEVICE constexpr int matrix_skew(int anchor_x) { return -anchor_x & 3; }
/// The number of half steps (of 8 samples each) that the windows of 8 results need.
CUDAVISION_HOST_DEVICE constexpr int matrix_half_steps(int kernel_width, int skew) {
  return (8 + kernel_width - 1 + skew + 7) / 8;
}
/// The rows of results of a warp in a tile, for a set of `channels` channels.
CUDAVISION_HOST_DEVICE constexpr int matrix_tile_rows(int channels) {
  return channels == 1 ? tuning.matrix_tile_rows_1 : tuning.matrix_tile_rows_more;
}
/// The distance between rows of a tile, in bytes. `lead`: bytes before the first window.
CUDAVISION_HOST_DEVICE constexpr int matrix_tile_pitch(int halves, int lead, int channels) {
  return (lead + (120 + 8 * halves) * channels + 15) & -16;
}
/// The number of zeros before a row of weights, and the words of such a row with zeros on both sides. Column g of the
/// matrix begins g ≤ 7 plus `skew` ≤ 3 weights before the row, so at least 10 zeros are needed. The number is even,
/// because weights are read in pairs.
inline constexpr int matrix_zeros = 12;
CUDAVISION_HOST_DEVICE constexpr int matrix_weight_row(int halves) { return 4 * halves + 7; }
/// The words of all rows of weights. They are stored twice: as pairs that begin at even weights and at odd weights. The
/// two are 16 + 32·i words apart, so that lanes that read both use different banks.
CUDAVISION_HOST_DEVICE constexpr int matrix_weight_words(int kernel_height, int halves) {
  return ((kernel_height * matrix_weight_row(halves) + 15) & -32) + 16;
}
CUDAVISION_HOST_DEVICE constexpr int matrix_weight_bytes(int kernel_height, int halves, int parts) {
  return 2 * parts * matrix_weight_words(kernel_height, halves) * 4;
}

}  // namespace cudavision::convolve
