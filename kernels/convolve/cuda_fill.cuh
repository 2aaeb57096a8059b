// SPDX-License-Identifier: LGPL-2.1-or-later
// Loads one channel of a tile with a block, for cuda_tile.cu. A tile may begin at any column of the frame, but memory
// is read in aligned quads. So a quad of the tile is cut out of two adjacent quads of the frame:
//
//   frame   |a b c d|e f g h|   aligned quads, skew = x & 3 = 2
//   tile        |c d e f|       one funnel shift of 8-bit samples, two of 16-bit samples
#pragma once

#include "kernels/convolve/cuda_params.cuh"

namespace cudavision::convolve {

/// Calls f with the number of channels as an integral constant. No format has three channels of 16 bits.
template <typename T, typename F>
__device__ __forceinline__ void with_channels(int channels, F&& f) {
  switch (channels) {
    case 1:
      return f(std::integral_constant<int, 1>{});
    case 2:
      return f(std::integral_constant<int, 2>{});
    case 3:
      if constexpr (sizeof(T) == 1) f(std::integral_constant<int, 3>{});
      return;
    default:
      return f(std::integral_constant<int, 4>{});
  }
}

/// Four samples of channel c, beginning at column x of a row (−1: the border value), inside or outside the frame: one
/// word of four bytes, or two words of two samples each. Not inlined, because it is rare.
template <typename T>
__device__ __noinline__ uint2 load_any(const SetView& view, int c, int x, int row) {
  std::uint32_t words[2] = {};
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int column = row < 0 ? -1 : border_index(x + j, view.width, view.border);
    const std::uint32_t value =
        column < 0
            ? view.border_value[c]
            : std::uint32_t(sample_of(reinterpret_cast<const T*>(
                                          view.src + row * view.src_pitch)[std::ptrdiff_t(column) * view.channels + c],
                                      view.shift, view.max_value));
    constexpr int per_word = 4 / sizeof(T);
    words[j / per_word] |= value << j % per_word * 8 * int(sizeof(T));
  }
  return make_uint2(words[0], words[1]);
}

/// Channel c of two adjacent quads, from interleaved stored words.
template <typename T, int C>
__device__ __forceinline__ void pick_channel(const std::uint32_t (&raw)[2][C * sizeof(T)], int c,
                                             std::uint32_t (&words)[2 * sizeof(T)]) {
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    const Quad<T, C> quad = cuda::deinterleave<T, C>(raw[q]);
#pragma unroll
    for (int k = 0; k < C; ++k)
#pragma unroll
      for (int w = 0; w < int(sizeof(T)); ++w)
        if (k == 0 || c == k) words[q * sizeof(T) + w] = quad.word[k][w];
  }
}

/// The block loads channel c of a tile of `rows` rows and `quads` quads, which begins at column x of the frame (any
/// integer), and calls sink(row, quad, words) with the planar samples of each quad. row_index[i]: the row of the frame
/// for row i of the tile; −1: the border value.
template <typename T, int C, typename Sink>
__device__ __forceinline__ void fill_tile(const SetView& view, int c, int x, const int* row_index, int quads, int rows,
                                          Sink sink) {
  constexpr int n = sizeof(T), batch = C * n == 1 ? 6 : 2;  // quads that a thread loads at the same time
  const int skew = x & 3, bits = skew * 8 * n;
  // item · inverse >> 22 = item / quads, exact for all items of the largest tile.
  const std::uint32_t inverse = (1u << 22) / quads + 1;
  const auto is_direct = [&](int source, int from) {
    return view.src_aligned && source >= 0 && from >= 0 && from + 8 <= view.width;
  };
  for (int base = threadIdx.x; base < rows * quads; base += batch * blockDim.x) {
    std::uint32_t raw[batch][2][C * n];
    bool direct[batch];
#pragma unroll
    for (int b = 0; b < batch; ++b) {
      const int item = base + b * blockDim.x, row = item * inverse >> 22, from = x - skew + 4 * (item - row * quads);
      const int source = row < rows ? row_index[row] : -1;
      direct[b] = is_direct(source, from);
      if (direct[b]) {
        const unsigned char* const at = view.src + source * view.src_pitch + std::ptrdiff_t(from) * (C * n);
        cuda::load_words<C * n, quad_alignment(C, n)>(at, raw[b][0]);
        if (skew) cuda::load_words<C * n, quad_alignment(C, n)>(at + 4 * C * n, raw[b][1]);
      }
    }
#pragma unroll
    for (int b = 0; b < batch; ++b) {
      if (!direct[b]) continue;
      const int item = base + b * blockDim.x, row = item * inverse >> 22;
      std::uint32_t both[2 * n], words[n];
      pick_channel<T, C>(raw[b], c, both);
      if (n == 1) {
        words[0] = __funnelshift_r(both[0], both[1], bits);
      } else {
        const bool far = skew & 2;
        const std::uint32_t first = far ? both[1] : both[0], second = far ? both[n] : both[1],
                            third = far ? both[2 * n - 1] : both[n];
        words[0] = __funnelshift_r(first, second, bits);
        words[n - 1] = __funnelshift_r(second, third, bits);
        cuda::to_samples(words, view.shift, view.max_value);
      }
      sink(row, item - row * quads, words);
    }
  }
  // Quads outside the frame have a separate loop: in the loop above, they would need registers that the loads need.
  if (is_direct(row_index[0], x - skew) && is_direct(row_index[rows - 1], x - skew + 4 * (quads - 1))) return;
  for (int item = threadIdx.x; item < rows * quads; item += blockDim.x) {
    const int row = item * inverse >> 22, quad = item - row * quads, source = row_index[row];
    if (is_direct(source, x - skew + 4 * quad)) continue;
    const uint2 any = load_any<T>(view, c, x + 4 * quad, source);
    std::uint32_t words[n];
    words[0] = any.x;
    if (n == 2) words[n - 1] = any.y;
    sink(row, quad, words);
  }
}

}  // namespace cudavision::convolve
