// SPDX-License-Identifier: LGPL-2.1-or-later
// The numbers that decide the speed of the CUDA kernels but not their results.
// Times are of an H200. Unless a comment names another case, they are of GRAY8, 7680 × 4320.
#pragma once

namespace cudavision::convolve {

struct Tuning {
  // ---- Unrolled kernels, 16-bit samples (cuda_small.cu)

  /// Farthest reach of a kernel from its anchor that runs unrolled: 3 means up to 7 × 7. Not measured; the code has sides 3, 5 and
  /// 7.
  int small_reach = 3;
  /// Warps of a block, one above the other; they share rows through the L1 cache. 3 × 3: 31.2 µs with 4, 32.6 µs with 8.
  int small_warps = 4;  // sweep: 2 4 8
  /// Rows of results of a thread. More rows share the conversion of samples but need more code; above about 12 KB of code, warps
  /// wait for instructions. 7 × 7: 93 µs with 4, 114 µs with 8.
  int small_rows = 4;  // sweep: 2 4 8
  /// The same for one channel and a side of 3.
  int small_rows_gray_3 = 8;  // sweep: 4 8

  // ---- Tiles in float32 and float64 (cuda_tile.cu)

  /// Most warps of a block. Fewer are used where their tile does not fit into shared memory. Not measured.
  int tile_warps = 8;  // sweep: 4 8
  /// Rows of results of a thread, with float32 sums. Each weight is used for 4 results of a row, each sample for up to as many
  /// rows. 15 × 15 of 8-bit samples (which now run on the matrix units): 496 µs with 5, 479 µs with 6, 594 µs with 8.
  int tile_rows = 6;  // sweep: 4 5 6 8
  /// The same with float64 sums, which take twice the registers. Not measured.
  int tile_rows_wide = 4;  // sweep: 2 4

  // ---- Strips on the matrix units (cuda_matrix_strip.cu). "one", "two", "more": channels of the last set of the format. Registers
  // ---- decide how many warps hide each other's waits. All times: 3 × 3 real weights, (width, rows ahead, waves).

  /// Results across of a warp, for a set of one channel of such a format. Other sets have 128.
  /// GRAY8: 30.4 µs with (128, 4, 2), 34.2 µs with (256, 3, 2), 32.4 µs with (128, 3, 2).
  int strip_width_one = 128;  // sweep: 128 256
  /// NV12: 44.5 µs with (256, 3, 3), 47.4 µs with (256, 3, 2), 55.5 µs with (128, 4, 2).
  int strip_width_two = 256;  // sweep: 128 256
  /// Rows that are loaded ahead of the row being summed.
  int strip_ahead_one = 4;  // sweep: 2 3 4
  int strip_ahead_two = 3;  // sweep: 2 3 4
  /// RGBA: 107.8 µs with 2 rows ahead and 1 wave, 136.8 µs with (3, 2), 147.6 µs with (4, 2).
  int strip_ahead_more = 2;  // sweep: 2 3 4
  /// Waves of blocks of a large frame. More waves make the last one shorter; fewer waves read fewer rows twice.
  int strip_waves_one = 2;   // sweep: 1 2 3
  int strip_waves_two = 3;   // sweep: 1 2 3
  int strip_waves_more = 1;  // sweep: 1 2 3
  /// Blocks for which a multiprocessor has registers, for 3 or 4 channels, by the side of the kernel. Not measured.
  int strip_blocks_3 = 4;  // sweep: 2 3 4
  int strip_blocks_5 = 3;  // sweep: 2 3 4
  int strip_blocks_7 = 2;  // sweep: 1 2 3
  /// The same for 1 or 2 channels: no limit.
  int strip_blocks_few_channels = 1;  // sweep: 1 2 3
  /// Warps of a block. Not measured.
  int strip_warps = 4;  // sweep: 2 4 8
  /// Fewest and most rows of results of a warp. Not measured. The most decides the shared memory of a block.
  int strip_least_rows = 8;  // sweep: 4 8 16
  int strip_most_rows = 64;  // sweep: 32 64

  // ---- Tiles on the matrix units (cuda_matrix_tile.cu)

  /// Most warps of a block. Fewer are used where their tile does not fit into shared memory. Not measured.
  int matrix_tile_warps = 8;  // sweep: 4 8
  /// Rows of results of a warp. Not measured.
  int matrix_tile_rows = 8;  // sweep: 4 8

  // ---- Which family runs (cuda_schedule.cpp)

  /// Longest side of a kernel of rank 1 that runs in one pass on the matrix units (8-bit samples). 15 × 15: 187 µs there, 194 µs in
  /// two passes.
  int matrix_most_separable = 15;  // sweep: 11 15 19
};
inline constexpr Tuning tuning;

// Which field applies. `rest`: channels of the last set of the format.

constexpr int small_rows(int channels, int side) {
  return channels == 1 && side == 3 ? tuning.small_rows_gray_3 : tuning.small_rows;
}
constexpr int tile_rows(bool wide) { return wide ? tuning.tile_rows_wide : tuning.tile_rows; }
constexpr int strip_width(int channels, int rest) {
  return channels > 1 ? 128 : rest == 1 ? tuning.strip_width_one : tuning.strip_width_two;
}
constexpr int strip_rows_ahead(int rest) {
  return rest == 1 ? tuning.strip_ahead_one : rest == 2 ? tuning.strip_ahead_two : tuning.strip_ahead_more;
}
constexpr int strip_waves(int rest) {
  return rest == 1 ? tuning.strip_waves_one : rest == 2 ? tuning.strip_waves_two : tuning.strip_waves_more;
}
constexpr int strip_blocks(int channels, int side) {
  return channels < 3 ? tuning.strip_blocks_few_channels
         : side == 3  ? tuning.strip_blocks_3
         : side == 5  ? tuning.strip_blocks_5
                      : tuning.strip_blocks_7;
}

}  // namespace cudavision::convolve
