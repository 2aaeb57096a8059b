// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares and opens in one launch, where the output shows the picture (an overlay, or a mask beside an alpha channel): the opening
// reads the picture while it is still in L2.
//
//   blocks of a row:   | compare_x blocks: compare row y of tiles | open_x blocks: open row y − ahead |   y = 0 … rows + ahead − 1
//
// The opening of a row of tiles waits until all rows of tiles within twice the radius are compared: compared_rows counts the compared
// tiles of each row. These blocks have smaller numbers, and the device starts blocks in the order of their numbers, as the
// summed-area tables and the scans of CUB also assume. The last block to stop waiting clears the counters for the next frame.
//
// Where to change what: see cuda_compare.cu and cuda_open.cu; the order of blocks: Turns in cuda_schedule.hpp.
#include "kernels/diff/cuda_compare.cuh"
#include "kernels/diff/cuda_open.cuh"

namespace cudavision::diff {
namespace {

/// Waits until the rows of tiles are compared that the opening of a row of tiles needs. Returns in the first warp whether no block of the
/// launch waits any more.
__device__ __forceinline__ bool wait_for_rows(const KernelParams& p, int tile_y) {
  const int reach = (2 * p.open_radius + tuning.tile_rows - 1) / tuning.tile_rows, row = tile_y - reach + int(threadIdx.x);
  unsigned waited = 0;
  if (threadIdx.x < 32) {
    if (int(threadIdx.x) <= 2 * reach && row >= 0 && row < p.turns.rows) {
      unsigned compared;
      do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(compared) : "l"(p.compared_rows + row) : "memory");
      while (compared < unsigned(p.turns.compare_x));
    }
    __syncwarp();
    if (threadIdx.x == 0) waited = atomicAdd(p.compared_rows + p.turns.rows, 1);
  }
  __syncthreads();
  return __shfl_sync(~0u, waited, 0) == unsigned(p.turns.rows * p.turns.open_x - 1);
}

template <class S, bool wide>
__global__ void __launch_bounds__(S::threads) compare_and_open(const __grid_constant__ KernelParams p) {
  extern __shared__ std::uint32_t slots[];
  __shared__ CompareShared comparing;
  const Turn turn = turn_of(p.turns, int(blockIdx.x), int(blockIdx.y));
  if (turn.y < 0 || turn.y >= p.turns.rows) return;
  if (turn.opens) {
    clear_slots(p, slots);
    const bool last = wait_for_rows(p, turn.y);
    open_tile<S, Writes::changed, wide>(p, turn.x, turn.y, slots);
    if (last && threadIdx.x < 32)
      for (int row = threadIdx.x; row <= p.turns.rows; row += 32) p.compared_rows[row] = 0;
  } else {
    compare_tile<S, false, Writes::nothing>(p, turn.x, turn.y, comparing);
    // The barrier before the sums are stored also orders the bits of all threads.
    if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(p.compared_rows + turn.y) : "memory");
  }
}

}  // namespace

const void* compare_and_open_kernel(const Layout& layout, bool wide) {
  return with_shape(layout, [&](auto shape) {
    using S = decltype(shape);
    return wide ? reinterpret_cast<const void*>(compare_and_open<S, true>)
                : reinterpret_cast<const void*>(compare_and_open<S, false>);
  });
}

}  // namespace cudavision::diff
