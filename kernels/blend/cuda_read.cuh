// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads a layer: sampling and channel order.
#pragma once

#include "kernels/blend/cuda_compose.cuh"
#include "kernels/blend/sampling.hpp"

namespace cudavision::blend {
namespace {

template <typename T>
__device__ __forceinline__ uint32_t sample(const Layer& layer, const uint8_t* at) {
  return sample_value(layer, __ldg(reinterpret_cast<const T*>(at)));
}
template <typename T>
__device__ __forceinline__ float fetch(const Layer& layer, const uint8_t* at) {
  return float(sample<T>(layer, at));
}

/// Returns the address and hides how it was computed. Otherwise the compiler would compute the address of each sample
/// from the address of the plane, as one long sum.
__device__ __forceinline__ const uint8_t* opaque_register(const uint8_t* at) {
  asm("" : "+l"(at));
  return at;
}

/// Reads each component separately: planes, or interleaved samples that do not form aligned words. The components First
/// … First + Count − 1 have the same step and subsampling.
template <typename T>
struct Channels {
  static __device__ __forceinline__ const uint8_t* row(const Layer& layer, int c, int y) {
    return opaque_register(layer.channels[c].data + y * layer.channels[c].pitch);
  }

  template <int First, int Count>
  static __device__ __forceinline__ void read_point(const Layer& layer, const Axis& across, const Axis& down,
                                                    const PadPoints& at, Samples& s) {
    const int step = layer.channels[First].step;
    int x[columns];
#pragma unroll
    for (int j = 0; j < columns; ++j) x[j] = point_tap(across, at.x[j]) * step;
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const int y = point_tap(down, at.y[i]);
#pragma unroll
      for (int c = First; c < First + Count; ++c) {
        const uint8_t* const samples = row(layer, c, y);
#pragma unroll
        for (int j = 0; j < columns; ++j) s[i][j][c] = fetch<T>(layer, samples + x[j]);
      }
    }
  }

  template <int First, int Count>
  static __device__ __forceinline__ void read_linear(const Layer& layer, const Axis& across, const Axis& down,
                                                     const PadPoints& at, Samples& s) {
    const int step = layer.channels[First].step;
    LinearTaps x[columns];
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      x[j] = linear_taps(across, at.x[j]);
      x[j].first *= step, x[j].second *= step;
    }
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const LinearTaps y = linear_taps(down, at.y[i]);
#pragma unroll
      for (int c = First; c < First + Count; ++c) {
        const uint8_t *const above = row(layer, c, y.first), *const below = row(layer, c, y.second);
#pragma unroll
        for (int j = 0; j < columns; ++j) {
          const auto across_row = [&](const uint8_t* at) {
            const float a = fetch<T>(layer, at + x[j].first);
            return a + x[j].weight * (fetch<T>(layer, at + x[j].second) - a);
          };
          const float a = across_row(above);
          s[i][j][c] = a + y.weight * (across_row(below) - a);
        }
      }
    }
  }

  template <int First, int Count>
  static __device__ __forceinline__ void read_area(const Layer& layer, const Axis& across, const Axis& down,
                                                   const PadPoints& at, Samples& s) {
    const int step = layer.channels[First].step;
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < columns; ++j) {
        const Taps x = taps_of(Sampling::area, across, at.x[j]), y = taps_of(Sampling::area, down, at.y[i]);
#pragma unroll
        for (int c = First; c < First + Count; ++c) {
          float sum = 0;
          for (int v = y.first; v <= y.last; ++v) {
            const uint8_t* const samples = row(layer, c, v);
            uint32_t between = 0;  // samples between first and last have equal weights
            for (int u = x.first + 1; u < x.last; ++u) between += sample<T>(layer, samples + u * step);
            sum += y.of(v) * (x.first_weight * fetch<T>(layer, samples + x.first * step) + x.weight * float(between) +
                              x.last_weight * fetch<T>(layer, samples + x.last * step));
          }
          s[i][j][c] = sum;
        }
      }
  }

  template <Sampling How, int First, int Count>
  static __device__ __forceinline__ void read(const Layer& layer, const PadPoints& at, Samples& s) {
    constexpr bool chroma = First == 1;
    const Axis &across = layer.across[chroma], &down = layer.down[chroma];
    if constexpr (How == Sampling::point)
      read_point<First, Count>(layer, across, down, at, s);
    else if constexpr (How == Sampling::linear)
      read_linear<First, Count>(layer, across, down, at, s);
    else
      read_area<First, Count>(layer, across, down, at, s);
  }

  template <Sampling How>
  static __device__ __forceinline__ void read(const Layer& layer, const PadPoints& at, Samples& s) {
    read<How, 0, 1>(layer, at, s);
    if (layer.channels[1].data) read<How, 1, 2>(layer, at, s);
    if (layer.channels[3].data) read<How, 3, 1>(layer, at, s);
  }
};

