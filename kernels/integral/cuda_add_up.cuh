// SPDX-License-Identifier: LGPL-2.1-or-later
// Adds up the sums of other tiles, which are needed before tile (x, y) is written.
//
//             +---------+---------+---------+
//             | corner  | corner  | above   |   corner: sums of all tiles above and to the left (job.totals)
//             +---------+---------+---------+   above:  column sums of all tiles above (job.columns)
//             | corner  | corner  | above   |   left:   row sums of all tiles to the left (job.rows)
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
  /// Sets the sums to "not yet available", or to zeros.
  __device__ __forceinline__ void set(bool missing, std::uint32_t mark) {
    const std::uint32_t top = missing ? mark ^ 0x80000000u : mark, low = sizeof(Value) == 8 ? 0 : mark;
    words = make_uint4(low, mark, low, top);
  }
  __device__ __forceinline__ void load(const Value* from, std::uint32_t mark) {
    load_words<sizeof(Value) == 8 ? 8 : 4>(from, missing(mark), words);
  }
  /// Whether any of the sums is not yet available.
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

/// The sums of other tiles that a thread adds up. Each lane of warp w loads a chunk of the row sums of the tiles to the
/// left. The lanes also load column sums and totals of the tiles above, in the rows of tiles w, w + warps, …
///
/// `together` assumes that the blocks of these tiles are running or have ended, so that their sums arrive: they have
/// smaller numbers, and the device starts blocks in the order of their numbers (cuda_tables.cu). Otherwise load_round()
/// would wait forever.
template <bool together, typename T, bool squared, typename Sum, int R>
struct OtherSums {
  using LineSum = typename SampleQuad<T, squared>::LineSum;
  using ColumnSum = typename SampleQuad<T, squared>::ColumnSum;
  using LineChunk = SumChunk<LineSum>;
  using ColumnChunk = SumChunk<ColumnSum>;
  static constexpr int line_chunks = R / LineChunk::count;  ///< chunks of a tile's row sums
  static constexpr int beside = 32 / line_chunks;           ///< tiles to the left that the lanes load at once
  static constexpr int chunks = tile_width / ColumnChunk::count / 32;  ///< chunks of a tile's column sums in a lane
  /// The number of tiles in a round: as many as the registers can hold.
  static constexpr int tiles_left = !together          ? 4
                                    : line_chunks == 1 ? 1
                                                       : 2,
                       tiles_above = chunks > 1 || (together && R > 4) ? 2 : 5;
  static_assert(line_chunks * LineChunk::count == R && beside * line_chunks == 32, "lanes share the rows evenly");
  static_assert(chunks * ColumnChunk::count * 32 == tile_width, "lanes share the columns evenly");

  const SumJob& job;
  const TableTile& tile;
  const std::uint32_t mark;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const LineSum* const rows_left = static_cast<const LineSum*>(job.rows) +
                                   (std::ptrdiff_t(tile.y) * warps + warp) * job.tiles_x * R +
                                   lane % line_chunks * LineChunk::count;
  const ColumnSum* const columns_above =
      static_cast<const ColumnSum*>(job.columns) + tile.x * job.tile_step - job.overlap + lane * ColumnChunk::count;
  const LineSum* const tile_totals = static_cast<const LineSum*>(job.totals);
  const bool outside =
      tile.x == 0 && lane * ColumnChunk::count < job.overlap;  ///< the first chunk is to the left of the table
  LineSum left[LineChunk::count] = {}, above[chunks * ColumnChunk::count] = {};
  Sum corner = 0;

  /// The chunks of one round of loads. All loads of a round are in flight at once.
  struct Round {
    int first_left, first_above;  ///< the first tiles of the lane
    LineChunk lines[tiles_left];
    ColumnChunk columns[tiles_above][chunks];
    LineSum totals[tiles_above];
  };

  __device__ __forceinline__ OtherSums(const SumJob& job, const TableTile& tile, std::uint32_t mark)
      : job(job), tile(tile), mark(mark) {}

  /// Sets the chunks that a lane does not need to zero, and the others to missing.
  __device__ __forceinline__ void begin_round(Round& round) const {
#pragma unroll
    for (int n = 0; n < tiles_left; ++n) round.lines[n].set(round.first_left + n * beside < tile.x, mark);
#pragma unroll
    for (int n = 0; n < tiles_above; ++n) {
      const bool needed = round.first_above + n * warps < tile.y;
      round.totals[n] = marked(needed && lane < tile.x ? missing_sum<LineSum>() : LineSum(0), mark);
#pragma unroll
      for (int c = 0; c < chunks; ++c) round.columns[n][c].set(needed && (c > 0 || !outside), mark);
    }
  }

