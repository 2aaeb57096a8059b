// SPDX-License-Identifier: LGPL-2.1-or-later
// One launch a picture. The general kernel computes a pixel a thread from all pads that touch its tile; chroma is shared by
// shuffles. Two pictures of one 8-bit format and the size of the output, the most common of cases, have kernels of their own, which
// move 16 bytes at a time.
#include <algorithm>

#include "../blend.hpp"
#include "filter.hpp"
#include "pixels.cuh"

namespace cudavision {
namespace cuda {
namespace {

using cudavision::detail::blend_clamped;
using cudavision::detail::blend_component;
using cudavision::detail::blend_key_weight;
using cudavision::detail::blend_pixel;
using cudavision::detail::blend_rounded;
using cudavision::detail::blend_taps;
using cudavision::detail::BlendChannel;
using cudavision::detail::BlendLayer;
using cudavision::detail::BlendMatrix;
using cudavision::detail::BlendPair;
using cudavision::detail::BlendPairPlane;
using cudavision::detail::BlendTaps;
using cudavision::detail::BlendTarget;
using std::uint16_t;
using std::uint32_t;
using std::uint8_t;

// ---- Any pads ------------------------------------------------------------------------------------------------------------------

constexpr int tile_width = 32,
              tile_height = 8;  ///< pixels of a block; a warp has 16 × 2, so that pixels that share chroma are in one

/// Passed by value. Few pads fit into what a launch copies at no extra price.
template <int N>
struct Job {
  BlendTarget target;
  int count;
  BlendLayer layers[N];
};
constexpr int few_pads = 8;
static_assert(sizeof(Job<few_pads>) <= 4096 && sizeof(Job<blend_max_pads>) <= 32764, "kernel arguments");

__device__ __forceinline__ float fetch(const BlendLayer& layer, const BlendChannel& channel, int x, int y) {
  const uint8_t* const at = channel.data + y * channel.pitch + std::ptrdiff_t(x) * channel.step;
  return layer.sample_bytes == 1 ? float(__ldg(at)) : float(__ldg(reinterpret_cast<const uint16_t*>(at)) >> layer.shift);
}

__device__ __forceinline__ float sample(const BlendLayer& layer, const BlendChannel& channel, const BlendTaps& across,
                                        const BlendTaps& down) {
  float sum = 0;
  for (int y = down.first; y <= down.last; ++y) {
    float row = 0;
    for (int x = across.first; x <= across.last; ++x) row += across.of(x) * fetch(layer, channel, x, y);
    sum += down.of(y) * row;
  }
  return sum;
}

/// All samples of a pixel; padding as well.
__device__ __forceinline__ void fetch_packed(const BlendLayer& layer, int x, int y, float (&s)[4]) {
  const uint8_t* const row = layer.packed.data + y * layer.channels[0].pitch;
  if (layer.sample_bytes == 1) {
    const uint32_t word = __ldg(reinterpret_cast<const uint32_t*>(row) + x);
#pragma unroll
    for (int c = 0; c < 4; ++c) s[c] = float(word >> 8 * layer.packed.order[c] & 0xff);
  } else {
    const uint2 words = __ldg(reinterpret_cast<const uint2*>(row) + x);
#pragma unroll
    for (int c = 0; c < 4; ++c)
      s[c] = float((layer.packed.order[c] < 2 ? words.x : words.y) >> 16 * (layer.packed.order[c] & 1) & 0xffff);
  }
}

/// The pad's samples at an output pixel.
__device__ __forceinline__ void read_pad(const BlendLayer& layer, int x, int y, float (&s)[4]) {
  const int column = x - layer.place.x, row = y - layer.place.y;
  const auto taps = [&](int shift_x, int shift_y, BlendTaps& across, BlendTaps& down) {
    across = blend_taps(layer.interpolation, column, layer.place.width, layer.crop.x, layer.crop.width, shift_x);
    down = blend_taps(layer.interpolation, row, layer.place.height, layer.crop.y, layer.crop.height, shift_y);
  };
  BlendTaps across, down;
  if (layer.packed.data && layer.unscaled) {
    fetch_packed(layer, layer.crop.x + column, layer.crop.y + row, s);
  } else if (layer.packed.data) {
    taps(0, 0, across, down);
    s[0] = s[1] = s[2] = s[3] = 0;
    for (int i = down.first; i <= down.last; ++i)
      for (int j = across.first; j <= across.last; ++j) {
        float at[4];
        fetch_packed(layer, j, i, at);
        const float weight = down.of(i) * across.of(j);
#pragma unroll
        for (int c = 0; c < 4; ++c) s[c] += weight * at[c];
      }
  } else if (layer.unscaled) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const BlendChannel& channel = layer.channels[c];
      if (channel.data)
        s[c] = fetch(layer, channel, (layer.crop.x + column) >> channel.shift_x, (layer.crop.y + row) >> channel.shift_y);
    }
  } else {
    taps(0, 0, across, down);
    s[0] = sample(layer, layer.channels[0], across, down);
    if (layer.channels[3].data) s[3] = sample(layer, layer.channels[3], across, down);
    if (layer.channels[1].data) {
      if (layer.channels[1].shift_x) taps(layer.channels[1].shift_x, layer.channels[1].shift_y, across, down);
      s[1] = sample(layer, layer.channels[1], across, down);
      s[2] = sample(layer, layer.channels[2], across, down);
    }
  }
  if (!layer.channels[1].data) s[1] = s[2] = layer.neutral;
  if (!layer.channels[3].data) s[3] = layer.opaque;
  s[3] *= layer.alpha_scale;
}

__device__ __forceinline__ float key_weight(const BlendLayer& layer, const float (&s)[4]) {
  float key[3] = {layer.key[0], layer.key[1], layer.key[2]};
  if (layer.first_pixel) {
    float first[3] = {0, layer.neutral, layer.neutral};
#pragma unroll
    for (int c = 0; c < 3; ++c)
      if (layer.channels[c].data) first[c] = fetch(layer, layer.channels[c], 0, 0);
#pragma unroll
    for (int c = 0; c < 3; ++c) key[c] = layer.to_key.row(c, first[0], first[1], first[2]);
  }
  return blend_key_weight(layer, key, layer.to_key.row(0, s[0], s[1], s[2]), layer.to_key.row(1, s[0], s[1], s[2]),
                          layer.to_key.row(2, s[0], s[1], s[2]));
}

template <bool Alpha>
__device__ __forceinline__ void lay_over(const BlendTarget& target, const BlendLayer& layer, int x, int y, float (&d)[4]) {
  float s[4];
  read_pad(layer, x, y, s);
  const float k = layer.keyed ? key_weight(layer, s) : 1;
  if (!layer.identity) {
    const float a = s[0], b = s[1], c = s[2];
#pragma unroll
    for (int i = 0; i < 3; ++i) s[i] = blend_clamped(layer.to_target.row(i, a, b, c), target.max);
  }
  switch (layer.op) {
    case BlendOperator::source:
      return blend_pixel<BlendOperator::source, Alpha>(target, layer, k, s, d);
    case BlendOperator::over:
      return blend_pixel<BlendOperator::over, Alpha>(target, layer, k, s, d);
    case BlendOperator::add:
      return blend_pixel<BlendOperator::add, Alpha>(target, layer, k, s, d);
    case BlendOperator::subtract:
      return blend_pixel<BlendOperator::subtract, Alpha>(target, layer, k, s, d);
    case BlendOperator::multiply:
      return blend_pixel<BlendOperator::multiply, Alpha>(target, layer, k, s, d);
    case BlendOperator::screen:
      return blend_pixel<BlendOperator::screen, Alpha>(target, layer, k, s, d);
    case BlendOperator::difference:
      return blend_pixel<BlendOperator::difference, Alpha>(target, layer, k, s, d);
    case BlendOperator::min:
      return blend_pixel<BlendOperator::min, Alpha>(target, layer, k, s, d);
    case BlendOperator::max:
      return blend_pixel<BlendOperator::max, Alpha>(target, layer, k, s, d);
    case BlendOperator::average:
      return blend_pixel<BlendOperator::average, Alpha>(target, layer, k, s, d);
  }
}

__device__ __forceinline__ uint32_t stored(const BlendTarget& target, float value) {
  return uint32_t(__float2int_rn(value)) << target.shift;
}
__device__ __forceinline__ void store(const BlendTarget& target, const BlendChannel& channel, int x, int y, float value) {
  uint8_t* const at = channel.data + (y >> channel.shift_y) * channel.pitch + std::ptrdiff_t(x >> channel.shift_x) * channel.step;
  if (target.sample_bytes == 1)
    *at = uint8_t(stored(target, value));
  else
    *reinterpret_cast<uint16_t*>(at) = uint16_t(stored(target, value));
}

/// Stores a pixel of four interleaved samples at once.
template <typename Word>
__device__ __forceinline__ void store_packed(const BlendTarget& target, int x, int y, const float (&d)[4]) {
  Word word = 0;
#pragma unroll
  for (int c = 0; c < 4; ++c)
    word |= Word(stored(target, c == 3 && !target.alpha ? target.max : d[c])) << 2 * sizeof(Word) * target.packed.order[c];
  reinterpret_cast<Word*>(target.packed.data + y * target.channels[0].pitch)[x] = word;
}

template <int N, bool Alpha>
__global__ void __launch_bounds__(tile_width* tile_height) compose(const __grid_constant__ Job<N> job) {
  const BlendTarget& target = job.target;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int tile_x = blockIdx.x * tile_width, tile_y = blockIdx.y * tile_height;
  const int x = tile_x + warp % 2 * 16 + lane % 16, y = tile_y + warp / 2 * 2 + lane / 16;
  const bool inside = x < target.width && y < target.height;

  // From the topmost pad that hides what is below it on.
  int lowest = job.count;
  const int tile_right = min(tile_x + tile_width, target.width), tile_bottom = min(tile_y + tile_height, target.height);
  for (bool hidden = false; lowest > 0 && !hidden;) {
    const BlendLayer& layer = job.layers[--lowest];
    const Rect& v = layer.visible;
    hidden = layer.hides && v.x <= tile_x && v.y <= tile_y && v.x + v.width >= tile_right && v.y + v.height >= tile_bottom;
  }

  float d[4] = {target.background[0], target.background[1], target.background[2], target.background[3]};
  if ((x ^ y) & 8) {
    d[0] = target.checker;
    if (!target.yuv && !target.gray && target.checker != target.background[0]) d[1] = d[2] = target.checker;
  }
  for (int i = lowest; i < job.count; ++i) {
    const BlendLayer& layer = job.layers[i];
    const Rect& v = layer.visible;
    if (v.x >= tile_right || v.y >= tile_bottom || v.x + v.width <= tile_x || v.y + v.height <= tile_y) continue;
    if (x >= v.x && y >= v.y && x < v.x + v.width && y < v.y + v.height) lay_over<Alpha>(target, layer, x, y, d);
  }

  if (target.packed.data) {
    if (!inside) return;
    if (target.sample_bytes == 1)
      store_packed<uint32_t>(target, x, y, d);
    else
      store_packed<unsigned long long>(target, x, y, d);
    return;
  }
  bool writes_chroma = inside;
  if (target.yuv && target.shift_x) {
    float count = inside;
#pragma unroll
    for (int step = 1; step <= 16; step *= 16) {
      if (step == 16 && !target.shift_y) break;
      const float other = __shfl_xor_sync(~0u, count, step);
#pragma unroll
      for (int c = 1; c < 3; ++c) d[c] = (d[c] * count + __shfl_xor_sync(~0u, d[c], step) * other) / fmaxf(count + other, 1);
      count += other;
    }
    writes_chroma = inside && x % 2 == 0 && (y % 2 == 0 || !target.shift_y);
  }
  if (inside) store(target, target.channels[0], x, y, d[0]);
  if (writes_chroma && !target.gray) {
    store(target, target.channels[1], x, y, d[1]);
    store(target, target.channels[2], x, y, d[2]);
  }
  if (inside && target.alpha) store(target, target.channels[3], x, y, d[3]);
  if (inside && target.padding.data) store(target, target.padding, x, y, target.max);
}

// ---- Two pictures of 8 bits, pixel by pixel ------------------------------------------------------------------------------------

/// Rows are aligned to 16 bytes.
struct Pair : BlendPairPlane {
  int chunks;  ///< of 16 bytes in a row
  int begin;   ///< number of its first chunk among those of all planes
};

struct PairJob {
  Pair planes[3];
  int plane_count, total;  ///< total: chunks
  float weight;            ///< of the upper picture
  bool swapped;            ///< Cr before Cb
  BlendLayer layer;        ///< the upper one; of pixels of four bytes, `key` goes by the order of the colours' bytes
};

struct Chunk {
  uint32_t word[4];
};
__device__ __forceinline__ Chunk load_chunk(const uint8_t* row, int x, int row_bytes) {
  if (x + 16 <= row_bytes) {
    const uint4 v = __ldg(reinterpret_cast<const uint4*>(row + x));
    return {{v.x, v.y, v.z, v.w}};
  }
  Chunk chunk{};
#pragma unroll
  for (int i = 0; i < 16; ++i)
    if (x + i < row_bytes) chunk.word[i / 4] |= uint32_t(row[x + i]) << i % 4 * 8;
  return chunk;
}
__device__ __forceinline__ void store_chunk(uint8_t* row, int x, int row_bytes, const Chunk& chunk) {
  if (x + 16 <= row_bytes) {
    *reinterpret_cast<uint4*>(row + x) = make_uint4(chunk.word[0], chunk.word[1], chunk.word[2], chunk.word[3]);
    return;
  }
#pragma unroll
  for (int i = 0; i < 16; ++i)
    if (x + i < row_bytes) row[x + i] = uint8_t(chunk.word[i / 4] >> i % 4 * 8);
}

// Numbers from 2^23 to 2^24 are 1 apart: a byte in the lowest bits of 2^23 is that number more, and what is added to it is rounded
// half to even. Neither way is a conversion.
constexpr float bias = 0x1p23f;
__device__ __forceinline__ float biased(uint32_t word, int byte) {
  return __uint_as_float(__byte_perm(word, 0x4b000000, 0x7540 | byte));
}
/// d + weight · (s − d), of biased numbers; its lowest byte is the sample.
__device__ __forceinline__ uint32_t mixed(float s, float d, float weight) {
  return __float_as_uint(fmaf(weight, s - d, d));
}
__device__ __forceinline__ uint32_t pack(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}
__device__ __forceinline__ uint32_t mixed_word(uint32_t s, uint32_t d, const float (&weights)[4]) {
  return pack(mixed(biased(s, 0), biased(d, 0), weights[0]), mixed(biased(s, 1), biased(d, 1), weights[1]),
              mixed(biased(s, 2), biased(d, 2), weights[2]), mixed(biased(s, 3), biased(d, 3), weights[3]));
}
__device__ __forceinline__ float number(uint32_t word, int byte) {
  return biased(word, byte) - bias;
}

/// Every sample with the same weight, whatever the format; or gray with a key.
template <bool Keyed>
__global__ void __launch_bounds__(256) mix_planes(const __grid_constant__ PairJob job) {
  const int index = blockIdx.x * 256 + threadIdx.x;
  if (index >= job.total) return;
  int p = 0;
  while (p + 1 < job.plane_count && index >= job.planes[p + 1].begin) ++p;
  const Pair& plane = job.planes[p];
  const int y = (index - plane.begin) / plane.chunks, x = (index - plane.begin - y * plane.chunks) * 16;
  const Chunk above = load_chunk(plane.above + y * plane.above_pitch, x, plane.row_bytes);
  const Chunk below = load_chunk(plane.below + y * plane.below_pitch, x, plane.row_bytes);
  [[maybe_unused]] float low = 0, high = 0;  // the least and the greatest of the key's R', G' and B'
  if constexpr (Keyed) {
    const BlendLayer& layer = job.layer;
    low = fminf(fminf(layer.key[0], layer.key[1]), layer.key[2]);
    high = fmaxf(fmaxf(layer.key[0], layer.key[1]), layer.key[2]);
    if (layer.first_pixel) low = high = layer.to_key.row(0, float(__ldg(plane.above)), layer.neutral, layer.neutral);
  }
  Chunk out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float weights[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      weights[j] = job.weight;
      if constexpr (Keyed) {
        const float gray = job.layer.to_key.row(0, number(above.word[i], j), job.layer.neutral, job.layer.neutral);
        weights[j] *= blend_key_weight(job.layer, fmaxf(gray - low, high - gray));
      }
    }
    out.word[i] = mixed_word(above.word[i], below.word[i], weights);
  }
  store_chunk(plane.dst + y * plane.dst_pitch, x, plane.row_bytes, out);
}

