// SPDX-License-Identifier: LGPL-2.1-or-later
// Shapes of the summed-area kernels, chosen on an H200 at 7680 × 4320 and 1920 × 1080 (docs/performance.md).
#pragma once

namespace cudavision::cuda::integral {

/// Entries a tile is wide: two by four for each lane of a warp, so that a warp's rows are whole cache lines.
inline constexpr int tile_width = 256;
/// Warps of a block, one above the other.
inline constexpr int warps = 8;
/// Rows of each warp: more make fewer tiles, and less that tiles must tell each other; fewer spread a small frame over the device.
constexpr int warp_rows(int sample_bytes, long tiles_of_64_rows) {
  if (tiles_of_64_rows < 300) return 4;
  return sample_bytes == 1 && tiles_of_64_rows > 1000 ? 16 : 8;
}
/// Blocks of a multiprocessor that registers are shared out for.
constexpr int min_blocks(int accumulator_bytes) { return accumulator_bytes == 4 ? 3 : 2; }
/// Tile rows that tickets run down before they go to the next column of tiles.
inline constexpr int super_rows = 8;
/// Predecessors that a look-back reads at once.
inline constexpr int look_back_batch = 8;

}  // namespace cudavision::cuda::integral
