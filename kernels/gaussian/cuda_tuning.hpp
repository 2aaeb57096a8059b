// SPDX-License-Identifier: LGPL-2.1-or-later
// The constants that decide the speed of the CUDA kernels. They do not change results. Times were measured on an H200.
// Unless a comment names another case, the case is GRAY8, 7680 × 4320, 7 taps; a copy of this frame takes 18.0 µs. All
// GPUs use the same constants. Only those below "Segments of strips" can differ between GPUs without new kernels:
// cuda.cpp passes them in Workers, except start_steps, which make_schedule() reads directly. The other constants shape
// the kernels at compile time.
#pragma once

namespace cudavision::gaussian {

struct Tuning {
  // ---- Windows in registers (cuda_strip.cu)

  /// The warps of a block. With an earlier version, RGBA, 7 taps: 120 µs with 4, 128 µs with 2, 131 µs with 8; GRAY8:
  /// 28.9, 34.3 and 29.6 µs.
  int strip_warps = 4;  // sweep: 2 4 8
  /// The number of blocks whose registers must fit in a multiprocessor, for 8-bit samples and up to 17 taps down. It
  /// limits registers to 65536 / (blocks · 32 · warps) per thread: change it when you change the warps. 3 and 4 blocks:
  /// 26.9 and 28.1 µs, RGBA 96 and 106 µs (registers spill with 4 or more).
  int narrow_blocks = 3;  // sweep: 2 3 4
  /// The number of blocks whose registers must fit in a multiprocessor, for other windows. Not measured separately.
  int wide_blocks = 3;  // sweep: 2 3 4
  /// The number of groups of rows that are copied to shared memory before they are needed. 7 taps, 3 and 4 groups: 20.7
  /// and 21.8 µs, RGBA 73.8 and 75.4 µs; RGBA, 31 taps, 2 and 3 groups: 86.5 and 82.1 µs.
  int groups_ahead = 3;  // sweep: 2 3 4
  /// Whether results bypass L2 (streaming stores). 7 taps: 21.3 µs with streaming stores, 20.8 µs without; RGBA 76.0
  /// and 74.3 µs.
  bool stream_stores = false;  // sweep: false true

  // ---- Windows in shared memory (cuda_large.cu)

  /// The maximum number of warps of a block. Fewer are used if their rings do not fit in shared memory. Not measured.
  int large_warps = 8;  // sweep: 4 8
  /// The number of blocks whose registers must fit in a multiprocessor. Not measured.
  int large_blocks = 2;  // sweep: 1 2
  /// Groups of 16 samples that a lane loads at a time. Not measured.
  int large_loads = 4;  // sweep: 2 4 8

  // ---- Segments of strips (cuda_schedule.cpp)

  /// The steps of a segment at an end of a row, in percent of the steps of other segments: these segments take longer
  /// and must not finish last. 50 and 65 differ by less than 1 %, except RGBA with 31 taps: 86.5 and 90.7 µs.
  int strip_edge_percent = 50;  // sweep: 50 65 80 100
  /// Like strip_edge_percent, for samples of two bytes. GRAY16, 15 taps, 60, 72, 80 and 90 %: 50.2, 48.4, 49.1 and 49.2
  /// µs; P010 76.9, 72.1, 74.3 and 76.6 µs.
  int strip_edge_percent_16 = 72;  // sweep: 60 72 80 90
  /// Like strip_edge_percent, for large windows. 255 taps, 33, 50 and 100 %: 536, 512 and 842 µs; 63 taps: 88, 85 and
  /// 115 µs.
  int large_edge_percent = 50;  // sweep: 35 50 65 80
  /// The cost of starting a segment, in steps. RGBA, 7 taps: 76.0 µs with 0, 74.3 µs with 1.
  int start_steps = 1;  // sweep: 0 1 2
  /// The maximum number of steps of a segment. RGBA, 7 taps, 24 and 64 steps: 76.1 and 74.3 µs; 31 taps: 84.5 and 81.4
  /// µs. GRAY8 with 20 steps: 22.1 instead of 20.8 µs.
  int strip_max_steps = 64;  // sweep: 16 24 32 64
  /// The maximum number of steps of a segment for large windows. Not measured.
  int large_max_steps = 64;  // sweep: 32 64 128
};
inline constexpr Tuning tuning;

// Functions that select a field.

/// element_bytes: bytes of a sample, or of a pixel whose channels are computed together.
constexpr int strip_edge_percent(int element_bytes) {
  return element_bytes == 2 ? tuning.strip_edge_percent_16 : tuning.strip_edge_percent;
}
/// window_groups_y: groups of 16 rows in a window; see cuda_schedule.hpp.
constexpr int min_blocks(int sample_bytes, int window_groups_y) {
  return sample_bytes == 1 && window_groups_y == 2 ? tuning.narrow_blocks : tuning.wide_blocks;
}

}  // namespace cudavision::gaussian
