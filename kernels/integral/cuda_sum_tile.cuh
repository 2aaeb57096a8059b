// SPDX-License-Identifier: LGPL-2.1-or-later
// The sum pass: the sums of the rows and columns of a tile, and of the tile.
//
//     tile of a block           warp w: rows w · R … w · R + R − 1
//   +-----------------+   |
//   | warp 0          |   | job.rows: one sum a row (warp_sum over its lanes)
//   | warp 1          |   |
//   | …               |   | job.totals: one sum a tile
//   +-----------------+
//   ------------------- job.columns: one sum a column (each warp adds up its rows, then each thread one column of all warps)
#pragma once

#include "kernels/integral/cuda_load.cuh"
#include "kernels/integral/cuda_quads.cuh"

namespace cudavision::integral {

/// Groups of threads that share the tiles above: a thread of each group for every quad of columns.
inline constexpr int above_groups = threads * 4 / tile_width;

/// The shared memory of a block, for both passes.
template <typename T, typename LineSum, typename Sum, int R>
struct Shared {
  std::uint32_t words[warps][R][sizeof(T)][tile_width / 4];  ///< samples of the tile
  ColumnSums<LineSum> columns[warps][tile_width / 4];        ///< sums of the columns of each warp
  ColumnSums<LineSum> above[above_groups][tile_width / 4];
  Sum starts[warps], corners[warps];
  std::uint64_t totals[warps];
};

template <bool squared, typename T, typename LineSum, typename Sum, int R>
__device__ __forceinline__ void sum_tile(const KernelParams& p, const Job& job, const Tile& tile,
                                         Shared<T, LineSum, Sum, R>& shared) {
  using Samples = SampleQuad<T, squared>;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int y = (tile.y * warps + warp) * R;
  LaneSamples<T, R> samples;
  load_rows(job, tile.x * tile_width, y - job.zero_line, lane, samples);
  if (job.unpacked) store_unpacked(job, tile.x * tile_width + 4 * lane, y - job.zero_line, samples);

  typename Samples::Columns columns[2];
  LineSum own = 0;  // the sum of row `lane`
  std::uint64_t total = 0;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const Samples first(samples.words[r][0]), second(samples.words[r][1]);
    columns[0].add(first);
    columns[1].add(second);
    const LineSum sum = cuda::warp_sum(LineSum(first.sum() + second.sum()));
    if (lane == r) own = sum;
    total += sum;
  }
  if (lane < R) static_cast<LineSum*>(job.rows)[std::ptrdiff_t(tile.x) * job.tiles_y * warps * R + y + lane] = own;
#pragma unroll
  for (int q = 0; q < 2; ++q) shared.columns[warp][q * 32 + lane] = columns[q].template sums_of<ColumnSums<LineSum>>();
  if (lane == 0) shared.totals[warp] = total;
  __syncthreads();
  if (threadIdx.x < tile_width) {
    LineSum sum = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) sum += shared.columns[w][threadIdx.x / 4].of[threadIdx.x % 4];
    static_cast<LineSum*>(job.columns)[(std::ptrdiff_t(tile.y) * job.tiles_x + tile.x) * tile_width + threadIdx.x] = sum;
  }
  if (threadIdx.x == 0) {
    total = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) total += shared.totals[w];
    job.totals[tile.y * job.tiles_x + tile.x] = total;
  }
  if (p.two_launches) return;
  __syncthreads();
  if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(job.summed + tile.y) : "memory");
}

}  // namespace cudavision::integral
