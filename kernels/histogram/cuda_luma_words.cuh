// SPDX-License-Identifier: LGPL-2.1-or-later
// Functions on words of luma: four samples of 8 bits, or two of 16 bits.
#pragma once

#include <type_traits>

#include "kernels/cuda/rows.cuh"

namespace cudavision::histogram {

/// The sum of the absolute differences of the samples.
template <typename T>
__device__ __forceinline__ std::uint32_t differences(std::uint32_t a, std::uint32_t b) {
  return sizeof(T) == 1 ? __vsadu4(a, b) : __vsadu2(a, b);
}
template <typename T>
__device__ __forceinline__ std::uint32_t sum(std::uint32_t a) {
  return sizeof(T) == 1 ? __dp4a(a, 0x01010101u, 0u) : (a & 0xffff) + (a >> 16);
}
/// The type of the sum of squares, which fits in 32 bits for a thread's part of a tile only if samples have 8 bits.
template <typename T>
using Square = std::conditional_t<sizeof(T) == 1, std::uint32_t, std::uint64_t>;
template <typename T>
__device__ __forceinline__ Square<T> squares(std::uint32_t a) {
  if constexpr (sizeof(T) == 1) {
    return __dp4a(a, a, 0u);
  } else {
    return std::uint64_t(a & 0xffff) * (a & 0xffff) + std::uint64_t(a >> 16) * (a >> 16);
  }
}

template <typename T>
using Luma = cuda::Quad<T, 1>;

/// Each pixel's right neighbour. `next`: a word that begins with the pixel after the quad.
template <typename T>
__device__ __forceinline__ Luma<T> right_of(const Luma<T>& luma, std::uint32_t next) {
  Luma<T> right;
  if constexpr (sizeof(T) == 1) {
    right.word[0][0] = __byte_perm(luma.word[0][0], next, 0x4321);
  } else {
    right.word[0][0] = __byte_perm(luma.word[0][0], luma.word[0][1], 0x5432);
    right.word[0][1] = __byte_perm(luma.word[0][1], next, 0x5432);
  }
  return right;
}
/// A word that begins with the last pixel of the quad.
template <typename T>
__device__ __forceinline__ std::uint32_t last_of(const Luma<T>& luma) {
  return sizeof(T) == 1 ? luma.word[0][0] >> 24 : luma.word[0][sizeof(T) - 1] >> 16;
}

/// The samples of a quad at x that lie in [begin, end), as masks.
template <typename T>
__device__ __forceinline__ Luma<T> mask_of(int x, int begin, int end) {
  constexpr int per_word = 4 / int(sizeof(T)), bits = 8 * int(sizeof(T));
  Luma<T> mask;
#pragma unroll
  for (int k = 0; k < int(sizeof(T)); ++k) {
    mask.word[0][k] = 0;
#pragma unroll
    for (int j = 0; j < per_word; ++j) {
      const int pixel = x + k * per_word + j;
      if (pixel >= begin && pixel < end) mask.word[0][k] |= ((1u << bits) - 1) << j * bits;
    }
  }
  return mask;
}

}  // namespace cudavision::histogram
