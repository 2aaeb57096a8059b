// SPDX-License-Identifier: LGPL-2.1-or-later
// Spreads the changed pixels of an analysis at a part of the size (Params::analysis_scale) over the pixels of the frame, counts these in
// cells, and shows them.
//
//   grid: the tiles of cuda_compare.cu, of the frame; a lane takes the bits of its strip from one word of the analysis:
//
//     changed of the analysis   |0 1 1 0 …|      scale = 2
//     pixels of the strip       |0 0 1 1 1 1 0 0 …|  in each of 2 rows
#include "kernels/diff/cuda_count.cuh"
#include "kernels/diff/cuda_write.cuh"

namespace cudavision::diff {
namespace {

/// The bits for the pixels of a strip row at (x, y).
template <class S>
__device__ __forceinline__ unsigned spread_bits(const KernelParams& p, int x, int y) {
  const unsigned in_frame = bits_in_frame<S>(p, x, y);
  if (!in_frame) return 0;
  const int small = x >> p.log2_scale;
  const unsigned char* const row = p.changed + (y >> p.log2_scale) * p.bits_pitch;
  const unsigned word = *reinterpret_cast<const std::uint32_t*>(row + small / 32 * 4) >> small % 32;
  unsigned bits = 0;
#pragma unroll
  for (int i = 0; i < S::pixels; ++i) bits |= (word >> (i >> p.log2_scale) & 1) << i;
  return bits & in_frame;
}

template <class S, Writes writes>
__global__ void __launch_bounds__(S::threads) spread(const __grid_constant__ KernelParams p) {
  __shared__ std::uint32_t slots[max_slots + 2];
  const Tile<S> tile;
  clear_slots<S>(p, slots);
  __syncthreads();
  unsigned changed[S::rows];
#pragma unroll
  for (int row = 0; row < S::rows; ++row) {
    changed[row] = spread_bits<S>(p, tile.x, tile.y + row);
    count_bits<S>(p, tile, tile.y + row, changed[row], slots);
  }
  if constexpr (writes == Writes::changed) {
    if (tile.x < p.width) show_changed<S>(p, tile.x, tile.y, changed);
  }
  __syncthreads();
  store_counts<S>(p, slots);
}

}  // namespace

const void* spread_kernel(const Layout& layout, Writes writes) {
  return with_shape(layout, [&](auto shape) {
    using S = decltype(shape);
    return writes == Writes::changed ? reinterpret_cast<const void*>(spread<S, Writes::changed>)
                                     : reinterpret_cast<const void*>(spread<S, Writes::nothing>);
  });
}

}  // namespace cudavision::diff
