// SPDX-License-Identifier: LGPL-2.1-or-later
// Reading the pixels of a set, or of three planes, and making their luma.
#pragma once

#include "kernels/core/luma.hpp"
#include "kernels/cuda/rows.cuh"

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
__device__ __forceinline__ cuda::Quad<T, C> load_pixels(const cuda::SetView (&views)[3], int x, int y) {
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

/// The luma of four pixels. `position`: of R, G and B among the channels; three planes have them in order.
template <typename T, int C, bool ThreePlanes>
__device__ __forceinline__ void luma_of_pixels(const cuda::Quad<T, C>& quad, const int (&position)[3], const LumaWeights& weights,
                                               std::uint32_t max_value, std::uint32_t (&luma)[4]) {
  cuda::Quad<T, 3> rgb;
#pragma unroll
  for (int c = 0; c < 3; ++c)
#pragma unroll
    for (int k = 0; k < int(sizeof(T)); ++k) rgb.word[c][k] = ThreePlanes ? quad.word[c][k] : word_at(quad, position[c], k);
#pragma unroll
  for (int j = 0; j < 4; ++j) luma[j] = luma_of(rgb.sample(0, j), rgb.sample(1, j), rgb.sample(2, j), weights, max_value);
}

}  // namespace cudavision::histogram
