// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernels of the summed-area tables. A block sums a tile (cuda_sum_tile.cuh), writes it (cuda_write_tile.cuh), or
// does both.
//
//   together:  every block sums a tile, waits for the sums of the preceding tiles, and writes its tile
//   apart:     blocks 0 … ahead − 1 sum | blocks alternate: sum, write, sum, write, … | the remaining blocks write
//
// Together: samples are read once, interleaved samples are unpacked once, and all blocks of a small frame run at once.
// Apart: summing runs some tiles ahead of writing. The samples of a tile are still in L2 when it is written, and the
// sums that a block waits for are (nearly) ready. So blocks of large frames wait less. A block waits only for blocks
// with smaller numbers. The device starts blocks in the order of their numbers; CUB's scans also assume this.
#include <algorithm>

#include "kernels/cuda/overlap.hpp"
#include "kernels/integral/cuda_write_tile.cuh"

namespace cudavision::integral {
namespace {

/// Waits until the rows of tiles 0 … last are summed.
__device__ __forceinline__ void wait_for_rows(const SumJob& job, int last) {
  if (threadIdx.x < 32) {
    for (int row = threadIdx.x; row <= last; row += 32) {
      unsigned summed;
      do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(summed) : "l"(job.summed + row) : "memory");
      while (summed < unsigned(job.tiles_x));
    }
  }
  __syncthreads();
}

/// T: the type of stored samples. Sum: the type in which sums of a frame are computed. R: rows of a warp. together:
/// each block sums a tile and writes it.
template <typename T, bool squared, typename Sum, int R, bool together>
__global__ void __launch_bounds__(threads,
                                  R == 4 && together ? tuning.heavy_blocks : min_blocks(sizeof(T), sizeof(Sum)))
    make_tables(const __grid_constant__ KernelParams p) {
  static_assert(R % 4 == 0 && 32 % R == 0, "rows are stored four at once; lanes share the rows on the left");
  extern __shared__ __align__(16) unsigned char memory[];
  auto& shared = *reinterpret_cast<Shared<T, squared, Sum, R>*>(memory);
  const Turn turn = together ? Turn{true, true, int(blockIdx.x)} : turn_of(p, int(blockIdx.x));
  const TableTile tile = tile_of(p, turn.tile);
  const SumJob& job = p.jobs[tile.job];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int x = tile.x * job.tile_step - job.overlap, y = (tile.y * warps + warp) * R - job.zero_line;
  // Interleaved samples occur only if `together`. But without the code for them, the compiler allocates registers
  // differently, and 8K GRAY8 becomes 4 % slower.
  constexpr bool pixels = together || sizeof(T) == 1;
  LaneSamples<T, R> samples;
  if constexpr (together) {
    cuda::wait_for_previous();
    const std::uint32_t mark = mark_of(p);
    load_rows<pixels>(job, x, y, lane, shared.words[warp], samples);
    share_samples(samples, warp, lane, shared);
    sum_tile(job, tile, mark, samples, shared);
    write_tile<true>(p, job, tile, mark, shared);
  } else if (turn.sums) {
    load_rows<pixels>(job, x, y, lane, shared.words[warp], samples);
    sum_tile(job, tile, 0, samples, shared);
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(job.summed + tile.y) : "memory");
  } else {
    load_rows<pixels>(job, x, y, lane, shared.words[warp], samples);
    wait_for_rows(job, tile.y);
    unsigned before = 0;
    if (threadIdx.x == 0) before = atomicAdd(p.written, 1);
    share_samples(samples, warp, lane, shared);
    share_columns(samples, warp, lane, shared);
    write_tile<false>(p, job, tile, 0, shared);
    // The last tile to stop waiting clears the counters for the next frame.
    if (threadIdx.x == 0 && before == unsigned(p.tiles - 1))
      for (int i = 0; i <= p.tile_rows; ++i) p.written[i] = 0;
  }
}

template <typename T, bool squared, typename Sum, int R, bool together>
TablesKernel kernel_of_rows() {
  return {reinterpret_cast<const void*>(&make_tables<T, squared, Sum, R, together>),
          int(sizeof(Shared<T, squared, Sum, R>))};
}

template <typename T, bool squared, typename Sum>
TablesKernel kernel_with_rows(int rows, bool together) {
  constexpr int most = max_warp_rows(sizeof(T), squared, sizeof(Sum));
  constexpr int small = std::min(tuning.small_rows, most), medium = std::min(tuning.medium_rows, most);
  if (!together) return kernel_of_rows<T, squared, Sum, most, false>();
  if (rows == small) return kernel_of_rows<T, squared, Sum, small, true>();
  if (rows == medium) return kernel_of_rows<T, squared, Sum, medium, true>();
  return kernel_of_rows<T, squared, Sum, std::min(tuning.large_rows, most), true>();
}

template <typename T>
TablesKernel kernel_of(bool squared, SumType type, int rows, bool together) {
  return squared                ? kernel_with_rows<T, true, std::uint64_t>(rows, together)
         : type == SumType::u32 ? kernel_with_rows<T, false, std::uint32_t>(rows, together)
                                : kernel_with_rows<T, false, std::uint64_t>(rows, together);
}

}  // namespace

TablesKernel tables_kernel(int sample_bytes, bool squared, SumType type, int rows, bool together) {
  return sample_bytes == 1 ? kernel_of<std::uint8_t>(squared, type, rows, together)
                           : kernel_of<std::uint16_t>(squared, type, rows, together);
}

}  // namespace cudavision::integral
