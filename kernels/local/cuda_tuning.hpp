// SPDX-License-Identifier: LGPL-2.1-or-later
// The numbers that decide the speed of the CUDA kernels but not their results.
#pragma once

namespace cudavision::local {

struct Tuning {
  /// Box filters on tables: warps of a block, one above the other. Each computes 128 pixels of a row. Not measured.
  int box_warps = 4;  // sweep: 2 4 8

  // Sliding windows, in µs on an H200 for box-mean-r3 GRAY8 and deviation-r15 GRAY8, 8K / 1080p.
  /// Samples of a chunk, 8 or 16. 16: 48 / 10.6; 8: 53 / 8.7. Deviation 16: 214 (registers); 8: 121.
  int mean_chunk = 16;      // sweep: 8 16
  int deviation_chunk = 8;  // sweep: 8 16
  /// Rows whose column sums are in shared memory at once.
  int mean_batch = 6;       // sweep: 4 5 6 7 8
  int deviation_batch = 4;  // sweep: 2 3 4
  /// The fewest rows of a block, and the most blocks that a multiprocessor should get at once. 8 rows: 48 / 16.2.
  int least_rows = 2;            // sweep: 2 4 8
  int most_resident_blocks = 4;  // sweep: 2 4 8
  /// Of a window with more rows than this, sums of intervals are stored first.
  int most_added_rows = 48;  // sweep: 32 48 64 128
  /// Rows of an interval, at most 257. box-mean-r63 8K: 16 rows 69, 32 rows 74.
  int interval_rows = 16;  // sweep: 8 16 32

  /// Non-local means: width of a block's tile, a multiple of nlm_run.
  int nlm_width = 64;  // sweep: 32 64 128
  /// Non-local means: height of a block's tile, a multiple of nlm_run.
  int nlm_height = 32;  // sweep: 16 32
  /// Non-local means: results of a thread, side by side. Each run begins with a sum over a whole patch.
  int nlm_run = 8;  // sweep: 4 8 16
};
inline constexpr Tuning tuning;

}  // namespace cudavision::local