/// Pixels of four bytes, of which one is alpha or padding.
template <BlendOperator Op, int Fourth, bool Alpha, bool Keyed>
__global__ void __launch_bounds__(256) mix_pixels(const __grid_constant__ PairJob job) {
  const int index = blockIdx.x * 256 + threadIdx.x;
  if (index >= job.total) return;
  const Pair& plane = job.planes[0];
  const int y = index / plane.chunks, x = (index - y * plane.chunks) * 16;
  const Chunk above = load_chunk(plane.above + y * plane.above_pitch, x, plane.row_bytes);
  const Chunk below = load_chunk(plane.below + y * plane.below_pitch, x, plane.row_bytes);
  constexpr int first = Fourth == 0 ? 1 : 0;  // of the colours' bytes
  float key[3] = {};
  if constexpr (Keyed) {
#pragma unroll
    for (int c = 0; c < 3; ++c) key[c] = job.layer.key[c];
    if (job.layer.first_pixel) {
      const uint32_t word = __ldg(reinterpret_cast<const uint32_t*>(plane.above));
#pragma unroll
      for (int c = 0; c < 3; ++c) key[c] = fmaf(job.layer.to_key.m[c][c], number(word, first + c), job.layer.to_key.m[c][3]);
    }
  }
  Chunk out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t s = above.word[i], d = below.word[i];
    float k = 1;
    if constexpr (Keyed) {
      float rgb[3];
#pragma unroll
      for (int c = 0; c < 3; ++c) rgb[c] = fmaf(job.layer.to_key.m[c][c], number(s, first + c), job.layer.to_key.m[c][3]);
      k = blend_key_weight(job.layer, key, rgb[0], rgb[1], rgb[2]);
    }
    if constexpr (Op == BlendOperator::over && Alpha) {
      constexpr float max = 255;
      const auto whole = [&](float v) { return blend_rounded(v, job.layer.alpha_rounding); };
      const float over = whole(number(s, Fourth) * job.weight * k), rest = whole(number(d, Fourth) * (max - over) * (1 / max));
      const float sum = over + rest, share = sum > 0.5f ? __fdividef(over, sum) : 0;  // of the upper one's colour
      uint32_t bytes[4];
#pragma unroll
      for (int b = 0; b < 4; ++b) bytes[b] = b == Fourth ? uint32_t(__float2int_rn(sum)) : mixed(biased(s, b), biased(d, b), share);
      out.word[i] = pack(bytes[0], bytes[1], bytes[2], bytes[3]);
      if (!(sum > 0.5f)) out.word[i] = ~(255u << 8 * Fourth);
    } else {
      float weight = k;
      if (Op != BlendOperator::source) weight *= job.weight;
      const float weights[4] = {weight, weight, weight, weight};
      uint32_t word = mixed_word(s, d, weights);
      if (!Alpha) word |= 255u << 8 * Fourth;
      if (Alpha && Op == BlendOperator::source) {
        const float was = number(d, Fourth);
        const uint32_t alpha = uint32_t(__float2int_rn(was + weight * (number(s, Fourth) * job.weight - was)));
        word = (word & ~(255u << 8 * Fourth)) | alpha << 8 * Fourth;
      }
      out.word[i] = word;
    }
  }
  store_chunk(plane.dst + y * plane.dst_pitch, x, plane.row_bytes, out);
}

