// SPDX-License-Identifier: LGPL-2.1-or-later
// The shape of a kernel: which pixels a block and a lane have, and which words of which planes these are.
#pragma once

#include "kernels/cuda/rows.cuh"
#include "kernels/diff/cuda_params.cuh"

namespace cudavision::diff {

using cuda::Quad;

/// A Layout as a type, with what follows from it.
template <typename T_, int C0, int C1, int planes_, int SX, int SY>
struct Shape {
  using T = T_;
  static constexpr int channels0 = C0, channels1 = C1, planes = planes_, shift_x = SX, shift_y = SY;
  /// Or Y'CbCr 4:4:4.
  static constexpr bool packed_422 = C0 == 2, packed_rgb = C0 >= 3, planar_rgb = planes_ == 3 && SX == 0;
  static constexpr bool maybe_rgb = packed_rgb || planar_rgb;
  static constexpr int rows = strip_rows(C0, sizeof(T), planes_, SY);  ///< of plane 0, of a lane
  static constexpr int pixels = strip_pixels(C0, sizeof(T));           ///< of a row, of a lane
  static constexpr int quads = pixels / 4;
  static constexpr int words0 = pixels * C0 * int(sizeof(T)) / 4;
  static constexpr int words1 = (pixels >> SX) * C1 * int(sizeof(T)) / 4;
  static constexpr int words_a_quad = int(sizeof(T));  ///< for one value for each pixel of a quad
  static constexpr int tile_width = 32 * pixels, tile_rows = tuning.tile_rows, threads = 32 * tile_rows / rows;
};

/// Calls f with the Shape of a layout, as a value. Returns what f returns.
template <typename T, typename F>
auto with_shape_of(const Layout& l, F&& f) {
  if (l.channels0 == 4) return f(Shape<T, 4, 1, 1, 0, 0>{});
  if constexpr (sizeof(T) == 1) {
    if (l.channels0 == 3) return f(Shape<T, 3, 1, 1, 0, 0>{});
    if (l.channels0 == 2) return f(Shape<T, 2, 1, 1, 0, 0>{});
  }
  if (l.planes == 1) return f(Shape<T, 1, 1, 1, 0, 0>{});
  if (l.planes == 2) return f(Shape<T, 1, 2, 2, 1, 1>{});
  if (l.shift_x == 0) return f(Shape<T, 1, 1, 3, 0, 0>{});
  return l.shift_y == 0 ? f(Shape<T, 1, 1, 3, 1, 0>{}) : f(Shape<T, 1, 1, 3, 1, 1>{});
}
template <typename F>
auto with_shape(const Layout& layout, F&& f) {
  return layout.sample_bytes == 1 ? with_shape_of<std::uint8_t>(layout, f) : with_shape_of<std::uint16_t>(layout, f);
}

/// The place of a tile of the comparison and of a lane in it, in pixels. A warp is one row of lanes.
template <class S>
struct Tile {
  int x0, y0, x, y;

  __device__ __forceinline__ Tile(int tile_x, int tile_y) {
    x0 = tile_x * S::tile_width;
    y0 = tile_y * S::tile_rows;
    x = x0 + threadIdx.x % 32 * S::pixels;
    y = y0 + threadIdx.x / 32 * S::rows;
  }
};

/// The words of a lane: rows of plane 0, and one row of each other plane;
/// `scale` times as many words for wider samples.
template <class S, int scale = 1>
struct Strip {
  std::uint32_t first[S::rows][scale * S::words0];
  std::uint32_t rest[S::planes > 1 ? S::planes - 1 : 1][scale * S::words1];
};

/// The type of a row of words: its interleaved channels, whether it is of plane 0,
/// and after how many words the rules repeat.
template <int C_, bool first_, int period_>
struct Piece {
  static constexpr int C = C_, period = period_;
  static constexpr bool first = first_;
};

/// Calls f(piece, plane, row, of) for each row of words in a strip; of(strip) is that row.
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
