// SPDX-License-Identifier: LGPL-2.1-or-later
// Scales a layer of the output's 8-bit format, plane by plane. compose_simple_parts and compose_direct_tiles share this
// code.
//
//   part of a plane                                      a sample of subsampled chroma: the mean of its pixels
//      columns 0 … 31   32 … 63      the next group         pixel columns  2X   2X + 1
//   ┌───────────────────────────┬──────────────────┐                     ┌───────────┐
//   │ warp 0: lane 0 … 31  0 …  │                  │       row 2Y        │  s     s  │   each pixel is rounded before
//   │ warp 1                    │                  │       row 2Y + 1    │  s     s  │
//   │ …                         │                  │                     └───────────┘
//   │ warp 0                    │                  │
//   └───────────────────────────┴──────────────────┘
//
// A thread computes the positions along x once for all its rows. Lane k computes the positions along y for row k of the
// warp.
#pragma once

#include "kernels/blend/cuda_copy.cuh"
#include "kernels/blend/cuda_sampler.cuh"
#include "kernels/blend/cuda_write.cuh"
#include "kernels/cuda/overlap.hpp"

namespace cudavision::blend {
namespace {

/// The bytes below a layer: rows of the output, or of a picture that would only be copied there.
struct Below {
  const uint8_t* data;
  uint32_t pitch;
};

/// The pixels of a copied layer, at the output's positions.
__device__ __forceinline__ Below below_of(const LayerPicture& layer) {
  const int x = layer.crop.x - layer.place.x, y = layer.crop.y - layer.place.y, pitch = int(layer.channels[0].pitch);
  return {layer.packed.data + std::ptrdiff_t(y) * pitch + x * 4, uint32_t(pitch)};
}

/// How the samples of a layer are used.
enum class Use {
  store,  ///< they become samples of the output
  blend,  ///< four bytes are blended with the bytes below
  mean,   ///< the mean of two or four samples is a chroma sample
};

/// A part of a plane of the output. `part` is in pixels.
struct PlanePart {
  Rect part;
  uint8_t* data;
  uint32_t pitch;

  __device__ __forceinline__ uint8_t* at(int x, int y, int unit) const {
    return data + offset(y, pitch) + uint32_t(x * unit);
  }
};

/// The stored sample, rounded as rounded_sample() does.
__device__ __forceinline__ uint32_t stored_sample(float s) { return stored(s + 0x1p-10f); }

template <int Unit>
__device__ __forceinline__ void store_bytes(const uint32_t (&byte)[Unit], uint8_t* at) {
  if constexpr (Unit == 2)
    *reinterpret_cast<uint16_t*>(at) = uint16_t(__byte_perm(byte[0], byte[1], 0x0040));
  else
#pragma unroll
    for (int c = 0; c < Unit; ++c) at[c] = uint8_t(byte[c]);
}

/// Selectors that turn the components of a four-byte pixel into numbers around round_bias. The last one is alpha or
/// padding.
__device__ __forceinline__ void pixel_order(const Packed& packed, uint32_t (&order)[4]) {
#pragma unroll
  for (int c = 0; c < 4; ++c) order[c] = 0x7650 | packed.order[c];
}

/// The values needed to store pixels of four bytes with Use::blend and Use::store, in registers.
struct Pixel {
  Layer layer;    ///< only what lay_pixel() needs
  Target target;  ///< only what lay_pixel() needs
  uint32_t pack;  ///< selector that packs components into bytes

  __device__ __forceinline__ Pixel(const Target& to, const LayerPicture& from) {
    layer.opacity = from.opacity, layer.rounding = round_bias;
    layer.color_bias = from.color_bias, layer.alpha_bias = from.alpha_bias, layer.opaque_below = from.opaque_below;
    target.max = 255, target.per_max = to.per_max;
    pack = 0;
#pragma unroll
    for (int c = 0; c < 4; ++c) pack |= c << 4 * to.packed.order[c];
  }

