// SPDX-License-Identifier: LGPL-2.1-or-later
// Any pads, in one launch a picture. A warp composes 64 × 2 pixels at a time, each of its lanes four of them: what is to be known
// of a pad is looked up once for all four. Columns of a lane are 32 apart, so that a warp's accesses lie side by side.
#include <algorithm>

#include "kernels/blend/cuda_compose.hpp"

namespace cudavision {
namespace cuda {
namespace {

using cudavision::detail::blend_clamped;
using cudavision::detail::blend_key_weight;
using cudavision::detail::blend_pixel;
using cudavision::detail::blend_point;
using cudavision::detail::blend_points;
using cudavision::detail::blend_rounded_alpha;
using cudavision::detail::blend_rounded_sample;
using cudavision::detail::blend_sample;
using cudavision::detail::blend_taps;
using cudavision::detail::BlendAxis;
using cudavision::detail::BlendChannel;
using cudavision::detail::BlendLayer;
using cudavision::detail::BlendPoints;
using cudavision::detail::BlendSampling;
using cudavision::detail::BlendTaps;
using cudavision::detail::BlendTarget;
using std::uint16_t;
using std::uint32_t;
using std::uint8_t;

constexpr int columns = 2, rows = 2;  ///< pixels of a thread
constexpr int warps = 8;              ///< of a block
constexpr int tile_width = 32 * columns, strip_height = warps * rows;
/// Strips that a block composes, one below the other: as many share what it finds out at first. Small pictures have but few blocks.
constexpr int most_strips = 4, wanted_blocks = 1024;
/// Blocks that a multiprocessor is to hold. 8K, a wall of 63, NV12 and RGBA: 344 and 382 µs with 3, 331 and 719 with 4; without a
/// bound, an earlier state took 506 and 570 instead of 429 and 520.
constexpr int blocks_of(int channels) { return channels == 4 ? 3 : 4; }

/// Passed by value. Few pads fit into what a launch copies at no extra price.
template <int N>
struct Job {
  BlendTarget target;
  int count, tile_height;
  std::uint64_t hiding;  ///< layers that hide what is below, one a bit
  int4 visible[N];       ///< of each layer: x, y, and where it ends
  BlendLayer layers[N];
};
constexpr int few_pads = 6;
static_assert(sizeof(Job<few_pads>) <= 4096 && sizeof(Job<blend_max_pads>) <= 32764, "kernel arguments");

template <typename T>
using Pixels = T[rows][columns];
using Samples = float[rows][columns][4];

/// Where in a pad a thread's pixels lie.
struct Place {
  int x[columns], y[rows];
};

// ---- Reading ------------------------------------------------------------------------------------------------------------------

template <typename T>
__device__ __forceinline__ uint32_t sample(const BlendLayer& layer, const uint8_t* at) {
  return blend_sample(layer, __ldg(reinterpret_cast<const T*>(at)));
}
template <typename T>
__device__ __forceinline__ float fetch(const BlendLayer& layer, const uint8_t* at) {
  return float(sample<T>(layer, at));
}

/// An address as it is: else the compiler computes that of each sample from the plane's on, as one long sum.
__device__ __forceinline__ const uint8_t* settled(const uint8_t* at) {
  asm("" : "+l"(at));
  return at;
}

/// Planes, or samples that cannot be read a pixel at once. `first` and the count - 1 that follow it lie alike.
template <typename T>
struct Channels {
  template <BlendSampling Sampling, int First, int Count>
  static __device__ __forceinline__ void read(const BlendLayer& layer, const Place& at, Samples& s) {
    constexpr bool chroma = First == 1;
    const BlendAxis &across = layer.across[chroma], &down = layer.down[chroma];
    const int step = layer.channels[First].step;
    const auto row = [&](int c, int y) { return settled(layer.channels[c].data + y * layer.channels[c].pitch); };
    if constexpr (Sampling == BlendSampling::point) {
      int x[columns];
#pragma unroll
      for (int j = 0; j < columns; ++j) x[j] = blend_point(across, at.x[j]) * step;
#pragma unroll
      for (int i = 0; i < rows; ++i) {
        const int y = blend_point(down, at.y[i]);
#pragma unroll
        for (int c = First; c < First + Count; ++c) {
          const uint8_t* const samples = row(c, y);
#pragma unroll
          for (int j = 0; j < columns; ++j) s[i][j][c] = fetch<T>(layer, samples + x[j]);
        }
      }
    } else if constexpr (Sampling == BlendSampling::linear) {
      BlendPoints x[columns];
#pragma unroll
      for (int j = 0; j < columns; ++j) {
        x[j] = blend_points(across, at.x[j]);
        x[j].first *= step, x[j].second *= step;
      }
#pragma unroll
      for (int i = 0; i < rows; ++i) {
        const BlendPoints y = blend_points(down, at.y[i]);
#pragma unroll
        for (int c = First; c < First + Count; ++c) {
          const uint8_t *const above = row(c, y.first), *const below = row(c, y.second);
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
    } else {
#pragma unroll
      for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int j = 0; j < columns; ++j) {
          const BlendTaps x = blend_taps(Sampling, across, at.x[j]), y = blend_taps(Sampling, down, at.y[i]);
#pragma unroll
          for (int c = First; c < First + Count; ++c) {
            float sum = 0;
            for (int v = y.first; v <= y.last; ++v) {
              const uint8_t* const samples = row(c, v);
              uint32_t between = 0;
              for (int u = x.first + 1; u < x.last; ++u) between += sample<T>(layer, samples + u * step);
              sum += y.of(v) * (x.first_weight * fetch<T>(layer, samples + x.first * step) + x.weight * float(between) +
                                x.last_weight * fetch<T>(layer, samples + x.last * step));
            }
            s[i][j][c] = sum;
          }
        }
    }
  }

  template <BlendSampling Sampling>
  static __device__ __forceinline__ void read(const BlendLayer& layer, const Place& at, Samples& s) {
    read<Sampling, 0, 1>(layer, at, s);
    if (layer.channels[1].data) read<Sampling, 1, 2>(layer, at, s);
    if (layer.channels[3].data) read<Sampling, 3, 1>(layer, at, s);
  }
};

/// Pixels of four interleaved samples, each one word; padding is read as well.
template <typename Word>
struct Packed {
  static __device__ __forceinline__ void fetch(const BlendLayer& layer, const uint8_t* row, int x, float (&s)[4]) {
    if constexpr (sizeof(Word) == 4) {
      const uint32_t word = __ldg(reinterpret_cast<const uint32_t*>(row) + x);
#pragma unroll
      for (int c = 0; c < 4; ++c) s[c] = float(__byte_perm(word, 0, 0x4440 | layer.packed.order[c]));
    } else {
      const uint2 words = __ldg(reinterpret_cast<const uint2*>(row) + x);
#pragma unroll
      for (int c = 0; c < 4; ++c) s[c] = float(__byte_perm(words.x, words.y, 0x10 + 0x22 * layer.packed.order[c]) & 0xffff);
    }
  }

