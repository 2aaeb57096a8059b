// SPDX-License-Identifier: LGPL-2.1-or-later
// Counting changed pixels in cells.
#pragma once

#include "kernels/diff/cuda_shape.cuh"

namespace cudavision::diff {

/// The cell of a coordinate: at / cell_size, exact for coordinates up to 2^14 and cell sizes up to 2^10.
__device__ __forceinline__ int cell_of(const KernelParams& p, int at) {
  return int(__umulhi(unsigned(at), p.cell_reciprocal));
}

/// Counts the changed pixels of rows of `pixels` adjacent pixels in shared memory, with one slot for each cell of the
/// tile that begins at (x0, y0). The first row begins at (x, y).
template <int pixels, int rows>
__device__ __forceinline__ void count_bits(const KernelParams& p, int x0, int y0, int x, int y,
                                           const unsigned (&bits)[rows], std::uint32_t* slots) {
  unsigned left = 0, last = 1u << (rows - 1);  // last: bit r is set if row r is the last one in its row of cells
#pragma unroll
  for (int r = 0; r < rows; ++r) left |= bits[r];
  if (!left) return;
  const int cell_x = cell_of(p, x), cell_y = cell_of(p, y);
#pragma unroll
  for (int r = 0; r + 1 < rows; ++r) last |= unsigned(cell_of(p, y + r + 1) != cell_of(p, y + r)) << r;
  std::uint32_t* slot = slots + (cell_y - cell_of(p, y0)) * p.slots_x + cell_x - cell_of(p, x0);
#pragma unroll 1
  for (int end = (cell_x + 1) * int(p.cell_size) - x;; end += int(p.cell_size), ++slot) {
    const unsigned here = end >= pixels ? ~0u : (1u << end) - 1;  // pixels in this column of cells and earlier columns
    std::uint32_t* at = slot;
    unsigned count = 0;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      count += __popc(bits[r] & left & here);
      if (last >> r & 1) {
        if (count) atomicAdd(at, count);
        count = 0, at += p.slots_x;
      }
    }
    left &= ~here;
    if (!left) return;
  }
}
__device__ __forceinline__ void clear_slots(const KernelParams& p, std::uint32_t* slots) {
  for (int i = threadIdx.x; i < p.slots + 1; i += blockDim.x) slots[i] = 0;
}
/// Adds the changed cells of a tile to the list.
__device__ __forceinline__ void list_cells(const KernelParams& p, int x0, int y0, const std::uint32_t* slots) {
  const CellList& list = p.list;
  for (int i = threadIdx.x; i < p.slots; i += blockDim.x) {
    if (slots[i] == 0) continue;
    const int row = i / p.slots_x, cell = (cell_of(p, y0) + row) * list.across + cell_of(p, x0) + i - row * p.slots_x;
    if (list.stamps && atomicExch(list.stamps + cell, p.stamp) == p.stamp) continue;  // another tile has listed it
    list.cells[atomicAdd(list.count, 1u)] = std::uint32_t(cell);
  }
}
/// Stores the record of a tile with changed pixels, which begins at (x0, y0), and lists its cells.
__device__ __forceinline__ void store_counts(const KernelParams& p, int tile, int x0, int y0,
                                             const std::uint32_t* slots) {
  auto* const record = reinterpret_cast<std::uint32_t*>(p.records + std::ptrdiff_t(tile) * p.record_bytes);
  for (int i = threadIdx.x; 2 * i < p.slots; i += blockDim.x) record[1 + i] = slots[2 * i] | slots[2 * i + 1] << 16;
  if (threadIdx.x == 0) record[0] = p.stamp;
  if (p.list.count) list_cells(p, x0, y0, slots);
}

}  // namespace cudavision::diff
