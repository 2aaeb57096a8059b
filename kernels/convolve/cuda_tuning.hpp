// SPDX-License-Identifier: LGPL-2.1-or-later
// The constants that decide the speed of the CUDA kernels. They do not change results. Times were measured on an H200.
// Unless a comment names another case, the case is GRAY8, 7680 × 4320.
#pragma once

namespace cudavision::convolve {

struct Tuning {
  // ---- Unrolled kernels, 16-bit samples (cuda_small.cu)

  /// The farthest reach from the anchor of kernels that run unrolled: 3 means up to 7 × 7. Not measured; the code has
  /// the sides 3, 5 and 7.
  int small_reach = 3;
  /// The warps of a block, one above the other; they share rows through the L1 cache. 3 × 3: 31.2 µs with 4, 32.6 µs
  /// with 8.
  int small_warps = 4;  // sweep: 2 4 8
  /// The rows of results of a thread. More rows share the conversion of samples but need more code; above about 12 KB
  /// of code, warps wait for instructions. 7 × 7: 93 µs with 4, 114 µs with 8.
  int small_rows = 4;  // sweep: 2 4 8
  /// Like small_rows, for one channel and a side of 3.
  int small_rows_gray_3 = 8;  // sweep: 4 8

  // ---- Tiles in float32 and float64 (cuda_tile.cu)

  /// The maximum number of warps of a block. Fewer are used if their tile does not fit in shared memory. Not measured.
  int tile_warps = 8;  // sweep: 4 8
  /// The rows of results of a thread, with float32 sums. Each weight is used for 4 results of a row, each sample for up
  /// to this many rows. With an earlier version, 15 × 15 on 8-bit samples: 496 µs with 5, 479 µs with 6, 594 µs with 8.
  int tile_rows = 6;  // sweep: 4 5 6 8
  /// Like tile_rows, with float64 sums, which take twice the registers. Not measured.
  int tile_rows_wide = 4;  // sweep: 2 4

  // ---- Strips on the matrix units (cuda_matrix_strip.cu)

  /// The warps of a block, side by side.
  int strip_warps = 4;  // sweep: 2 4 8
  /// The rows of a group, for 1 or 2 channels and for 3 or 4 channels.
  int strip_group_few = 8;   // sweep: 4 8
  int strip_group_more = 4;  // sweep: 4 8
  /// The number of groups that are copied to shared memory before they are summed. 2 and 3: 21.3 and 21.4 µs, 5 × 5
  /// 24.1 and 23.8; RGBA 73.9 and 75.2, 7 × 7 92.1 and 90.8.
  int strip_ahead_few = 3;   // sweep: 1 2 3
  int strip_ahead_more = 3;  // sweep: 1 2 3
  /// The number of blocks whose registers must fit in a multiprocessor, for 1 or 2 channels, and for 3 or 4 channels by
  /// the side of the kernel.
  int strip_blocks_few = 4;  // sweep: 3 4 6
  int strip_blocks_3 = 4;    // sweep: 2 3 4
  int strip_blocks_5 = 3;    // sweep: 2 3 4
  int strip_blocks_7 = 3;    // sweep: 1 2 3
  /// The largest number of rows of samples in a block.
  int strip_most_rows = 256;  // sweep: 64 128 256
  /// Blocks at the sides have fewer rows by this factor: they take longer and must not finish last. With 1 and 2: RGBA
  /// 3 × 3 82.7 and 75.2 µs, GRAY8 7 × 7 26.7 and 28.6. If they are as tall as the other blocks and start among them,
  /// sharpen with border=fill takes 29.5 instead of 21.2 µs.
  int strip_edge_share = 2;  // sweep: 1 2 3
  /// Blocks at the sides are shortened only if they keep at least this many rows of samples. In shorter blocks, rows
  /// that only fill the sums cost more than shortening saves. They are also shortened if all blocks then run at once:
  /// 1080p 3 × 3 takes 3.5 µs instead of 3.8 µs.
  int strip_edge_rows = 64;  // sweep: 8 32 64
  /// The time of a row of a set with fewer channels than the last set, in percent of the time of a row of the last set.
  /// 1080p, NV12 7 × 7: 7.5 µs if luma blocks have twice the rows of chroma blocks, 6.9 µs with 60.
  int strip_first_percent = 60;  // sweep: 50 60 70
  /// The cost of starting a block, in rows of one channel. GRAY8 5 × 5: 26.4 µs with 4, 25.5 µs with 12; NV12 3 × 3:
  /// 31.9 µs with 12, 33.4 µs with 24.
  int strip_start_rows = 12;  // sweep: 4 12 24

  // ---- Tiles on the matrix units (cuda_matrix_tile.cu)

  /// The maximum number of warps of a block. Fewer are used if their tile does not fit in shared memory. With an
  /// earlier version, 15 × 15: RGBA 376 µs with 8, 413 µs with 4.
  int matrix_tile_warps = 8;  // sweep: 4 8
  /// The rows of results of a warp in a tile, for 1 and for more channels: as many as 128 registers can hold. Not
  /// measured.
  int matrix_tile_rows_1 = 8;     // sweep: 4 8
  int matrix_tile_rows_more = 4;  // sweep: 2 4
  /// The maximum number of tiles that a block processes from top to bottom. 15 × 15: 98.4 µs with 1, 94.4 with 2, 93.0
  /// with 4; RGBA 302, 292 and 294 µs. 31 × 31: 207, 209 and 212 µs; RGBA 701, 711 and 712 µs.
  int matrix_tile_most = 2;  // sweep: 1 2 4 8
  /// The cost of starting a block, in tiles. With matrix_tile_most 4, 15 × 15: 93.0 µs with 0.5, 98.6 µs with 0.
  double matrix_tile_start = 0.5;  // sweep: 0.25 0.5 1

  // ---- Which family runs (cuda_schedule.cpp)

  /// The longest side of kernels of rank 1 that run in one pass on the matrix units (8-bit samples). H200, 31 × 31, one
  /// pass and two: GRAY8 at 7680 × 4320 210 and 284 µs, at 1920 × 1080 17 and 37; RGBA 719 and 894, 54 and 110.
  int matrix_most_separable = 31;  // sweep: 15 23 31 39 47
};
inline constexpr Tuning tuning;

// Functions that select a field.

constexpr int small_rows(int channels, int side) {
  return channels == 1 && side == 3 ? tuning.small_rows_gray_3 : tuning.small_rows;
}
constexpr int tile_rows(bool wide) { return wide ? tuning.tile_rows_wide : tuning.tile_rows; }
constexpr int strip_group(int channels) { return channels < 3 ? tuning.strip_group_few : tuning.strip_group_more; }
constexpr int strip_ahead(int channels) { return channels < 3 ? tuning.strip_ahead_few : tuning.strip_ahead_more; }
constexpr int strip_blocks(int channels, int side) {
  return channels < 3 ? tuning.strip_blocks_few
         : side == 3  ? tuning.strip_blocks_3
         : side == 5  ? tuning.strip_blocks_5
                      : tuning.strip_blocks_7;
}

}  // namespace cudavision::convolve
