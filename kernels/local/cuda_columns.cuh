// SPDX-License-Identifier: LGPL-2.1-or-later
// The sums of the rows of a window, for each sample of a chunk, in registers. See cuda_windows.cu.
//
//   a word of four samples:                b0 b1 b2 b3
//   even columns of it, 16 bits each:      Σ b0 │ Σ b2      A sum of 257 samples fits 16 bits. Adding and subtracting whole words of
//   odd columns of it:                     Σ b1 │ Σ b3      32 bits is exact: what one half borrows from the other it gives back.
#pragma once

#include <cstdint>

namespace cudavision::local {

/// Loads N samples of a row. `valid`: those that lie inside the row; the others become 0. `words`: the whole chunk may be loaded at once.
template <int N, bool words>
__device__ __forceinline__ void load_chunk(const unsigned char* from, int valid, std::uint32_t (&to)[N / 4]) {
  if constexpr (words && N == 16) {
    const uint4 v = __ldg(reinterpret_cast<const uint4*>(from));
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  } else if constexpr (words) {
    static_assert(N == 8);
    const uint2 v = __ldg(reinterpret_cast<const uint2*>(from));
    to[0] = v.x, to[1] = v.y;
  } else {
#pragma unroll
    for (int i = 0; i < N / 4; ++i) to[i] = 0;
#pragma unroll
    for (int j = 0; j < N; ++j)
      if (j < valid) to[j / 4] |= std::uint32_t(from[j]) << (j % 4 * 8);
  }
}

template <int N, bool squared>
struct Columns {
  std::uint32_t even[N / 4] = {}, odd[N / 4] = {};
  std::uint32_t squares[squared ? N : 1] = {};

  template <bool minus>
  __device__ __forceinline__ void add(const std::uint32_t (&words)[N / 4]) {
#pragma unroll
    for (int i = 0; i < N / 4; ++i) {
      const std::uint32_t b02 = words[i] & 0xff00ff, b13 = __byte_perm(words[i], 0, 0x4341);
      even[i] += minus ? -b02 : b02;
      odd[i] += minus ? -b13 : b13;
      if constexpr (squared) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const std::uint32_t v = __byte_perm(words[i], 0, 0x4440 + k);
          squares[4 * i + k] += minus ? -v * v : v * v;
        }
      }
    }
  }

  /// Adds or subtracts the rows [from, to); `at`: the chunk in row 0. Loads several rows before it adds the first.
  template <bool minus, bool words>
  __device__ __forceinline__ void add_rows(const unsigned char* at, std::ptrdiff_t pitch, int valid, int from, int to) {
    constexpr int together = words ? (squared ? 4 : 8) : 1;
    at += from * pitch;
#pragma unroll 1
    for (; from + together <= to; from += together) {
      std::uint32_t row[together][N / 4];
#pragma unroll
      for (int i = 0; i < together; ++i) load_chunk<N, words>(at, valid, row[i]), at += pitch;
#pragma unroll
      for (int i = 0; i < together; ++i) add<minus>(row[i]);
    }
#pragma unroll 1
    for (; from < to; ++from) {
      std::uint32_t row[N / 4];
      load_chunk<N, words>(at, valid, row), at += pitch;
      add<minus>(row);
    }
  }

  /// Adds stored sums: N of 16 bits, in the order of the registers (see store()).
  __device__ __forceinline__ void add_stored(const std::uint16_t* sums) {
#pragma unroll
    for (int q = 0; q < N / 8; ++q) {
      const uint4 v = __ldg(reinterpret_cast<const uint4*>(sums) + q);
      even[2 * q] += v.x, odd[2 * q] += v.y, even[2 * q + 1] += v.z, odd[2 * q + 1] += v.w;
    }
  }
  __device__ __forceinline__ void add_stored_squares(const std::uint32_t* sums) {
#pragma unroll
    for (int q = 0; q < N / 4; ++q) {
      const uint4 v = __ldg(reinterpret_cast<const uint4*>(sums) + q);
      squares[4 * q] += v.x, squares[4 * q + 1] += v.y, squares[4 * q + 2] += v.z, squares[4 * q + 3] += v.w;
    }
  }
  __device__ __forceinline__ void store(std::uint16_t* sums) const {
#pragma unroll
    for (int q = 0; q < N / 8; ++q)
      reinterpret_cast<uint4*>(sums)[q] = make_uint4(even[2 * q], odd[2 * q], even[2 * q + 1], odd[2 * q + 1]);
  }
  __device__ __forceinline__ void store_squares(std::uint32_t* sums) const {
#pragma unroll
    for (int q = 0; q < N / 4; ++q)
      reinterpret_cast<uint4*>(sums)[q] = make_uint4(squares[4 * q], squares[4 * q + 1], squares[4 * q + 2], squares[4 * q + 3]);
  }

  /// The sums of eight neighbouring samples, from sample 8·q on: 16 bits each, in the order of the samples.
  __device__ __forceinline__ uint4 quad(int q) const {
    return make_uint4(__byte_perm(even[2 * q], odd[2 * q], 0x5410), __byte_perm(even[2 * q], odd[2 * q], 0x7632),
                      __byte_perm(even[2 * q + 1], odd[2 * q + 1], 0x5410), __byte_perm(even[2 * q + 1], odd[2 * q + 1], 0x7632));
  }
};

}  // namespace cudavision::local