/// Reads pixels of four interleaved samples, including padding, each as one word.
template <typename Word>
struct PackedPixels {
  static __device__ __forceinline__ void fetch(const Layer& layer, const uint8_t* row, int x, float (&s)[4]) {
    if constexpr (sizeof(Word) == 4) {
      const uint32_t word = __ldg(reinterpret_cast<const uint32_t*>(row) + x);
#pragma unroll
      for (int c = 0; c < 4; ++c) s[c] = float(__byte_perm(word, 0, 0x4440 | layer.packed.order[c]));
    } else {
      const uint2 words = __ldg(reinterpret_cast<const uint2*>(row) + x);
#pragma unroll
      for (int c = 0; c < 4; ++c)
        s[c] = float(__byte_perm(words.x, words.y, 0x10 + 0x22 * layer.packed.order[c]) & 0xffff);
    }
  }

  static __device__ __forceinline__ const uint8_t* row(const Layer& layer, int y) {
    return opaque_register(layer.packed.data + y * layer.channels[0].pitch);
  }

  static __device__ __forceinline__ void read_linear(const Layer& layer, const LinearTaps& x, const LinearTaps& y,
                                                     float (&s)[4]) {
    float a[2][4], b[2][4];
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      const uint8_t* const pixels = row(layer, v ? y.second : y.first);
      fetch(layer, pixels, x.first, a[v]);
      fetch(layer, pixels, x.second, b[v]);
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const float above = a[0][c] + x.weight * (b[0][c] - a[0][c]), below = a[1][c] + x.weight * (b[1][c] - a[1][c]);
      s[c] = above + y.weight * (below - above);
    }
  }

  static __device__ __forceinline__ void read_area(const Layer& layer, const Taps& x, const Taps& y, float (&s)[4]) {
    s[0] = s[1] = s[2] = s[3] = 0;
    for (int v = y.first; v <= y.last; ++v)
      for (int u = x.first; u <= x.last; ++u) {
        float of_pixel[4];
        fetch(layer, row(layer, v), u, of_pixel);
        const float weight = y.of(v) * x.of(u);
#pragma unroll
        for (int c = 0; c < 4; ++c) s[c] += weight * of_pixel[c];
      }
  }

  template <Sampling How>
  static __device__ __forceinline__ void read(const Layer& layer, const PadPoints& at, Samples& s) {
    const Axis &across = layer.across[0], &down = layer.down[0];
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      if constexpr (How == Sampling::point) {
        const int x = point_tap(across, at.x[j]);
#pragma unroll
        for (int i = 0; i < rows; ++i) fetch(layer, row(layer, point_tap(down, at.y[i])), x, s[i][j]);
      } else if constexpr (How == Sampling::linear) {
        const LinearTaps x = linear_taps(across, at.x[j]);
#pragma unroll
        for (int i = 0; i < rows; ++i) read_linear(layer, x, linear_taps(down, at.y[i]), s[i][j]);
      } else {
        const Taps x = taps_of(How, across, at.x[j]);
#pragma unroll
        for (int i = 0; i < rows; ++i) read_area(layer, x, taps_of(How, down, at.y[i]), s[i][j]);
      }
    }
  }
};

template <Sampling How>
__device__ __forceinline__ void read(const Layer& layer, const PadPoints& at, Samples& s) {
  const bool bytes = layer.sample_bytes == 1;
  if (layer.packed.data)
    bytes ? PackedPixels<uint32_t>::read<How>(layer, at, s) : PackedPixels<uint2>::read<How>(layer, at, s);
  else
    bytes ? Channels<uint8_t>::read<How>(layer, at, s) : Channels<uint16_t>::read<How>(layer, at, s);
}

/// Reads the pad's samples at the thread's pixels, with alpha in steps of the output's alpha. Missing components get
/// their neutral values.
__device__ __forceinline__ void read(const Layer& layer, const PadPoints& at, Samples& s) {
  switch (layer.sampling) {
    case Sampling::point:
      read<Sampling::point>(layer, at, s);
      break;
    case Sampling::linear:
      read<Sampling::linear>(layer, at, s);
      break;
    case Sampling::area:
      read<Sampling::area>(layer, at, s);
  }
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      if (!layer.channels[1].data) s[i][j][1] = s[i][j][2] = layer.neutral;
      if (!layer.channels[3].data) s[i][j][3] = layer.opaque;
      s[i][j][3] *= layer.alpha_scale;
    }
}

}  // namespace
}  // namespace cudavision::blend
