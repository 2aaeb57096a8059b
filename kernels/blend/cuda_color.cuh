// SPDX-License-Identifier: LGPL-2.1-or-later
// Colors of a layer: the weights of its key, and the conversion to the output.
#pragma once

#include "kernels/blend/cuda_read.cuh"

namespace cudavision::blend {
namespace {

/// The key's weight of each pixel.
__device__ __forceinline__ void find_weights(const Layer& layer, const Samples& s, Pixels<float>& weights) {
  float key[3] = {layer.key[0], layer.key[1], layer.key[2]};
  if (layer.first_pixel) {
    float first[3] = {0, layer.neutral, layer.neutral};
#pragma unroll
    for (int c = 0; c < 3; ++c)
      if (const uint8_t* at = layer.channels[c].data)
        first[c] = layer.sample_bytes == 1 ? fetch<uint8_t>(layer, at) : fetch<uint16_t>(layer, at);
#pragma unroll
    for (int c = 0; c < 3; ++c) key[c] = layer.to_key.row(c, first[0], first[1], first[2]);
  }
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      const float(&p)[4] = s[i][j];
      weights[i][j] = key_weight(layer, key, layer.to_key.row(0, p[0], p[1], p[2]),
                                 layer.to_key.row(1, p[0], p[1], p[2]), layer.to_key.row(2, p[0], p[1], p[2]));
    }
}

/// Converts samples of the layer to samples of the output. Channels: as in lay_pixel().
template <int Channels>
__device__ __forceinline__ void convert(const Target& target, const Layer& layer, Samples& s) {
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      float(&p)[4] = s[i][j];
      const float a = p[0], b = p[1], c = p[2];
#pragma unroll
      for (int k = 0; k < (Channels == 1 ? 1 : 3); ++k) p[k] = clamped(layer.to_target.row(k, a, b, c), target.max);
    }
}

}  // namespace
}  // namespace cudavision::blend
