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

/// 16 bytes of sums.
template <typename Value>
struct SumChunk {
  static constexpr int count = 16 / sizeof(Value);
  uint4 words;
  __device__ __forceinline__ void load(const Value* from) { words = __ldcg(reinterpret_cast<const uint4*>(from)); }
  template <typename Sum>
  __device__ __forceinline__ void add_to(Sum* sums) const {
    const std::uint32_t of[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int j = 0; j < count; ++j)
      sums[j] += sizeof(Value) == 8   ? Sum(of[2 * j % 4] | std::uint64_t(of[(2 * j + 1) % 4]) << 32)
                 : sizeof(Value) == 4 ? Sum(of[j % 4])
                                      : Sum(of[j / 2 % 4] >> j % 2 * 16 & 0xffff);
  }
};

/// Adds up the sums of other tiles: shared.left; shared.above, of which each warp adds up every eighth tile; shared.corners, in the same
/// way; shared.starts, the sum of each warp's part of shared.left. All loads of a round are in flight at once.
template <typename T, bool squared, typename Sum, int R>
__device__ __forceinline__ void add_up(const Job& job, const Tile& tile, Shared<T, squared, Sum, R>& shared) {
  using LineSum = typename SampleQuad<T, squared>::LineSum;
  using ColumnSum = typename SampleQuad<T, squared>::ColumnSum;
  using LineChunk = SumChunk<LineSum>;
  using ColumnChunk = SumChunk<ColumnSum>;
  constexpr int line_chunks = R / LineChunk::count;                 // of a tile's rows
  constexpr int beside = 32 / line_chunks;                          // tiles on the left that the lanes load at once
  constexpr int chunks = tile_width / ColumnChunk::count / 32;      // of a tile's columns, in a lane
  constexpr int tiles_left = 4, tiles_above = chunks == 1 ? 5 : 2;  // in a round
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const LineSum* const rows_left = static_cast<const LineSum*>(job.rows) +
                                   (std::ptrdiff_t(tile.y) * warps + warp) * job.tiles_x * R +
                                   lane % line_chunks * LineChunk::count;
  const ColumnSum* const columns_above =
      static_cast<const ColumnSum*>(job.columns) + tile.x * job.tile_step - job.overlap + lane * ColumnChunk::count;
  const bool outside = tile.x == 0 && lane * ColumnChunk::count < job.overlap;  // the first chunk is left of the table
  LineSum left[LineChunk::count] = {}, above[chunks * ColumnChunk::count] = {};
  Sum corner = 0;
#pragma unroll 1
  for (int first_left = lane / line_chunks, first_above = warp; first_left < tile.x || first_above < tile.y;
       first_left += tiles_left * beside, first_above += tiles_above * warps) {
    LineChunk lines[tiles_left];
    ColumnChunk columns[tiles_above][chunks];
    std::uint64_t totals[tiles_above];
#pragma unroll
    for (int n = 0; n < tiles_left; ++n) {
      const int x = first_left + n * beside;
      lines[n] = {};
      if (x < tile.x) lines[n].load(rows_left + x * R);
    }
#pragma unroll
    for (int n = 0; n < tiles_above; ++n) {
      const int y = first_above + n * warps;
      const std::ptrdiff_t row = std::ptrdiff_t(y) * job.tiles_x;
      totals[n] = 0;
      if (y < tile.y && lane < tile.x) totals[n] = __ldcg(job.totals + row + lane);
#pragma unroll
      for (int c = 0; c < chunks; ++c) {
        columns[n][c] = {};
        if (y < tile.y && (c > 0 || !outside))
          columns[n][c].load(columns_above + row * job.tile_step + c * 32 * ColumnChunk::count);
      }
    }
#pragma unroll
    for (int n = 0; n < tiles_left; ++n) lines[n].add_to(left);
#pragma unroll
    for (int n = 0; n < tiles_above; ++n) {
      corner += Sum(totals[n]);
#pragma unroll
      for (int c = 0; c < chunks; ++c) columns[n][c].add_to(above + c * ColumnChunk::count);
    }
  }
#pragma unroll 1
  for (int x = lane + 32; x < tile.x; x += 32)  // the corner of wide tables
    for (int y = warp; y < tile.y; y += warps) corner += Sum(__ldcg(job.totals + std::ptrdiff_t(y) * job.tiles_x + x));

#pragma unroll
  for (int j = 0; j < LineChunk::count; ++j)
#pragma unroll
    for (int d = line_chunks; d < 32; d *= 2) left[j] += __shfl_xor_sync(~0u, left[j], d);
  Sum own = 0;
#pragma unroll
  for (int j = 0; j < LineChunk::count; ++j) own += left[j];
  own = cuda::warp_sum(lane < line_chunks ? own : Sum(0));
  corner = cuda::warp_sum(corner);
  if (lane == 0) shared.corners[warp] = corner, shared.starts[warp] = own;
  struct alignas(16) Chunk {
    LineSum of[LineChunk::count];
  };
  const auto store = [&](const LineSum* from, LineSum* to) {
    Chunk chunk;
#pragma unroll
    for (int j = 0; j < LineChunk::count; ++j) chunk.of[j] = from[j];
    *reinterpret_cast<Chunk*>(to) = chunk;
  };
  if (lane < line_chunks) store(left, shared.left[warp] + lane * LineChunk::count);
#pragma unroll
  for (int c = 0; c < chunks; ++c)
#pragma unroll
    for (int j = 0; j < ColumnChunk::count; j += LineChunk::count)
      store(above + c * ColumnChunk::count + j, &shared.above[warp][0].of[0] + (c * 32 + lane) * ColumnChunk::count + j);
}

}  // namespace cudavision::integral
