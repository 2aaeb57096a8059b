// SPDX-License-Identifier: LGPL-2.1-or-later
// Shapes of the convolution kernels, as measured on an H200 at 7680 × 4320.
#pragma once

namespace cudavision::cuda::convolve {

/// Kernels that reach at most this far from their anchor run unrolled, as 3 × 3, 5 × 5 or 7 × 7.
inline constexpr int small_reach = 3;
/// Warps of a block of the unrolled kernels, one above the other: they share rows through the L1 cache. 8 were
/// slower (3 × 3, GRAY8: 32.6 µs, 31.2 µs for 4).
inline constexpr int small_warps = 4;
/// Rows of results a thread of them computes: more share the conversion of samples, but are more code, and past some 12 KB of it
/// warps wait for instructions (7 × 7, GRAY8: 114 µs for 8 rows, 93 µs for 4).
constexpr int small_rows(int channels, int side) { return channels == 1 && side == 3 ? 8 : 4; }

/// Results a block of the tiled kernels computes across, four by each lane of a warp.
inline constexpr int tile_width = 128;
/// Most warps of such a block; fewer where its shared memory would not hold the tile.
inline constexpr int tile_warps = 8;
/// Rows of results a thread of them computes: each weight is used for 4 times as many results, each sample loaded from shared
/// memory for up to as many rows. Of 5, 6 and 8, 6 was fastest: 15 × 15
/// in 479 µs against 496 and 594, when 8-bit samples still came here.
template <typename Acc>
inline constexpr int tile_rows = sizeof(Acc) == 4 ? 6 : 4;

/// Results across that a warp's matrices hold.
inline constexpr int matrix_width = 128;

/// Strips on the matrix units, by the channels of the format's sets but the first (of the only one): what threads have in registers
/// decides how many warps hide each other's waits. 3 × 3 real weights, in µs, before the frame's sides went first:
/// GRAY8 30.4 (128 across, 4 rows ahead, 2 waves), 34.2 (256, 3, 2), 32.4 (128, 3, 2); NV12 44.5 (256, 3, 3), 47.4 (256, 3, 2),
/// 55.5 (128, 4, 2); RGBA 107.8 (2 rows ahead, 1 wave), 136.8 (3, 2), 147.6 (4, 2).
struct StripTuning {
  int luma_width;  ///< results across of a warp, of sets of one channel; other sets take matrix_width
  int rows_ahead;  ///< rows loaded ahead of the one worked on
  int waves;       ///< of blocks for large frames: more make the last one shorter, fewer read fewer rows twice
};
constexpr StripTuning strip_tuning(int rest) {
  return rest == 1 ? StripTuning{128, 4, 2} : rest == 2 ? StripTuning{256, 3, 3} : StripTuning{128, 2, 1};
}
constexpr int strip_width(int channels, int rest) { return channels == 1 ? strip_tuning(rest).luma_width : matrix_width; }
/// Blocks that are to fit a multiprocessor, which limits registers.
constexpr int strip_blocks(int channels, int side) { return channels < 3 ? 1 : side == 3 ? 4 : side == 5 ? 3 : 2; }
inline constexpr int strip_warps = 4;                             ///< of a block
inline constexpr int strip_least_rows = 8, strip_most_rows = 64;  ///< of results of a warp

/// Largest side of a kernel of rank 1 that goes to the matrix units in one pass, if samples have 8 bits: 15 × 15 took 187 µs there and
/// 194 µs in two passes.
inline constexpr int matrix_most_separable = 15;

/// Tiles on the matrix units: most warps of a block, and rows of results of each.
inline constexpr int matrix_tile_warps = 8;
inline constexpr int matrix_tile_rows = 8;

}  // namespace cudavision::cuda::convolve
