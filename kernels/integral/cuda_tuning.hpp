// SPDX-License-Identifier: LGPL-2.1-or-later
// Shapes of the summed-area kernels, measured on an H200, bytes to u32.
#pragma once

namespace cudavision::cuda::integral {

/// Entries a tile is wide: two by four for each lane of a warp, so that a warp's rows are whole cache lines.
inline constexpr int tile_width = 256;
/// Warps of a block, one above the other.
inline constexpr int warps = 8;
/// Rows of each warp, by the tiles of 64 rows in a frame: more make fewer tiles, and fewer sums to add up for each; fewer spread a
/// small frame over the device. 8K gray took 49 µs with 16 and 55 with 8, 4K 16.3 with 8 and 18.2 with 16, 1080p 8.4 with 4 or 8
/// and 10.6 with 16.
constexpr int warp_rows(long tiles_of_64_rows) { return tiles_of_64_rows < 300 ? 4 : tiles_of_64_rows < 1000 ? 8 : 16; }
/// The most that registers and 48 KiB of shared memory hold.
constexpr int most_rows(int sample_bytes, bool squared, int accumulator_bytes) {
  return sample_bytes == 1 && accumulator_bytes == 4 ? 16 : sample_bytes == 2 && squared ? 4 : 8;
}

/// Whether a frame, by its tiles of 64 rows, is a launch for each step: 4K gray took 16.3 µs (one launch: 17.1), to u64 33.1
/// (28.6), 1080p 8.9 (9.5).
constexpr bool in_two_launches(long tiles_of_64_rows, int accumulator_bytes) {
  return tiles_of_64_rows < (accumulator_bytes == 4 ? 1000 : 300);
}
/// Tiles by which the first step is ahead of the second in one launch. 8K gray took 50.3, 49.3, 48.9, 50.2 µs with 64, 132, 200,
/// 400, and 57.4 with all 1020; later 49.2, 49.0, 48.9 with 200, 220, 240, padded 55.2, 55.0, 55.3. Where samples are gathered
/// (RGBA) that step takes much longer, and should not have to wait for places: 105, 102, 103 µs with 600, 900, 1020 of 1020 tiles,
/// 140 with 200.
constexpr int tiles_ahead(int tiles, bool gathered) { return gathered ? tiles - tiles / 8 : 220; }

/// Blocks of a multiprocessor that registers are shared out for: four would spill in 16 rows (8K gray, padded: 56.9 µs, from 54.8).
constexpr int min_blocks(int sample_bytes, int accumulator_bytes, int rows) {
  return sample_bytes == 1 && accumulator_bytes == 4 && rows < 16 ? 4 : 3;
}

}  // namespace cudavision::cuda::integral
