// SPDX-License-Identifier: LGPL-2.1-or-later
// Lays one layer over the pixels of a thread: the weights of its key, the conversion to the output, the operator.
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

template <Operator Op, int Channels>
__device__ __forceinline__ void lay_pixels(const Target& target, const Layer& layer, const Pixels<float>& weights,
                                           const Pixels<bool>& shows, const Samples& s, Samples& d) {
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      float pixel[4] = {d[i][j][0], d[i][j][1], d[i][j][2], d[i][j][3]};
      lay_pixel<Op, Channels>(target, layer, weights[i][j], s[i][j], pixel);
#pragma unroll
      for (int c = 0; c < Channels; ++c)
        if (shows[i][j]) d[i][j][c] = pixel[c];
    }
}

/// Lays a layer over the pixels (x, y), which hold d. `replaces`: the layer hides d. Threads whose pixels are outside
/// the layer read the nearest pixel inside, and keep d.
template <int Channels>
__device__ __forceinline__ void lay_over(const Target& target, const Layer& layer, bool replaces,
                                         const int (&x)[columns], const int (&y)[rows], Samples& d) {
  const Rect& v = layer.visible;
  PadPoints at;
  Pixels<bool> shows;
  const auto inside = [](int i, int begin, int count) { return min(max(i, begin), begin + count - 1); };
#pragma unroll
  for (int i = 0; i < rows; ++i) {
    const int row = inside(y[i], v.y, v.height);
    at.y[i] = row - layer.place.y;
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      const int column = inside(x[j], v.x, v.width);
      at.x[j] = column - layer.place.x;
      shows[i][j] = row == y[i] && column == x[j];
    }
  }
  Samples s;
  read(layer, at, s);
  Pixels<float> weights;
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j) weights[i][j] = 1;
  if (layer.keyed) find_weights(layer, s, weights);
  if (!layer.identity) convert<Channels>(target, layer, s);
  if (layer.rounds_samples) {
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < columns; ++j)
#pragma unroll
        for (int c = 0; c < 3; ++c) s[i][j][c] = rounded_sample(s[i][j][c]);
  }
  if (replaces) {
    const bool source = layer.op == Operator::source;
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < columns; ++j) {
#pragma unroll
        for (int c = 0; c < Channels; ++c) d[i][j][c] = s[i][j][c];
        if (Channels == 4 && source) d[i][j][3] = rounded_alpha(layer, s[i][j][3] * layer.opacity);
      }
    return;
  }
  with_operator(layer.op, [&](auto op) { lay_pixels<op(), Channels>(target, layer, weights, shows, s, d); });
}

}  // namespace
}  // namespace cudavision::blend
