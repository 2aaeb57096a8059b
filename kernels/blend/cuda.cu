// SPDX-License-Identifier: LGPL-2.1-or-later
// One launch a picture. Two pictures of one 8-bit format and the size of the output, the most common of cases, have kernels of
// their own here, which move 16 bytes at a time; all else is composed in blend_compose.cu.
#include "kernels/blend/cuda_compose.hpp"
#include "kernels/cuda/filter.hpp"
#include "kernels/cuda/rows.cuh"

namespace cudavision {
namespace cuda {
namespace {

using cudavision::detail::blend_key_weight;
using cudavision::detail::blend_rounded_alpha;
using cudavision::detail::BlendChannel;
using cudavision::detail::BlendLayer;
using cudavision::detail::BlendMatrix;
using cudavision::detail::BlendTarget;
using cudavision::detail::whole_plane;
using std::uint32_t;
using std::uint8_t;

// ---- Two pictures of 8 bits, pixel by pixel ------------------------------------------------------------------------------------

/// A plane of two pictures and of the output, whose rows are aligned to 16 bytes.
struct Pair {
  const uint8_t *above, *below;
  uint8_t* dst;
  std::ptrdiff_t above_pitch, below_pitch, dst_pitch;
  int row_bytes, rows;
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

// Numbers about 1.5 · 2^23 are 1 apart: a byte in the lowest bits of it is that number more, and what is added to it is rounded
// half to even. Neither way is a conversion.
constexpr float bias = 0x1.8p23f;
__device__ __forceinline__ float biased(uint32_t word, int byte) {
  return __uint_as_float(__byte_perm(word, 0x4b400000, 0x7650 | byte));
}
/// d + weight · (s − d), of biased numbers, rounded to the nearest or down; its lowest byte is the sample.
template <bool Down>
__device__ __forceinline__ float mixed(float s, float d, float weight) {
  return Down ? __fmaf_rd(weight, s - d, d) : fmaf(weight, s - d, d);
}
__device__ __forceinline__ uint32_t pack(float a, float b, float c, float d) {
  const uint32_t ab = __byte_perm(__float_as_uint(a), __float_as_uint(b), 0x0040);
  return __byte_perm(ab, __byte_perm(__float_as_uint(c), __float_as_uint(d), 0x0040), 0x5410);
}
template <bool Down>
__device__ __forceinline__ uint32_t mixed_word(uint32_t s, uint32_t d, const float (&weights)[4]) {
  return pack(mixed<Down>(biased(s, 0), biased(d, 0), weights[0]), mixed<Down>(biased(s, 1), biased(d, 1), weights[1]),
              mixed<Down>(biased(s, 2), biased(d, 2), weights[2]), mixed<Down>(biased(s, 3), biased(d, 3), weights[3]));
}
__device__ __forceinline__ float number(uint32_t word, int byte) { return biased(word, byte) - bias; }

/// The key's weight where R', G' and B' are but luma · slope more than what chroma, or nothing, makes of them.
struct LumaKey {
  float slope, above, below;

