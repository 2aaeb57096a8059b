// SPDX-License-Identifier: LGPL-2.1-or-later
// The table for equalisation: the new value of each sample, from the counts of all values.
//
//  samples of 8 bits: each block makes it                           deeper samples: equalizing_table, one block;
//  1. thread v of 256: the sum of the counts up to v                each warp has a part of the values
//  2. in shared memory, one table for each lane:                    +--------+--------+---+---------+
//     value 0   | lane 0 | lane 1 | … | lane 31 |  one bank each    | warp 0 | warp 1 | … | warp 31 |  counts of values
//     value 1   | lane 0 | …                                        +--------+--------+---+---------+
//                                                                   1. each warp: the sum of its values
//                                                                   2. warp 0: scan over the 32 sums
//                                                                   3. each warp: scan over its values, 32 at a time
//
// To change the rule, see equalized() in arithmetic.hpp.
#pragma once

#include "kernels/cuda/warp.cuh"
#include "kernels/histogram/arithmetic.hpp"
#include "kernels/histogram/cuda_pictures.hpp"

namespace cudavision::histogram {

/// The sum over the values of lanes 0 … lane.
__device__ __forceinline__ std::uint32_t scan(std::uint32_t value) {
  std::uint32_t values[1] = {value};
  cuda::warp_scan(values, int(threadIdx.x) % 32);
  return values[0];
}

/// The table in a block: the new value of each sample of type T.
template <typename T>
struct Table {
  __device__ __forceinline__ Table(const std::uint16_t* table, std::uint32_t*) : table(table) {}
  __device__ __forceinline__ void make(const std::uint32_t*) {}
  __device__ __forceinline__ std::uint32_t operator[](std::uint32_t sample) const { return __ldg(table + sample); }

  const std::uint16_t* table;
};
/// Words of shared memory for the table of 8-bit samples.
inline constexpr int byte_table_words = 256 * 32;
template <>
struct Table<std::uint8_t> {
  __device__ __forceinline__ Table(const std::uint16_t*, std::uint32_t* of_lanes)
      : of_lanes(of_lanes), of_lane(of_lanes + threadIdx.x % 32) {}

  /// All threads of the block must call this.
  __device__ __forceinline__ void make(const std::uint32_t* counts) {
    __shared__ std::uint32_t entries[256], of_warps[8], lowest_of_warps[8];
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    std::uint32_t below = 0;
    if (thread < 256) {
      const std::uint32_t count = __ldcg(counts + thread);
      below = scan(count);
      const unsigned occurring = __ballot_sync(~0u, count > 0);
      const std::uint32_t lowest = __shfl_sync(~0u, count, occurring ? __ffs(occurring) - 1 : 0);
      if (lane == 31) of_warps[warp] = below, lowest_of_warps[warp] = lowest;
    }
    __syncthreads();
    if (thread < 256) {
      std::uint32_t total = 0, lowest = 0;
#pragma unroll
      for (int w = 7; w >= 0; --w) {
        total += of_warps[w];
        below += w < warp ? of_warps[w] : 0;
        lowest = lowest_of_warps[w] ? lowest_of_warps[w] : lowest;
      }
      entries[thread] = equalized(thread, below, lowest, total, 255);
    }
    __syncthreads();
    for (int value = warp; value < 256; value += int(blockDim.x) / 32) of_lanes[value * 32 + lane] = entries[value];
    __syncthreads();
  }
  __device__ __forceinline__ std::uint32_t operator[](std::uint32_t sample) const { return of_lane[sample * 32]; }

  std::uint32_t *of_lanes, *of_lane;
};

}  // namespace cudavision::histogram
