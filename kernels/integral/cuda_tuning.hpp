// SPDX-License-Identifier: LGPL-2.1-or-later
// Tuning of the summed-area tables. All times are of one submit on an H200; without other words: GRAY8 to u32.
#pragma once

namespace cudavision::integral {

struct Tuning {
  /// Warps of a block, one above the other. Even, and at least 8: a block has a thread for each of the 256 columns of a tile.
  /// max_warp_rows() holds for 8 warps; with 16 warps, halve its results.
  int warps = 8;

  /// Frames are small, medium or large by their number of tiles of 256 × 64 samples (1080p: 136, 4K: 510, 8K: 2040). From this
  /// number on a frame is medium.
  int medium_frame = 300;  // sweep: 200 300 400
  /// From this number of tiles of 256 × 64 samples on a frame is large.
  int large_frame = 1000;  // sweep: 600 1000 1400
  /// Rows of a warp in a small frame; few rows spread the frame over the device. 1080p: 8.4 µs with 4 or 8, 10.6 with 16.
  int small_rows = 4;  // sweep: 4 8
  /// Rows of a warp in a medium frame. 4K: 16.3 µs with 8, 18.2 with 16.
  int medium_rows = 8;  // sweep: 4 8 16
  /// Rows of a warp in a large frame; many rows make few tiles, and few sums to add up for each. 8K: 49 µs with 16, 55 with 8.
  int large_rows = 16;  // sweep: 8 16

  /// A frame with fewer tiles of 256 × 64 samples is computed by two launches where sums have 32 bits.
  /// 4K: 16.3 µs with two launches, 17.1 with one. 1080p: 8.9 with two, 9.5 with one.
  int two_launches_below_32 = 1000;  // sweep: 300 1000
  /// The same where sums have 64 bits. 4K to u64: 33.1 µs with two launches, 28.6 with one.
  int two_launches_below_64 = 300;  // sweep: 0 300 1000
  /// Tiles that a single launch sums before it writes the first. 8K: 50.3 µs with 64, 49.3 with 132, 48.9 with 200, 50.2 with 400,
  /// 57.4 with all 1020; in a second measurement 49.2 with 200, 49.0 with 220, 48.9 with 240; padded 55.2, 55.0 and 55.3.
  int ahead = 220;  // sweep: 64 132 200 220 240 400
  /// The same where samples are interleaved, and the sum pass unpacks them: all tiles but one part in this number. That pass takes
  /// longer, so it should get more blocks. 8K RGBA, of 1020 tiles: 89.4 µs with 300, 86.5 with 510, 85.7 with 600 and 680, 86.1 with 765,
  /// 87.4 with 893.
  int ahead_all_but = 3;  // sweep: 2 3 4 8

  /// Resident blocks of a multiprocessor for which the compiler limits registers to 65536 / (blocks · 32 · warps) a thread: change it
  /// when you change warps. This one: bytes summed in 32 bits. 8K RGBA 88.9 µs, and 112 with 3; padded 55.8 and 58.5.
  int light_blocks = 4;  // sweep: 3 4
  /// The same for all other kernels. 8K GRAY8 to u64: 88.0 µs with 3, 90.5 with 4.
  int heavy_blocks = 3;  // sweep: 3 4
};
inline constexpr Tuning tuning;

/// Rows of a warp, by the tiles of 256 × 64 samples in a frame: 4, 8 or 16.
constexpr int warp_rows(long tiles) {
  return tiles < tuning.medium_frame ? tuning.small_rows : tiles < tuning.large_frame ? tuning.medium_rows : tuning.large_rows;
}
/// The most rows of a warp that registers hold.
constexpr int max_warp_rows(int sample_bytes, bool squared, int sum_bytes) {
  return sample_bytes == 1 && sum_bytes == 4 ? 16 : sample_bytes == 2 && squared ? 4 : 8;
}
/// Whether a frame of so many tiles of 256 × 64 samples is computed by two launches.
constexpr bool in_two_launches(long tiles, int sum_bytes) {
  return tiles < (sum_bytes == 4 ? tuning.two_launches_below_32 : tuning.two_launches_below_64);
}
/// Tiles that a single launch of so many tiles sums before it writes the first.
constexpr int tiles_ahead(int tiles, bool unpacks) { return unpacks ? tiles - tiles / tuning.ahead_all_but : tuning.ahead; }
/// Resident blocks of a multiprocessor for which the compiler limits registers.
constexpr int min_blocks(int sample_bytes, int sum_bytes) {
  return sample_bytes == 1 && sum_bytes == 4 ? tuning.light_blocks : tuning.heavy_blocks;
}

}  // namespace cudavision::integral
