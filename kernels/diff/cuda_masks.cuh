// SPDX-License-Identifier: LGPL-2.1-or-later
// One bit for each pixel, and masks for samples.
#pragma once

#include "kernels/diff/cuda_shape.cuh"

namespace cudavision::diff {

/// Loads the bits of the pixels of a strip at x from a row of bits.
template <class S>
__device__ __forceinline__ unsigned load_bits(const unsigned char* row, int x) {
  if (S::pixels == 16) return *reinterpret_cast<const std::uint16_t*>(row + (x >> 3));
  return S::pixels == 8 ? row[x >> 3] : row[x >> 3] >> (x & 4) & 15;
}
/// Stores such bits. All lanes of the warp call this function.
template <class S>
__device__ __forceinline__ void store_bits(unsigned char* row, int x, unsigned bits) {
  if (S::pixels == 16) {
    *reinterpret_cast<std::uint16_t*>(row + (x >> 3)) = std::uint16_t(bits);
  } else if (S::pixels == 8) {
    row[x >> 3] = (unsigned char)(bits);
  } else {
    bits |= __shfl_down_sync(~0u, bits, 1) << 4;
    if (threadIdx.x % 2 == 0) row[x >> 3] = (unsigned char)(bits);
  }
}

/// The bits of the pixels of a strip row that are in the frame.
template <class S>
__device__ __forceinline__ unsigned bits_in_frame(const KernelParams& p, int x, int y) {
  constexpr unsigned all = (1u << S::pixels) - 1;
  const int left = p.width - x;
  if (left <= 0 || y >= p.height) return 0;
  return left >= S::pixels ? all : (1u << left) - 1;
}

/// Expands the low 4 bits to one value for each pixel of a quad: all ones or zero.
template <typename T>
__device__ __forceinline__ void expand_quad(unsigned bits, std::uint32_t (&words)[sizeof(T)]) {
  bits &= 15;
  if constexpr (sizeof(T) == 1) {
    // Each bit becomes the sign of its byte, and the sign fills the byte.
    asm("prmt.b32 %0, %1, 0, 0xba98;" : "=r"(words[0]) : "r"(bits * 0x10204080u));
  } else {
    words[0] = ((bits & 1) | (bits & 2) << 15) * 0xffffu;
    words[1] = ((bits >> 2 & 1) | (bits >> 2 & 2) << 15) * 0xffffu;
  }
}

/// Sets both bits 2i and 2i + 1 if either is set.
__device__ __forceinline__ unsigned pairs_of(unsigned bits) {
  const unsigned even = (bits | bits >> 1) & 0x5555;
  return even | even << 1;
}
/// Packs the even bits of the low 16 into the low 8.
__device__ __forceinline__ unsigned even_of(unsigned bits) {
  bits &= 0x5555;
  bits = (bits | bits >> 1) & 0x3333;
  bits = (bits | bits >> 2) & 0x0f0f;
  return (bits | bits >> 4) & 0x00ff;
}

/// Sets bit i of the low 4 if any of the bits 4i … 4i + 3 is set.
__device__ __forceinline__ unsigned fours_of(unsigned bits) {
  bits |= bits >> 1;
  bits = (bits | bits >> 2) & 0x1111;
  return (bits | bits >> 3 | bits >> 6 | bits >> 9) & 15;
}

/// The selector for __byte_perm that repeats the value of each pixel (in two words) for all its channels: word w of a
/// quad of C interleaved channels.
template <typename T, int C>
__device__ constexpr unsigned value_selector(int w) {
  unsigned selector = 0;
  for (int b = 0; b < 4; ++b) {
    const int byte = 4 * w + b, pixel = byte / (C * int(sizeof(T))),
              at = pixel * int(sizeof(T)) + byte % int(sizeof(T));
    selector |= unsigned(at) << 4 * b;
  }
  return selector;
}

/// Masks for the samples of a row of words, from bits for the pixels of the strip. A subsampled sample is set if any of
/// its pixels is set.
template <class S, class P, int N>
__device__ __forceinline__ void expand_piece(const KernelParams& p, const unsigned (&rows)[S::rows], int row,
                                             std::uint32_t (&mask)[N]) {
  using T = typename S::T;
  constexpr int W = S::words_a_quad;
  unsigned bits = rows[row];
  if constexpr (!P::first) {
    bits = rows[0] | rows[S::rows - 1];
    if (S::shift_x == 1) bits = P::C == 1 ? even_of(pairs_of(bits)) : pairs_of(bits);
    if (S::shift_x == 2) bits = fours_of(bits);
  }
  // Interleaved Cb and Cr of half width have as many samples as there are pixels.
  constexpr int C = P::first || S::shift_x == 0 ? P::C : 1;
#pragma unroll
  for (int q = 0; q < N / (C * W); ++q) {
    std::uint32_t values[W];
    expand_quad<T>(bits >> 4 * q, values);
    if constexpr (S::packed_422) {
      std::uint32_t chroma[W];
      expand_quad<T>(pairs_of(bits) >> 4 * q, chroma);
      const std::uint32_t even = p.luma_second ? chroma[0] : values[0], odd = p.luma_second ? values[0] : chroma[0];
      mask[2 * q] = __byte_perm(even, odd, 0x5140);
      mask[2 * q + 1] = __byte_perm(even, odd, 0x7362);
    } else {
#pragma unroll
      for (int w = 0; w < C * W; ++w)
        mask[q * C * W + w] = C == 1 ? values[w] : __byte_perm(values[0], values[W - 1], value_selector<T, C>(w));
    }
  }
}

}  // namespace cudavision::diff
