// SPDX-License-Identifier: LGPL-2.1-or-later
// Shapes of the summed-area kernels, chosen on an H200 at 7680 × 4320 and 1920 × 1080 (docs/performance.md).
#pragma once

namespace cudavision::cuda::integral {

/// Entries a tile is wide: two by four for each lane of a warp, so that a warp's rows are whole cache lines.
inline constexpr int tile_width = 256;
/// Warps of a block, one above the other.
inline constexpr int warps = 8;
/// Rows of each warp, by the tiles of 64 rows in a frame: more make fewer tiles, and fewer sums to add up for each; fewer spread a small
/// frame over the device.
constexpr int warp_rows(long tiles_of_64_rows) { return tiles_of_64_rows < 300 ? 4 : tiles_of_64_rows < 1000 ? 8 : 16; }
/// The most that registers hold.
constexpr int most_rows(int sample_bytes, int accumulator_bytes) { return sample_bytes == 1 && accumulator_bytes == 4 ? 16 : 8; }

/// Blocks of a multiprocessor that the second pass shares registers out for.
constexpr int min_blocks(int sample_bytes, int accumulator_bytes) { return sample_bytes == 1 && accumulator_bytes == 4 ? 4 : 3; }

}  // namespace cudavision::cuda::integral