/// NV12 and NV21 with a key, of even size: 16 × 2 pixels a thread.
__global__ void __launch_bounds__(256) mix_keyed_420(const __grid_constant__ PairJob job) {
  const int index = blockIdx.x * 256 + threadIdx.x;
  const Pair &luma = job.planes[0], &chroma = job.planes[1];
  if (index >= job.total) return;
  const int y = index / chroma.chunks, x = (index - y * chroma.chunks) * 16;
  const BlendLayer& layer = job.layer;
  const BlendMatrix& m = layer.to_key;
  const int cb = job.swapped, cr = 1 - cb;
  const Chunk s = load_chunk(chroma.above + y * chroma.above_pitch, x, chroma.row_bytes);
  const Chunk d = load_chunk(chroma.below + y * chroma.below_pitch, x, chroma.row_bytes);
  float key[3] = {layer.key[0], layer.key[1], layer.key[2]};
  if (layer.first_pixel) {
    const float first[3] = {float(__ldg(luma.above)), float(__ldg(chroma.above + cb)), float(__ldg(chroma.above + cr))};
#pragma unroll
    for (int c = 0; c < 3; ++c) key[c] = m.row(c, first[0], first[1], first[2]);
  }
  float sums[8] = {};  // of the weights of the pixels that share chroma
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const std::ptrdiff_t row = 2 * y + r;
    const Chunk above = load_chunk(luma.above + row * luma.above_pitch, x, luma.row_bytes);
    const Chunk below = load_chunk(luma.below + row * luma.below_pitch, x, luma.row_bytes);
    Chunk out;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float weights[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int pair = (4 * i + j) / 2;
        const uint32_t word = s.word[pair / 2];
        const float a = number(word, pair % 2 * 2), b = number(word, pair % 2 * 2 + 1);
        const float u = job.swapped ? b : a, v = job.swapped ? a : b, luma = number(above.word[i], j);
        weights[j] = job.weight * blend_key_weight(layer, key, m.row(0, luma, u, v), m.row(1, luma, u, v), m.row(2, luma, u, v));
        sums[pair] += weights[j];
      }
      out.word[i] = mixed_word(above.word[i], below.word[i], weights);
    }
    store_chunk(luma.dst + row * luma.dst_pitch, x, luma.row_bytes, out);
  }
  Chunk out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float left = sums[2 * i] * 0.25f, right = sums[2 * i + 1] * 0.25f;
    const float weights[4] = {left, left, right, right};
    out.word[i] = mixed_word(s.word[i], d.word[i], weights);
  }
  store_chunk(chroma.dst + y * chroma.dst_pitch, x, chroma.row_bytes, out);
}

