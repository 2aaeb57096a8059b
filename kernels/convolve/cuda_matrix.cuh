// SPDX-License-Identifier: LGPL-2.1-or-later
// Code that the two families on the matrix units share. It loads samples from shared memory as half-precision numbers,
// and stores pairs of pixels.
//
// 128 adjacent pixels of a row form 16 segments of 8. A segment, and the samples that its window adds on both sides,
// form a row of a 16 × 16 matrix of samples. Its product with a 16 × 8 matrix of weights (column g: the row of weights,
// shifted by g) gives 128 sums:
//
//                  column 0 … 15 = sample 8·s − 4 + column        column g = result 8·s + g
//   segment s = 0  | a b c d e f … |        | w0  0  0 … |
//           s = 1  | i j k l m n … |    ×   | w1 w0  0 … |   =  16 × 8 sums of one row of weights
//           …      |               |        | w2 w1 w0 … |
//           s = 15 |               |        |  0 w2 w1 … |
//
// The drawing has an anchor of 4. With another anchor, the weights in cuda_matrix_strip.cu begin 4 − anchor_x rows
// further down. cuda_matrix_tile.cu begins with sample 8·s − anchor_x − skew and continues in steps of 16 columns.
//
// The columns of samples, and therefore the rows of weights, are passed in another order: a lane loads four adjacent
// samples, 4t … 4t + 3, and passes them as the columns 2t, 2t + 1, 2t + 8 and 2t + 9, which mma() expects from it. The
// order does not change the sums. Only the half step of 8 columns in cuda_matrix_tile.cu keeps the order.
//
// Lane 4·g + t of a warp holds the results 2t and 2t + 1 of the segments g and g + 8 (see kernels/cuda/mma.cuh), so it
// stores pairs of pixels, 64 apart. Half precision holds 8-bit samples exactly. A weight is one number (11 bits) if
// this is exact or accurate enough, otherwise the sum of two numbers (22 bits). Products are exact; sums are float32. A
// matrix never mixes rows, so lanes exchange no data.
#pragma once

#include "kernels/convolve/cuda_results.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/warp.cuh"

namespace cudavision::convolve {

using cuda::mma;
using cuda::opaque_register;

namespace {

/// Bytes `2·pair` and `2·pair + 1` of channel c of a stored quad, as halves. A byte with zero bits above it is a
/// subnormal number, byte · 2^-24, which the matrix units multiply exactly. The scale of the sums compensates for the
/// factor (subnormal_bits).
template <int C>
__device__ __forceinline__ std::uint32_t halves_of(const std::uint32_t (&words)[C], int c, int pair) {
  const int first = 2 * pair * C + c, second = first + C;
  if (first / 4 == second / 4 && first % 4 == 0 && second % 4 == 2) return words[first / 4] & 0x00ff00ffu;
  if (first / 4 == second / 4) return __byte_perm(words[first / 4], 0, 0x4040 | first % 4 | second % 4 << 8);
  return __byte_perm(words[first / 4], words[second / 4], 0x0400 | first % 4 | second % 4 << 8) & 0x00ff00ffu;
}

/// Loads Bytes bytes from shared memory. The address is aligned to the largest power of two that divides Bytes.
template <int Bytes, int W>
__device__ __forceinline__ void load_shared(const unsigned char* from, std::uint32_t (&words)[W]) {
  if constexpr (Bytes == 16) {
    const uint4 v = *reinterpret_cast<const uint4*>(from);
    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
  } else if constexpr (Bytes == 8) {
    const uint2 v = *reinterpret_cast<const uint2*>(from);
    words[0] = v.x, words[1] = v.y;
  } else if constexpr (Bytes % 4 == 0) {
#pragma unroll
    for (int i = 0; i < Bytes / 4; ++i) words[i] = reinterpret_cast<const std::uint32_t*>(from)[i];
  } else {
    const auto* const halves = reinterpret_cast<const std::uint16_t*>(from);
    words[0] = halves[0];
    if constexpr (Bytes == 6) words[0] |= std::uint32_t(halves[1]) << 16, words[1] = halves[2];
  }
}

/// The results of the pixels x and x + 1: 2·C bytes, the lowest first.
template <int C>
struct Pair {
  std::uint32_t word[(C + 1) / 2] = {};

  __device__ __forceinline__ void insert(int pixel, int c, std::uint32_t sample) {
    const int byte = pixel * C + c;
    if (byte % 4 == 0 && (C <= 2 || c == 0))
      word[byte / 4] = sample;  // the first byte of its word
    else
      word[byte / 4] = __byte_perm(word[byte / 4], sample, 0x3210 + ((4 - byte % 4) << 4 * (byte % 4)));
  }
  __device__ __forceinline__ void store(unsigned char* at) const {
    if constexpr (C == 1) *reinterpret_cast<std::uint16_t*>(at) = std::uint16_t(word[0]);
    if constexpr (C == 2) *reinterpret_cast<std::uint32_t*>(at) = word[0];
    if constexpr (C == 3) {
      reinterpret_cast<std::uint16_t*>(at)[0] = std::uint16_t(word[0]);
      reinterpret_cast<std::uint16_t*>(at)[1] = std::uint16_t(word[0] >> 16);
      reinterpret_cast<std::uint16_t*>(at)[2] = std::uint16_t(word[1]);
    }
    if constexpr (C == 4) *reinterpret_cast<uint2*>(at) = make_uint2(word[0], word[1]);
  }
};

}  // namespace
}  // namespace cudavision::convolve
