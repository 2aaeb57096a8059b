// SPDX-License-Identifier: LGPL-2.1-or-later
// Opens the mask that the comparing kernel stored as bits (erosion, then dilation, with a square of 2·radius + 1
// pixels), spreads it over the pixels of the frame if the analysis is smaller than the frame, counts the changed pixels
// in cells, and shows them. It also runs without opening (radius 0) if it must wait for the decision about the light
// (cuda_light.cuh). If the light was switched, nothing changed, and the blocks make the frame the reference.
//
//   grid: the tiles of the frame, of 16 rows. A warp opens a part: 30 words of 32 pixels (15 in small frames; see
//   Opened), one word per lane
//
//        lane 0 | lane 1 | … | lane 30 | lane 31       lanes 0 and 31 have the words beside the part
//       +-------+--------+---+---------+-------+ - 2   words of the 8 rows are loaded
//       |       |                      |       | - 1   each row is eroded across (its neighbours by shuffles), then
//       |       |  part, 4 rows (2)    |       |       three rows together; then they are dilated in the same way: the
//       |       |                      |       |       rows of the part
//       +-------+--------+---+---------+-------+ + 2
//
// The drawing is for a radius of 1. Larger radii use shared memory, and all warps of the block work together.
//
// Then each lane takes the bits of its strips (cuda_compare.cu) from the lanes that have them. If the comparison has
// already shown the changes before the opening, only strips with pixels that the opening removed are shown again, and
// tiles without changed pixels are skipped. At a scale of 2, the bits are spread first:
//
//        changed of the analysis   |0 1 1 0 …|
//        pixels of the frame       |0 0 1 1 1 1 0 0 …|  in each of 2 rows
//
// Where to change what:
//   the border of the opening    load_word() in cuda_open.cuh (1 beyond the frame for the erosion), and where `in` and
//                                rows beyond the frame make 0 for the dilation
//   another shape of tiles       Opened in cuda_schedule.hpp
//   everything else              the list in cuda_compare.cu
#include "kernels/cuda/overlap.hpp"
#include "kernels/diff/cuda_open.cuh"

namespace cudavision::diff {
namespace {

template <class S, Writes writes, bool wide>
__global__ void __launch_bounds__(S::threads) open_mask(const __grid_constant__ KernelParams p) {
  extern __shared__ std::uint32_t slots[];
  clear_slots(p, slots);
  const int tile_y = int(blockIdx.x) / p.tiles_x;
  if (p.next_starts_early) cuda::let_next_start();
  cuda::wait_for_previous();
  open_tile<S, writes, wide>(p, int(blockIdx.x) - tile_y * p.tiles_x, tile_y, slots);
}

/// The fields of a Shape that are needed if nothing is shown.
template <typename T_, int pixels_, int rows_>
struct Unshown {
  using T = T_;
  static constexpr int pixels = pixels_, rows = rows_;
  static constexpr int tile_width = 32 * pixels, tile_rows = tuning.tile_rows, threads = 32 * tile_rows / rows;
};

template <class S, bool wide>
const void* choose(Writes writes) {
  const auto kernel = [](auto function) { return reinterpret_cast<const void*>(function); };
  if (writes == Writes::nothing)
    return kernel(open_mask<Unshown<typename S::T, S::pixels, S::rows>, Writes::nothing, wide>);
  if constexpr (S::common)
    return writes == Writes::mask ? kernel(open_mask<S, Writes::mask, wide>)
                                  : kernel(open_mask<S, Writes::changed, wide>);
  else
    return kernel(open_mask<S, Writes::chosen, wide>);
}

}  // namespace

const void* open_kernel(const Layout& layout, Writes writes, bool wide) {
  return with_shape(layout, [&](auto shape) {
    using S = decltype(shape);
    return wide ? choose<S, true>(writes) : choose<S, false>(writes);
  });
}

}  // namespace cudavision::diff
