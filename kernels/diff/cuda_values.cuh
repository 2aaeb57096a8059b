// SPDX-License-Identifier: LGPL-2.1-or-later
// Arithmetic on the samples in words: differences, luma, the background.
#pragma once

#include "kernels/core/luma.hpp"
#include "kernels/diff/cuda_shape.cuh"

namespace cudavision::diff {

/// |a − b| for each sample in a word.
template <typename T>
__device__ __forceinline__ std::uint32_t absolute_difference(std::uint32_t a, std::uint32_t b) {
  return sizeof(T) == 1 ? __vabsdiffu4(a, b) : __vabsdiffu2(a, b);
}
template <typename T>
__device__ __forceinline__ std::uint32_t greater(std::uint32_t a, std::uint32_t b) {
  return sizeof(T) == 1 ? __vmaxu4(a, b) : __vmaxu2(a, b);
}

/// The sample of a channel that is chosen at run time.
template <typename T, int C>
__device__ __forceinline__ int pick(const Quad<T, C>& quad, int channel, int pixel) {
  int value = 0;
#pragma unroll
  for (int c = 0; c < C; ++c)
    if (c == channel) value = quad.sample(c, pixel);
  return value;
}

/// Replaces red, green and blue with their luma. `already`: red already holds the luma.
template <class S>
__device__ __noinline__ void to_luma(const KernelParams& p, bool already, LaneWords<S>& strip) {
  using T = typename S::T;
  constexpr bool packed = S::packed_rgb;
  if constexpr (S::maybe_rgb) {
    constexpr int C = packed ? S::channels0 : 3, W = S::words_a_quad;
    static_assert(packed || S::rows == 1);
#pragma unroll
    for (int i = 0; i < S::rows * S::quads; ++i) {
      const int row = i / S::quads, q = i % S::quads;
      Quad<T, C> quad;
      std::uint32_t raw[packed ? C * W : 1];
      if constexpr (packed) {
#pragma unroll
        for (int w = 0; w < C * W; ++w) raw[w] = strip.first[row][q * C * W + w];
        quad = cuda::deinterleave<T, C>(raw);
      } else {
#pragma unroll
        for (int w = 0; w < W; ++w) {
          quad.word[0][w] = strip.first[0][q * W + w];
          quad.word[1][w] = strip.rest[0][q * W + w];
          quad.word[2][w] = strip.rest[1][q * W + w];
        }
      }
      std::uint32_t luma[W] = {};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int red = pick(quad, p.rgb[0], j);
        const int value = already ? red : luma_of(red, pick(quad, p.rgb[1], j), pick(quad, p.rgb[2], j));
        luma[j / (4 / W)] |= std::uint32_t(value) << j % (4 / W) * 8 * W;
      }
#pragma unroll
      for (int c = 0; c < C; ++c)
#pragma unroll
        for (int w = 0; w < W; ++w) quad.word[c][w] = luma[w];
      if constexpr (packed) {
        std::uint32_t gray[C * W];
        cuda::interleave<T, C>(quad, gray);
#pragma unroll
        for (int w = 0; w < C * W; ++w) {
          const std::uint32_t mask = p.planes[0].rules[w].compared;
          strip.first[row][q * C * W + w] = (gray[w] & mask) | (raw[w] & ~mask);
        }
      } else {
#pragma unroll
        for (int w = 0; w < W; ++w)
          strip.first[0][q * W + w] = strip.rest[0][q * W + w] = strip.rest[1][q * W + w] = luma[w];
      }
    }
  }
}

/// Packs the largest byte of each of four words.
__device__ __forceinline__ std::uint32_t greatest_of_four(const std::uint32_t (&words)[4]) {
  std::uint32_t halves[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) halves[i] = __vmaxu2(words[i] & 0xff00ffu, words[i] >> 8 & 0xff00ffu);
  const std::uint32_t low =
      __vmaxu2(__byte_perm(halves[0], halves[1], 0x5410), __byte_perm(halves[0], halves[1], 0x7632));
  const std::uint32_t high =
      __vmaxu2(__byte_perm(halves[2], halves[3], 0x5410), __byte_perm(halves[2], halves[3], 0x7632));
  return __byte_perm(low, high, 0x6420);
}

