// SPDX-License-Identifier: LGPL-2.1-or-later
// Lays pictures of the output's format over a tile, plane by plane, in the output itself. It composes the tiles that
// compose_simple_parts (cuda_parts.cu) cannot: those that show more than one picture, the edge of a pad, or the
// background.
//
//   1. find_part()     the tile of the block and its layers; or find_shown(),   cuda_visible.cuh
//                      if the host could not find them
//   2. paint()         the background, unless a layer covers the tile
//   3. for each layer, the part of the tile that it covers:
//        copy_layer()  if its samples are the output's                          cuda_copy.cuh
//        scale_layer() otherwise                                                cuda_scale.cuh
//   4. lay_chroma()    subsampled chroma, if the edge of a layer divides a chroma sample
#include <algorithm>

#include "kernels/blend/cuda_launch.hpp"
#include "kernels/blend/cuda_scale.cuh"
#include "kernels/blend/cuda_visible.cuh"

namespace cudavision::blend {
namespace {

__device__ __forceinline__ Rect part_of(const Rect& tile, const int4& visible) {
  const int left = max(visible.x, tile.x), top = max(visible.y, tile.y);
  return {left, top, min(visible.z, tile.x + tile.width) - left, min(visible.w, tile.y + tile.height) - top};
}

/// Composes chroma in tiles where an edge divides a chroma sample. Composes the chroma of each pixel in shared memory
/// (`pixels`), and stores the means. The output holds the chroma below the listed layers.
template <int Unit, int N>
__device__ __forceinline__ void lay_chroma(const DirectParams<N>& p, std::uint64_t layers, const Rect& tile, int c,
                                           uint8_t* pixels) {
  constexpr int pitch = tuning.direct_width * Unit;
  const Target& target = p.target;
  const PlanePart plane{tile, target.channels[c].data - bytes_before(target, c), uint32_t(target.channels[c].pitch)};
  const int shift = target.shift_y, across = (tile.width + 1) / 2, down = (tile.height + shift) >> shift;
  // Calls f(sample in the output, pixels of its upper row, pixels of its lower row). At the edges of the output, a
  // sample may have only one row.
  const auto each_sample = [&](auto&& f) {
    for (int i = threadIdx.x; i < across * down; i += 32 * warps) {
      const int x = i % across, y = i / across;
      uint8_t* const upper = pixels + (y << shift) * pitch + 2 * x * Unit;
      f(plane.at(tile.x / 2 + x, (tile.y >> shift) + y, Unit), upper,
        upper + ((y << shift) + 1 < tile.height ? shift : 0) * pitch, 2 * x + 1 < tile.width ? Unit : 0);
    }
  };
  __syncthreads();
  each_sample([](const uint8_t* sample, uint8_t* upper, uint8_t* lower, int next) {
#pragma unroll
    for (int b = 0; b < Unit; ++b) upper[b] = upper[b + next] = lower[b] = lower[b + next] = sample[b];
  });
  const PlanePart part{{}, pixels - tile.y * pitch - tile.x * Unit, pitch};
  for (; layers; layers &= layers - 1) {
    const int l = __ffsll((long long)layers) - 1;
    __syncthreads();
    scale<Unit, Use::store>(target, p.layers[l], c, {}, {part_of(tile, p.visible[l]), part.data, part.pitch});
  }
  __syncthreads();
  each_sample([](uint8_t* sample, const uint8_t* upper, const uint8_t* lower, int next) {
    uint32_t byte[Unit];
#pragma unroll
    for (int b = 0; b < Unit; ++b)
      byte[b] = stored(float(uint32_t(upper[b]) + upper[b + next] + lower[b] + lower[b + next]) * 0.25f);
    store_bytes<Unit>(byte, sample);
  });
}

/// Lays the layers of a tile over each other. Before each layer, the threads wait for the writes of the other threads.
template <int N, PlaneShape S>
__device__ __forceinline__ void lay_layers(const DirectParams<N>& p, const Shown& shown, const Rect& tile) {
  const Target& target = p.target;
  const Below output{target.packed.data, uint32_t(target.channels[0].pitch)};
  Below below = output;
  const std::uint64_t odd = S == PlaneShape::pairs || S == PlaneShape::planes ? odd_layers(p, shown) : 0;
  std::uint64_t scaled = 0;
  bool wait = !shown.covered;
  for (std::uint64_t rest = shown.layers; rest; rest &= rest - 1) {
    const int l = __ffsll((long long)rest) - 1;
    const std::uint64_t bit = rest & (~rest + 1), above = rest & (rest - 1), next = above & (~above + 1);
    const LayerPicture& layer = p.layers[l];
    const bool copies = p.copied & bit && !(odd && (scaled || odd & bit));
    if (S == PlaneShape::pixels && copies && layer.direct && !wait && next & shown.whole & ~p.hiding) {
      // The next layer covers the tile and reads this layer directly from the layer's memory.
      below = below_of(layer);
      continue;
    }
    if (wait) __syncthreads();
    wait = true;
    const Rect part = part_of(tile, p.visible[l]);
    if (copies) {
      copy_layer(target, p.groups, layer, part, Planes::all);
    } else {
      scale_layer<S>(target, layer, part, Planes::all, odd, below);
      scaled |= bit;
    }
    below = output;
  }
  if constexpr (S == PlaneShape::pairs || S == PlaneShape::planes)
    if (odd) {
      __shared__ __align__(2)
          uint8_t pixels[tuning.direct_strips * strip_height * tuning.direct_width * (S == PlaneShape::pairs ? 2 : 1)];
      if constexpr (S == PlaneShape::pairs)
        lay_chroma<2>(p, scaled, tile, 1, pixels);
      else
#pragma unroll 1
        for (int c = 1; c < 3; ++c) lay_chroma<1>(p, scaled, tile, c, pixels);
    }
}

/// Paints a tile with the background.
template <int Channels>
__device__ __forceinline__ void paint(const Target& target, const Rect& tile) {
  for (int left = tile.x; left < tile.x + tile.width; left += 32 * columns)
    for (int top = tile.y + threadIdx.x / 32 * rows; top < tile.y + tile.height; top += strip_height) {
      int x[columns], y[rows];
      Samples d;
      set_pixels(target, left, top, x, y, d);
      write<Channels>(target, {tile.x + tile.width, tile.y + tile.height}, x, y, d);
    }
}

/// Composes up to N layers.
template <int N, PlaneShape S>
__global__ void __launch_bounds__(32 * warps, tuning.direct_blocks)
    compose_direct_tiles(const __grid_constant__ DirectParams<N> p) {
  cuda::let_next_start();
  Rect tile;
  const OutputPart& part = find_part(p, blockIdx.x, tile);
  Shown shown{part.layers, part.whole, part.covered};
  if (part.kind == OutputPart::Kind::searched) {
    shown = find_shown(p, tile);
    if (!is_direct(p, shown)) return;
  }
  if (!shown.covered) p.target.alpha ? paint<4>(p.target, tile) : paint<S == PlaneShape::gray ? 1 : 3>(p.target, tile);
  lay_layers<N, S>(p, shown, tile);
}

template <int N>
void launch(const Target& target, const std::vector<Layer>& layers, const ComposeLaunch& how, const Parts& parts,
            Queue queue) {
  with_shape(target, [&](auto shape) {
    launch_parts<N>(compose_direct_tiles<N, shape()>, target, layers, how, parts, parts.simple, parts.count,
                    parts.other_blocks, false, queue);
  });
}

}  // namespace

void compose_direct(const Target& target, const std::vector<Layer>& layers, const ComposeLaunch& how,
                    const Parts& parts, Queue queue) {
  (are_few(layers, parts.count - parts.simple) ? launch<tuning.few_layers> : launch<max_pads>)(target, layers, how,
                                                                                               parts, queue);
}

}  // namespace cudavision::blend