  /// Loads the missing chunks once. Returns whether some are still missing.
  __device__ __forceinline__ bool load_missing(Round& round) const {
    int next_left = round.first_left, next_above = round.first_above;
    cuda::opaque_register(next_left), cuda::opaque_register(next_above);  // else every address takes registers
#pragma unroll
    for (int n = 0; n < tiles_left; ++n) round.lines[n].load(rows_left + (next_left + n * beside) * R, mark);
#pragma unroll
    for (int n = 0; n < tiles_above; ++n) {
      const std::ptrdiff_t row = std::ptrdiff_t(next_above + n * warps) * job.tiles_x;
      load_word(tile_totals + row + lane, is_missing(marked(round.totals[n], mark)), round.totals[n]);
#pragma unroll
      for (int c = 0; c < chunks; ++c)
        round.columns[n][c].load(columns_above + row * job.tile_step + c * 32 * ColumnChunk::count, mark);
    }
    bool missing = false;
#pragma unroll
    for (int n = 0; n < tiles_left; ++n) missing |= round.lines[n].missing(mark);
#pragma unroll
    for (int n = 0; n < tiles_above; ++n) {
      missing |= is_missing(marked(round.totals[n], mark));
#pragma unroll
      for (int c = 0; c < chunks; ++c) missing |= round.columns[n][c].missing(mark);
    }
    return missing;
  }

  /// Loads the chunks of a round until none is missing.
  __device__ __forceinline__ void load_round(Round& round) const {
    bool missing;
    do {
      missing = load_missing(round);
      missing = together && __any_sync(~0u, missing);
      if (missing) __nanosleep(tuning.next_nap);
    } while (missing);
  }

  __device__ __forceinline__ void add_round(const Round& round) {
#pragma unroll
    for (int n = 0; n < tiles_left; ++n) round.lines[n].add_to(left, mark);
#pragma unroll
    for (int n = 0; n < tiles_above; ++n) {
      corner += Sum(marked(round.totals[n], mark));
#pragma unroll
      for (int c = 0; c < chunks; ++c) round.columns[n][c].add_to(above + c * ColumnChunk::count, mark);
    }
  }

  /// Adds the totals of the tiles above and to the left, beginning with tile column 32. The rounds have added the
  /// others.
  __device__ __forceinline__ void add_far_totals() {
#pragma unroll 1
    for (int x = lane + 32; x < tile.x; x += 32)
      for (int y = warp; y < tile.y; y += warps) {
        LineSum total;
        do total = load_marked(tile_totals + std::ptrdiff_t(y) * job.tiles_x + x, mark);
        while (together && is_missing(total));
        corner += Sum(total);
      }
  }

  static __device__ __forceinline__ void store_chunk(const LineSum* from, LineSum* to) {
    struct alignas(16) Chunk {
      LineSum of[LineChunk::count];
    } chunk;
#pragma unroll
    for (int j = 0; j < LineChunk::count; ++j) chunk.of[j] = from[j];
    *reinterpret_cast<Chunk*>(to) = chunk;
  }

  /// Adds up the sums of the lanes, and stores them.
  __device__ __forceinline__ void store(Shared<T, squared, Sum, R>& shared) {
#pragma unroll
    for (int j = 0; j < LineChunk::count; ++j)
#pragma unroll
      for (int d = line_chunks; d < 32; d *= 2) left[j] += __shfl_xor_sync(~0u, left[j], d);
    Sum start = 0;
#pragma unroll
    for (int j = 0; j < LineChunk::count; ++j) start += left[j];
    start = cuda::warp_sum(lane < line_chunks ? start : Sum(0));
    corner = cuda::warp_sum(corner);
    if (lane == 0) shared.corners[warp] = corner, shared.starts[warp] = start;
    if (lane < line_chunks) store_chunk(left, shared.left[warp] + lane * LineChunk::count);
#pragma unroll
    for (int c = 0; c < chunks; ++c)
#pragma unroll
      for (int j = 0; j < ColumnChunk::count; j += LineChunk::count)
        store_chunk(above + c * ColumnChunk::count + j,
                    &shared.above[warp][0].of[0] + (c * 32 + lane) * ColumnChunk::count + j);
  }
};

/// Adds up the sums of other tiles: shared.left; shared.above and shared.corners, for which warp w adds up the tiles w,
/// w + warps, …; and shared.starts, the sum of each warp's part of shared.left.
template <bool together, typename T, bool squared, typename Sum, int R>
__device__ __forceinline__ void add_up(const SumJob& job, const TableTile& tile, std::uint32_t mark,
                                       Shared<T, squared, Sum, R>& shared) {
  using Others = OtherSums<together, T, squared, Sum, R>;
  Others others(job, tile, mark);
  if (together) __nanosleep(tuning.first_nap);
    // All lanes of the warp have the same bounds, so that they stay together.
#pragma unroll 1
  for (int left = 0, above = 0; left < tile.x || above + others.warp < tile.y;
       left += Others::tiles_left * Others::beside, above += Others::tiles_above * warps) {
    typename Others::Round round;
    round.first_left = left + others.lane / Others::line_chunks, round.first_above = above + others.warp;
    others.begin_round(round);
    others.load_round(round);
    others.add_round(round);
  }
  others.add_far_totals();
  others.store(shared);
}

}  // namespace cudavision::integral
