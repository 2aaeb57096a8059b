// SPDX-License-Identifier: LGPL-2.1-or-later
// Composes walls and insets of the output's 8-bit format: parts of the output that one picture covers (copied or
// scaled), and pixels that are blended over a copied picture. A block composes a tile of a part, in one plane or in all
// planes.
//
//   start of the blocks   s  c  c  c  s  c  c  c  s …   c  c     s: scaled tiles, c: copied tiles;
//                                                                block_number()
//   1. find_part()     the tile and its layers, which schedule_parts() found on the host   cuda_parts.cpp
//   2. copy_layer()    if its samples are the output's                                     cuda_copy.cuh
//      scale_layer()   otherwise: Linear, Area or Box for each plane                       cuda_scale.cuh,
//                                                                                          cuda_sampler.cuh
//      lay_edges()     chroma at the edges of pads: a thread has one sample
//
// compose_direct_tiles (cuda_direct.cu) composes the other parts. It is launched first; both kernels run concurrently.
#include <algorithm>

#include "kernels/blend/cuda_launch.hpp"
#include "kernels/blend/cuda_scale.cuh"

namespace cudavision::blend {
namespace {

/// The number of a block, from the order in which blocks start.
template <int N>
__device__ __forceinline__ int block_number(const DirectParams<N>& p, int block) {
  const int before = min(int(__umulhi(block, p.mixing)), p.scaled),
            after = min(int(__umulhi(block + 1, p.mixing)), p.scaled);
  return after > before ? before : p.scaled + block - before;
}

/// Reads the samples of a pixel in a plane of subsampled chroma.
template <int Unit>
__device__ __forceinline__ void read_pixel(const LayerPicture& layer, const Source& from, int x, int y,
                                           float (&s)[1][1][Unit]) {
  const uint32_t order[4] = {};
  const auto read = [&](auto sampler) {
    using Sampler = decltype(sampler);
    const typename Sampler::Across across[1] = {Sampler::template across<Unit>(from.across, x - layer.place.x)};
    const typename Sampler::Down down[1] = {Sampler::down(from.down, y - layer.place.y)};
    Sampler::template read<Unit>(from, order, across, down, s);
  };
  layer.sampling == Sampling::area ? read(Area()) : read(Linear());
}

/// Stores samples of subsampled chroma: each is the mean of its pixels, after they are rounded. Each pixel comes from
/// its highest layer.
template <int Unit, int N>
__device__ __forceinline__ void lay_edges(const DirectParams<N>& p, std::uint64_t layers, const Rect& tile, int c) {
  const Target& target = p.target;
  const int shift = target.shift_y, before = bytes_before(target, c);
  const int across = (tile.width + 1) / 2, down = (tile.height + shift) >> shift;
  for (int i = threadIdx.x; i < across * down; i += 32 * warps) {
    const int row = i / across, left = tile.x + 2 * (i - row * across), top = tile.y + (row << shift);
    uint32_t sum[Unit] = {};
#pragma unroll 1
    for (int k = 0; k < 4; ++k) {
      const int x = min(left + k % 2, target.width - 1), y = min(top + (k / 2 & shift), target.height - 1);
      std::uint64_t rest = layers;
      int l = 0;
      for (; rest; rest &= ~(std::uint64_t(1) << l)) {
        l = 63 - __clzll((long long)rest);
        const int4& v = p.visible[l];
        if (x >= v.x && x < v.z && y >= v.y && y < v.w) break;
      }
      const LayerPicture& layer = p.layers[l];
      const ChannelView& channel = layer.channels[c];
      const Source from{channel.data - before, uint32_t(channel.pitch), layer.across[1], layer.down[1]};
      float s[1][1][Unit];
      read_pixel<Unit>(layer, from, x, y, s);
#pragma unroll
      for (int b = 0; b < Unit; ++b) sum[b] += stored_sample(s[0][0][b]) & 0xff;
    }
    uint32_t byte[Unit];
#pragma unroll
    for (int b = 0; b < Unit; ++b) byte[b] = stored(float(sum[b]) * 0.25f);
    uint8_t* const plane = target.channels[c].data - before;
    store_bytes<Unit>(byte,
                      plane + offset(top >> shift, uint32_t(target.channels[c].pitch)) + uint32_t(left / 2 * Unit));
  }
}

/// Composes up to N layers.
template <int N, PlaneShape S>
__global__ void __launch_bounds__(32 * warps, tuning.direct_blocks)
    compose_simple_parts(const __grid_constant__ DirectParams<N> p) {
  Rect tile;
  const OutputPart& part = find_part(p, block_number(p, blockIdx.x), tile);
  const int top = 63 - __clzll((long long)part.layers);
  const LayerPicture& layer = p.layers[top];
  if (part.kind == OutputPart::Kind::edges) {
    if constexpr (S == PlaneShape::pairs) lay_edges<2>(p, part.layers, tile, 1);
    if constexpr (S == PlaneShape::planes)
#pragma unroll 1
      for (int c = 1; c < 3; ++c) lay_edges<1>(p, part.layers, tile, c);
  } else if (part.kind == OutputPart::Kind::copied) {
    copy_layer(p.target, p.groups, layer, tile, part.planes);
  } else {
    Below below{};
    if (S == PlaneShape::pixels) below = below_of(p.layers[__ffsll((long long)part.layers) - 1]);
    scale_layer<S>(p.target, layer, tile, part.planes, false, below);
  }
  cuda::wait_for_previous();  // the launch of compose_direct_tiles
}

template <int N>
void launch(const Target& target, const std::vector<Layer>& layers, const ComposeLaunch& how, const Parts& parts,
            bool overlaps, Queue queue) {
  with_shape(target, [&](auto shape) {
    launch_parts<N>(compose_simple_parts<N, shape()>, target, layers, how, parts, 0, parts.simple, parts.blocks,
                    overlaps, queue);
  });
}

}  // namespace

void compose_simple(const Target& target, const std::vector<Layer>& layers, const ComposeLaunch& how,
                    const Parts& parts, bool overlaps, Queue queue) {
  (are_few(layers, parts.simple) ? launch<tuning.few_layers> : launch<max_pads>)(target, layers, how, parts, overlaps,
                                                                                 queue);
}

}  // namespace cudavision::blend