  template <BlendSampling Sampling>
  static __device__ __forceinline__ void read(const BlendLayer& layer, const Place& at, Samples& s) {
    const BlendAxis &across = layer.across[0], &down = layer.down[0];
    const auto row = [&](int y) { return settled(layer.packed.data + y * layer.channels[0].pitch); };
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      if constexpr (Sampling == BlendSampling::point) {
        const int x = blend_point(across, at.x[j]);
#pragma unroll
        for (int i = 0; i < rows; ++i) fetch(layer, row(blend_point(down, at.y[i])), x, s[i][j]);
      } else if constexpr (Sampling == BlendSampling::linear) {
        const BlendPoints x = blend_points(across, at.x[j]);
#pragma unroll
        for (int i = 0; i < rows; ++i) {
          const BlendPoints y = blend_points(down, at.y[i]);
          float a[2][4], b[2][4];
#pragma unroll
          for (int v = 0; v < 2; ++v) {
            const uint8_t* const pixels = row(v ? y.second : y.first);
            fetch(layer, pixels, x.first, a[v]);
            fetch(layer, pixels, x.second, b[v]);
          }
#pragma unroll
          for (int c = 0; c < 4; ++c) {
            const float above = a[0][c] + x.weight * (b[0][c] - a[0][c]), below = a[1][c] + x.weight * (b[1][c] - a[1][c]);
            s[i][j][c] = above + y.weight * (below - above);
          }
        }
      } else {
        const BlendTaps x = blend_taps(Sampling, across, at.x[j]);
#pragma unroll
        for (int i = 0; i < rows; ++i) {
          const BlendTaps y = blend_taps(Sampling, down, at.y[i]);
          s[i][j][0] = s[i][j][1] = s[i][j][2] = s[i][j][3] = 0;
          for (int v = y.first; v <= y.last; ++v)
            for (int u = x.first; u <= x.last; ++u) {
              float of_pixel[4];
              fetch(layer, row(v), u, of_pixel);
              const float weight = y.of(v) * x.of(u);
#pragma unroll
              for (int c = 0; c < 4; ++c) s[i][j][c] += weight * of_pixel[c];
            }
        }
      }
    }
  }
};

template <BlendSampling Sampling>
__device__ __forceinline__ void read(const BlendLayer& layer, const Place& at, Samples& s) {
  const bool bytes = layer.sample_bytes == 1;
  if (layer.packed.data)
    bytes ? Packed<uint32_t>::read<Sampling>(layer, at, s) : Packed<uint2>::read<Sampling>(layer, at, s);
  else
    bytes ? Channels<uint8_t>::read<Sampling>(layer, at, s) : Channels<uint16_t>::read<Sampling>(layer, at, s);
}

/// The pad's samples at the thread's pixels, alpha in steps of the output's.
__device__ __forceinline__ void read(const BlendLayer& layer, const Place& at, Samples& s) {
  switch (layer.sampling) {
    case BlendSampling::point:
      read<BlendSampling::point>(layer, at, s);
      break;
    case BlendSampling::linear:
      read<BlendSampling::linear>(layer, at, s);
      break;
    case BlendSampling::area:
      read<BlendSampling::area>(layer, at, s);
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

// ---- Blending -----------------------------------------------------------------------------------------------------------------

__device__ __forceinline__ void find_weights(const BlendLayer& layer, const Samples& s, Pixels<float>& weights) {
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
      weights[i][j] = blend_key_weight(layer, key, layer.to_key.row(0, p[0], p[1], p[2]), layer.to_key.row(1, p[0], p[1], p[2]),
                                       layer.to_key.row(2, p[0], p[1], p[2]));
    }
}

template <int Channels>
__device__ __forceinline__ void convert(const BlendTarget& target, const BlendLayer& layer, Samples& s) {
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      float(&p)[4] = s[i][j];
      const float a = p[0], b = p[1], c = p[2];
#pragma unroll
      for (int k = 0; k < (Channels == 1 ? 1 : 3); ++k) p[k] = blend_clamped(layer.to_target.row(k, a, b, c), target.max);
    }
}

template <BlendOperator Op, int Channels>
__device__ __forceinline__ void blend(const BlendTarget& target, const BlendLayer& layer, const Pixels<float>& weights,
                                      const Pixels<bool>& shows, const Samples& s, Samples& d) {
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      float pixel[4] = {d[i][j][0], d[i][j][1], d[i][j][2], d[i][j][3]};
      blend_pixel<Op, Channels>(target, layer, weights[i][j], s[i][j], pixel);
#pragma unroll
      for (int c = 0; c < Channels; ++c)
        if (shows[i][j]) d[i][j][c] = pixel[c];
    }
}

template <int Channels>
__device__ __forceinline__ void lay_over(const BlendTarget& target, const BlendLayer& layer, bool replaces, const int (&x)[columns],
                                         const int (&y)[rows], Samples& d) {
  const Rect& v = layer.visible;
  Place at;
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
        for (int c = 0; c < 3; ++c) s[i][j][c] = blend_rounded_sample(s[i][j][c]);
  }
  if (replaces) {
    const bool source = layer.op == BlendOperator::source;
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int j = 0; j < columns; ++j) {
#pragma unroll
        for (int c = 0; c < Channels; ++c) d[i][j][c] = s[i][j][c];
        if (Channels == 4 && source) d[i][j][3] = blend_rounded_alpha(layer, s[i][j][3] * layer.coverage);
      }
    return;
  }
  switch (layer.op) {
    case BlendOperator::source:
      return blend<BlendOperator::source, Channels>(target, layer, weights, shows, s, d);
    case BlendOperator::over:
      return blend<BlendOperator::over, Channels>(target, layer, weights, shows, s, d);
    case BlendOperator::add:
      return blend<BlendOperator::add, Channels>(target, layer, weights, shows, s, d);
    case BlendOperator::subtract:
      return blend<BlendOperator::subtract, Channels>(target, layer, weights, shows, s, d);
    case BlendOperator::multiply:
      return blend<BlendOperator::multiply, Channels>(target, layer, weights, shows, s, d);
    case BlendOperator::screen:
      return blend<BlendOperator::screen, Channels>(target, layer, weights, shows, s, d);
    case BlendOperator::difference:
      return blend<BlendOperator::difference, Channels>(target, layer, weights, shows, s, d);
    case BlendOperator::min:
      return blend<BlendOperator::min, Channels>(target, layer, weights, shows, s, d);
    case BlendOperator::max:
      return blend<BlendOperator::max, Channels>(target, layer, weights, shows, s, d);
    case BlendOperator::average:
      return blend<BlendOperator::average, Channels>(target, layer, weights, shows, s, d);
  }
}

