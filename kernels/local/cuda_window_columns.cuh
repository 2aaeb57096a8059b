// SPDX-License-Identifier: LGPL-2.1-or-later
// The sums over the rows of a window, for eight adjacent samples (a chunk), in registers. See cuda_windows.cu.
//
//   a word of four samples:     b0 b1 b2 b3
//   odd:     Σ b1 │ Σ b3        16 bits each. A sum of 257 samples fits in 16 bits.
//   whole:   Σ of the words as 32-bit numbers, modulo 2^32. So even = whole − 256 · odd is   Σ b0 │ Σ b2, and one
//            entering and one leaving row cost two additions of three numbers.
//   a quad:  even and odd of samples 0 … 3, even and odd of samples 4 … 7: how the sums are stored in memory
#pragma once

#include <cstddef>
#include <cstdint>

namespace cudavision::local {

inline constexpr int chunk_samples = 8;

/// The position of a chunk in row 0.
struct Chunk {
  const unsigned char* at;
  std::ptrdiff_t pitch;
  int valid;   ///< number of its samples inside the row, 0–8
  bool words;  ///< whether all samples are inside, and may be loaded at once
};

/// Loads single samples; samples outside the row become 0. Not inlined, because only chunks at the end of a row and
/// unaligned frames need it.
inline __device__ __noinline__ uint2 load_samples(const unsigned char* from, int valid) {
  std::uint32_t words[2] = {0, 0};
#pragma unroll
  for (int j = 0; j < chunk_samples; ++j)
    if (j < valid) words[j / 4] |= std::uint32_t(from[j]) << (j % 4 * 8);
  return make_uint2(words[0], words[1]);
}
__device__ __forceinline__ uint2 load_words(const unsigned char* from) {
  return __ldg(reinterpret_cast<const uint2*>(from));
}

template <bool squared>
struct WindowColumns {
  static constexpr int lines = squared ? 3 : 1;  ///< quads: sums; sums of squares of samples 0 … 3 and of samples 4 … 7

  std::uint32_t whole[2] = {}, odd[2] = {};
  std::uint32_t squares[squared ? chunk_samples : 1] = {};

  /// Adds `enters` and subtracts `leaves`.
  __device__ __forceinline__ void move(uint2 enters, uint2 leaves) {
    const std::uint32_t in[2] = {enters.x, enters.y}, out[2] = {leaves.x, leaves.y};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      whole[i] += in[i] - out[i];
      odd[i] += __byte_perm(in[i], 0, 0x4341) - __byte_perm(out[i], 0, 0x4341);
      if constexpr (squared) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const std::uint32_t a = __byte_perm(in[i], 0, 0x4440 + k), b = __byte_perm(out[i], 0, 0x4440 + k);
          squares[4 * i + k] += a * a - b * b;
        }
      }
    }
  }

  /// Adds the rows [from, to). Loads several rows before it adds the first one.
  __device__ __forceinline__ void add_rows(const Chunk& chunk, int from, int to) {
    constexpr int together = 8;
    const uint2 none = make_uint2(0, 0);
    const unsigned char* at = chunk.at + from * chunk.pitch;
#pragma unroll 1
    for (; from < to; from += together) {
      uint2 rows[together];
#pragma unroll
      for (int i = 0; i < together; ++i, at += chunk.pitch)
        rows[i] = from + i >= to ? none : chunk.words ? load_words(at) : load_samples(at, chunk.valid);
#pragma unroll
      for (int i = 0; i < together; ++i) move(rows[i], none);
    }
  }

  /// Line 0: the sums; lines 1 and 2: the sums of squares.
  __device__ __forceinline__ uint4 quad(int line) const {
    if (squared && line > 0) {
      const int i = squared ? 4 * (line - 1) : 0;
      return make_uint4(squares[i], squares[squared ? i + 1 : 0], squares[squared ? i + 2 : 0],
                        squares[squared ? i + 3 : 0]);
    }
    return make_uint4(whole[0] - (odd[0] << 8), odd[0], whole[1] - (odd[1] << 8), odd[1]);
  }
  __device__ __forceinline__ void add_quad(int line, uint4 q) {
    if (squared && line > 0) {
      const int i = squared ? 4 * (line - 1) : 0;
      squares[i] += q.x, squares[squared ? i + 1 : 0] += q.y, squares[squared ? i + 2 : 0] += q.z,
          squares[squared ? i + 3 : 0] += q.w;
    } else {
      odd[0] += q.y, odd[1] += q.w;
      whole[0] += q.x + (q.y << 8), whole[1] += q.z + (q.w << 8);
    }
  }
};

}  // namespace cudavision::local
