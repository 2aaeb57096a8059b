// SPDX-License-Identifier: LGPL-2.1-or-later
// Sums of the columns of 16 neighbouring bytes, in registers. See cuda_mosaic.cu.
//
//   a word of four samples:                b0 b1 b2 b3
//   even columns of it, 16 bits each:      Σ b0 │ Σ b2      A sum of 257 samples fits 16 bits.
//   odd columns of it:                     Σ b1 │ Σ b3
#pragma once

#include <cstdint>

namespace cudavision::local {

/// Loads N samples of a row. `valid`: number of samples inside the row; the others become 0. `words`:
/// the whole chunk may be loaded at once.
template <int N, bool words>
__device__ __forceinline__ void load_chunk(const unsigned char* from, int valid, std::uint32_t (&to)[N / 4]) {
  if constexpr (words) {
    static_assert(N == 16);
    const uint4 v = __ldg(reinterpret_cast<const uint4*>(from));
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  } else {
#pragma unroll
    for (int i = 0; i < N / 4; ++i) to[i] = 0;
#pragma unroll
    for (int j = 0; j < N; ++j)
      if (j < valid) to[j / 4] |= std::uint32_t(from[j]) << (j % 4 * 8);
  }
}

template <int N>
struct Columns {
  std::uint32_t even[N / 4] = {}, odd[N / 4] = {};

  __device__ __forceinline__ void add(const std::uint32_t (&words)[N / 4]) {
#pragma unroll
    for (int i = 0; i < N / 4; ++i) {
      even[i] += words[i] & 0xff00ff;
      odd[i] += __byte_perm(words[i], 0, 0x4341);
    }
  }
};

}  // namespace cudavision::local