// ---- Writing ------------------------------------------------------------------------------------------------------------------

/// The sample in the lowest bits, rounded half to even: numbers about 1.5 · 2^23 are 1 apart.
__device__ __forceinline__ uint32_t stored(float value) { return __float_as_uint(value + 0x1.8p23f); }
template <typename T>
__device__ __forceinline__ void store(const BlendTarget& target, const BlendChannel& channel, int x, int y, float value) {
  uint8_t* const at = channel.data + (y >> channel.shift_y) * channel.pitch + (x >> channel.shift_x) * channel.step;
  *reinterpret_cast<T*>(at) = T(sizeof(T) == 1 ? stored(value) : stored(value) << target.shift);
}

/// Pixels of four interleaved samples, one word each.
template <typename Word, int Channels>
__device__ __forceinline__ void write_packed(const BlendTarget& target, const int (&x)[columns], const int (&y)[rows],
                                             const Samples& d) {
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      Word word = 0;
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const uint32_t sample = stored(c < Channels ? d[i][j][c] : target.max) & (sizeof(Word) == 4 ? 0xff : 0xffff);
        word |= Word(sample) << 2 * sizeof(Word) * target.packed.order[c];
      }
      if (x[j] < target.width && y[i] < target.height)
        reinterpret_cast<Word*>(target.packed.data + y[i] * target.channels[0].pitch)[x[j]] = word;
    }
}

