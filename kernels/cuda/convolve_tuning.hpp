// SPDX-License-Identifier: LGPL-2.1-or-later
// Shapes of the convolution kernels. Each value was the fastest of those measured on an H200 at 7680 × 4320 (docs/performance.md).
#pragma once

namespace cudavision::cuda::convolve {

/// Kernels that reach at most this far from their anchor run unrolled, as 3 × 3, 5 × 5 or 7 × 7.
inline constexpr int small_reach = 3;
/// Warps of a block of the unrolled kernels, one above the other: they share the rows between them through the L1 cache.
inline constexpr int small_warps = 4;
/// Rows of results a thread of the unrolled kernels computes: more share the conversion of samples, fewer keep more warps resident.
constexpr int small_rows(int channels, int side) { return channels == 1 && side == 3 ? 8 : 4; }

/// Results a block of the tiled kernels computes across, four by each lane of a warp.
inline constexpr int tile_width = 128;
/// Most warps of such a block; fewer where its shared memory would not hold the tile.
inline constexpr int tile_warps = 8;
/// Rows of results a thread of them computes: each weight is used for 4 times as many results, each sample loaded from shared
/// memory for up to as many rows.
template <typename Acc>
inline constexpr int tile_rows = sizeof(Acc) == 4 ? 8 : 4;

}  // namespace cudavision::cuda::convolve
