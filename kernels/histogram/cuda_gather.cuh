// SPDX-License-Identifier: LGPL-2.1-or-later
// Gathering: the sums of entries become counts of bins.
//
//   sums [copy][table][entry]   of all blocks, added up by atomics; several copies, because atomics of many blocks at
//      |                        one address wait for each other
//      |  each thread: one bin of one table = the sum of its entries; the entries become zero for the next frame
//      v
//   counts [channel][bin] in device memory, and in the host memory of the results
#pragma once

#include "kernels/histogram/arithmetic.hpp"
#include "kernels/histogram/cuda_params.cuh"

namespace cudavision::histogram {

/// The copy of the sums to which a block adds.
__device__ __forceinline__ std::uint32_t* sums_of_block(const Gather& g) {
  return g.sums + blockIdx.x % unsigned(g.copies) * g.copy_entries;
}

/// Gathers the bins thread, thread + threads, …
__device__ inline void gather_entries_of(const Gather& g, int thread, int threads) {
  for (int i = thread; i < g.tables * g.bins; i += threads) {
    const int table = i / g.bins, bin = i - table * g.bins;
    const int begin = g.by_value ? first_value(bin, g.bins, g.depth) : bin;
    const int end = g.by_value ? first_value(bin + 1, g.bins, g.depth) : bin + 1;
    std::uint32_t* const sums = g.sums + std::size_t(table) * g.fine;
    std::uint32_t sum = 0;
    for (int entry = begin; entry < end; ++entry) {
      std::uint32_t copies[tuning.sum_copies];
#pragma unroll
      for (int copy = 0; copy < tuning.sum_copies; ++copy)
        if (copy < g.copies) copies[copy] = __ldcg(sums + copy * g.copy_entries + entry);
#pragma unroll
      for (int copy = 0; copy < tuning.sum_copies; ++copy)
        if (copy < g.copies) sum += copies[copy], sums[copy * g.copy_entries + entry] = 0;
    }
    for (int c = 0; c < g.channels; ++c) {
      if (g.table[c] != table) continue;
      const std::size_t at = std::size_t(c) * g.bins + bin;
      g.counts[at] = sum;
      if (g.host) g.host[at] = sum;
    }
  }
}

/// All threads of a block call this after the block has added to the device's sums. Returns whether it is the last
/// block of the launch to do so. The last block can read the sums of all blocks. `ticket`: zero between launches.
__device__ __forceinline__ bool is_last_block(unsigned* ticket) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    // The counter wraps to zero. Acquire and release make the sums of all blocks visible to the last block.
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(ticket), "r"(gridDim.x - 1)
                 : "memory");
    last = before == gridDim.x - 1;
  }
  __syncthreads();
  return last;
}

/// Ends a block that has added to the sums: the last block to end gathers them.
__device__ __forceinline__ void block_done(const Gather& gather) {
  if (!gather.here) return;
  if (is_last_block(gather.ticket)) gather_entries_of(gather, threadIdx.x, blockDim.x);
}

}  // namespace cudavision::histogram