/// Chroma is the mean of the pixels that share it: down, then across, where the lane beside has the other column.
template <typename T>
__device__ __forceinline__ void write_chroma(const BlendTarget& target, const int (&x)[columns], const int (&y)[rows],
                                             const Samples& d) {
#pragma unroll
  for (int i = 0; i < rows; ++i) {
    if (i == 1 && target.shift_y) break;
#pragma unroll
    for (int j = 0; j < columns; ++j)
#pragma unroll
      for (int c = 1; c < 3; ++c) {
        float mean = d[i][j][c];
        if (target.shift_y && y[1] < target.height) mean = (mean + d[1][j][c]) * 0.5f;
        if (target.shift_x) {
          const float other = __shfl_xor_sync(~0u, mean, 1);
          if (x[j] + 1 < target.width) mean = (mean + other) * 0.5f;
        }
        if (x[j] < target.width && y[i] < target.height && !(target.shift_x && x[j] % 2))
          store<T>(target, target.channels[c], x[j], y[i], mean);
      }
  }
}

template <typename T, int Channels>
__device__ __forceinline__ void write_planes(const BlendTarget& target, const int (&x)[columns], const int (&y)[rows],
                                             const Samples& d) {
#pragma unroll
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < columns; ++j) {
      if (x[j] >= target.width || y[i] >= target.height) continue;
      store<T>(target, target.channels[0], x[j], y[i], d[i][j][0]);
      if (Channels == 4) store<T>(target, target.channels[3], x[j], y[i], d[i][j][3]);
      if (Channels > 1 && target.padding.data) store<T>(target, target.padding, x[j], y[i], target.max);
    }
  if constexpr (Channels > 1) write_chroma<T>(target, x, y, d);
}

template <int Channels>
__device__ __forceinline__ void write(const BlendTarget& target, const int (&x)[columns], const int (&y)[rows], const Samples& d) {
  const bool bytes = target.sample_bytes == 1;
  if (Channels > 1 && target.packed.data)
    bytes ? write_packed<uint32_t, Channels>(target, x, y, d) : write_packed<unsigned long long, Channels>(target, x, y, d);
  else
    bytes ? write_planes<uint8_t, Channels>(target, x, y, d) : write_planes<uint16_t, Channels>(target, x, y, d);
}

