// SPDX-License-Identifier: LGPL-2.1-or-later
// Composes any layers, in one launch. A block composes a tile; pixels stay in registers until all layers are laid over each other.
//
//        tile_width = 32 · columns                     a strip: 2 · warps rows; each warp has two of them
//      ┌───────────────┬───────────────┐               ┌────────────────────────────────────────────┐
//      │ block (0, 0)  │ block (1, 0)  │ ┐             │ warp 0:  lane 0 … 31      lane 0 … 31      │  row 0
//      │   strip 0     │               │ │ tile_height │          lane 0 … 31      lane 0 … 31      │  row 1
//      │   strip 1     │               │ ┘             ├────────────────────────────────────────────┤
//      ├───────────────┼───────────────┤               │ warp 1                                     │  rows 2, 3
//      │ block (0, 1)  │               │               ├────────────────────────────────────────────┤
//      └───────────────┴───────────────┘               │ …                                          │
//                                                      └────────────────────────────────────────────┘
//   1. find_shown()   thread l tests whether layer l touches or hides the tile; the block gets one list   cuda_visible.cuh
//   2. copy_layer()   if one layer is all there is and its samples are the output's                       cuda_copy.cuh
//   3. lay_over()     otherwise, for each strip and each layer of the list:                               cuda_lay.cuh
//        read()           samples of the layer at the thread's pixels                                     cuda_read.cuh
//        find_weights()   the key's weight, convert() to samples of the output                            cuda_color.cuh
//        lay_pixels()     lay_pixel() with the operator                                                   arithmetic.hpp
//   4. write()        rounds and stores the strip                                                         cuda_write.cuh
//
// cuda.cu lists where to change what.
#include "kernels/blend/cuda_copy.cuh"
#include "kernels/blend/cuda_launch.hpp"
#include "kernels/blend/cuda_lay.cuh"
#include "kernels/blend/cuda_visible.cuh"
#include "kernels/blend/cuda_write.cuh"

namespace cudavision::blend {
namespace {

/// Composes up to N layers. Channels: 1 for gray output, 3 for colors, 4 with alpha.
template <int N, int Channels>
__global__ void __launch_bounds__(32 * warps, Channels == 4 ? tuning.alpha_blocks : tuning.opaque_blocks)
    compose_tiles(const __grid_constant__ ComposeParams<N> p) {
  const Target& target = p.target;
  const int tile_x = blockIdx.x * tile_width, tile_y = blockIdx.y * p.tile_height;
  const Rect tile{tile_x, tile_y, min(tile_width, target.width - tile_x), min(p.tile_height, target.height - tile_y)};
  const Shown shown = find_shown(p, tile);
  if (shown.covered && !(shown.layers & (shown.layers - 1))) {
    const Layer& layer = p.layers[__ffsll((long long)shown.layers) - 1];
    if (layer.copies) return copy_layer(target, layer, tile);
  }
  int x[columns], y[rows];
#pragma unroll
  for (int j = 0; j < columns; ++j) x[j] = tile_x + 32 * j + threadIdx.x % 32;
  for (int top = tile_y + threadIdx.x / 32 * rows; top < tile_y + tile.height; top += strip_height) {
    Samples d;
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      y[i] = top + i;
#pragma unroll
      for (int j = 0; j < columns; ++j)
#pragma unroll
        for (int c = 0; c < 4; ++c) d[i][j][c] = (x[j] ^ y[i]) & 8 ? target.checker[c] : target.background[c];
    }
    bool replaces = shown.covered;
    for (std::uint64_t rest = shown.layers; rest; rest &= rest - 1) {
      const int l = __ffsll((long long)rest) - 1;
      if (p.visible[l].y < top + rows && p.visible[l].w > top) lay_over<Channels>(target, p.layers[l], replaces, x, y, d);
      replaces = false;
    }
    write<Channels>(target, x, y, d);
  }
}

template <int N>
void launch(const Target& target, const std::vector<Layer>& layers, Queue queue) {
  ComposeParams<N> p;
  p.target = target;
  p.count = int(layers.size());
  p.hiding = 0;
  for (int i = 0; i < p.count; ++i) {
    const Rect& v = layers[i].visible;
    p.visible[i] = make_int4(v.x, v.y, v.x + v.width, v.y + v.height);
    p.hiding |= std::uint64_t(layers[i].hides) << i;
    p.layers[i] = layers[i];
  }
  const TileGrid grid = tile_grid(target.width, target.height);
  p.tile_height = grid.tile_height;
  (target.alpha  ? compose_tiles<N, 4>
   : target.gray ? compose_tiles<N, 1>
                 : compose_tiles<N, 3>)<<<dim3(grid.across, grid.down), 32 * warps, 0, queue.stream>>>(p);
}

}  // namespace

void compose(const Target& target, const std::vector<Layer>& layers, Queue queue) {
  if (int(layers.size()) <= tuning.few_layers)
    launch<tuning.few_layers>(target, layers, queue);
  else
    launch<max_pads>(target, layers, queue);
}

}  // namespace cudavision::blend