  /// `least`, `most`: of the three differences to the key at luma 0.
  __device__ LumaKey(const BlendLayer& layer, float least, float most)
      : slope(layer.to_key.m[0][0] * layer.key_scale),
        above(fmaf(most, layer.key_scale, -layer.key_offset)),
        below(fmaf(-least, layer.key_scale, -layer.key_offset)) {}
  __device__ float weight(float luma) const {
    return fmaxf(__saturatef(fmaf(slope, luma, above)), __saturatef(fmaf(-slope, luma, below)));
  }
};

/// Every sample with the same weight, whatever the format; or gray with a key.
template <bool Keyed, bool Down>
__global__ void __launch_bounds__(256) mix_planes(const __grid_constant__ PairJob job) {
  const int index = blockIdx.x * 256 + threadIdx.x;
  if (index >= job.total) return;
  int p = 0;
  while (p + 1 < job.plane_count && index >= job.planes[p + 1].begin) ++p;
  const Pair& plane = job.planes[p];
  const int y = (index - plane.begin) / plane.chunks, x = (index - plane.begin - y * plane.chunks) * 16;
  const Chunk above = load_chunk(plane.above + y * plane.above_pitch, x, plane.row_bytes);
  const Chunk below = load_chunk(plane.below + y * plane.below_pitch, x, plane.row_bytes);
  const BlendLayer& layer = job.layer;
  float low = fminf(fminf(layer.key[0], layer.key[1]), layer.key[2]), high = fmaxf(fmaxf(layer.key[0], layer.key[1]), layer.key[2]);
  if (Keyed && layer.first_pixel) low = high = fmaf(layer.to_key.m[0][0], float(__ldg(plane.above)), layer.to_key.m[0][3]);
  const LumaKey key(layer, layer.to_key.m[0][3] - high, layer.to_key.m[0][3] - low);
  Chunk out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float weights[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) weights[j] = Keyed ? key.weight(number(above.word[i], j)) * job.weight : job.weight;
    out.word[i] = mixed_word<Down>(above.word[i], below.word[i], weights);
  }
  store_chunk(plane.dst + y * plane.dst_pitch, x, plane.row_bytes, out);
}

/// What becomes of pixels of four bytes, of which one is alpha or padding.
enum class Mix {
  all,             ///< average: of alpha as of colours
  padded,          ///< of formats without alpha
  down,            ///< and rounded down: over
  source,          ///< the upper pixel or the lower
  on_opaque,       ///< over, by its own alpha
  on_opaque_down,  ///< and rounded down
  over,            ///< where the lower one's alpha counts as well
};

template <Mix Way, int Fourth, bool Keyed>
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
    constexpr float max = 255;
    constexpr uint32_t fourth = 255u << 8 * Fourth;
    [[maybe_unused]] const auto whole = [&](float v) { return blend_rounded_alpha(job.layer, v); };
    if constexpr (Way == Mix::over) {
      const float over = whole(number(s, Fourth) * job.weight * k), rest = whole(number(d, Fourth) * (max - over) * (1 / max));
      const float sum = over + rest, share = __fdividef(over, sum);  // of the upper one's colour
      float bytes[4];
#pragma unroll
      for (int b = 0; b < 4; ++b)
        bytes[b] = b == Fourth ? sum + bias : biased(d, b) + fmaf(share, biased(s, b) - biased(d, b), job.layer.color_bias);
      out.word[i] = sum > 0.5f ? pack(bytes[0], bytes[1], bytes[2], bytes[3]) : ~fourth;
      continue;
    }
    float weight = k;
    if constexpr (Way == Mix::on_opaque || Way == Mix::on_opaque_down)
      weight = whole(number(s, Fourth) * job.weight * k) * (1 / max);
    else if constexpr (Way != Mix::source)
      weight *= job.weight;
    if constexpr (Way == Mix::on_opaque_down) {
      // (mixed<true>() would take whole numbers down, as this weight is not exact.)
      float bytes[4];
#pragma unroll
      for (int b = 0; b < 4; ++b) bytes[b] = biased(d, b) + fmaf(weight, biased(s, b) - biased(d, b), job.layer.color_bias);
      out.word[i] = pack(bytes[0], bytes[1], bytes[2], bytes[3]) | fourth;
      continue;
    }
    const float weights[4] = {weight, weight, weight, weight};
    uint32_t word = mixed_word<Way == Mix::down>(s, d, weights);
    if constexpr (Way == Mix::source) {
      const float was = number(d, Fourth);
      const float own = was + weight * (whole(number(s, Fourth) * job.weight) - was);
      word = (word & ~fourth) | uint32_t(__float2int_rn(own)) << 8 * Fourth;
    } else if constexpr (Way != Mix::all) {
      word |= fourth;
    }
    out.word[i] = word;
  }
  store_chunk(plane.dst + y * plane.dst_pitch, x, plane.row_bytes, out);
}

/// NV12 and NV21 with a key, of even size: 16 × 2 pixels a thread.
template <bool Down>
__global__ void __launch_bounds__(256) mix_keyed_420(const __grid_constant__ PairJob job) {
  const int index = blockIdx.x * 256 + threadIdx.x;
  const Pair &luma = job.planes[0], &chroma = job.planes[1];
  if (index >= job.total) return;
  const int y = index / chroma.chunks, x = (index - y * chroma.chunks) * 16;
  const Chunk s = load_chunk(chroma.above + y * chroma.above_pitch, x, chroma.row_bytes);
  Chunk above[2], below[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    above[r] = load_chunk(luma.above + (2 * y + r) * luma.above_pitch, x, luma.row_bytes);
    below[r] = load_chunk(luma.below + (2 * y + r) * luma.below_pitch, x, luma.row_bytes);
  }
  const Chunk d = load_chunk(chroma.below + y * chroma.below_pitch, x, chroma.row_bytes);
  const BlendLayer& layer = job.layer;
  const BlendMatrix& m = layer.to_key;
  const int cb = job.swapped, cr = 1 - cb;
  float key[3] = {layer.key[0], layer.key[1], layer.key[2]};
  if (layer.first_pixel) {
    const float first[3] = {float(__ldg(luma.above)), float(__ldg(chroma.above + cb)), float(__ldg(chroma.above + cr))};
#pragma unroll
    for (int c = 0; c < 3; ++c) key[c] = m.row(c, first[0], first[1], first[2]);
  }
  const float kept = Down ? 1 : job.weight;
  Chunk out[2], out_chroma;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float luma_weights[2][4], weights[4];
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const float a = number(s.word[i], 2 * pair), b = number(s.word[i], 2 * pair + 1);
      float apart[3];
#pragma unroll
      for (int c = 0; c < 3; ++c)
        apart[c] = fmaf(m.m[c][1], job.swapped ? b : a, fmaf(m.m[c][2], job.swapped ? a : b, m.m[c][3] - key[c]));
      const LumaKey of(layer, fminf(fminf(apart[0], apart[1]), apart[2]), fmaxf(fmaxf(apart[0], apart[1]), apart[2]));
      float sum = 0;  // of the weights of the pixels that share chroma
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int j = 2 * pair; j < 2 * pair + 2; ++j) {
          const float k = of.weight(number(above[r].word[i], j));
          luma_weights[r][j] = k * job.weight;
          sum += k;
        }
      weights[2 * pair] = weights[2 * pair + 1] = sum * (0.25f * kept);
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) out[r].word[i] = mixed_word<Down>(above[r].word[i], below[r].word[i], luma_weights[r]);
    uint32_t over = s.word[i];
    if (Down) {
      const float whole[4] = {job.weight, job.weight, job.weight, job.weight};
      over = mixed_word<true>(over, d.word[i], whole);
    }
    out_chroma.word[i] = mixed_word<false>(over, d.word[i], weights);
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) store_chunk(luma.dst + (2 * y + r) * luma.dst_pitch, x, luma.row_bytes, out[r]);
  store_chunk(chroma.dst + y * chroma.dst_pitch, x, chroma.row_bytes, out_chroma);
}

