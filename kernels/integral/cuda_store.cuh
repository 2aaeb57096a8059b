// SPDX-License-Identifier: LGPL-2.1-or-later
// Stores a row of a tile. Each lane holds the entries of its two quads:
//
//   sums[0 … 3]: entries 4 · lane … 4 · lane + 3         sums[4 … 7]: entries 128 + 4 · lane … 128 + 4 · lane + 3
//
// A warp stores whole sectors of memory (32 bytes): sectors shared by two tiles would cost 6 µs for padded 8K tables.
// If rows may begin inside a sector, tiles overlap by eight columns, and the tile to the left stores the first entries
// of a row:
//
//   columns of tile x       |0 1 2 3 4 5 6 7 8 …                          247 248 … 255|
//   columns of tile x + 1                                                |0 1 2 3 4 5 6 7 8 …
//   sectors                     |       |       …                        |   |       |       …
//   stored by                   |            tile x, entries 2 … 249         | tile x + 1, from entry 2 on
//
// To add an output type: entries of eight bytes may have any type of that size. Entries of four bytes are the bits of
// any type of that size.
#pragma once

#include "kernels/integral/cuda_params.hpp"

namespace cudavision::integral {

/// The part of a row that is stored: entries begin … end − 1 of the tile. `inner`: there are tile_width − tile_overlap
/// entries, and a sector starts at `begin`.
struct Stored {
  int begin, end;
  bool inner;
};

/// Stores a whole row of a table whose rows begin at sectors.
__device__ __forceinline__ void store_aligned(std::uint32_t* row, int lane, const std::uint32_t (&sums)[8]) {
#pragma unroll
  for (int q = 0; q < 2; ++q)
    __stcs(reinterpret_cast<uint4*>(row + 128 * q + 4 * lane),
           make_uint4(sums[4 * q], sums[4 * q + 1], sums[4 * q + 2], sums[4 * q + 3]));
}

/// Stores a row. Each lane gets the quad that is 4 · quads + odd entries after its own, because a sector starts there.
/// `quads` (0 or 1) and `odd` (0 … 3) are constants after inlining. All lanes must call this, because they exchange
/// entries.
__device__ __forceinline__ void store_shifted(int quads, int odd, const Stored& stored, std::uint32_t* row, int lane,
                                              const std::uint32_t (&sums)[8]) {
  std::uint32_t entries[2][4];
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const int away = quads + (e < odd), from = lane + away;
    const std::uint32_t first = away ? __shfl_sync(~0u, sums[e], from) : sums[e],
                        second = away ? __shfl_sync(~0u, sums[4 + e], from) : sums[4 + e];
    entries[0][e] = from < 32 ? first : second;
    entries[1][e] = second;
  }
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    const int first = 4 * quads + odd + 128 * q + 4 * lane;
    const uint4 quad =
        make_uint4(entries[q][odd], entries[q][(1 + odd) % 4], entries[q][(2 + odd) % 4], entries[q][(3 + odd) % 4]);
    const bool aligned = reinterpret_cast<std::uintptr_t>(row + first) % 16 == 0;
    if (stored.inner ? q == 0 || lane < 32 - tile_overlap / 4
                     : first >= stored.begin && first + 4 <= stored.end && aligned) {
      __stcs(reinterpret_cast<uint4*>(row + first), quad);
    } else if (!stored.inner) {
#pragma unroll
      for (int j = 0; j < 4; ++j)
        if (first + j >= stored.begin && first + j < stored.end) row[first + j] = entries[q][(j + odd) % 4];
    }
  }
}
/// Stores a row, for any number of entries from the lane's quad to the next sector: 0 … 7.
__device__ __forceinline__ void store_shifted(int skipped, const Stored& stored, std::uint32_t* row, int lane,
                                              const std::uint32_t (&sums)[8]) {
  switch (skipped) {
    case 0:
      return store_shifted(0, 0, stored, row, lane, sums);
    case 1:
      return store_shifted(0, 1, stored, row, lane, sums);
    case 2:
      return store_shifted(0, 2, stored, row, lane, sums);
    case 3:
      return store_shifted(0, 3, stored, row, lane, sums);
    case 4:
      return store_shifted(1, 0, stored, row, lane, sums);
    case 5:
      return store_shifted(1, 1, stored, row, lane, sums);
    case 6:
      return store_shifted(1, 2, stored, row, lane, sums);
    default:
      return store_shifted(1, 3, stored, row, lane, sums);
  }
}

/// Stores a row of eight-byte entries. They pass through the warp's `buffer` in shared memory (1 KiB), so that adjacent
/// lanes store adjacent entries. `whole`: all entries are stored, and the row begins at a sector.
template <typename Out, typename Sum>
__device__ __forceinline__ void store_wide(bool whole, Stored stored, Out* row, int lane, const Sum (&sums)[8],
                                           void* buffer) {
  struct alignas(16) Pair {
    Out of[2];
  };
  Pair* const pairs = static_cast<Pair*>(buffer);
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2; ++i) pairs[2 * lane + i] = {Out(sums[4 * q + 2 * i]), Out(sums[4 * q + 2 * i + 1])};
    __syncwarp();
    if (whole) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        __stcs(reinterpret_cast<uint4*>(row) + 64 * q + 32 * i + lane,
               reinterpret_cast<const uint4*>(pairs)[32 * i + lane]);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = 128 * q + 32 * i + lane;
        if (column >= stored.begin && column < stored.end)
          __stcs(row + column, static_cast<const Out*>(buffer)[32 * i + lane]);
      }
    }
  }
}

}  // namespace cudavision::integral
