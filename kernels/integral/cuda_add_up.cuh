// SPDX-License-Identifier: LGPL-2.1-or-later
// Adding up the sums of other tiles, which are needed before tile (x, y) is written.
//
//             +---------+---------+---------+
//             | corner  | corner  | above   |   corner: sums of all tiles left above (job.totals)
//             +---------+---------+---------+   above:  sums of the columns of all tiles above (job.columns)
//             | corner  | corner  | above   |   left:   sums of each row of all tiles to the left (job.rows)
//             +---------+---------+---------+
//             | left    | left    | (x, y)  |
//             +---------+---------+---------+
#pragma once

#include "kernels/integral/cuda_sum_tile.cuh"

namespace cudavision::integral {

/// 16 bytes of marked sums.
template <typename Value>
struct SumChunk {
  static constexpr int count = 16 / sizeof(Value);
  uint4 words;
  /// Sums that are not there yet, or zeros.
  __device__ __forceinline__ void set(bool missing, std::uint32_t mark) {
    const std::uint32_t top = missing ? mark ^ 0x80000000u : mark, low = sizeof(Value) == 8 ? 0 : mark;
    words = make_uint4(low, mark, low, top);
  }
  __device__ __forceinline__ void load(const Value* from, std::uint32_t mark) {
    load_words<sizeof(Value) == 8 ? 8 : 4>(from, missing(mark), words);
  }
  /// Whether one of the sums is not there yet.
  __device__ __forceinline__ bool missing(std::uint32_t mark) const {
    const std::uint32_t odd = (words.y ^ mark) | (words.w ^ mark), even = (words.x ^ mark) | (words.z ^ mark);
    return is_missing(sizeof(Value) == 8 ? odd : odd | even);
  }
  template <typename Sum>
  __device__ __forceinline__ void add_to(Sum* sums, std::uint32_t mark) const {
    const std::uint32_t low = sizeof(Value) == 8 ? 0 : mark;
    const std::uint32_t of[4] = {words.x ^ low, words.y ^ mark, words.z ^ low, words.w ^ mark};
#pragma unroll
    for (int j = 0; j < count; ++j)
      sums[j] += sizeof(Value) == 8   ? Sum(of[2 * j % 4] | std::uint64_t(of[(2 * j + 1) % 4]) << 32)
                 : sizeof(Value) == 4 ? Sum(of[j % 4])
                                      : Sum(of[j / 2 % 4] >> j % 2 * 16 & 0xffff);
  }
};

/// Adds up the sums of other tiles: shared.left; shared.above and shared.corners, where warp w adds up the tiles w, w +
/// warps, …; and shared.starts, the sum of each warp's part of shared.left. All loads of a round are in flight at once.
template <bool together, typename T, bool squared, typename Sum, int R>
__device__ __forceinline__ void add_up(const Job& job, const Tile& tile, std::uint32_t mark,
                                       Shared<T, squared, Sum, R>& shared) {
  using LineSum = typename SampleQuad<T, squared>::LineSum;
  using ColumnSum = typename SampleQuad<T, squared>::ColumnSum;
  using LineChunk = SumChunk<LineSum>;
  using ColumnChunk = SumChunk<ColumnSum>;
  constexpr int line_chunks = R / LineChunk::count;             // of a tile's rows
  constexpr int beside = 32 / line_chunks;                      // tiles on the left that the lanes load at once
  constexpr int chunks = tile_width / ColumnChunk::count / 32;  // of a tile's columns, in a lane
  // Tiles of a round: what the registers hold.
  constexpr int tiles_left = !together          ? 4
                             : line_chunks == 1 ? 1
                                                : 2,
                tiles_above = chunks > 1 || (together && R > 4) ? 2 : 5;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const LineSum* const rows_left = static_cast<const LineSum*>(job.rows) +
                                   (std::ptrdiff_t(tile.y) * warps + warp) * job.tiles_x * R +
                                   lane % line_chunks * LineChunk::count;
  const ColumnSum* const columns_above =
      static_cast<const ColumnSum*>(job.columns) + tile.x * job.tile_step - job.overlap + lane * ColumnChunk::count;
  const auto* const tile_totals = static_cast<const LineSum*>(job.totals);
  const bool outside = tile.x == 0 && lane * ColumnChunk::count < job.overlap;  // the first chunk is left of the table
  LineSum left[LineChunk::count] = {}, above[chunks * ColumnChunk::count] = {};
  Sum corner = 0;
  if (together) __nanosleep(tuning.first_nap);

    // The bounds are those of the warp: its lanes stay together.
#pragma unroll 1
  for (int round_left = 0, round_above = 0; round_left < tile.x || round_above + warp < tile.y;
       round_left += tiles_left * beside, round_above += tiles_above * warps) {
    const int first_left = round_left + lane / line_chunks, first_above = round_above + warp;
    LineChunk lines[tiles_left];
    ColumnChunk columns[tiles_above][chunks];
    LineSum totals[tiles_above];
    // Chunks that a lane does not need are set to zero. The others are set to missing, and loaded until they are there.
#pragma unroll
    for (int n = 0; n < tiles_left; ++n) lines[n].set(first_left + n * beside < tile.x, mark);
#pragma unroll
    for (int n = 0; n < tiles_above; ++n) {
      const bool needed = first_above + n * warps < tile.y;
      totals[n] = marked(needed && lane < tile.x ? missing_sum<LineSum>() : LineSum(0), mark);
#pragma unroll
      for (int c = 0; c < chunks; ++c) columns[n][c].set(needed && (c > 0 || !outside), mark);
    }
    bool missing;
    do {
      int next_left = first_left, next_above = first_above;
      cuda::hide_origin(next_left), cuda::hide_origin(next_above);  // else all addresses take registers
#pragma unroll
      for (int n = 0; n < tiles_left; ++n) lines[n].load(rows_left + (next_left + n * beside) * R, mark);
#pragma unroll
      for (int n = 0; n < tiles_above; ++n) {
        const std::ptrdiff_t row = std::ptrdiff_t(next_above + n * warps) * job.tiles_x;
        load_word(tile_totals + row + lane, is_missing(marked(totals[n], mark)), totals[n]);
#pragma unroll
        for (int c = 0; c < chunks; ++c)
          columns[n][c].load(columns_above + row * job.tile_step + c * 32 * ColumnChunk::count, mark);
      }
      missing = false;
#pragma unroll
      for (int n = 0; n < tiles_left; ++n) missing |= lines[n].missing(mark);
#pragma unroll
      for (int n = 0; n < tiles_above; ++n) {
        missing |= is_missing(marked(totals[n], mark));
#pragma unroll
        for (int c = 0; c < chunks; ++c) missing |= columns[n][c].missing(mark);
      }
      missing = together && __any_sync(~0u, missing);
      if (missing) __nanosleep(tuning.next_nap);
    } while (missing);
#pragma unroll
    for (int n = 0; n < tiles_left; ++n) lines[n].add_to(left, mark);
#pragma unroll
    for (int n = 0; n < tiles_above; ++n) {
      corner += Sum(marked(totals[n], mark));
#pragma unroll
      for (int c = 0; c < chunks; ++c) columns[n][c].add_to(above + c * ColumnChunk::count, mark);
    }
  }
#pragma unroll 1
  for (int x = lane + 32; x < tile.x; x += 32)  // the corner of wide tables
    for (int y = warp; y < tile.y; y += warps) {
      LineSum total;
      do total = load_marked(tile_totals + std::ptrdiff_t(y) * job.tiles_x + x, mark);
      while (together && is_missing(total));
      corner += Sum(total);
    }

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
      store(above + c * ColumnChunk::count + j,
            &shared.above[warp][0].of[0] + (c * 32 + lane) * ColumnChunk::count + j);
}

}  // namespace cudavision::integral