// ---- Submission ----------------------------------------------------------------------------------------------------------------

using PairKernel = void (*)(PairJob);

template <int Fourth, bool Keyed>
PairKernel pixel_kernel(Mix way) {
  switch (way) {
    case Mix::all:
      return mix_pixels<Mix::all, Fourth, Keyed>;
    case Mix::padded:
      return mix_pixels<Mix::padded, Fourth, Keyed>;
    case Mix::down:
      return mix_pixels<Mix::down, Fourth, Keyed>;
    case Mix::source:
      return mix_pixels<Mix::source, Fourth, Keyed>;
    case Mix::on_opaque:
      return mix_pixels<Mix::on_opaque, Fourth, Keyed>;
    case Mix::on_opaque_down:
      return mix_pixels<Mix::on_opaque_down, Fourth, Keyed>;
    case Mix::over:
      return mix_pixels<Mix::over, Fourth, Keyed>;
  }
  return nullptr;
}
PairKernel pixel_kernel(Mix way, int fourth, bool keyed) {
  if (fourth == 0) return keyed ? pixel_kernel<0, true>(way) : pixel_kernel<0, false>(way);
  return keyed ? pixel_kernel<3, true>(way) : pixel_kernel<3, false>(way);
}
PairKernel plane_kernel(bool keyed, bool down) {
  if (down) return keyed ? mix_planes<true, true> : mix_planes<false, true>;
  return keyed ? mix_planes<true, false> : mix_planes<false, false>;
}

class CudaBlend final : public Blend {
 public:
  CudaBlend(const Geometry& geometry, const BlendColor& color, BlendDivision division)
      : Blend(geometry, color, division, Backend::cuda) {}

 private:
  Status compute(const BlendTarget& target, const std::vector<BlendLayer>& layers, Queue queue) override {
    if (!mix_pair(target, layers, queue)) compose(target, layers, queue);
    return check(cudaGetLastError(), "cannot launch the blending");
  }