/// The largest difference over the channels of each pixel: one value per pixel.
template <class S>
__device__ __forceinline__ void greatest(const KernelParams& p, const LaneWords<S>& d,
                                         std::uint32_t (&most)[S::rows][S::quads * S::words_a_quad]) {
  using T = typename S::T;
  constexpr int W = S::words_a_quad, C = S::channels0;
#pragma unroll
  for (int r = 0; r < S::rows; ++r) {
#pragma unroll
    for (int q = 0; q < S::quads; ++q) {
      std::uint32_t raw[C * W];
#pragma unroll
      for (int w = 0; w < C * W; ++w) raw[w] = d.first[r][q * C * W + w];
      if constexpr (C == 4 && sizeof(T) == 1) {
        most[r][q] = greatest_of_four(raw);
        continue;
      }
      const Quad<T, C> quad = cuda::deinterleave<T, C>(raw);
#pragma unroll
      for (int w = 0; w < W; ++w) {
        std::uint32_t value = quad.word[0][w];
        if constexpr (S::packed_422) {
          const std::uint32_t luma = p.luma_second ? quad.word[1][w] : value,
                              chroma = p.luma_second ? value : quad.word[1][w];
          value = greater<T>(luma, greater<T>(chroma, __byte_perm(chroma, 0, 0x2301)));
        } else {
#pragma unroll
          for (int c = 1; c < C; ++c) value = greater<T>(value, quad.word[c][w]);
        }
        const int at = q * W + w;
        if constexpr (S::channels1 == 2 && S::planes > 1 && S::shift_x == 0) {
          static_assert(sizeof(T) == 1);
          const std::uint32_t low = d.rest[0][2 * at], high = d.rest[0][2 * at + 1];
          value = greater<T>(value, greater<T>(__byte_perm(low, high, 0x6420), __byte_perm(low, high, 0x7531)));
        } else if constexpr (S::planes > 1 && S::shift_x == 2) {
          static_assert(sizeof(T) == 1);
          const std::uint32_t both = greater<T>(d.rest[0][at / 4], d.rest[1][at / 4]);
          value = greater<T>(value, __byte_perm(both, 0, 0x1111 * (at % 4)));
        } else if constexpr (S::planes > 1 && S::shift_x == 0) {
#pragma unroll
          for (int k = 0; k < S::planes - 1; ++k) value = greater<T>(value, d.rest[k][at]);
        } else if constexpr (S::channels1 == 2 && S::planes > 1) {
          const std::uint32_t both = d.rest[0][at];
          value = greater<T>(value, greater<T>(both, __byte_perm(both, 0, sizeof(T) == 1 ? 0x2301 : 0x1032)));
        } else if constexpr (S::planes > 1) {
          const std::uint32_t both = greater<T>(d.rest[0][at / 2], d.rest[1][at / 2]);
          const int low = sizeof(T) == 1 ? 0x1100 : 0x1010, high = sizeof(T) == 1 ? 0x3322 : 0x3232;
          value = greater<T>(value, __byte_perm(both, 0, at % 2 ? high : low));
        }
        most[r][at] = value;
      }
    }
  }
}

/// Updates the background of a row of words; r receives the background before the update, in sample values.
template <typename T, int N>
__device__ __forceinline__ void step_background(const KernelParams& p, const std::uint32_t (&v)[N],
                                                std::uint32_t (&background)[2 * N], std::uint32_t (&r)[N]) {
  constexpr int per_word = 4 / int(sizeof(T)), bits = 8 * int(sizeof(T));
#pragma unroll
  for (int i = 0; i < N; ++i) {
    std::uint32_t was = 0;
#pragma unroll
    for (int j = 0; j < per_word; ++j) {
      const int value = T(v[i] >> j * bits);
      std::uint32_t& word = background[2 * i + j * int(sizeof(T)) / 2];
      const int at = sizeof(T) == 1 ? j % 2 * 16 : 0;
      const std::uint32_t mask = sizeof(T) == 1 ? 0xffffu << at : ~0u;
      const std::uint32_t before = p.begin ? std::uint32_t(value) << bits : (word & mask) >> at;
      was |= std::uint32_t(background_sample<T>(before)) << j * bits;
      word = (word & ~mask) | background_step<T>(before, value, p.follow) << at;
    }
    r[i] = was;
  }
}

}  // namespace cudavision::diff
