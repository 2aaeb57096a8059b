// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares frames in one pass: difference, threshold, output, the reference for later frames, and counts of changed
// pixels in cells.
//
//   grid: tiles_x × tiles_y tiles; a tile is a block, 32 lanes wide, 16 rows high
//
//           lane 0    lane 1        lane 31      a lane has 4, 8 or 16 pixels of a row (strip_pixels), of 1 or 2 rows
//   warp 0  |strip   |strip   | … |strip   |    (strip_rows), with the chroma samples of those pixels:
//   warp 1  |strip   |strip   | … |strip   |        plane 0    |Y0 Y1 Y2 … Y15|     16 bytes (GRAY8, NV12)
//     …                                                        |Y0 Y1 Y2 … Y15|
//                                                   plane 1    |U0 V0 … U7 V7 |
//
// In most tiles each strip is either whole or outside the frame: rows are then accessed as aligned words without
// further tests.
//
// A tile that changed adds its counts in shared memory, and stores them as its own record in page-locked host memory,
// with the stamp of the frame. So tiles share no counters, no counter must be cleared, and no copy follows the kernel.
// The host adds the records that have the current stamp.
//
// Where to change what:
//   another border         the opening: cuda_open.cu (nothing erodes or dilates from beyond the frame); comparing has
//                          no border
//   another sample type    cuda_schedule.cpp (layout_of), with_shape() in cuda_shapes.hpp, words: cuda_values.cuh and
//                          cuda_masks.cuh
//   another block shape    cuda_tuning.hpp (tile_rows, strip_bytes), strip_pixels() and strip_rows() in
//                          cuda_schedule.hpp
//   another output         Writes in cuda_schedule.hpp, cuda_write.cuh; a mode: Show in arithmetic.hpp
#include "kernels/cuda/overlap.hpp"
#include "kernels/diff/cuda_compare.cuh"

namespace cudavision::diff {
namespace {

template <class S, bool background, Writes writes>
__global__ void __launch_bounds__(S::threads) compare(const __grid_constant__ KernelParams p) {
  __shared__ CompareShared shared;
  if (p.next_starts_early) cuda::let_next_start();
  cuda::wait_for_previous();
  const int tile_y = int(blockIdx.x) / p.tiles_x;
  compare_tile<S, background, writes>(p, int(blockIdx.x) - tile_y * p.tiles_x, tile_y, shared);
}

template <class S, bool background>
const void* choose(Writes writes) {
  const auto kernel = [](auto function) { return reinterpret_cast<const void*>(function); };
  if constexpr (S::common) {
    if (writes == Writes::nothing) return kernel(compare<S, background, Writes::nothing>);
    if (writes == Writes::difference) return kernel(compare<S, background, Writes::difference>);
    return kernel(compare<S, background, Writes::changed>);
  } else {
    return kernel(compare<S, background, Writes::chosen>);
  }
}

}  // namespace

const void* compare_kernel(const Layout& layout, bool background, Writes writes) {
  return with_shape(layout, [&](auto shape) {
    using S = decltype(shape);
    return background ? choose<S, true>(writes) : choose<S, false>(writes);
  });
}

}  // namespace cudavision::diff