  /// Two pictures of the output's format, colours and size, of which the lower one is shown as it is, or but one, twice: what is
  /// computed of the samples as they lie, d + weight · (s − d), but for keys, alpha and padding. False: the layers are no such
  /// pair.
  bool find_pair(const BlendTarget& target, const std::vector<BlendLayer>& layers, PairJob& job) const {
    const FormatInfo& format = info(geometry().format);
    const auto covers = [&](const BlendLayer& layer) {
      return layer.format == format.format && layer.identity && layer.unscaled && layer.crop.x == 0 && layer.crop.y == 0 &&
             layer.place.x == 0 && layer.place.y == 0 && layer.crop.width == target.width && layer.crop.height == target.height;
    };
    if (layers.empty() || (!layers.back().hides && layers.size() == 1)) return false;
    const BlendLayer& above = layers.back();
    const BlendLayer& below = above.hides ? above : layers[layers.size() - 2];
    if (!below.hides || !covers(below) || !covers(above)) return false;
    if (&below != &above && target.alpha && below.op == BlendOperator::source && below.coverage != 1) return false;
    const bool over = above.op == BlendOperator::over || (above.op == BlendOperator::add && !target.alpha);
    if (!over && above.op != BlendOperator::source && above.op != BlendOperator::average) return false;
    if (format.sets[0].shares_plane() && target.width % 2) return false;  // of the byte that is in no picture

    job.layer = above;
    job.weight = above.op == BlendOperator::source && !target.alpha ? 1 : above.coverage;
    job.plane_count = format.planes;
    for (int i = format.set_count; i-- > 0;) {  // of packed 4:2:2, luma last
      const ChannelSet& set = format.sets[i];
      const BlendChannel a = whole_plane(format, set, above.channels), b = whole_plane(format, set, below.channels),
                         d = whole_plane(format, set, target.channels);
      const PlaneExtent size = extent(geometry(), set.plane);
      const int row_bytes = int(size.row_bytes);
      job.planes[set.plane] = {a.data, b.data, d.data, a.pitch, b.pitch, d.pitch, row_bytes, size.rows, (row_bytes + 15) / 16, 0};
    }
    for (int p = 0; p < job.plane_count; ++p) {
      Pair& plane = job.planes[p];
      if (!aligned_to(plane.above, plane.above_pitch, 16) || !aligned_to(plane.below, plane.below_pitch, 16) ||
          !aligned_to(plane.dst, plane.dst_pitch, 16))
        return false;
      plane.begin = job.total;
      job.total += plane.chunks * plane.rows;
    }
    return true;
  }

  /// Does what the kernels for pairs can; false: nothing.
  bool mix_pair(const BlendTarget& target, const std::vector<BlendLayer>& layers, Queue queue) const {
    const FormatInfo& format = info(geometry().format);
    PairJob job{};
    if (format.depth > 8 || !find_pair(target, layers, job)) return false;
    const BlendLayer top = job.layer;
    const bool pixels = target.alpha || target.padding.data, nv = format.planes == 2,
               even = target.width % 2 == 0 && target.height % 2 == 0;
    if (top.keyed && !pixels && !(nv && even) && !target.gray) return false;
    job.swapped = nv && target.channels[2].data < target.channels[1].data;

    const bool over = top.op == BlendOperator::over || top.op == BlendOperator::add, down = over && top.color_bias < 0;
    PairKernel kernel = plane_kernel(top.keyed, down);
    if (pixels) {
      const int fourth = target.packed.order[3];
      for (int c = 0; c < 3; ++c) job.layer.key[target.packed.order[c] - (fourth == 0)] = top.key[c];
      const Mix way = !target.alpha                     ? down ? Mix::down : Mix::padded
                      : over && top.opaque_below        ? down ? Mix::on_opaque_down : Mix::on_opaque
                      : over                            ? Mix::over
                      : top.op == BlendOperator::source ? Mix::source
                                                        : Mix::all;
      kernel = pixel_kernel(way, fourth, top.keyed);
    } else if (top.keyed && nv) {
      kernel = down ? mix_keyed_420<true> : mix_keyed_420<false>;
      job.total -= job.planes[1].begin;
    }
    kernel<<<(job.total + 255) / 256, 256, 0, queue.stream>>>(job);
    return true;
  }
};

}  // namespace
}  // namespace cuda

namespace detail {

Result<std::unique_ptr<Blend>> make_blend_cuda(const Geometry& geometry, const BlendColor& color, BlendDivision division) {
  return std::unique_ptr<Blend>(std::make_unique<cuda::CudaBlend>(geometry, color, division));
}

}  // namespace detail
}  // namespace cudavision