// ---- Submission ----------------------------------------------------------------------------------------------------------------

template <bool Alpha, bool Keyed, int Fourth>
auto pixel_kernel(BlendOperator op) {
  if constexpr (Alpha) {
    if (op == BlendOperator::source) return mix_pixels<BlendOperator::source, Fourth, Alpha, Keyed>;
    if (op == BlendOperator::over) return mix_pixels<BlendOperator::over, Fourth, Alpha, Keyed>;
  }
  return mix_pixels<BlendOperator::average, Fourth, Alpha, Keyed>;
}
template <bool Alpha, bool Keyed>
auto pixel_kernel(BlendOperator op, int fourth) {
  return fourth == 0 ? pixel_kernel<Alpha, Keyed, 0>(op) : pixel_kernel<Alpha, Keyed, 3>(op);
}

class CudaBlend final : public Blend {
 public:
  CudaBlend(const Geometry& geometry, const BlendColor& color) : Blend(geometry, color) {}

 private:
  Status compute(const BlendTarget& target, const std::vector<BlendLayer>& layers, Queue queue) override {
    if (!mix_pair(target, layers, queue)) {
      if (layers.size() <= few_pads)
        launch<few_pads>(target, layers, queue);
      else
        launch<blend_max_pads>(target, layers, queue);
    }
    return check(cudaGetLastError(), "cannot launch the blending");
  }

