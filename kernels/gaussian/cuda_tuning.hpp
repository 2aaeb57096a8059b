// SPDX-License-Identifier: LGPL-2.1-or-later
// The numbers that decide the speed of the CUDA kernels but not their results.
// Times are of an H200. Unless a comment names another case, they are of GRAY8, 7680 × 4320, 7 taps, where a copy of the frame takes
// 18.0 µs.
#pragma once

namespace cudavision::gaussian {

struct Tuning {
  // ---- Windows in registers (cuda_strip.cu)

  /// Warps of a block. RGBA, 7 taps, when the loop was longer: 120 µs with 4, 128 µs with 2, 131 µs with 8; GRAY8: 28.9, 34.3 and 29.6 µs.
  int strip_warps = 4;  // sweep: 2 4 8
  /// Blocks for which a multiprocessor has registers, for 8-bit samples and up to 17 taps down. It limits registers to
  /// 65536 / (blocks · 32 · warps) a thread: change it when you change the warps. 3 and 4 blocks: 26.9 and 28.1 µs, RGBA 96 and 106 µs
  /// (registers spill from 4 on).
  int narrow_blocks = 3;  // sweep: 2 3 4
  /// The same for other windows. Not measured alone.
  int wide_blocks = 3;  // sweep: 2 3 4
  /// Groups of rows that are copied to shared memory ahead of the group that is computed, for up to 17 taps down. RGBA, 3 taps: 89.9 µs
  /// with 2, 86.0 µs with 3.
  int narrow_ahead = 3;  // sweep: 1 2 3 4
  /// The same for more taps. RGBA, 31 taps: 157.9 µs with 2, 163.2 µs with 3.
  int wide_ahead = 2;  // sweep: 1 2 3
  /// Whether results bypass L2 (streaming stores), which then keeps the rows that are read twice. A copy in the same pattern: 23.1 µs
  /// with, 22.8 µs without.
  bool stream_stores = true;  // sweep: false true

  // ---- Windows in shared memory (cuda_large.cu)

  /// Most warps of a block. Fewer are used where their rings do not fit into shared memory. Not measured.
  int large_warps = 8;  // sweep: 4 8
  /// Blocks for which a multiprocessor has registers. Not measured.
  int large_blocks = 2;  // sweep: 1 2
  /// Groups of 16 samples that a lane loads at a time. Not measured.
  int large_loads = 4;  // sweep: 2 4 8

  // ---- Segments of strips (cuda_schedule.cpp)

  /// Segments at the ends of a row have fewer steps by this factor: they take longer and must not finish last. Not measured. With all
  /// blocks as quick as the inner ones the frame took 23.5 instead of 26.9 µs.
  int strip_edge_share = 2;  // sweep: 1 2 3
  /// The same for large windows. Measured with 7 taps, when other windows were read in the same way: 39.0 µs with 2, 31.9 µs with 3, 26.5 µs
  /// without such strips (1 tap).
  int large_edge_share = 5;  // sweep: 2 3 4 5 6
  /// Cost of starting a segment, in steps. Estimated.
  int start_steps = 1;  // sweep: 0 1 2
  /// Most steps of a segment. RGBA, 7 taps: 103.2 µs with 8, 97.3 µs with 16.
  int strip_max_steps = 16;  // sweep: 8 16 32 64
  /// The same for large windows. Not measured.
  int large_max_steps = 64;  // sweep: 32 64 128
};
inline constexpr Tuning tuning;

// Which field applies. gx, gy: groups of 16 samples and of 16 rows in a window, see cuda_schedule.hpp.

constexpr int min_blocks(int sample_bytes, int gy) {
  return sample_bytes == 1 && gy == 2 ? tuning.narrow_blocks : tuning.wide_blocks;
}
constexpr int groups_ahead(int gy) { return gy == 2 ? tuning.narrow_ahead : tuning.wide_ahead; }

}  // namespace cudavision::gaussian
