// SPDX-License-Identifier: LGPL-2.1-or-later
// The constants that decide the speed of the CUDA kernels. They do not change results.
#pragma once

namespace cudavision::diff {

struct Tuning {
  // ---- Comparing and opening (cuda_compare.cu, cuda_open.cu)

  /// The number of rows in a tile, which is one block, 32 lanes wide. Not measured. At most 16: see the limits in
  /// cuda_schedule.hpp.
  int tile_rows = 16;  // sweep: 8 16
  /// The bytes of plane 0 in the row of a lane. Formats with 2 or more channels have fixed sizes: see strip_pixels() in
  /// cuda_schedule.hpp. H200, GRAY8 with mask: 27.8 µs at 7680 × 4320 and 4.1 µs at 1920 × 1080 with 16 bytes. With 64
  /// bytes, and one kernel for all outputs: 33.4 µs and 7.8 µs, because fetching its 5600 instructions takes a long
  /// time.
  int strip_bytes = 16;
  /// The rows of a lane if a format has one plane and the row of a lane has 16 bytes. H200, mask of RGBA at 7680 ×
  /// 4320: 109 µs with 1, 88 with 2, 91 with 4; at 1920 × 1080 10.4, 9.3 and 11.1 µs.
  int plane_rows = 2;  // sweep: 1 2 4
  /// The smallest number of frame pixels for which a warp opens 960 × 4 pixels instead of 480 × 2 (half as many rows if
  /// a block has 512 threads). H200, counting alone, GRAY8 at 7680 × 4320: 25.4 µs wide, 38.4 with 320 × 2. Mask at
  /// 1920 × 1080: 9.9 µs wide, 7.4 with 480 × 2.
  int wide_pixels = 3000 * 2000;  // sweep: 1000000 6000000 20000000

  /// With more than this many blocks per multiprocessor, a launch lets the next one start when its last block has
  /// started, instead of when all blocks have ended. H200, mask of RGBA: 14.3 µs instead of 15.7 at 1920 × 1080 (8
  /// blocks); mask of GRAY8 at 3840 × 2160: 14.8 instead of 15.6 (8). But passthrough of NV12 at 1920 × 1080: 8.5
  /// instead of 7.6 (2).
  int waiting_blocks = 4;  // sweep: 0 4 1000

  // ---- The mixture (cuda_mog2.cu)

  /// Threads of a block, one pixel each. H200, GRAY8 at 7680 × 4320: 944 µs with 64, 950 with 128, 954 with 256.
  int mixture_threads = 64;  // sweep: 32 64 128 256
  /// The number of blocks per multiprocessor that the registers of the kernels for one and for three channels must
  /// allow, because threads wait for memory. Same input, one channel: no difference between 18 and 20. Three channels
  /// at 3840 × 2160: no difference between 10, 12 and 14.
  int mixture_blocks[2] = {18, 12};
  /// The number of rows of blocks that restart the mixtures. Not measured: nearly all launches end immediately.
  int mixture_restart_rows = 128;

  // ---- The adaptive background (cuda_adaptive_light.cu, cuda_adaptive_change.cu)

  /// The number of blocks of 256 threads per multiprocessor that the registers of the first kernel must allow. H200,
  /// preset=outdoor on NV12: at 7680 × 4320 192 µs with 5, 182 with 6; at 1920 × 1080 22.6 and 23.0.
  int light_blocks = 6;  // sweep: 1 5 6

  /// The largest number of threads in a block, which has 32 × 16 pixels and a margin of 4. A block has half as many if
  /// the frame has more blocks than can run at once. H200, preset=outdoor on NV12, compared at a quarter of its size:
  /// at 7680 × 4320 193 µs with 512, 177 with 256; at 3840 × 2160 56 and 53; at 1920 × 1080 23.3 and 24.6.
  int adaptive_threads = 512;  // sweep: 256 512
  /// The numbers of blocks per multiprocessor, with all threads and with half of them, that the registers must allow:
  /// threads wait for memory and for each other. The decision about the camera, which only the last block makes, would
  /// take 100 registers, and so allow one block. Same input, 512 threads: at 7680 × 4320 298 µs with 1, 219 with 2, 198
  /// with 3, 194 with 4. At 1920 × 1080, with unrolled loops: 21.6 µs with 2, 22.0 with 3.
  int adaptive_blocks = 2;        // sweep: 1 2 3 4
  int small_adaptive_blocks = 6;  // sweep: 4 6 8

  // ---- Shrinking and enlarging (cuda_scale.cu)

  /// Threads of a block, one sample each. Not measured.
  int scale_threads = 128;  // sweep: 64 128 256

  // ---- Boxes (cuda_boxes.cu)

  /// Threads of a block, one rectangle each. Not measured.
  int box_threads = 256;  // sweep: 128 256 512
};
inline constexpr Tuning tuning;

}  // namespace cudavision::diff
