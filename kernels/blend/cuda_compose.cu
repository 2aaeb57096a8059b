// SPDX-License-Identifier: LGPL-2.1-or-later
// Composes any layers in one launch. A block composes a tile. Pixels stay in registers until all layers are laid over
// each other.
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
//   1. find_shown()   thread l tests whether layer l touches or hides the tile;   cuda_visible.cuh
//                     the block gets one list
//   2. is_direct()    whether compose_direct_tiles composes the tile (cuda_direct.cu)
//   3. lay_over()     otherwise, for each strip and each layer of the list:       cuda_lay.cuh
//        read()           samples of the layer at the thread's pixels             cuda_read.cuh
//        find_weights()   the key's weight, convert() to samples of the output    cuda_lay.cuh
//        lay_pixels()     lay_pixel() with the operator                           arithmetic.hpp
//   4. write()        rounds and stores the strip                                 cuda_write.cuh
//
// cuda.cpp lists where to change what.
#include "kernels/blend/cuda_launch.hpp"
#include "kernels/blend/cuda_lay.cuh"
#include "kernels/blend/cuda_visible.cuh"
#include "kernels/blend/cuda_write.cuh"

namespace cudavision::blend {
namespace {

/// Composes up to N layers. Channels: 1 for gray output, 3 for colours, 4 with alpha.
template <int N, int Channels>
__global__ void __launch_bounds__(32 * warps, Channels == 4 ? tuning.alpha_blocks : tuning.opaque_blocks)
    compose_tiles(const __grid_constant__ ComposeParams<N> p) {
  const Target& target = p.target;
  const int height = p.launch.pixels.tile_height, tile_x = blockIdx.x * tile_width, tile_y = blockIdx.y * height;
  const Rect tile = tile_at(target, tile_x, tile_y, tile_width, height);
  const Shown shown = find_shown(p, tile);
  if (p.launch.direct.across && is_direct(p, shown)) {  // the surrounding tile of compose_direct_tiles may be direct
    const int around = p.launch.direct.tile_height;
    __syncthreads();
    if (is_direct(p, find_shown(p, tile_at(target, tile_x - tile_x % tuning.direct_width, tile_y - tile_y % around,
                                           tuning.direct_width, around))))
      return;
  }
  for (int top = tile_y + threadIdx.x / 32 * rows; top < tile_y + tile.height; top += strip_height) {
    int x[columns], y[rows];
    Samples d;
    set_pixels(target, tile_x, top, x, y, d);
    bool replaces = shown.covered;
    for (std::uint64_t rest = shown.layers; rest; rest &= rest - 1) {
      const int l = __ffsll((long long)rest) - 1;
      if (p.visible[l].y < top + rows && p.visible[l].w > top)
        lay_over<Channels>(target, p.layers[l], replaces, x, y, d);
      replaces = false;
    }
    write<Channels>(target, {target.width, target.height}, x, y, d);
  }
}

template <int N, int Channels>
void launch(const Target& target, const std::vector<Layer>& layers, const ComposeLaunch& launch, Queue queue) {
  ComposeParams<N> p;
  set_params(target, layers, launch, p);
  compose_tiles<N, Channels><<<dim3(launch.pixels.across, launch.pixels.down), 32 * warps, 0, queue.stream>>>(p);
}

}  // namespace

void compose_pixels(const Target& target, const std::vector<Layer>& layers, const ComposeLaunch& how, Queue queue) {
  const bool few = int(layers.size()) <= tuning.few_layers;
  if (target.gray) return launch<max_pads, 1>(target, layers, how, queue);  // rare
  if (target.alpha)
    (few ? launch<tuning.few_layers, 4> : launch<max_pads, 4>)(target, layers, how, queue);
  else
    (few ? launch<tuning.few_layers, 3> : launch<max_pads, 3>)(target, layers, how, queue);
}

}  // namespace cudavision::blend
