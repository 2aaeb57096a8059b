// SPDX-License-Identifier: LGPL-2.1-or-later
// The write pass: computes the entries of a tile. A warp holds the table row above its own rows in registers, and
// computes its R rows downwards:
//
//   S(x, y) = S(x, y − 1) + left(y) + the samples of row y in the tile, from its first column to x
//
//   left(y): all samples left of the tile in row y, in lane y % R.  The last term: a scan over the quads of the warp.
#pragma once

#include "kernels/cuda/overlap.hpp"
#include "kernels/integral/cuda_add_up.cuh"
#include "kernels/integral/cuda_store.cuh"

namespace cudavision::integral {

/// Computes the rows of a warp downwards, `together` at a time (their scans overlap), and calls store(r, inside) for
/// each row. r counts from 0 to together − 1; `inside` is false below the table. During the call, `sums` holds the
/// entries of the row, and `out` is its address.
template <int together, typename T, bool squared, typename Sum, int R, typename Store>
__device__ __forceinline__ void for_rows(const SumJob& job, int rows, int warp, int lane, Sum (&sums)[8],
                                         unsigned char*& out, Shared<T, squared, Sum, R>& shared, Store store) {
  using Samples = SampleQuad<T, squared>;
  using LineSum = typename Samples::LineSum;
#pragma unroll 1
  for (int first = 0; first < rows; first += together) {
    std::uint32_t words[together][2][sizeof(T)];
    LineSum quad_sums[together][2], before[together][2];
#pragma unroll
    for (int r = 0; r < together; ++r)
#pragma unroll
      for (int q = 0; q < 2; ++q) {
#pragma unroll
        for (int w = 0; w < int(sizeof(T)); ++w) words[r][q][w] = shared.words[warp][first + r][w][q * 32 + lane];
        quad_sums[r][q] = Samples(words[r][q]).sum();
      }
    exclusive_sums<T, squared>(quad_sums, lane, before);
#pragma unroll
    for (int r = 0; r < together; ++r, out += job.dst_pitch) {
      LineSum start = shared.left[warp][first + r];
      if (job.overlap) start -= __shfl_sync(~0u, before[r][0], tile_overlap / 4);
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

/// The sums of the columns above each warp: each thread adds up one column downwards.
template <typename T, bool squared, typename Sum, int R>
__device__ __forceinline__ void sum_columns_above(Shared<T, squared, Sum, R>& shared) {
  if (threadIdx.x >= tile_width) return;
  const int quad = threadIdx.x / 4, column = threadIdx.x % 4;
  typename SampleQuad<T, squared>::LineSum sum = 0;
#pragma unroll
  for (int w = 0; w < warps; ++w) sum += shared.above[w][quad].of[column];
#pragma unroll
  for (int w = 0; w < warps; ++w) {
    shared.above[w][quad].of[column] = sum;
    sum += shared.columns[w][quad].of[column];
  }
}

/// Loads the table row above the warp's first row, from the sums of the columns above it.
template <typename T, bool squared, typename Sum, int R>
__device__ __forceinline__ void load_row_above(const SumJob& job, int warp, int lane,
                                               const Shared<T, squared, Sum, R>& shared, Sum (&sums)[8]) {
#pragma unroll
  for (int q = 0; q < 2; ++q) {
    const auto quad = shared.above[warp][q * 32 + lane];
#pragma unroll
    for (int j = 0; j < 4; ++j) sums[4 * q + j] = quad.of[j];
  }
  Sum edge = 0;  // all samples to the left of the tile in the rows above this warp's first row
  if (lane < warps) edge = shared.corners[lane] + (lane < warp ? shared.starts[lane] : Sum(0));
  edge = cuda::warp_sum(edge);
  // The column sums become prefix sums: first in each quad (i = 0 and 4 begin one), then over the lanes.
#pragma unroll
  for (int i = 1; i < 8; ++i)
    if (i != 4) sums[i] += sums[i - 1];
  const Sum quad_sums[2] = {sums[3], sums[7]};
  Sum ends[2] = {quad_sums[0], quad_sums[1]};
  cuda::warp_scan(ends, lane);
  if (job.overlap) edge -= __shfl_sync(~0u, ends[0], tile_overlap / 4 - 1);
  const Sum before[2] = {edge + ends[0] - quad_sums[0], edge + __shfl_sync(~0u, ends[0], 31) + ends[1] - quad_sums[1]};
#pragma unroll
  for (int i = 0; i < 8; ++i) sums[i] += before[i / 4];
}

/// Computes the rows of a warp downwards from the row above them (`sums`), and stores them according to the type and
/// the alignment of the table. x, y: position of the warp's first entry.
template <typename T, bool squared, typename Sum, int R>
__device__ __forceinline__ void store_rows(const SumJob& job, int x, int y, int warp, int lane, Sum (&sums)[8],
                                           Shared<T, squared, Sum, R>& shared) {
  const int rows = min(R, job.height + job.zero_line - y);
  constexpr bool wide = sizeof(Sum) == 8;
  const int entry_bytes = wide && job.type != SumType::f32 ? 8 : 4;
  unsigned char* out = job.dst + y * job.dst_pitch + std::ptrdiff_t(x + job.zero_line) * entry_bytes;

  const auto all_rows = [&](auto number, auto store) {
    for_rows<decltype(number)::value>(job, rows, warp, lane, sums, out, shared, store);
  };
  constexpr std::integral_constant<int, 2> two;
  constexpr std::integral_constant<int, 4> four;
  const auto entries = [&] { return reinterpret_cast<std::uint32_t*>(out); };
  // The first entry of the row at which a sector begins, and the entries to store.
  const bool inner = job.overlap && x >= 0 && x + tile_width <= job.width;
  const auto skipped = [&](int bytes) {
    return job.overlap ? int(-(reinterpret_cast<std::uintptr_t>(out) / bytes) % (32 / bytes)) : 0;
  };
  const auto stored = [&](int first) {
    return Stored{max(first, -x - job.zero_line), min(job.tile_step + first, job.width - x), inner};
  };
  const bool whole = job.row_alignment == RowAlignment::aligned && job.overlap == 0 && x + tile_width <= job.width;
  if constexpr (wide) {
    void* const buffer = shared.above[warp];
    if (job.type == SumType::f32) {
      all_rows(two, [&](int, bool inside) {
        std::uint32_t rounded[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) rounded[i] = __float_as_uint(float(sums[i]));
        if (!inside) return;
        if (whole)
          store_aligned(entries(), lane, rounded);
        else
          store_shifted(skipped(4), stored(skipped(4)), entries(), lane, rounded);
      });
    } else {
      all_rows(two, [&](int, bool inside) {
        if (!inside) return;
        if (job.type == SumType::u64)
          store_wide(whole, stored(skipped(8)), reinterpret_cast<std::uint64_t*>(out), lane, sums, buffer);
        else  // SumType::f64
          store_wide(whole, stored(skipped(8)), reinterpret_cast<double*>(out), lane, sums, buffer);
      });
    }
  } else if (whole) {
    all_rows(four, [&](int, bool inside) {
      if (inside) store_aligned(entries(), lane, sums);
    });
  } else if (job.row_alignment == RowAlignment::stepped) {
    all_rows(four, [&](int r, bool inside) {
      if (!inside) return;
      const int first = skipped(4);
      if (first < 4)
        store_shifted(0, 3 - r % 4, stored(first), entries(), lane, sums);
      else
        store_shifted(1, 3 - r % 4, stored(first), entries(), lane, sums);
    });
  } else {
    all_rows(two, [&](int, bool inside) {
      if (inside) store_shifted(skipped(4), stored(skipped(4)), entries(), lane, sums);
    });
  }
}

/// Writes a tile. Its samples and its column sums are in shared memory. `together`: the block has also summed the tile.
template <bool together, typename T, bool squared, typename Sum, int R>
__device__ __forceinline__ void write_tile(const KernelParams& p, const SumJob& job, const TableTile& tile,
                                           std::uint32_t mark, Shared<T, squared, Sum, R>& shared) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int x = tile.x * job.tile_step - job.overlap, y = (tile.y * warps + warp) * R;
  // 2. Left, above, corner: the three parts of the drawing in cuda_add_up.cuh.
  add_up<together>(job, tile, mark, shared);
  __syncthreads();
  if (together && threadIdx.x == 0) count_written(p);
  if (together) cuda::let_next_start();
  // 3. The row of the table above this warp's first row.
  sum_columns_above(shared);
  __syncthreads();
  Sum sums[8];
  load_row_above(job, warp, lane, shared, sums);
  // 4. The rows below it.
  store_rows(job, x, y, warp, lane, sums, shared);
}

}  // namespace cudavision::integral