// ---- Copying ------------------------------------------------------------------------------------------------------------------

/// Two 16-bit samples in each word, none of them above the greatest sample, which is in `most` twice; bytes: any.
__device__ __forceinline__ uint32_t capped(uint32_t words, uint32_t most) { return __vminu2(words, most); }
__device__ __forceinline__ uint16_t capped(uint16_t word, uint32_t most) { return uint16_t(min(uint32_t(word), most & 0xffff)); }
__device__ __forceinline__ uint8_t capped(uint8_t byte, uint32_t) { return byte; }
__device__ __forceinline__ uint2 capped(uint2 words, uint32_t most) {
  return make_uint2(capped(words.x, most), capped(words.y, most));
}
__device__ __forceinline__ uint4 capped(uint4 words, uint32_t most) {
  return make_uint4(capped(words.x, most), capped(words.y, most), capped(words.z, most), capped(words.w, most));
}

/// A part of a plane, in units of T. Unit (0, 0) of the output's lies at `to`, and what goes there at `from`. `most`: see capped().
template <typename T>
__device__ __forceinline__ void copy_units(const uint8_t* from, std::ptrdiff_t from_pitch, uint8_t* to, std::ptrdiff_t to_pitch,
                                           const Rect& part, uint32_t most) {
  from += part.x * int(sizeof(T)), to += part.x * int(sizeof(T));
  const int bytes = part.width * int(sizeof(T)), chunks = bytes / 16;
  if ((std::uintptr_t(from) | from_pitch | std::uintptr_t(to) | to_pitch | bytes) % 16 == 0) {
    for (int i = threadIdx.x; i < chunks * part.height; i += 32 * warps) {
      const int y = part.y + i / chunks, x = i % chunks;
      reinterpret_cast<uint4*>(to + y * to_pitch)[x] =
          capped(__ldg(reinterpret_cast<const uint4*>(from + y * from_pitch) + x), most);
    }
    return;
  }
  for (int x = threadIdx.x % 32; x < part.width; x += 32) {
#pragma unroll 4
    for (int y = part.y + threadIdx.x / 32; y < part.y + part.height; y += warps)
      reinterpret_cast<T*>(to + y * to_pitch)[x] = capped(reinterpret_cast<const T*>(from + y * from_pitch)[x], most);
  }
}

/// One channel where others lie between its samples.
template <typename T>
__device__ __forceinline__ void copy_channel(const BlendChannel& from, const uint8_t* data, const BlendChannel& to,
                                             const Rect& part, uint32_t most) {
  for (int x = part.x + threadIdx.x % 32; x < part.x + part.width; x += 32)
    for (int y = part.y + threadIdx.x / 32; y < part.y + part.height; y += warps)
      *reinterpret_cast<T*>(to.data + y * to.pitch + x * to.step) =
          capped(*reinterpret_cast<const T*>(data + y * from.pitch + x * from.step), most);
}

/// T: of a sample, Pair: of two.
template <typename T, typename Pair>
__device__ __forceinline__ void copy_planes(const BlendTarget& target, const BlendLayer& layer, int x, int y, const Rect& tile,
                                            uint32_t most) {
#pragma unroll 1
  for (int c = 0; c < 4; ++c) {
    const BlendChannel &from = layer.channels[c], &to = target.channels[c];
    if (!to.data) continue;
    const auto part_of = [](int i, int shift) { return (i + (1 << shift) - 1) >> shift; };
    const Rect part{tile.x >> to.shift_x, tile.y >> to.shift_y, part_of(tile.width, to.shift_x), part_of(tile.height, to.shift_y)};
    const uint8_t* const data = from.data + (y >> to.shift_y) * from.pitch + (x >> to.shift_x) * from.step;
    const std::ptrdiff_t next = c == 1 ? target.channels[2].data - to.data : 0, first = next < 0 ? next : 0;
    const bool paired = to.step == sizeof(Pair) && next - 2 * first == sizeof(T);  // NV12
    const bool aligned =
        (std::uintptr_t(data + first) | from.pitch | std::uintptr_t(to.data + first) | to.pitch) % sizeof(Pair) == 0;
    if (to.step == sizeof(T)) {
      copy_units<T>(data, from.pitch, to.data, to.pitch, part, most);
    } else if (paired && aligned) {
      copy_units<Pair>(data + first, from.pitch, to.data + first, to.pitch, part, most);
      ++c;
    } else {
      copy_channel<T>(from, data, to, part, most);
    }
  }
}

