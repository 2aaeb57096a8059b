// SPDX-License-Identifier: LGPL-2.1-or-later
// Code that compose_tiles and compose_direct_tiles share: the parameters, and the pixels of a thread.
//
//          columns 0 … 31        columns 32 … 63
//   row 0  lane 0, 1 … 31        lane 0, 1 … 31       A thread has `columns` × `rows` pixels. Its columns are 32 apart,
//   row 1  lane 0, 1 … 31        lane 0, 1 … 31       so that the lanes of a warp access neighbouring samples.
#pragma once

#include "kernels/blend/arithmetic.hpp"
#include "kernels/blend/cuda_schedule.hpp"

namespace cudavision::blend {
namespace {

using std::uint16_t;
using std::uint32_t;
using std::uint8_t;

constexpr int columns = tuning.columns, rows = tuning.rows;
constexpr int warps = tuning.warps;

/// Parameters for up to N layers, passed by value. What: Layer, or LayerPicture.
template <int N, typename What = Layer>
struct ComposeParams {
  Target target;
  ComposeLaunch launch;
  int count;
  std::uint64_t hiding;  ///< bit l: layer l hides everything below it
  std::uint64_t direct;  ///< bit l: Layer::direct
  std::uint64_t copied;  ///< bit l: Layer::copies
  std::uint64_t even;    ///< bit l: Layer::even_edges
  int4 visible[N];       ///< visible rectangle of each layer: left, top, right, bottom
  What layers[N];
};
static_assert(sizeof(ComposeParams<tuning.few_layers>) <= 4096 && sizeof(ComposeParams<max_pads>) <= 32764,
              "kernel arguments");

template <int N, typename What>
void set_params(const Target& target, const std::vector<Layer>& layers, const ComposeLaunch& launch,
                ComposeParams<N, What>& p) {
  p.target = target;
  p.count = int(layers.size());
  p.launch = launch;
  p.hiding = p.direct = p.copied = p.even = 0;
  for (int i = 0; i < p.count; ++i) {
    const Layer& layer = layers[i];
    const Rect& v = layer.visible;
    const auto bit = [i](bool set) { return std::uint64_t(set) << i; };
    p.visible[i] = make_int4(v.x, v.y, v.x + v.width, v.y + v.height);
    p.hiding |= bit(layer.hides), p.direct |= bit(layer.direct), p.copied |= bit(layer.copies),
        p.even |= bit(layer.even_edges);
    p.layers[i] = layer;
  }
}

/// A value for each pixel of the thread.
template <typename T>
using Pixels = T[rows][columns];
/// The components of each pixel of the thread.
using Samples = float[rows][columns][4];

/// Sets the thread's pixels, for a warp whose first pixel is (left, top), to the background.
__device__ __forceinline__ void set_pixels(const Target& target, int left, int top, int (&x)[columns], int (&y)[rows],
                                           Samples& d) {
#pragma unroll
  for (int i = 0; i < rows; ++i) {
    y[i] = top + i;
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      x[j] = left + 32 * j + threadIdx.x % 32;
#pragma unroll
      for (int c = 0; c < 4; ++c) d[i][j][c] = (x[j] ^ y[i]) & 8 ? target.checker[c] : target.background[c];
    }
  }
}

/// The thread's pixels, in coordinates of a pad.
struct PadPoints {
  int x[columns], y[rows];
};

}  // namespace
}  // namespace cudavision::blend
