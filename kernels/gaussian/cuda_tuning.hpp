// SPDX-License-Identifier: LGPL-2.1-or-later
// The numbers that decide the speed of the CUDA kernels but not their results.
// Times are of an H200. Unless a comment names another case, they are of GRAY8, 7680 × 4320, 7 taps, where a copy of the frame takes
// 18.0 µs.
#pragma once

namespace cudavision::gaussian {

struct Tuning {
  // ---- Windows in registers (cuda_strip.cu)

  /// Warps of a block. Not measured.
  int strip_warps = 4;  // sweep: 2 4 8
  /// Blocks for which a multiprocessor has registers, for 8-bit samples and up to 17 taps down. It limits registers to
  /// 65536 / (blocks · 32 · warps) a thread: change it when you change the warps. 3, 4 and 5 blocks: 30.2, 29.4 and
  /// 34.8 µs (registers spill from 4 on); NV12 of 1920 × 1080: 7.6 µs with 3, 8.5 µs with 4.
  int narrow_blocks = 3;  // sweep: 2 3 4
  /// The same for other windows. Not measured.
  int wide_blocks = 2;  // sweep: 1 2
  /// Groups of rows that a lane holds, for windows of 4 × 2 groups of 8-bit samples. With 2, a group is loaded while another is
  /// computed, which takes registers. RGBA, 7 taps: 147 µs with 1, 120 µs with 2.
  int rgba_buffers = 2;  // sweep: 1 2
  /// The same for other windows. 31.9 µs with 1, 34.1 µs with 2; GRAY16: 69.9 and 74.6 µs; RGBA, 15 taps: 134 and 150 µs.
  int buffers = 1;  // sweep: 1 2
  /// Groups of rows that are prefetched into L2 ahead of the group being loaded. 1 tap: 29.7 µs with 0, 26.5 µs with 2; GRAY16: 77
  /// and 70 µs.
  int prefetched_groups = 2;  // sweep: 0 1 2 3 4
  /// Whether results bypass L2 (streaming stores), which then keeps the rows that are read twice; only with one buffer. 26.2 µs
  /// without, 25.2 µs with; NV12: 38.3 and 36.5 µs; RGBA: 111 and 107 µs for 3 taps, 143 and 132 µs for 15 taps. With two buffers it
  /// is slower (RGBA, 7 taps: 122 µs without, 135 µs with).
  bool stream_stores = true;  // sweep: false true

  // ---- Windows in shared memory (cuda_large.cu)

  /// Most warps of a block. Fewer are used where their rings do not fit into shared memory. Not measured.
  int large_warps = 8;  // sweep: 4 8
  /// Blocks for which a multiprocessor has registers. Not measured.
  int large_blocks = 2;  // sweep: 1 2
  /// Groups of 16 bytes that a lane loads at a time. Not measured.
  int large_loads = 4;  // sweep: 2 4 8

  // ---- Segments of strips (cuda_schedule.cpp)

  /// Segments at the ends of a row have fewer steps by this factor: their warps take longer and must not finish last. 39.0 µs with 2,
  /// 31.9 µs with 3, 26.5 µs without such strips (1 tap). With 5 they still fit beside the others in one wave of blocks.
  int edge_share = 5;  // sweep: 2 3 4 5 6
  /// Cost of starting a segment, in steps. Estimated.
  int start_steps = 1;  // sweep: 0 1 2
  /// Most steps of a segment. RGBA, 31 taps: 169.9 µs with 32, 163.8 µs with 64; NV12: 36.9 and 36.4 µs.
  int max_steps = 64;  // sweep: 32 64 128
  /// The same for 4 channels and up to 17 taps down. RGBA, 3 taps: 104.4 µs with 32, 107.4 µs with 64.
  int rgba_max_steps = 32;  // sweep: 16 32 64
};
inline constexpr Tuning tuning;

// Which field applies. gx, gy: groups of 16 bytes and of 16 rows in a window, see cuda_schedule.hpp.

constexpr int min_blocks(int sample_bytes, int gy) {
  return sample_bytes == 1 && gy == 2 ? tuning.narrow_blocks : tuning.wide_blocks;
}
constexpr int buffers(int sample_bytes, int gx, int gy) {
  return sample_bytes == 1 && gx == 4 && gy == 2 ? tuning.rgba_buffers : tuning.buffers;
}
constexpr bool stream_stores(int sample_bytes, int gx, int gy) {
  return tuning.stream_stores && buffers(sample_bytes, gx, gy) == 1;
}
constexpr int max_steps(int channels, int gy) { return channels == 4 && gy == 2 ? tuning.rgba_max_steps : tuning.max_steps; }

}  // namespace cudavision::gaussian