/// A layer that copies.
__device__ __forceinline__ void copy(const BlendTarget& target, const BlendLayer& layer, const Rect& tile) {
  const int x = layer.crop.x - layer.place.x, y = layer.crop.y - layer.place.y;
  const bool bytes = layer.sample_bytes == 1;
  const uint32_t most = bytes ? ~0u : layer.max * 0x10001u;
  if (target.packed.data && layer.packed.data) {
    const std::ptrdiff_t pitch = layer.channels[0].pitch, to_pitch = target.channels[0].pitch;
    const uint8_t* const from = layer.packed.data + y * pitch + x * 4 * layer.sample_bytes;
    bytes ? copy_units<uint32_t>(from, pitch, target.packed.data, to_pitch, tile, most)
          : copy_units<uint2>(from, pitch, target.packed.data, to_pitch, tile, most);
  } else {
    bytes ? copy_planes<uint8_t, uint16_t>(target, layer, x, y, tile, most)
          : copy_planes<uint16_t, uint32_t>(target, layer, x, y, tile, most);
  }
}

// ---- The kernel ---------------------------------------------------------------------------------------------------------------

/// Layers that show in a tile, one a bit: no others, and none below one that hides what is below; `covered`: that is the lowest.
struct Shown {
  std::uint64_t layers;
  bool covered;
};

template <int N>
__device__ __forceinline__ Shown find_shown(const Job<N>& job, const Rect& tile) {
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
  std::uint64_t shown = 0, hidden = 0;
#pragma unroll
  for (int w = 0; w < words; ++w) {
    shown |= std::uint64_t(touching[w]) << 32 * w;
    hidden |= std::uint64_t(covering[w]) << 32 * w;
  }
  hidden &= job.hiding;
  if (!hidden) return {shown, false};
  return {shown & ~std::uint64_t(0) << (63 - __clzll((long long)hidden)), true};
}

template <int N, int Channels>
__global__ void __launch_bounds__(32 * warps, blocks_of(Channels)) compose_tiles(const __grid_constant__ Job<N> job) {
  const BlendTarget& target = job.target;
  const int tile_x = blockIdx.x * tile_width, tile_y = blockIdx.y * job.tile_height;
  const Rect tile{tile_x, tile_y, min(tile_width, target.width - tile_x), min(job.tile_height, target.height - tile_y)};
  const Shown shown = find_shown(job, tile);
  if (shown.covered && !(shown.layers & (shown.layers - 1))) {
    const BlendLayer& layer = job.layers[__ffsll((long long)shown.layers) - 1];
    if (layer.copies) return copy(target, layer, tile);
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
      if (job.visible[l].y < top + rows && job.visible[l].w > top) lay_over<Channels>(target, job.layers[l], replaces, x, y, d);
      replaces = false;
    }
    write<Channels>(target, x, y, d);
  }
}

template <int N>
void launch(const BlendTarget& target, const std::vector<BlendLayer>& layers, Queue queue) {
  Job<N> job;
  job.target = target;
  job.count = int(layers.size());
  job.hiding = 0;
  for (int i = 0; i < job.count; ++i) {
    const Rect& v = layers[i].visible;
    job.visible[i] = make_int4(v.x, v.y, v.x + v.width, v.y + v.height);
    job.hiding |= std::uint64_t(layers[i].hides) << i;
    job.layers[i] = layers[i];
  }
  const int across = (target.width + tile_width - 1) / tile_width, down = (target.height + strip_height - 1) / strip_height;
  const int strips = std::clamp(across * down / wanted_blocks, 1, most_strips);
  job.tile_height = strips * strip_height;
  const dim3 grid(across, (down + strips - 1) / strips);
  (target.alpha  ? compose_tiles<N, 4>
   : target.gray ? compose_tiles<N, 1>
                 : compose_tiles<N, 3>)<<<grid, 32 * warps, 0, queue.stream>>>(job);
}

}  // namespace

void compose(const BlendTarget& target, const std::vector<BlendLayer>& layers, Queue queue) {
  if (layers.size() <= few_pads)
    launch<few_pads>(target, layers, queue);
  else
    launch<blend_max_pads>(target, layers, queue);
}

}  // namespace cuda
}  // namespace cudavision
