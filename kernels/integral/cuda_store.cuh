// SPDX-License-Identifier: LGPL-2.1-or-later
// Storing a row of a tile. Each lane holds the eight sums of its two quads:
//
//   sums[0 … 3]: entries 4 · lane … 4 · lane + 3         sums[4 … 7]: entries 128 + 4 · lane … 128 + 4 · lane + 3
//
// For another output type: rows of eight-byte entries work for any type of that size; rows of four-byte entries take the bits of
// any type of that size.
#pragma once

#include "kernels/integral/cuda_params.hpp"

namespace cudavision::integral {

/// Stores the first `count` entries of eight bytes. Sums pass through the warp's `buffer` in shared memory (1 KiB), so that
/// neighbouring lanes store neighbouring entries.
template <typename Out, typename Sum>
__device__ __forceinline__ void store_row(int count, unsigned char* row, int lane, const Sum (&sums)[8], void* buffer) {
  struct alignas(16) Pair {
    Out of[2];
  };
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2; ++i) static_cast<Pair*>(buffer)[2 * lane + i] = {Out(sums[4 * q + 2 * i]), Out(sums[4 * q + 2 * i + 1])};
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = 128 * q + 32 * i + lane;
      if (column < count) reinterpret_cast<Out*>(row)[column] = static_cast<Out*>(buffer)[32 * i + lane];
    }
  }
}

/// Stores a row of 256 four-byte entries, which begins `shift` entries behind an aligned word of 16 bytes. All words inside the row
/// are stored whole: a lane's word holds the last `shift` entries of the lane before it and its own first 4 − shift. The ends of
/// the row are stored entry by entry. `shift` must be a constant once this is inlined. `inside`: whether the row is stored at all;
/// all lanes call this, as they exchange sums.
__device__ __forceinline__ void store_words(int shift, bool inside, std::uint32_t* row, int lane, const std::uint32_t (&sums)[8]) {
  std::uint32_t entries[2][4];
#pragma unroll
  for (int q = 0; q < 2; ++q)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const std::uint32_t own = sums[4 * q + (4 + j - shift) % 4];
      entries[q][j] = j < shift ? __shfl_sync(~0u, own, (lane + 31) % 32) : own;
    }
#pragma unroll
  for (int j = 0; j < 4; ++j)
    if (j < shift && lane == 0) entries[1][j] = entries[0][j];
  if (!inside) return;
#pragma unroll
  for (int q = 0; q < 2; ++q)
    if (shift == 0 || q == 1 || lane > 0)
      __stcs(reinterpret_cast<uint4*>(row + 128 * q + 4 * lane - shift),
             make_uint4(entries[q][0], entries[q][1], entries[q][2], entries[q][3]));
  if (shift == 0) return;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (j < shift && lane == 31) row[tile_width - shift + j] = sums[8 - shift + j];
    if (j >= shift && lane == 0) row[j - shift] = sums[j - shift];
  }
}

/// Stores the first `count` entries of four bytes, at any aligned address.
__device__ __forceinline__ void store_row(int count, std::uint32_t* row, int lane, const std::uint32_t (&sums)[8]) {
  const int shift = int(reinterpret_cast<std::uintptr_t>(row) / 4 % 4);
  if (count < tile_width) {
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      const int first = 128 * q + 4 * lane;
      if (shift == 0 && first + 4 <= count) {
        __stcs(reinterpret_cast<uint4*>(row + first), make_uint4(sums[4 * q], sums[4 * q + 1], sums[4 * q + 2], sums[4 * q + 3]));
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j)
          if (first + j < count) row[first + j] = sums[4 * q + j];
      }
    }
    return;
  }
  switch (shift) {
    case 0:
      return store_words(0, true, row, lane, sums);
    case 1:
      return store_words(1, true, row, lane, sums);
    case 2:
      return store_words(2, true, row, lane, sums);
    default:
      return store_words(3, true, row, lane, sums);
  }
}

}  // namespace cudavision::integral
