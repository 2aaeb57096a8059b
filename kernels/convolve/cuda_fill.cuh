// SPDX-License-Identifier: LGPL-2.1-or-later
// How blocks fetch a channel of a tile.
#pragma once

#include "kernels/convolve/cuda_kernels.cuh"

#ifdef __CUDACC__

namespace cudavision::cuda::convolve {

/// Calls f with the channels as an integral constant.
template <typename F>
__device__ __forceinline__ void with_channels(int channels, F&& f) {
  switch (channels) {
    case 1:
      return f(std::integral_constant<int, 1>{});
    case 2:
      return f(std::integral_constant<int, 2>{});
    case 3:
      return f(std::integral_constant<int, 3>{});
    default:
      return f(std::integral_constant<int, 4>{});
  }
}

/// Four samples of channel c from x on, wherever they lie: as two words of 16 bits each, or one of 8 bits. Not inlined: rare.
template <typename T>
__device__ __noinline__ uint2 load_any(const SetView& view, int c, int x, int row) {
  std::uint32_t words[2] = {};
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int column = row < 0 ? -1 : border_index(x + j, view.width, view.border);
    const std::uint32_t value =
        column < 0 ? view.border_value[c]
                   : std::uint32_t(sample_of(
                         reinterpret_cast<const T*>(view.src + row * view.src_pitch)[std::ptrdiff_t(column) * view.channels + c],
                         view.shift, view.max_value));
    constexpr int per_word = 4 / sizeof(T);
    words[j / per_word] |= value << j % per_word * 8 * int(sizeof(T));
  }
  return make_uint2(words[0], words[1]);
}

/// Words of channel c of two neighbouring quads as they are stored.
template <typename T, int C>
__device__ __forceinline__ void pick_channel(const std::uint32_t (&raw)[2][C * sizeof(T)], int c,
                                             std::uint32_t (&words)[2 * sizeof(T)]) {
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    const Quad<T, C> quad = detail::deinterleave<T, C>(raw[q]);
#pragma unroll
    for (int k = 0; k < C; ++k)
#pragma unroll
      for (int w = 0; w < int(sizeof(T)); ++w)
        if (k == 0 || c == k) words[q * sizeof(T) + w] = quad.word[k][w];
  }
}

/// Gives sink(row, quad, words) the samples of channel c, planar, of `rows` rows of quads from x of the frame on, x any number.
/// row_index: where each row lies in the frame, or −1.
template <typename T, int C, typename Sink>
__device__ __forceinline__ void fill_tile(const SetView& view, int c, int x, const int* row_index, int quads, int rows, Sink sink) {
  constexpr int n = sizeof(T), batch = C * n == 1 ? 6 : 2;  // loads under way at once
  const int skew = x & 3, bits = skew * 8 * n;
  const std::uint32_t inverse = (1u << 22) / quads + 1;  // exact for all items of the largest tile
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
        detail::load_words<C * n, quad_alignment(C, n)>(at, raw[b][0]);
        if (skew) detail::load_words<C * n, quad_alignment(C, n)>(at + 4 * C * n, raw[b][1]);
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
        to_samples(words, view.shift, view.max_value);
      }
      sink(row, item - row * quads, words);
    }
  }
  // What does not lie in the frame, apart: in the loop above it would take registers from the loads under way.
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

}  // namespace cudavision::cuda::convolve

#endif  // __CUDACC__
