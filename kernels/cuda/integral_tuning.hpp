// SPDX-License-Identifier: LGPL-2.1-or-later
// Shapes of the summed-area kernels, measured on an H200, bytes to u32.
#pragma once

namespace cudavision::cuda::integral {

/// Entries a tile is wide: two by four for each lane of a warp, so that a warp's rows are whole cache lines.
inline constexpr int tile_width = 256;
/// Warps of a block, one above the other.
inline constexpr int warps = 8;
/// Rows of each warp, by the tiles of 64 rows in a frame: more make fewer tiles, and fewer sums to add up for each; fewer spread a small
/// frame over the device. 8K gray took 59 µs with 16 and 66 with 8, 4K 16.3 with 8 and 18.2 with 16, 1080p 8.4 with 4 or 8 and 10.6
/// with 16.
constexpr int warp_rows(long tiles_of_64_rows) { return tiles_of_64_rows < 300 ? 4 : tiles_of_64_rows < 1000 ? 8 : 16; }
/// The most that registers hold.
constexpr int most_rows(int sample_bytes, int accumulator_bytes) { return sample_bytes == 1 && accumulator_bytes == 4 ? 16 : 8; }

/// Blocks of a multiprocessor that the second pass shares registers out for: a fifth would spill (8K gray: 87 µs).
constexpr int min_blocks(int sample_bytes, int accumulator_bytes) { return sample_bytes == 1 && accumulator_bytes == 4 ? 4 : 3; }

}  // namespace cudavision::cuda::integral