  template <int N>
  static void launch(const BlendTarget& target, const std::vector<BlendLayer>& layers, Queue queue) {
    Job<N> job;
    job.target = target;
    job.count = int(layers.size());
    std::copy(layers.begin(), layers.end(), job.layers);
    const dim3 grid((target.width + tile_width - 1) / tile_width, (target.height + tile_height - 1) / tile_height);
    (target.alpha ? compose<N, true> : compose<N, false>)<<<grid, tile_width * tile_height, 0, queue.stream>>>(job);
  }

  /// Does what the kernels for pairs can; false: nothing.
  bool mix_pair(const BlendTarget& target, const std::vector<BlendLayer>& layers, Queue queue) const {
    const FormatInfo& format = info(geometry().format);
    BlendPair pair;
    if (format.depth > 8 || !cudavision::detail::find_pair(geometry(), target, layers, pair)) return false;
    const BlendLayer& top = *pair.above;
    const bool pixels = target.alpha || target.padding.data, nv = format.planes == 2,
               even = target.width % 2 == 0 && target.height % 2 == 0;
    if (top.keyed && !pixels && !(nv && even) && !target.gray) return false;

    PairJob job{};
    job.plane_count = pair.planes;
    for (int p = 0; p < pair.planes; ++p) {
      const BlendPairPlane& plane = pair.plane[p];
      if (!aligned_to(plane.above, plane.above_pitch, 16) || !aligned_to(plane.below, plane.below_pitch, 16) ||
          !aligned_to(plane.dst, plane.dst_pitch, 16))
        return false;
      job.planes[p] = {plane, (plane.row_bytes + 15) / 16, job.total};
      job.total += job.planes[p].chunks * plane.rows;
    }
    job.layer = top;
    job.weight = pair.weight;
    job.swapped = nv && target.channels[2].data < target.channels[1].data;

    void (*kernel)(PairJob) = top.keyed ? mix_planes<true> : mix_planes<false>;
    if (pixels) {
      const int fourth = target.packed.order[3];
      for (int c = 0; c < 3; ++c) job.layer.key[target.packed.order[c] - (fourth == 0)] = top.key[c];
      if (target.alpha)
        kernel = top.keyed ? pixel_kernel<true, true>(top.op, fourth) : pixel_kernel<true, false>(top.op, fourth);
      else
        kernel = top.keyed ? pixel_kernel<false, true>(top.op, fourth) : pixel_kernel<false, false>(top.op, fourth);
    } else if (top.keyed && nv) {
      kernel = mix_keyed_420;
      job.total -= job.planes[1].begin;
    }
    kernel<<<(job.total + 255) / 256, 256, 0, queue.stream>>>(job);
    return true;
  }
};

}  // namespace
}  // namespace cuda

namespace detail {

Result<std::unique_ptr<Blend>> make_blend_cuda(const Geometry& geometry, const BlendColor& color) {
  return std::unique_ptr<Blend>(std::make_unique<cuda::CudaBlend>(geometry, color));
}

}  // namespace detail
}  // namespace cudavision
