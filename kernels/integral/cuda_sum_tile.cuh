// SPDX-License-Identifier: LGPL-2.1-or-later
// Computes the sums of the rows and columns of a tile, and its total sum.
//
//     tile of a block           warp w: rows w · R … w · R + R − 1
//   +-----------------+   |
//    | warp 0          |   | job.rows: one sum per row (warp_sum over its lanes)
//   | warp 1          |   |
//    | …               |   | job.totals: one sum per tile
//   +-----------------+
//    ------------------- job.columns: one sum per column (each warp adds up its rows, then each thread adds up a word
//                                     of columns over all warps)
#pragma once

#include "kernels/integral/cuda_load.cuh"
#include "kernels/integral/cuda_mark.cuh"
#include "kernels/integral/cuda_quads.cuh"

namespace cudavision::integral {

/// The shared memory of a block.
template <typename T, bool squared, typename Sum, int R>
struct Shared {
  using LineSum = typename SampleQuad<T, squared>::LineSum;
  using ColumnSum = typename SampleQuad<T, squared>::ColumnSum;
  RowWords<T> words[warps][R];                           ///< samples of the tile
  ColumnSums<ColumnSum> columns[warps][tile_width / 4];  ///< sums of the columns of each warp
  /// First the column sums of the tiles above (each warp adds up some of these tiles), then the sums of all columns
  /// above each warp, then a row of entries of each warp.
  ColumnSums<LineSum> above[warps][tile_width / 4];
  alignas(16) LineSum left[warps][R];  ///< sums of the rows to the left of the tile
  Sum starts[warps], corners[warps];
  LineSum totals[warps];
};

/// Copies the samples of a lane to shared memory.
template <typename T, bool squared, typename Sum, int R>
__device__ __forceinline__ void share_samples(const LaneSamples<T, R>& samples, int warp, int lane,
                                              Shared<T, squared, Sum, R>& shared) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int q = 0; q < 2; ++q)
#pragma unroll
      for (int w = 0; w < int(sizeof(T)); ++w) shared.words[warp][r][w][q * 32 + lane] = samples.words[r][q][w];
}

/// Stores the sums of a lane's columns in shared memory.
template <typename T, bool squared, typename Sum, int R>
__device__ __forceinline__ void share_columns(const LaneSamples<T, R>& samples, int warp, int lane,
                                              Shared<T, squared, Sum, R>& shared) {
  using Samples = SampleQuad<T, squared>;
  typename Samples::Columns columns[2];
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int q = 0; q < 2; ++q) columns[q].add(Samples(samples.words[r][q]));
#pragma unroll
  for (int q = 0; q < 2; ++q)
    shared.columns[warp][q * 32 + lane] = columns[q].template sums_of<ColumnSums<typename Samples::ColumnSum>>();
}

/// Sums a tile, and stores the sums for the following tiles, with a mark.
template <typename T, bool squared, typename Sum, int R>
__device__ __forceinline__ void sum_tile(const SumJob& job, const TableTile& tile, std::uint32_t mark,
                                         const LaneSamples<T, R>& samples, Shared<T, squared, Sum, R>& shared) {
  using Samples = SampleQuad<T, squared>;
  using LineSum = typename Samples::LineSum;
  using ColumnSum = typename Samples::ColumnSum;
  // Column sums in a word of memory. Two sums of bytes share a word, and the second one has the mark: 128 rows × 255
  // fit in 15 bits.
  using Word = std::conditional_t<sizeof(ColumnSum) == 2, std::uint32_t, ColumnSum>;
  constexpr int together = sizeof(Word) / sizeof(ColumnSum);
  static_assert(sizeof(ColumnSum) != 2 || warps * R * 255 < 1 << 15, "the top bit of two sums of columns is the mark");
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;

  share_columns(samples, warp, lane, shared);
  LineSum sum_of_row = 0;  // the sum of row `lane`
  LineSum total = 0;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const Samples first(samples.words[r][0]), second(samples.words[r][1]);
    const LineSum sum = cuda::warp_sum(LineSum((4 * lane < job.overlap ? 0 : first.sum()) + second.sum()));
    if (lane == r) sum_of_row = sum;
    total += sum;
  }
  if (lane < R)
    store_marked(
        static_cast<LineSum*>(job.rows) + ((std::ptrdiff_t(tile.y) * warps + warp) * job.tiles_x + tile.x) * R + lane,
        sum_of_row, mark);
  if (lane == 0) shared.totals[warp] = total;
  __syncthreads();
  const int column = int(threadIdx.x) * together;
  if (column < tile_width && column >= job.overlap) {
    Word sum = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) sum += reinterpret_cast<const Word*>(shared.columns[w])[threadIdx.x];
    const std::ptrdiff_t first = (std::ptrdiff_t(tile.y) * job.tiles_x + tile.x) * job.tile_step - job.overlap;
    store_marked(reinterpret_cast<Word*>(static_cast<ColumnSum*>(job.columns) + first + column), sum, mark);
  }
  if (threadIdx.x == threads - 1) {
    total = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) total += shared.totals[w];
    store_marked(static_cast<LineSum*>(job.totals) + (tile.y * job.tiles_x + tile.x), total, mark);
  }
}

}  // namespace cudavision::integral
