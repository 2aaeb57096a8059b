// SPDX-License-Identifier: LGPL-2.1-or-later
// The shape of a kernel: the pixels of a block and of a lane, and their words in the planes.
#pragma once

#include "kernels/cuda/rows.cuh"
#include "kernels/diff/cuda_params.cuh"
#include "kernels/diff/cuda_shapes.hpp"

namespace cudavision::diff {

using cuda::Quad;

/// The position of a compared tile, and of a lane in it, in pixels. A warp is one row of lanes.
template <class S>
struct TilePlace {
  int x0, y0, x, y;

  __device__ __forceinline__ TilePlace(int tile_x, int tile_y) {
    x0 = tile_x * S::tile_width;
    y0 = tile_y * S::tile_rows;
    x = x0 + threadIdx.x % 32 * S::pixels;
    y = y0 + threadIdx.x / 32 * S::rows;
  }
};

/// The words of a lane: rows of plane 0, and one row of each other plane; `scale` times as many words for wider
/// samples.
template <class S, int scale = 1>
struct LaneWords {
  std::uint32_t first[S::rows][scale * S::words0];
  std::uint32_t rest[S::planes > 1 ? S::planes - 1 : 1][scale * S::words1];
};

/// The type of a row of words: its interleaved channels, whether it is in plane 0, and after how many words the rules
/// repeat.
template <int C_, bool first_, int period_>
struct Piece {
  static constexpr int C = C_, period = period_;
  static constexpr bool first = first_;
};

/// Calls f(piece, plane, row, of) for each row of words in a strip; of(strip) returns that row.
template <class S, typename F>
__device__ __forceinline__ void each_piece(F&& f) {
#pragma unroll
  for (int r = 0; r < S::rows; ++r)
    f(
        Piece<S::channels0, true, S::channels0 * S::words_a_quad>{}, 0,
        r, [r](auto& strip) -> auto& { return strip.first[r]; });
#pragma unroll
  for (int k = 1; k < S::planes; ++k)
    f(
        Piece<S::channels1, false, S::channels1 * S::words_a_quad>{}, k,
        0, [k](auto& strip) -> auto& { return strip.rest[k - 1]; });
}

}  // namespace cudavision::diff
