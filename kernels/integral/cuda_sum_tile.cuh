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

/// The shared memory of a block, for both passes.
template <typename T, bool squared, typename Sum, int R>
struct Shared {
  using LineSum = typename SampleQuad<T, squared>::LineSum;
  using ColumnSum = typename SampleQuad<T, squared>::ColumnSum;
  RowWords<T> words[warps][R];                           ///< samples of the tile
  ColumnSums<ColumnSum> columns[warps][tile_width / 4];  ///< sums of the columns of each warp
  /// Sums of the columns of the tiles above, of which each warp adds up some; then the sums of all columns above each warp; then a row of
  /// entries of each warp.
  ColumnSums<LineSum> above[warps][tile_width / 4];
  alignas(16) LineSum left[warps][R];  ///< sums of the rows to the left of the tile
  Sum starts[warps], corners[warps];
  std::uint64_t totals[warps];
};

template <typename T, bool squared, typename Sum, int R>
__device__ __forceinline__ void sum_tile(const KernelParams& p, const Job& job, const Tile& tile,
                                         Shared<T, squared, Sum, R>& shared) {
  using Samples = SampleQuad<T, squared>;
  using LineSum = typename Samples::LineSum;
  using ColumnSum = typename Samples::ColumnSum;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int y = (tile.y * warps + warp) * R;
  LaneSamples<T, R> samples;
  const int x = tile.x * job.tile_step - job.overlap;
  load_rows<true>(job, x, y - job.zero_line, lane, shared.words[warp], samples);
  if (job.unpacked) store_unpacked(job, tile.x * job.tile_step, x + 4 * lane, y - job.zero_line, samples);

  typename Samples::Columns columns[2];
  LineSum own = 0;  // the sum of row `lane`
  std::uint64_t total = 0;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const Samples first(samples.words[r][0]), second(samples.words[r][1]);
    columns[0].add(first);
    columns[1].add(second);
    const LineSum sum = cuda::warp_sum(LineSum((4 * lane < job.overlap ? 0 : first.sum()) + second.sum()));
    if (lane == r) own = sum;
    total += sum;
  }
  if (lane < R) static_cast<LineSum*>(job.rows)[((std::ptrdiff_t(tile.y) * warps + warp) * job.tiles_x + tile.x) * R + lane] = own;
#pragma unroll
  for (int q = 0; q < 2; ++q) shared.columns[warp][q * 32 + lane] = columns[q].template sums_of<ColumnSums<ColumnSum>>();
  if (lane == 0) shared.totals[warp] = total;
  __syncthreads();
  if (threadIdx.x < tile_width && int(threadIdx.x) >= job.overlap) {
    LineSum sum = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) sum += shared.columns[w][threadIdx.x / 4].of[threadIdx.x % 4];
    const std::ptrdiff_t first = (std::ptrdiff_t(tile.y) * job.tiles_x + tile.x) * job.tile_step - job.overlap;
    static_cast<ColumnSum*>(job.columns)[first + threadIdx.x] = ColumnSum(sum);
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
