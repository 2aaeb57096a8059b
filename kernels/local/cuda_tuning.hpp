// SPDX-License-Identifier: LGPL-2.1-or-later
// The constants that decide the speed of the CUDA kernels. They do not change results.
#pragma once

namespace cudavision::local {

struct Tuning {
  /// Box filters on tables: the warps of a block, one above the other. Each computes 128 pixels of a row. Not measured.
  int box_warps = 4;  // sweep: 2 4 8

  // Sliding windows. Times are in µs on an H200, for GRAY8 at 8K.
  /// If a window has more rows than this, column_sums stores the sums of intervals first. box-mean-r31: 51.5 without
  /// stored sums, 52.7 with them; r63: 67 and 60.
  int most_added_rows = 48;  // sweep: 32 48 64 128
  /// The rows of an interval. Each such window must contain an interval, even if the frame cuts off nearly half of the
  /// window. With an earlier version, box-mean-r63: 65 with 16 rows, 66 with 32.
  int interval_rows = 16;  // sweep: 8 16
  /// The number of blocks whose registers must fit in a multiprocessor. Means in batches of 16 rows: box-mean-r3 36
  /// with 5, 41 with 6.
  int mean_blocks = 5;  // sweep: 4 5 6
  /// The same for thresholds in batches of 16 rows: threshold-r15 48 with 4, 52 with 5 (registers spill).
  int threshold_blocks = 4;  // sweep: 4 5
  /// The same for means and thresholds in batches of 8 rows. Not measured.
  int low_blocks = 6;  // sweep: 5 6 8
  /// The same for deviations. Not measured.
  int deviation_blocks = 4;  // sweep: 3 4

  // Windows with 32-bit column sums.
  /// The smallest number of rows in a block. Not measured.
  int least_rows = 2;  // sweep: 2 4 8
  /// The smallest number of threads in a block, and the smallest share of its columns, in eighths, that have results.
  /// box-mean-r15 8K, µs, GRAY16 / RGBA: 128 threads 110 / 362, 256 threads 105 / 365. The share is not measured.
  int line_threads = 128;  // sweep: 128 256
  int line_eighths = 7;    // sweep: 6 7
  /// For smaller pictures, tall windows are computed from tables. NV12, radius 500: 1080p 33 µs from tables, 54 µs from
  /// column sums; 8K 401 and 185 µs.
  int least_high_pixels = 1 << 22;
  /// The largest number of rows whose column sums are in shared memory at once. box-mean-r15 8K, µs, GRAY16 / RGBA: 4
  /// rows 110 / 362, 8 rows 129 / 362.
  int line_batch = 4;  // sweep: 2 4 6

  // Mosaics.
  /// The smallest number of blocks per multiprocessor, if cells are small enough. Not measured.
  int mosaic_blocks = 4;  // sweep: 2 4 8
  /// The smallest number of bytes of a row that a block should get. Not measured.
  int mosaic_least_row = 256;  // sweep: 128 256 512 1024

  // Non-local means with search-radius 5. Times are in ms on an H200, for GRAY8 at 7680 × 4320.
  /// The maximum number of warps of a block, side by side and one above the other. Fewer are used if the picture does
  /// not fit in shared memory. Radius 1: 2.17 with 2 × 4 warps, 2.05 with 1 × 4, 2.08 with 1 × 2, 2.17 with 1 × 8.
  int nlm_warps_x = 1;  // sweep: 1 2
  int nlm_warps_y = 4;  // sweep: 2 4 8
  /// The number of blocks whose registers must fit in a multiprocessor, for 8, 10 and 16 bits, and for reach 1, 4, 8
  /// and 16. 8 bits, reach 8: 2.65 with 3, 2.81 with 4 (registers spill). 10 bits, reach 4: 4.38 with 3, 4.83 with 2.
  /// P010, radius 7: 6.35 with 2 for all, 6.27 with 3 for reach 4 and 8, but 0.465 and 0.494 at 1920 × 1080. 16 bits,
  /// reach 8: 8.06 with 3 (registers spill), 7.36 with 2.
  int nlm_min_blocks[3][4] = {{4, 4, 3, 4}, {3, 3, 2, 2}, {3, 2, 2, 2}};
  /// The maximum number of weights of 8-bit samples that are summed in half precision before they are added to float32
  /// totals. Radius 1: 1.99 with 6, 1.94 with 12; with larger blocks 2.60 with 1, 2.21 with 6. The largest error of a
  /// result, in sample steps, is 0.10 with 1, 0.19 with 6 and 0.36 with 12 in worst-case pictures, and 0.10 with 6 in
  /// random pictures.
  int nlm_half_span = 6;  // sweep: 1 6 12
  /// The maximum number of weights of other samples that are summed before they are added to the totals, both in
  /// float32. The largest error of a result, in 16-bit sample steps with search-radius 32, is 1.4 with 1 and 0.13 with
  /// 12.
  int nlm_float_span = 12;  // sweep: 6 12 24
};
inline constexpr Tuning tuning;
static_assert(tuning.interval_rows <= tuning.most_added_rows / 2,
              "the windows of cuda_windows.cu hold a whole interval");

}  // namespace cudavision::local