  /// The stored pixel. `below`: the pixel below it, for Use::blend.
  template <Use How>
  __device__ __forceinline__ uint32_t operator()(bool alpha, const float (&s)[4], const uint32_t (&order)[4],
                                                 uint32_t below) const {
    float pixel[4];
#pragma unroll
    for (int c = 0; c < 3; ++c) pixel[c] = rounded_sample(s[c]);
    if constexpr (How == Use::blend) {
      const float over[4] = {pixel[0], pixel[1], pixel[2], s[3]};
#pragma unroll
      for (int c = 0; c < 4; ++c) pixel[c] = number_of<4>({below}, order, c);
      lay_pixel<Operator::over, 4>(target, layer, 1, over, pixel);
    } else {
      pixel[3] = alpha ? rounded_alpha(layer, s[3] * layer.opacity) : target.max;
    }
#pragma unroll
    for (float& value : pixel) value += round_bias;  // as in stored()
    return __byte_perm(blend::pack(pixel[0], pixel[1], pixel[2], pixel[3]), 0, pack);
  }
};

static_assert(tuning.direct_strips * tuning.rows <= 16, "the lanes of a warp hold the positions of its rows");

/// Scales a plane of a layer. A thread has N columns, 32 apart, and R rows at a time: independent rows, or rows that
/// share chroma.
template <typename Sampler, int Unit, Use How>
__device__ __forceinline__ void scale_plane(const Target& target, const LayerPicture& layer, const Source& from,
                                            const Below& below, const PlanePart& to) {
  constexpr bool mean = How == Use::mean;
  constexpr int N = Unit < 3 && !mean ? tuning.direct_columns : 2, R = mean ? 2 : Unit < 3 ? tuning.direct_rows : 1;
  const Rect& part = to.part;
  const int shift = mean ? target.shift_y : 0, top = part.y >> shift;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, right = part.x + part.width - 1,
            bottom = part.y + part.height - 1;
  // Lane k has row k of the warp. For means, lanes 2k and 2k + 1 have the two rows of sample k.
  const int lane_row = mean ? ((top + warp + lane / 2 * warps) << shift) + (lane & shift) : top + warp + lane * warps;
  const auto down = Sampler::down(from.down, min(lane_row, bottom) - layer.place.y);
  uint32_t order[4];
  pixel_order(layer.packed, order);
  const Pixel pixel(target, layer);
  for (int left = part.x + lane; left - lane <= right; left += 32 * N) {
    typename Sampler::Across across[N];
#pragma unroll
    for (int j = 0; j < N; ++j)
      across[j] = Sampler::template across<Unit>(from.across, min(left + 32 * j, right) - layer.place.x);
    constexpr int step = mean ? 1 : R;  // plane rows per step
    for (int y = top + warp, k = 0; y <= bottom >> shift; y += step * warps, k += R) {
      typename Sampler::Down rows_down[R];
      uint32_t under[R][N];
      float s[R][N][Unit];
#pragma unroll
      for (int i = 0; i < R; ++i) rows_down[i] = Sampler::from_lane(down, k + i);
      if constexpr (How == Use::blend)
#pragma unroll
        for (int i = 0; i < R; ++i)
#pragma unroll
          for (int j = 0; j < N; ++j)
            under[i][j] = *reinterpret_cast<const uint32_t*>(
                below.data + offset(min(y + i * warps, bottom), below.pitch) + uint32_t(min(left + 32 * j, right) * 4));
      Sampler::template read<Unit>(from, order, across, rows_down, s);
      if constexpr (mean) {
#pragma unroll
        for (int j = 0; j < N; ++j) {
          uint32_t sums = 0;  // sums of the samples' bytes, 16 bits each
#pragma unroll
          for (int c = 0; c < Unit; ++c)
            sums += ((stored_sample(s[0][j][c]) & 0xff) + (stored_sample(s[1][j][c]) & 0xff)) << 16 * c;
          sums += __shfl_xor_sync(~0u, sums, 1);
          uint32_t byte[Unit];
#pragma unroll
          for (int c = 0; c < Unit; ++c) byte[c] = stored(float(sums >> 16 * c & 0xffff) * 0.25f);
          if (const int x = left + 32 * j; x <= right && lane % 2 == 0) store_bytes<Unit>(byte, to.at(x / 2, y, Unit));
        }
      } else {
#pragma unroll
        for (int i = 0; i < R; ++i)
#pragma unroll
          for (int j = 0; j < N; ++j) {
            const int row = y + i * warps, x = left + 32 * j;
            const bool inside = row <= bottom && x <= right;
            uint8_t* const at = to.at(x, row, Unit);
            if constexpr (Unit == 4) {
              const uint32_t word =
                  pixel.template operator()<How>(target.alpha, s[i][j], order, How == Use::blend ? under[i][j] : 0);
              if (inside) *reinterpret_cast<uint32_t*>(at) = word;
            } else {
              uint32_t byte[Unit];
#pragma unroll
              for (int c = 0; c < Unit; ++c) byte[c] = stored_sample(s[i][j][c]);
              if (inside) store_bytes<Unit>(byte, at);
            }
          }
      }
    }
  }
}

/// The number of bytes from the start of a unit to component c.
__device__ __forceinline__ int bytes_before(const Target& target, int c) {
  const ChannelView(&all)[4] = target.channels;
  if (target.packed.data) return int(all[c].data - target.packed.data);
  const int other = all[c].step == 1 ? c : all[c].step == 2 ? 3 - c : 2 - c;  // the unit starts with one of these two
  return max(int(all[c].data - all[other].data), 0);
}

/// Scales the plane of component c.
template <int Unit, Use How>
__device__ __forceinline__ void scale(const Target& target, const LayerPicture& layer, int c, const Below& below,
                                      const PlanePart& to) {
  const ChannelView& channel = layer.channels[c];
  const Source from{channel.data - bytes_before(target, c), uint32_t(channel.pitch), layer.across[c > 0],
                    layer.down[c > 0]};
  const int side = box_side(layer, from.across, from.down);
  if (side == 1)
    scale_plane<Box<1>, Unit, How>(target, layer, from, below, to);
  else if (side == 2)
    scale_plane<Box<2>, Unit, How>(target, layer, from, below, to);
  else if (side == 0)
    scale_plane<Box<0>, Unit, How>(target, layer, from, below, to);
  else if (layer.sampling == Sampling::area)
    scale_plane<Area, Unit, How>(target, layer, from, below, to);
  else
    scale_plane<Linear, Unit, How>(target, layer, from, below, to);
}

/// The layout of the output's planes. Each shape has its own kernel.
enum class PlaneShape {
  gray,     ///< one sample
  triples,  ///< RGB
  pixels,   ///< four bytes
  pairs,    ///< NV12, NV16 …: interleaved chroma, which is subsampled where layers are scaled
  planes,   ///< three planes, and an alpha plane where layers are only copied; chroma may be subsampled
};

/// Scales a layer. `odd`: skips subsampled chroma.
template <PlaneShape S>
__device__ __forceinline__ void scale_layer(const Target& target, const LayerPicture& layer, const Rect& part,
                                            Planes planes, bool odd, const Below& below) {
  const auto plane = [&](int c) {
    return PlanePart{part, target.channels[c].data - bytes_before(target, c), uint32_t(target.channels[c].pitch)};
  };
  if constexpr (S == PlaneShape::pixels) {
    if (layer.hides)
      scale<4, Use::store>(target, layer, 0, below, plane(0));
    else
      scale<4, Use::blend>(target, layer, 0, below, plane(0));
  } else if constexpr (S == PlaneShape::triples) {
    scale<3, Use::store>(target, layer, 0, below, plane(0));
  } else {
    const int all = S == PlaneShape::planes && !target.shift_x ? 3 : 1;
    if (writes(planes, false))
#pragma unroll 1
      for (int c = 0; c < all; ++c) scale<1, Use::store>(target, layer, c, below, plane(c));
    if (S == PlaneShape::gray || all == 3 || odd || !writes(planes, true)) return;
    if constexpr (S == PlaneShape::pairs) scale<2, Use::mean>(target, layer, 1, below, plane(1));
    if constexpr (S == PlaneShape::planes)
#pragma unroll 1
      for (int c = 1; c < 3; ++c) scale<1, Use::mean>(target, layer, c, below, plane(c));
  }
}

/// Parameters for up to N layers, passed by value.
template <int N>
struct DirectParams : ComposeParams<N, LayerPicture> {
  CopyGroups groups;
  int part_count;
  int scaled;            ///< see Parts
  std::uint32_t mixing;  ///< see Parts
  static constexpr int most = N <= tuning.few_layers ? tuning.few_parts : most_parts;
  /// OutputPart::begin of each part, and OutputPart::column: close together, so that a search finds them in the cache.
  int begins[most];
  std::int16_t columns[most];
  OutputPart parts[most];
};
static_assert(sizeof(DirectParams<tuning.few_layers>) <= 4096 && sizeof(DirectParams<max_pads>) <= 32764,
              "kernel arguments");

/// The part and the tile of a block.
template <int N>
__device__ __forceinline__ const OutputPart& find_part(const DirectParams<N>& p, int block, Rect& tile) {
  int last = 0;  // last part of the band
  for (int count = p.part_count; count > 1;) {
    const int half = count / 2;
    if (block >= p.begins[last + half])
      last += half, count -= half;
    else
      count = half;
  }
  const int index = block - p.begins[last], across = p.parts[last].across, row = index / across,
            column = index - row * across;
  while (p.columns[last] > column) --last;
  const OutputPart& part = p.parts[last];
  const Rect& r = part.rect;
  const int begin = first_tile(part) + (column - p.columns[last]) * part.tile_width, left = max(begin, r.x),
            top = r.y + row * part.tile_height;
  tile = {left, top, min(begin + part.tile_width, r.x + r.width) - left,
          min(int(part.tile_height), r.y + r.height - top)};
  return part;
}

/// Calls f with the PlaneShape of the output's planes as an integral constant.
template <typename F>
void with_shape(const Target& target, F&& f) {
  const ChannelView(&channels)[4] = target.channels;
  if (target.gray) return f(std::integral_constant<PlaneShape, PlaneShape::gray>());
  if (channels[0].step >= 4) return f(std::integral_constant<PlaneShape, PlaneShape::pixels>());
  if (channels[0].step == 3) return f(std::integral_constant<PlaneShape, PlaneShape::triples>());
  if (channels[1].step == 2 && channels[0].step == 1) return f(std::integral_constant<PlaneShape, PlaneShape::pairs>());
  f(std::integral_constant<PlaneShape, PlaneShape::planes>());
}

/// Launches a kernel for some of the parts.
template <int N>
cudaError_t launch_parts(void (*kernel)(DirectParams<N>), const Target& target, const std::vector<Layer>& layers,
                         const ComposeLaunch& launch, const Parts& parts, int first, int end, int blocks, bool overlaps,
                         Queue queue) {
  DirectParams<N> p;
  set_params(target, layers, launch, p);
  p.groups = copy_groups(target);
  p.part_count = end - first, p.scaled = parts.scaled, p.mixing = parts.mixing;
  for (int i = 0; i < p.part_count; ++i) {
    const OutputPart& part = p.parts[i] = parts.part[first + i];
    p.begins[i] = part.begin, p.columns[i] = part.column;
  }
  return cuda::launch_overlapping(reinterpret_cast<const void*>(kernel), blocks, 32 * warps, 0, overlaps, &p,
                                  queue.stream);
}
bool are_few(const std::vector<Layer>& layers, int parts) {
  return int(layers.size()) <= tuning.few_layers && parts <= tuning.few_parts;
}

}  // namespace
}  // namespace cudavision::blend
