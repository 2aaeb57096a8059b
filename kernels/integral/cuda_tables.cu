// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernel of the summed-area tables. A block sums one tile (cuda_sum_tile.cuh) or writes one tile (cuda_write_tile.cuh).
//
//   single launch:  blocks 0 … ahead − 1 sum | blocks in turn: sum, write, sum, write, … | the remaining blocks write
//   two launches:   all blocks of the first sum, all blocks of the second write
//
// Summing is some tiles ahead of writing: the samples of a tile are still in L2 when it is written, reads and writes of memory
// overlap, and the sums that a block waits for are ready or nearly ready. A block waits only for blocks with smaller numbers, and
// the device starts blocks in the order of their numbers, as the scans of CUB also assume.
#include <algorithm>

#include "kernels/integral/cuda_kernels.hpp"
#include "kernels/integral/cuda_write_tile.cuh"

namespace cudavision::integral {
namespace {

/// T: stored samples. Sum: what sums of a frame are computed in. R: rows of a warp.
template <typename T, bool squared, typename Sum, int R>
__global__ void __launch_bounds__(threads, min_blocks(sizeof(T), sizeof(Sum))) make_tables(const __grid_constant__ KernelParams p) {
  static_assert(R % 4 == 0 && 32 % R == 0, "rows are stored four at once; lanes share the rows on the left");
  extern __shared__ __align__(16) unsigned char memory[];
  auto& shared = *reinterpret_cast<Shared<T, squared, Sum, R>*>(memory);
  const Turn turn = turn_of(p, p.first_block + int(blockIdx.x));
  const Tile tile = tile_of(p, turn.tile);
  if (turn.sums) {
    if (p.two_launches) cuda::let_next_start();
    sum_tile(p, p.sum_jobs[tile.job], tile, shared);
  } else {
    write_tile(p, p.write_jobs[tile.job], tile, shared);
  }
}

template <typename T, bool squared, typename Sum, int R>
TablesKernel kernel_of_rows() {
  return {reinterpret_cast<const void*>(&make_tables<T, squared, Sum, R>), int(sizeof(Shared<T, squared, Sum, R>))};
}

template <typename T, bool squared, typename Sum>
TablesKernel kernel_with_rows(int rows) {
  constexpr int most = max_warp_rows(sizeof(T), squared, sizeof(Sum));
  constexpr int small = std::min(tuning.small_rows, most), medium = std::min(tuning.medium_rows, most);
  if (rows == small) return kernel_of_rows<T, squared, Sum, small>();
  if (rows == medium) return kernel_of_rows<T, squared, Sum, medium>();
  return kernel_of_rows<T, squared, Sum, std::min(tuning.large_rows, most)>();
}

template <typename T>
TablesKernel kernel_of(bool squared, SumType type, int rows) {
  return squared                ? kernel_with_rows<T, true, std::uint64_t>(rows)
         : type == SumType::u32 ? kernel_with_rows<T, false, std::uint32_t>(rows)
                                : kernel_with_rows<T, false, std::uint64_t>(rows);
}

}  // namespace

TablesKernel tables_kernel(int sample_bytes, bool squared, SumType type, int rows) {
  return sample_bytes == 1 ? kernel_of<std::uint8_t>(squared, type, rows) : kernel_of<std::uint16_t>(squared, type, rows);
}

}  // namespace cudavision::integral
