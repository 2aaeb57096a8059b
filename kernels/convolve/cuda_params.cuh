// SPDX-License-Identifier: LGPL-2.1-or-later
// Parameters of the kernels, and which kernel serves a format. Kernels take their parameters by value, so streams never
// share weights.
#pragma once

#include <cstdint>

#include "kernels/convolve/cuda_schedule.hpp"
#include "kernels/cuda/rows.cuh"

namespace cudavision::convolve {

using cuda::Quad;
using cuda::quad_alignment;
using cuda::SetView;

/// One channel set; `first_block` is the first block of the grid that processes it.
template <typename Acc>
struct SetJob {
  SetView view;
  int first_block = 0;
  Rect whole;          ///< pixels outside it become the border value or keep the input (Border::fill, Border::copy)
  Acc scale = 1;       ///< factor of the sums; 0 makes the chroma of a gradient neutral
  Acc before[4] = {};  ///< [channel]; see Plan; includes Plan::after
  Acc after[4] = {};   ///< all 0, because channels with a Plan::after (chroma, gradients) have no absolute values
  bool absolute = false;
};

/// Parameters of Family::small.
struct SmallJob : SetJob<float> {
  int tiles_x = 1;
  std::uint32_t border_words[8] = {};  ///< a stored quad of border values
};
/// Parameters of Family::two_pass and Family::direct.
template <typename Acc>
struct TileJob : SetJob<Acc> {
  int tiles_x = 1;
};
/// Parameters of Family::matrix_strip and Family::matrix_tile.
struct MatrixJob : SetJob<float> {
  Cut cut;
  // Units are 16 bytes of a row.
  int unit = 0;       ///< alignment of source rows in bytes: 16, 8 or 4; 0: less than 4
  int row_bytes = 0;  ///< bytes of a source row that may be read
  /// Whether all bytes are written, and destination rows are aligned to 16 or 4 bytes.
  bool stores_16 = false, stores_4 = false;
  std::uint32_t copies = 0;  ///< mask of the bytes of a word that keep the input, for four channels
};

template <typename AnyJob, typename Acc, int Count>
struct KernelParams {
  AnyJob jobs[3];
  int width = 1, height = 1;  ///< width and height of the kernel
  int anchor_x = 0, anchor_y = 0;
  int stride = 0;  ///< direct: distance between rows of weights
  alignas(16)
      Acc weights[Count] = {};  ///< row-major; or the row, then at `column_at` the column; or two kernels (gradient)
};

inline constexpr int padded_side = (max_side + 3) / 4 * 4;
inline constexpr int column_at = padded_side;
inline constexpr int small_most_side = 2 * tuning.small_reach + 1;
static_assert(small_most_side == 7, "choose() and MatrixStripParams have the sides 3, 5 and 7");
/// Holds two kernels of the largest unrolled side.
using SmallParams = KernelParams<SmallJob, float, 2 * small_most_side * small_most_side>;
template <typename Acc>
using TwoPassParams = KernelParams<TileJob<Acc>, Acc, 2 * padded_side>;
/// Rows of weights are padded to whole quads in float32; padded float64 rows would exceed the limit on kernel
/// parameters.
template <typename Acc>
using DirectParams = KernelParams<TileJob<Acc>, Acc, max_side*(sizeof(Acc) == 4 ? padded_side : max_side)>;

/// A byte with zero bits above it is the half-precision number byte · 2^-subnormal_bits.
inline constexpr int subnormal_bits = 24;
struct MatrixParams {
  MatrixJob jobs[3];
  int width = 1, height = 1, anchor_x = 0, anchor_y = 0;
};
// Half-precision weights: the larger parts (or the first kernel), then the smaller parts (or the second kernel). The
// driver copies the parameters at each launch. So the strips, whose kernels are small, have parameters of a quarter of
// the size.
struct MatrixStripParams : MatrixParams {
  uint2 fragments[2][7][32];  ///< [part][row of weights][lane]
};
struct MatrixTileParams : MatrixParams {
  int buffers = 1;                                ///< see Schedule
  std::uint16_t weights[2][max_side * max_side];  ///< row-major
};

inline constexpr std::size_t most_parameter_bytes = 32764;  ///< CUDA's limit, since compute capability 7.0
static_assert(sizeof(DirectParams<double>) <= most_parameter_bytes &&
              sizeof(DirectParams<float>) <= most_parameter_bytes);
static_assert(sizeof(MatrixTileParams) <= most_parameter_bytes);

/// For 16-bit formats; takes SmallParams.
const void* small_kernel(const FormatInfo& format, int side, Small kind);
/// For 8-bit formats; take MatrixStripParams and MatrixTileParams. Tiles have no gradients.
const void* matrix_strip_kernel(const FormatInfo& format, int side, Matrix kind);
const void* matrix_tile_kernel(Matrix kind);
/// For all formats; takes TwoPassParams or DirectParams of float or double.
const void* tile_kernel(const FormatInfo& format, bool two_pass, bool wide);

}  // namespace cudavision::convolve
