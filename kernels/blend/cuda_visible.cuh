// SPDX-License-Identifier: LGPL-2.1-or-later
// Which layers are visible in a tile, and which kernel composes it. Computed once per block.
#pragma once

#include "kernels/blend/cuda_compose.cuh"

namespace cudavision::blend {
namespace {

/// The layers to compose in a tile.
struct Shown {
  std::uint64_t layers;  ///< bit l: layer l is visible; not set below a layer that hides the whole tile
  std::uint64_t whole;   ///< bit l: layer l covers the tile
  bool covered;          ///< whether the lowest of the layers hides everything below it
};

/// Thread l tests layer l; all threads of the block get the result.
template <int N, typename What>
__device__ __forceinline__ Shown find_shown(const ComposeParams<N, What>& job, const Rect& tile) {
  constexpr int words = (N + 31) / 32;
  __shared__ uint32_t touching[words], covering[words];
  if (threadIdx.x < 32 * words) {
    bool touches = false, covers = false;
    if (threadIdx.x < job.count) {
      const int4 v = job.visible[threadIdx.x];
      const int right = tile.x + tile.width, bottom = tile.y + tile.height;
      touches = v.x < right && v.y < bottom && v.z > tile.x && v.w > tile.y;
      covers = v.x <= tile.x && v.y <= tile.y && v.z >= right && v.w >= bottom;
    }
    const uint32_t touch = __ballot_sync(~0u, touches), cover = __ballot_sync(~0u, covers);
    if (threadIdx.x % 32 == 0) touching[threadIdx.x / 32] = touch, covering[threadIdx.x / 32] = cover;
  }
  __syncthreads();
  std::uint64_t shown = 0, whole = 0;
#pragma unroll
  for (int w = 0; w < words; ++w) {
    shown |= std::uint64_t(touching[w]) << 32 * w;
    whole |= std::uint64_t(covering[w]) << 32 * w;
  }
  const std::uint64_t hidden = whole & job.hiding;
  if (!hidden) return {shown, whole, false};
  return {shown & ~std::uint64_t(0) << (63 - __clzll((long long)hidden)), whole, true};
}

/// The layers whose edges divide a chroma sample in the tile.
template <int N, typename What>
__device__ __forceinline__ std::uint64_t odd_layers(const ComposeParams<N, What>& job, const Shown& shown) {
  return shown.layers & ~(job.even | shown.whole);
}

/// Whether compose_direct_tiles composes the tile.
template <int N, typename What>
__device__ __forceinline__ bool is_direct(const ComposeParams<N, What>& job, const Shown& shown) {
  return !(shown.layers & ~(odd_layers(job, shown) ? job.direct : job.direct | job.copied));
}

/// The tile with this upper left corner.
__device__ __forceinline__ Rect tile_at(const Target& target, int x, int y, int width, int height) {
  return {x, y, min(width, target.width - x), min(height, target.height - y)};
}

}  // namespace
}  // namespace cudavision::blend
