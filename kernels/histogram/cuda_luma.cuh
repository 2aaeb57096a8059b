// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads the pixels of a set, or of three planes, and computes their luma.
#pragma once

#include "kernels/core/luma.hpp"
#include "kernels/cuda/rows.cuh"
#include "kernels/histogram/cuda_chunks.cuh"

namespace cudavision::histogram {

/// Word k of the channel `position`, which is not a compile-time constant.
template <typename T, int C>
__device__ __forceinline__ std::uint32_t word_at(const cuda::Quad<T, C>& quad, int position, int k) {
  std::uint32_t word = quad.word[0][k];
#pragma unroll
  for (int c = 1; c < C; ++c) word = position == c ? quad.word[c][k] : word;
  return word;
}

/// Four pixels of a set (views[0]), or of three planes.
template <typename T, int C, bool ThreePlanes>
__device__ __forceinline__ cuda::Quad<T, C> load_pixels(const cuda::SetView* views, int x, int y) {
  if constexpr (!ThreePlanes) {
    return cuda::load_quad<T, C>(views[0], x, y);
  } else {
    cuda::Quad<T, C> quad;
#pragma unroll
    for (int c = 0; c < C; ++c) {
      const cuda::Quad<T, 1> plane = cuda::load_quad<T, 1>(views[c], x, y);
#pragma unroll
      for (int k = 0; k < int(sizeof(T)); ++k) quad.word[c][k] = plane.word[0][k];
    }
    return quad;
  }
}

/// The luma of four pixels. `position`: positions of R, G and B among the channels; three planes are in order.
template <typename T, int C, bool ThreePlanes>
__device__ __forceinline__ void luma_of_pixels(const cuda::Quad<T, C>& quad, const int (&position)[3],
                                               const LumaWeights& weights, std::uint32_t max_value,
                                               std::uint32_t (&luma)[4]) {
  cuda::Quad<T, 3> rgb;
#pragma unroll
  for (int c = 0; c < 3; ++c)
#pragma unroll
    for (int k = 0; k < int(sizeof(T)); ++k)
      rgb.word[c][k] = ThreePlanes ? quad.word[c][k] : word_at(quad, position[c], k);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    // The float 2^23 + sample, made with one permutation.
    const auto biased = [&](int c) {
      return __uint_as_float(
          sizeof(T) == 1 ? __byte_perm(rgb.word[c][0], 0x4b000000, 0x7650 | j)
                         : __byte_perm(rgb.word[c][sizeof(T) / 2 * (j / 2)], 0x4b000000, j % 2 ? 0x7632 : 0x7610));
    };
    luma[j] = min(std::uint32_t(luma_of_biased(biased(0), biased(1), biased(2), weights)), max_value);
  }
}

/// The luma of a pixel of a chunk, from its words.
template <typename T, int C, int Quads>
__device__ __forceinline__ std::uint32_t luma_of_pixel(const Chunk<T, C, Quads>& chunk, int pixel,
                                                       const int (&position)[3], const LumaWeights& weights) {
  const auto biased = [&](int c) {
    std::uint32_t word;
    if constexpr (sizeof(T) == 2) {
      word = position[c] < 2 ? chunk.word[pixel * 2] : chunk.word[pixel * 2 + 1];
      return __uint_as_float(__byte_perm(word, 0x4b000000, position[c] % 2 ? 0x7632 : 0x7610));
    } else {
      const int at = pixel * C / 4, first = pixel * C % 4;  // the pixel's bytes in one word
      word = first == 0 ? chunk.word[at]
                        : __byte_perm(chunk.word[at], chunk.word[at + (first > 4 - C)],
                                      first | (first + 1) << 4 | (first + 2) << 8);
      return __uint_as_float(__byte_perm(word, 0x4b000000, 0x7650 | position[c]));
    }
  };
  return std::uint32_t(luma_of_biased(biased(0), biased(1), biased(2), weights));
}
template <typename T, int Quads>
__device__ __forceinline__ std::uint32_t luma_of_pixel(const PlaneChunks<T, Quads>& chunk, int pixel, const int (&)[3],
                                                       const LumaWeights& weights) {
  const auto biased = [&](int c) {
    constexpr int per_word = 4 / int(sizeof(T));
    const int first = sizeof(T) == 1 ? 0x7650 | pixel % 4 : pixel % 2 ? 0x7632 : 0x7610;
    return __uint_as_float(__byte_perm(chunk.plane[c].word[pixel / per_word], 0x4b000000, first));
  };
  return std::uint32_t(luma_of_biased(biased(0), biased(1), biased(2), weights));
}

}  // namespace cudavision::histogram
