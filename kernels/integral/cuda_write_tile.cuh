// SPDX-License-Identifier: LGPL-2.1-or-later
// The write pass: the entries of a tile. A warp holds the row of the table above its own rows in registers, and goes down
// its R rows:
//
//   S(x, y) = S(x, y − 1) + left(y) + the samples of row y in the tile, from its first column to x
//
//   left(y): all samples left of the tile in row y, in lane y % R.  The last term: a scan over the quads of the warp.
#pragma once

#include "kernels/integral/cuda_add_up.cuh"
#include "kernels/integral/cuda_store.cuh"

namespace cudavision::integral {

/// Copies the samples of a lane to shared memory, and the sums of its columns.
template <bool squared, typename T, typename LineSum, typename Sum, int R>
__device__ __forceinline__ void share_samples(const LaneSamples<T, R>& samples, int warp, int lane,
                                              Shared<T, LineSum, Sum, R>& shared) {
  using Samples = SampleQuad<T, squared>;
  typename Samples::Columns columns[2];
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      columns[q].add(Samples(samples.words[r][q]));
#pragma unroll
      for (int w = 0; w < int(sizeof(T)); ++w) shared.words[warp][r][w][q * 32 + lane] = samples.words[r][q][w];
    }
#pragma unroll
  for (int q = 0; q < 2; ++q) shared.columns[warp][q * 32 + lane] = columns[q].template sums_of<ColumnSums<LineSum>>();
}

/// Goes down the rows of a warp, `together` at once (their scans overlap), and calls store(r, inside) for each. r counts from 0 to
/// together − 1; `inside` is false below the table. At the call `sums` holds the entries of the row, and `out` is its address.
template <bool squared, int together, typename T, typename LineSum, typename Sum, int R, typename Store>
__device__ __forceinline__ void for_rows(const Job& job, int rows, int warp, int lane, LineSum left, Sum (&sums)[8],
                                         unsigned char*& out, Shared<T, LineSum, Sum, R>& shared, Store store) {
  using Samples = SampleQuad<T, squared>;
#pragma unroll 1
  for (int first = 0; first < rows; first += together) {
    std::uint32_t words[together][2][sizeof(T)];
    LineSum own[together][2], before[together][2];
#pragma unroll
    for (int r = 0; r < together; ++r)
#pragma unroll
      for (int q = 0; q < 2; ++q) {
#pragma unroll
        for (int w = 0; w < int(sizeof(T)); ++w) words[r][q][w] = shared.words[warp][first + r][w][q * 32 + lane];
        own[r][q] = Samples(words[r][q]).sum();
      }
    exclusive_sums<T, squared>(own, lane, before);
#pragma unroll
    for (int r = 0; r < together; ++r, out += job.dst_pitch) {
      const LineSum start = __shfl_sync(~0u, left, first + r);
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        LineSum prefix[4];
        Samples(words[r][q]).prefix(before[r][q] + start, prefix);
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[4 * q + j] += prefix[j];
      }
      store(r, first + r < rows);
    }
  }
}

