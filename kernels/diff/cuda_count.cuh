// SPDX-License-Identifier: LGPL-2.1-or-later
// Counting changed pixels in cells.
#pragma once

#include "kernels/diff/cuda_shape.cuh"

namespace cudavision::diff {

/// The cell of a coordinate: at / cell_size, exact for coordinates up to 2^14 and cells up to 2^10.
__device__ __forceinline__ int cell_of(const KernelParams& p, int at) { return int(__umulhi(unsigned(at), p.cell_reciprocal)); }

/// Counts the changed pixels of a strip row in shared memory. slots[0] is the sum of differences; one slot for each cell of the
/// tile follows.
template <class S>
__device__ __forceinline__ void count_bits(const KernelParams& p, const Tile<S>& tile, int y, unsigned bits, std::uint32_t* slots) {
  if (!bits) return;
  const int cell_x = cell_of(p, tile.x);
  std::uint32_t* slot = slots + 1 + (cell_of(p, y) - cell_of(p, tile.y0)) * p.slots_x + cell_x - cell_of(p, tile.x0);
#pragma unroll 1
  for (int end = (cell_x + 1) * int(p.cell_size) - tile.x;; end += int(p.cell_size), ++slot) {
    const unsigned here = end >= S::pixels ? bits : bits & ((1u << end) - 1);
    if (here) atomicAdd(slot, __popc(here));
    bits &= ~here;
    if (!bits) return;
  }
}
template <class S>
__device__ __forceinline__ void clear_slots(const KernelParams& p, std::uint32_t* slots) {
  for (int i = threadIdx.x; i < p.slots + 2; i += S::threads) slots[i] = 0;
}
/// The record of the tile, see Schedule::record_bytes.
__device__ __forceinline__ std::uint32_t* record_of(const KernelParams& p) {
  return reinterpret_cast<std::uint32_t*>(p.records + (std::size_t(blockIdx.y) * p.tiles_x + blockIdx.x) * p.record_bytes);
}
template <class S>
__device__ __forceinline__ void store_counts(const KernelParams& p, const std::uint32_t* slots) {
  for (int i = threadIdx.x; 2 * i < p.slots; i += S::threads) record_of(p)[1 + i] = slots[1 + 2 * i] | slots[2 + 2 * i] << 16;
}

}  // namespace cudavision::diff
