// SPDX-License-Identifier: LGPL-2.1-or-later
// How the last block to finish sees the results of all other blocks:
//
//   each block       writes results; __syncthreads(); one thread calls ordered_increment()
//   the last block   gets the largest number, and reads the results of all blocks
//
// The increment is one instruction with acquire and release semantics. __threadfence() on both sides of atomicInc()
// orders more than necessary: preset=outdoor on NV12 took 3 % longer (H200).
#pragma once

namespace cudavision::cuda {

/// Adds 1, or sets the counter to 0 if its value is `last`. Returns the previous value.
__device__ __forceinline__ unsigned ordered_increment(unsigned& counter, unsigned last) {
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(&counter), "r"(last) : "memory");
  return before;
}

/// Adds to a sum. Other threads see the addition only after all earlier accesses of this thread. Returns the previous
/// sum. A thread that reads the sum, even through later additions of any kind, and then calls ordered_from_here(), sees
/// those accesses.
__device__ __forceinline__ unsigned long long ordered_add(unsigned long long& sum, unsigned long long value) {
  unsigned long long before;
  asm volatile("atom.release.gpu.global.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(&sum), "l"(value) : "memory");
  return before;
}
__device__ __forceinline__ void ordered_from_here() { asm volatile("fence.acq_rel.gpu;" : : : "memory"); }

}  // namespace cudavision::cuda
