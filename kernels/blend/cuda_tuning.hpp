// SPDX-License-Identifier: LGPL-2.1-or-later
// The constants that decide the speed of the blending kernels, measured on an H200. They do not change results.
#pragma once

namespace cudavision::blend {

struct Tuning {
  // compose_tiles: any layers.

  /// The pixels of a thread in a row, 32 columns apart. A layer's parameters are loaded once for all of them.
  int columns = 2;  // sweep: 1 2 4
  /// The rows of a thread. Must be 2, because two rows share chroma.
  int rows = 2;
  /// The warps of a block, which share one list of visible layers. At least 2, so that 64 threads test 64 layers.
  int warps = 8;  // sweep: 4 8 16
  /// A block composes up to this many strips of warps × rows pixel rows with one list of visible layers. A power of
  /// two.
  int most_strips = 4;  // sweep: 1 2 4 8
  /// A block composes more than one strip only if at least this many blocks remain, so that small pictures fill the
  /// device.
  int wanted_blocks = 1024;  // sweep: 256 512 1024 2048
  /// The number of blocks that must fit on a multiprocessor, without alpha. It limits registers to 65536 / (blocks · 32
  /// · warps) per thread: change it when you change warps. 8K NV12, a wall of 63: 344 µs with 3, 331 µs with 4.
  int opaque_blocks = 4;  // sweep: 2 3 4 5
  /// Like opaque_blocks, for output with alpha. 8K RGBA, a wall of 63: 382 µs with 3, 719 µs with 4.
  int alpha_blocks = 3;  // sweep: 2 3 4

  // compose_simple_parts and compose_direct_tiles: layers of 8-bit samples that are laid over bytes. Times are in µs,
  // for 8K unless a comment names another size.

  /// The width of a tile in pixels, a multiple of compose_tiles' 32 · columns. Walls of 63, GRAY8 and NV12: 74.5 and
  /// 159 with 64, 63.9 and 133 with 128, 61.7 and 122 with 256; but a wall of 9 in RGBA at 1080p takes 23.9 with 128,
  /// 28.9 with 256.
  int direct_width = 128;  // sweep: 64 128 256
  /// Like most_strips: a power of two, at most 8.
  int direct_strips = 4;  // sweep: 2 4 8
  /// Like wanted_blocks. 1080p, a wall of 63, GRAY8 and NV12: 10.4 and 16.6 with 500, 12.8 and 17.9 with 1000,
  /// 12.8 and 23.2 with 2000.
  int wanted_direct_blocks = 500;  // sweep: 250 500 1000
  /// Like wanted_direct_blocks, for pixels of four bytes. 1080p RGBA, an inset, walls of 9 and 63: 10.9, 25.9 and 24.1
  /// with 250, 11.5, 22.3 and 22.0 with 500, 13.7, 24.0 and 24.0 with 1000.
  int wanted_pixel_blocks = 500;  // sweep: 250 500 1000
  /// The pixels of a thread in a row of a plane, 32 columns apart, and the rows that it reads at once. RGB and RGBA use
  /// 2 and 1.
  int direct_columns = 2;  // sweep: 1 2 4
  int direct_rows = 2;     // sweep: 1 2
  /// The number of blocks that must fit on a multiprocessor.
  int direct_blocks = 4;  // sweep: 3 4 5

  /// The width in bytes, and the rows, of a tile that is only copied. An inset, NV12 and RGBA: 43.9 and 84.1 with 32
  /// rows, 41.7 and 80.4 with 64, 42.9 and 81.6 with 96; with 1024 bytes and 64 rows 42.2 and 83.1. NV12 at 1080p: 9.3,
  /// 7.9, 7.3; 7.3.
  int copy_bytes = 512;  // sweep: 256 512 1024
  int copy_rows = 64;    // sweep: 32 64 96
  /// These tiles begin at multiples of this many pixels, so that chunks of 16 bytes are aligned.
  int copy_step = 16;
  /// All tiles in which a layer is scaled start within this share of the blocks. An inset, NV12 and RGBA: 42.6 and 81.9
  /// with 0.7, 41.7 and 80.4 with 0.8, 41.5 and 79.7 with 0.9; but RGBA at 1080p 9.9, 10.3 and 10.6.
  double scaled_share = 0.8;  // sweep: 0.7 0.8 0.9

  /// If other layers cover more than this part of the output, compose_tiles alone composes it. A wall of 63 multiplied
  /// pictures, 1080p RGBA: 50 µs with two launches, 40 µs with one.
  double most_others = 0.875;

  /// Up to this many layers use kernels whose parameters fit in 4 KB, which a launch copies at no extra cost.
  int few_layers = 6;
  /// The maximum number of parts of a frame that use such kernels.
  int few_parts = 28;

  // mix_planes, mix_pixels, mix_keyed_420: two pictures of one 8-bit format.

  /// The threads of a block; each mixes 16 bytes, or 16 × 2 pixels.
  int pair_threads = 256;  // sweep: 128 256 512

  // operate_gray, operate_pixels, operate_420: two pictures of one 8-bit format, with an operator on R', G', B'.

  /// The threads of a block. Multiply, NV12: 55.6 µs with 128, 57.5 µs with 256.
  int operate_threads = 128;  // sweep: 64 128 256
  /// The number of blocks that must fit on a multiprocessor. Multiply, RGBA: 94.4 µs with 16, 100.2 µs without a limit
  /// (then 40 registers). NV12: 55.6 µs with 8 blocks of 64 registers, 58.6 µs with 9.
  int operate_pixel_blocks = 16;  // sweep: 8 12 16
  int operate_420_blocks = 8;     // sweep: 6 8 9
};
inline constexpr Tuning tuning;

}  // namespace cudavision::blend
