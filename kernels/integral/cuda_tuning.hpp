// SPDX-License-Identifier: LGPL-2.1-or-later
// Tuning of the summed-area tables. All times are for one submit on an H200, for GRAY8 to u32 unless a comment says
// otherwise.
#pragma once

namespace cudavision::integral {

struct Tuning {
  /// The warps of a block, one above the other. Even, and at least 8: a block has a thread for each of the 256 columns
  /// of a
  /// tile. max_warp_rows() holds for 8 warps; with 16 warps, halve its results.
  int warps = 8;

  /// Frames are small, medium or large by their number of tiles of 256 × 64 samples (1080p: 136, 4K: 510, 8K: 2040).
  /// A frame with at least this number of tiles is medium.
  int medium_frame = 300;  // sweep: 200 300 400
  /// A frame with at least this number of tiles of 256 × 64 samples is large.
  int large_frame = 1000;  // sweep: 600 1000 1400
  /// The rows of a warp in a small frame; few rows spread the frame over the device. 1080p: 8.0 µs with 4, 7.9 with 8,
  /// 9.4 with 16; RGBA 10.4, 12.4 and 15.7.
  int small_rows = 4;  // sweep: 4 8
  /// The rows of a warp in a medium frame. 4K: 15.0 µs with 8, 17.3 with 16.
  int medium_rows = 8;  // sweep: 4 8 16
  /// The rows of a warp in a large frame if a block does both steps. Many rows give few tiles, and few sums to add up
  /// for each tile. With an earlier version, 8K: 49 µs with 16, 55 with 8.
  int large_rows = 16;  // sweep: 8 16

  /// If samples are contiguous and sums have 32 bits, frames of at least this number of tiles of 256 × 64 samples use
  /// separate blocks to sum and to write a tile. In smaller frames, and if samples are interleaved, a block does both.
  /// 4K: 17.1 µs apart, 15.0 together; 8K 50.0 and 51.2; GRAY16 8K 66.8 and 72.0; RGBA 8K 86.1 apart (the sum pass then
  /// stores unpacked samples), 81.7 together.
  int apart_from_32 = 1000;
  /// The same number if sums have 64 bits. 4K to u64: 26.2 µs apart, 30.7 together; to f32 18.9 and 20.1.
  int apart_from_64 = 300;
  /// The number of tiles that are summed before the first one is written, if a block sums or writes. 8K: 50.3 µs with
  /// 64, 49.3 with 132, 48.9 with 200, 50.2 with 400, 57.4 with all 1020; in a second measurement 49.2 with 200, 49.0
  /// with 220, 48.9 with 240; padded 55.2, 55.0 and 55.3.
  int ahead = 220;  // sweep: 64 132 200 220 240 400
  /// If a block sums and writes: nanoseconds between the end of summing and the first attempt to load the sums of other
  /// tiles. Early attempts slow down the tiles that other tiles wait for. 1080p GRAY8 9.45 µs with 0, 8.12 with 500,
  /// 8.32 with 1000; RGBA 11.78, 10.71 and 10.58; 4K GRAY8 14.96, 14.57 and 14.65.
  int first_nap = 500;  // sweep: 0 300 500 700 1000
  /// Nanoseconds between a failed attempt and the next one. 1080p: 8.11 µs with 100, 8.12 with 200, 8.14 with 500.
  int next_nap = 200;  // sweep: 100 200 500

  /// The number of blocks whose registers must fit in a multiprocessor. The compiler limits registers to 65536 /
  /// (blocks · 32 · warps) per thread: change this number when you change warps. This value is for bytes summed in 32
  /// bits. 8K RGBA: 88.9 µs with 4, 112 with 3; padded 55.8 and 58.5.
  int light_blocks = 4;  // sweep: 3 4
  /// Like light_blocks, for all other kernels, and for kernels that do both steps with 4 rows. 8K GRAY8 to u64:
  /// 88.0 µs with 3, 90.5 with 4.
  int heavy_blocks = 3;  // sweep: 3 4
};
inline constexpr Tuning tuning;

/// The rows of a warp, by the number of tiles of 256 × 64 samples in a frame: 4, 8 or 16.
constexpr int warp_rows(long tiles) {
  return tiles < tuning.medium_frame  ? tuning.small_rows
         : tiles < tuning.large_frame ? tuning.medium_rows
                                      : tuning.large_rows;
}
/// The largest number of rows of a warp that registers can hold.
constexpr int max_warp_rows(int sample_bytes, bool squared, int sum_bytes) {
  return sample_bytes == 1 && sum_bytes == 4 ? 16 : sample_bytes == 2 && squared ? 4 : 8;
}
/// Whether each block sums a tile and writes it, in a frame with this many tiles of 256 × 64 samples.
constexpr bool in_one_step(long tiles, bool interleaved, int sum_bytes) {
  return interleaved || tiles < (sum_bytes == 4 ? tuning.apart_from_32 : tuning.apart_from_64);
}
/// The number of blocks whose registers must fit in a multiprocessor.
constexpr int min_blocks(int sample_bytes, int sum_bytes) {
  return sample_bytes == 1 && sum_bytes == 4 ? tuning.light_blocks : tuning.heavy_blocks;
}

}  // namespace cudavision::integral