// One long function: split further, the compiler orders its instructions differently.
template <bool squared, typename T, typename LineSum, typename Sum, int R>
__device__ __forceinline__ void write_tile(const KernelParams& p, const Job& job, const Tile& tile,
                                           Shared<T, LineSum, Sum, R>& shared) {
  using Samples = SampleQuad<T, squared>;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int x = tile.x * tile_width, y = (tile.y * warps + warp) * R;
  // 1. The samples of the warp. Those of the frame are loaded before waiting; unpacked samples come from the sum pass.
  LaneSamples<T, R> samples;
  if (job.unpacked) wait_for_rows(p, job, tile.y);
  load_rows(job, x, y - job.zero_line, lane, samples);
  if (!job.unpacked) wait_for_rows(p, job, tile.y);
  unsigned past_wait = 0;
  if (!p.two_launches && threadIdx.x == 0) past_wait = atomicAdd(p.past_wait, 1);

  // 2. Left, above, corner: the three parts of the drawing in cuda_add_up.cuh.
  const LineSum left = sum_left<R, LineSum>(job, tile, y, lane);
  {  // `above`: each group of threads adds up some of the tiles above. `corners`: each warp, some of the tiles left above.
    constexpr int quads = tile_width / 4;
    const int group = threadIdx.x / quads, quad = threadIdx.x % quads;
    const auto* const columns = static_cast<const ColumnSums<LineSum>*>(job.columns) + tile.x * quads + quad;
    shared.above[group][quad] = sum_every<ColumnSums<LineSum>, 4>(
        group, above_groups, tile.y, [&](int i) { return columns[std::ptrdiff_t(i) * job.tiles_x * quads]; });

    Sum corner = 0;
    for (int j = lane; j < tile.x; j += 32)
      corner += sum_every<Sum, 4>(warp, warps, tile.y, [&](int i) { return Sum(__ldcg(job.totals + i * job.tiles_x + j)); });
    corner = cuda::warp_sum(corner);
    const Sum own = cuda::warp_sum(lane < R ? Sum(left) : Sum(0));
    if (lane == 0) shared.corners[warp] = corner, shared.starts[warp] = own;
  }
  share_samples<squared>(samples, warp, lane, shared);
  __syncthreads();

  // 3. The row of the table above this warp's first row: the sums above the tile, and the columns of the warps above.
  Sum sums[8] = {};
  {
    const auto add = [&](const ColumnSums<LineSum>* columns) {
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        const ColumnSums<LineSum> quad = columns[q * 32 + lane];
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[4 * q + j] += quad.of[j];
      }
    };
#pragma unroll
    for (int g = 0; g < above_groups; ++g) add(shared.above[g]);
#pragma unroll 1
    for (int w = 0; w < warp; ++w) add(shared.columns[w]);
    Sum edge = 0;  // all samples left of the tile in the rows above this warp's first row
    if (lane < warps) edge = shared.corners[lane] + (lane < warp ? shared.starts[lane] : Sum(0));
    edge = cuda::warp_sum(edge);
    // The sums of the columns become prefix sums: over each quad (i = 0 and 4 begin one), then over the lanes.
#pragma unroll
    for (int i = 1; i < 8; ++i)
      if (i != 4) sums[i] += sums[i - 1];
    const Sum own[2] = {sums[3], sums[7]};
    Sum ends[2] = {own[0], own[1]};
    cuda::warp_scan(ends, lane);
    const Sum before[2] = {edge + ends[0] - own[0], edge + __shfl_sync(~0u, ends[0], 31) + ends[1] - own[1]};
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] += before[i / 4];
  }

  // 4. Go down the rows and store them, by the type and the alignment of the table.
  const int rows = min(R, job.height + job.zero_line - y), count = job.width - x;
  constexpr bool wide = sizeof(Sum) == 8;
  const int entry_bytes = wide && job.type != SumType::f32 ? 8 : 4;
  unsigned char* out = job.dst + y * job.dst_pitch;
  if (job.zero_line && x == 0 && lane < rows) {  // the zero column
    if (entry_bytes == 8)
      *reinterpret_cast<std::uint64_t*>(out + lane * job.dst_pitch) = 0;
    else
      *reinterpret_cast<std::uint32_t*>(out + lane * job.dst_pitch) = 0;
  }
  out += std::ptrdiff_t(x + job.zero_line) * entry_bytes;

  const auto all_rows = [&](auto number, auto store) {
    for_rows<squared, decltype(number)::value>(job, rows, warp, lane, left, sums, out, shared, store);
  };
  constexpr std::integral_constant<int, 2> two;
  constexpr std::integral_constant<int, 4> four;
  const auto entries = [&] { return reinterpret_cast<std::uint32_t*>(out); };
  if constexpr (wide) {
    __syncthreads();
    void* const buffer = shared.columns[warp];
    if (job.type == SumType::f32) {
      all_rows(two, [&](int, bool inside) {
        std::uint32_t rounded[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) rounded[i] = __float_as_uint(float(sums[i]));
        if (inside) store_row(count, entries(), lane, rounded);
      });
    } else {
      all_rows(two, [&](int, bool inside) {
        if (!inside) return;
        if (job.type == SumType::u64)
          store_row<std::uint64_t>(count, out, lane, sums, buffer);
        else  // SumType::f64
          store_row<double>(count, out, lane, sums, buffer);
      });
    }
  } else if (job.row_alignment == RowAlignment::aligned && count >= tile_width) {
    all_rows(four, [&](int, bool inside) { store_words(0, inside, entries(), lane, sums); });
  } else if (job.row_alignment == RowAlignment::stepped && count >= tile_width) {
    all_rows(four, [&](int r, bool inside) { store_words((1 + r) % 4, inside, entries(), lane, sums); });
  } else {
    all_rows(two, [&](int, bool inside) {
      if (inside) store_row(count, entries(), lane, sums);
    });
  }
  // 5. The last tile to stop waiting clears the counters for the next frame.
  if (!p.two_launches && threadIdx.x == 0 && past_wait == unsigned(p.tiles - 1))
    for (int i = 0; i <= p.tile_rows; ++i) p.past_wait[i] = 0;
}

}  // namespace cudavision::integral
