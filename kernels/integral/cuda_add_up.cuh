// SPDX-License-Identifier: LGPL-2.1-or-later
// Adding up the sums of other tiles: what the write pass must know before it can write tile (x, y).
//
//             +---------+---------+---------+
//             | corner  | corner  | above   |   corner: sums of all tiles left above (job.totals)
//             +---------+---------+---------+   above:  sums of the columns of all tiles above (job.columns)
//             | corner  | corner  | above   |   left:   sums of each row of all tiles to the left (job.rows)
//             +---------+---------+---------+
//             | left    | left    | (x, y)  |
//             +---------+---------+---------+
#pragma once

#include "kernels/cuda/overlap.hpp"
#include "kernels/integral/cuda_sum_tile.cuh"

namespace cudavision::integral {

/// load(first) + load(first + step) + … below `end`, with N loads in flight.
template <typename Value, int N, typename Load>
__device__ __forceinline__ Value sum_every(int first, int step, int end, Load load) {
  Value sum{};
#pragma unroll 1
  for (int i = first; i < end; i += N * step) {
    Value some[N];
#pragma unroll
    for (int n = 0; n < N; ++n) some[n] = i + n * step < end ? load(i + n * step) : Value{};
#pragma unroll
    for (int n = 0; n < N; ++n) sum += some[n];
  }
  return sum;
}

/// Waits until the sum pass has summed the rows of tiles 0 … last.
__device__ __forceinline__ void wait_for_rows(const KernelParams& p, const Job& job, int last) {
  if (p.two_launches) {
    cuda::wait_for_previous();
    return;
  }
  if (threadIdx.x < 32) {
    for (int row = threadIdx.x; row <= last; row += 32) {
      unsigned summed;
      do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(summed) : "l"(job.summed + row) : "memory");
      while (summed < unsigned(job.tiles_x));
    }
  }
  __syncthreads();
}

/// The sum of all samples left of the tile in row `lane` % R of this warp, whose first row is `y`. The 32 / R lanes of a row share
/// the tiles.
template <int R, typename LineSum>
__device__ __forceinline__ LineSum sum_left(const Job& job, const Tile& tile, int y, int lane) {
  const std::ptrdiff_t height = std::ptrdiff_t(job.tiles_y) * warps * R;
  const LineSum* const rows_left = static_cast<const LineSum*>(job.rows) + y + lane % R;
  LineSum left = sum_every<LineSum, 8>(lane / R, 32 / R, tile.x, [&](int i) { return __ldcg(rows_left + i * height); });
#pragma unroll
  for (int d = R; d < 32; d *= 2) left += __shfl_xor_sync(~0u, left, d);
  return left;
}

}  // namespace cudavision::integral
