// SPDX-License-Identifier: LGPL-2.1-or-later
// Lays pictures of the output's format over a tile, plane by plane, in the output itself: walls and insets. The samples have 8 bits.
//
//   1. find_shown()    the layers of the tile; is_direct(): otherwise compose_tiles composes it     cuda_visible.cuh
//   2. paint()         the background, unless a layer covers the tile
//   3. for each layer, the part of the tile that it covers:
//        copy_layer()  if its samples are the output's                                               cuda_copy.cuh
//        scale_layer() otherwise: Linear, Area or Box for each plane                                 cuda_sampler.cuh
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
// A thread computes the positions along x once for all of its rows. Lane k computes the positions along y of the warp's row k.
#include "kernels/blend/cuda_copy.cuh"
#include "kernels/blend/cuda_launch.hpp"
#include "kernels/blend/cuda_sampler.cuh"
#include "kernels/blend/cuda_visible.cuh"
#include "kernels/blend/cuda_write.cuh"

namespace cudavision::blend {
namespace {

/// The bytes below a layer: rows of the output, or of a picture that is only copied there.
struct Below {
  const uint8_t* data;
  uint32_t pitch;
};

/// What happens to the samples of a layer.
enum class Use {
  store,  ///< they are the output's
  blend,  ///< four bytes are blended with the bytes below
  mean,   ///< the mean of two or four is a sample of chroma
};

/// A part of a plane of the output. `part` in pixels.
struct Part {
  Rect part;
  uint8_t* data;
  uint32_t pitch;

  __device__ __forceinline__ uint8_t* at(int x, int y, int unit) const { return data + offset(y, pitch) + uint32_t(x * unit); }
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

/// Selects the components of a pixel of four bytes, the last one of which is alpha or padding, as numbers around round_bias.
__device__ __forceinline__ void pixel_order(const Packed& packed, uint32_t (&order)[4]) {
#pragma unroll
  for (int c = 0; c < 4; ++c) order[c] = 0x7650 | packed.order[c];
}

/// What Use::blend and Use::store need to know to store pixels of four bytes, in registers.
struct Pixel {
  Layer layer;    ///< only what lay_pixel() needs
  Target target;  ///< the same
  uint32_t pack;  ///< from components to bytes

  __device__ __forceinline__ Pixel(const Target& to, const Layer& from) {
    layer.coverage = from.coverage, layer.rounding = round_bias;
    layer.color_bias = from.color_bias, layer.alpha_bias = from.alpha_bias, layer.opaque_below = from.opaque_below;
    target.max = 255, target.per_max = to.per_max;
    pack = 0;
#pragma unroll
    for (int c = 0; c < 4; ++c) pack |= c << 4 * to.packed.order[c];
  }

  /// The stored pixel; `below`: the one below, for Use::blend.
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
      pixel[3] = alpha ? rounded_alpha(layer, s[3] * layer.coverage) : target.max;
    }
#pragma unroll
    for (float& value : pixel) value += round_bias;  // as stored()
    return __byte_perm(blend::pack(pixel[0], pixel[1], pixel[2], pixel[3]), 0, pack);
  }
};

static_assert(tuning.direct_strips * tuning.rows <= 16, "the lanes of a warp hold the positions of its rows");

/// Scales a plane of a layer. A thread has N columns, 32 apart, and R rows at once: rows of its own, or those that share chroma.
template <typename Sampler, int Unit, Use How>
__device__ __forceinline__ void scale_plane(const Target& target, const Layer& layer, const Source& from, const Below& below,
                                            const Part& to) {
  constexpr bool mean = How == Use::mean;
  constexpr int N = Unit < 3 && !mean ? tuning.direct_columns : 2, R = mean ? 2 : Unit < 3 ? tuning.direct_rows : 1;
  const Rect& part = to.part;
  const int shift = mean ? target.shift_y : 0, top = part.y >> shift;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, right = part.x + part.width - 1, bottom = part.y + part.height - 1;
  // Lane k has the warp's row k. Means: lanes 2k and 2k + 1 have the two rows of sample k.
  const int mine = mean ? ((top + warp + lane / 2 * warps) << shift) + (lane & shift) : top + warp + lane * warps;
  const auto down = Sampler::down(from.down, min(mine, bottom) - layer.place.y);
  uint32_t order[4];
  pixel_order(layer.packed, order);
  const Pixel pixel(target, layer);
  for (int left = part.x + lane; left - lane <= right; left += 32 * N) {
    typename Sampler::Across across[N];
#pragma unroll
    for (int j = 0; j < N; ++j) across[j] = Sampler::template across<Unit>(from.across, min(left + 32 * j, right) - layer.place.x);
    constexpr int step = mean ? 1 : R;  // rows of the plane
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
            under[i][j] = *reinterpret_cast<const uint32_t*>(below.data + offset(min(y + i * warps, bottom), below.pitch) +
                                                             uint32_t(min(left + 32 * j, right) * 4));
      Sampler::template read<Unit>(from, order, across, rows_down, s);
      if constexpr (mean) {
#pragma unroll
        for (int j = 0; j < N; ++j) {
          uint32_t sums = 0;  // of the samples' bytes, 16 bits each
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

/// The bytes from the start of a unit to component c.
__device__ __forceinline__ int bytes_before(const Target& target, int c) {
  const Channel(&all)[4] = target.channels;
  if (target.packed.data) return int(all[c].data - target.packed.data);
  const int other = all[c].step == 1 ? c : all[c].step == 2 ? 3 - c : 2 - c;  // the unit starts with one of these two
  return max(int(all[c].data - all[other].data), 0);
}

/// Scales the plane of component c.
template <int Unit, Use How>
__device__ __forceinline__ void scale(const Target& target, const Layer& layer, int c, const Below& below, const Part& to) {
  const Channel& channel = layer.channels[c];
  const Source from{channel.data - bytes_before(target, c), uint32_t(channel.pitch), layer.across[c > 0], layer.down[c > 0]};
  if (is_box(layer, from.across, from.down))
    scale_plane<Box, Unit, How>(target, layer, from, below, to);
  else if (layer.sampling == Sampling::area)
    scale_plane<Area, Unit, How>(target, layer, from, below, to);
  else
    scale_plane<Linear, Unit, How>(target, layer, from, below, to);
}

/// What lies in the planes of the output. Each shape has a kernel of its own.
enum class Shape {
  gray,     ///< one sample
  triples,  ///< RGB
  pixels,   ///< four bytes
  pairs,    ///< NV12, NV21: chroma is subsampled
  planes,   ///< three planes; chroma may be subsampled
};

/// Scales a layer. `chroma`: subsampled chroma, too.
template <Shape S>
__device__ __forceinline__ void scale_layer(const Target& target, const Layer& layer, const Rect& part, bool chroma,
                                            const Below& below) {
  const auto plane = [&](int c) {
    return Part{part, target.channels[c].data - bytes_before(target, c), uint32_t(target.channels[c].pitch)};
  };
  if constexpr (S == Shape::pixels) {
    if (layer.hides)
      scale<4, Use::store>(target, layer, 0, below, plane(0));
    else
      scale<4, Use::blend>(target, layer, 0, below, plane(0));
  } else if constexpr (S == Shape::triples) {
    scale<3, Use::store>(target, layer, 0, below, plane(0));
  } else {
    const int all = S == Shape::planes && !target.shift_x ? 3 : 1;
#pragma unroll 1
    for (int c = 0; c < all; ++c) scale<1, Use::store>(target, layer, c, below, plane(c));
    if (S == Shape::gray || all == 3 || !chroma) return;
    if constexpr (S == Shape::pairs) scale<2, Use::mean>(target, layer, 1, below, plane(1));
    if constexpr (S == Shape::planes)
#pragma unroll 1
      for (int c = 1; c < 3; ++c) scale<1, Use::mean>(target, layer, c, below, plane(c));
  }
}

__device__ __forceinline__ Rect part_of(const Rect& tile, const int4& visible) {
  const int left = max(visible.x, tile.x), top = max(visible.y, tile.y);
  return {left, top, min(visible.z, tile.x + tile.width) - left, min(visible.w, tile.y + tile.height) - top};
}

/// Composes the chroma of each pixel in shared memory, `pixels`, and stores the means: for tiles in which an edge parts a sample. The
/// output has the chroma below the layers of the list.
template <int Unit, int N>
__device__ __forceinline__ void lay_chroma(const ComposeParams<N>& p, std::uint64_t layers, const Rect& tile, int c,
                                           uint8_t* pixels) {
  constexpr int pitch = tuning.direct_width * Unit;
  const Target& target = p.target;
  const Part plane{tile, target.channels[c].data - bytes_before(target, c), uint32_t(target.channels[c].pitch)};
  const int shift = target.shift_y, across = (tile.width + 1) / 2, down = (tile.height + shift) >> shift;
  // f(the sample in the output, the pixels of its upper row, those of its lower row); the sides of the output may have one of them.
  const auto each_sample = [&](auto&& f) {
    for (int i = threadIdx.x; i < across * down; i += 32 * warps) {
      const int x = i % across, y = i / across;
      uint8_t* const upper = pixels + (y << shift) * pitch + 2 * x * Unit;
      f(plane.at(tile.x / 2 + x, (tile.y >> shift) + y, Unit), upper, upper + ((y << shift) + 1 < tile.height ? shift : 0) * pitch,
        2 * x + 1 < tile.width ? Unit : 0);
    }
  };
  __syncthreads();
  each_sample([](const uint8_t* sample, uint8_t* upper, uint8_t* lower, int next) {
#pragma unroll
    for (int b = 0; b < Unit; ++b) upper[b] = upper[b + next] = lower[b] = lower[b + next] = sample[b];
  });
  const Part part{{}, pixels - tile.y * pitch - tile.x * Unit, pitch};
  for (; layers; layers &= layers - 1) {
    const int l = __ffsll((long long)layers) - 1;
    __syncthreads();
    scale<Unit, Use::store>(target, p.layers[l], c, {}, {part_of(tile, p.visible[l]), part.data, part.pitch});
  }
  __syncthreads();
  each_sample([](uint8_t* sample, const uint8_t* upper, const uint8_t* lower, int next) {
    uint32_t byte[Unit];
#pragma unroll
    for (int b = 0; b < Unit; ++b)
      byte[b] = stored(float(uint32_t(upper[b]) + upper[b + next] + lower[b] + lower[b + next]) * 0.25f);
    store_bytes<Unit>(byte, sample);
  });
}

/// Lays the layers of a tile over each other. Each waits for what other threads have written.
template <int N, Shape S>
__device__ __forceinline__ void lay(const ComposeParams<N>& p, const Shown& shown, const Rect& tile) {
  const Target& target = p.target;
  const Below output{target.packed.data, uint32_t(target.channels[0].pitch)};
  Below below = output;
  const std::uint64_t odd = S == Shape::pairs || S == Shape::planes ? odd_layers(p, shown) : 0;
  std::uint64_t scaled = 0;
  bool wait = !shown.covered;
  for (std::uint64_t rest = shown.layers; rest; rest &= rest - 1) {
    const int l = __ffsll((long long)rest) - 1;
    const std::uint64_t bit = rest & (~rest + 1), above = rest & (rest - 1), next = above & (~above + 1);
    const Layer& layer = p.layers[l];
    const bool copies = p.copied & bit && !(odd && (scaled || odd & bit));
    if (S == Shape::pixels && copies && layer.direct && !wait && next & shown.whole & ~p.hiding) {
      // The next layer, which covers the tile, reads this one where it lies.
      const int x = layer.crop.x - layer.place.x, y = layer.crop.y - layer.place.y, pitch = int(layer.channels[0].pitch);
      below = {layer.packed.data + std::ptrdiff_t(y) * pitch + x * 4, uint32_t(pitch)};
      continue;
    }
    if (wait) __syncthreads();
    wait = true;
    const Rect part = part_of(tile, p.visible[l]);
    if (copies) {
      copy_layer(target, layer, part);
    } else {
      scale_layer<S>(target, layer, part, !odd, below);
      scaled |= bit;
    }
    below = output;
  }
  if constexpr (S == Shape::pairs || S == Shape::planes)
    if (odd) {
      __shared__ __align__(2)
          uint8_t pixels[tuning.direct_strips * strip_height * tuning.direct_width * (S == Shape::pairs ? 2 : 1)];
      if constexpr (S == Shape::pairs)
        lay_chroma<2>(p, scaled, tile, 1, pixels);
      else
#pragma unroll 1
        for (int c = 1; c < 3; ++c) lay_chroma<1>(p, scaled, tile, c, pixels);
    }
}

/// Paints a tile with the background.
template <int Channels>
__device__ __forceinline__ void paint(const Target& target, const Rect& tile) {
  for (int left = tile.x; left < tile.x + tile.width; left += 32 * columns)
    for (int top = tile.y + threadIdx.x / 32 * rows; top < tile.y + tile.height; top += strip_height) {
      int x[columns], y[rows];
      Samples d;
      set_pixels(target, left, top, x, y, d);
      write<Channels>(target, x, y, d);
    }
}

/// Up to N layers.
template <int N, Shape S>
__global__ void __launch_bounds__(32 * warps, tuning.direct_blocks) lay_tiles(const __grid_constant__ ComposeParams<N> p) {
  const int height = p.launch.direct.tile_height;
  const Rect tile = tile_at(p.target, blockIdx.x * tuning.direct_width, blockIdx.y * height, tuning.direct_width, height);
  const Shown shown = find_shown(p, tile);
  if (!is_direct(p, shown)) return;
  if (!shown.covered) p.target.alpha ? paint<4>(p.target, tile) : paint<S == Shape::gray ? 1 : 3>(p.target, tile);
  lay<N, S>(p, shown, tile);
}

template <int N>
void launch(const Target& target, const std::vector<Layer>& layers, const ComposeLaunch& launch, Queue queue) {
  const Channel(&channels)[4] = target.channels;
  const auto kernel = target.gray                                      ? lay_tiles<N, Shape::gray>
                      : channels[0].step == 4 || channels[3].data      ? lay_tiles<N, Shape::pixels>
                      : channels[0].step == 3                          ? lay_tiles<N, Shape::triples>
                      : channels[1].step == 2 && channels[0].step == 1 ? lay_tiles<N, Shape::pairs>
                                                                       : lay_tiles<N, Shape::planes>;
  kernel<<<dim3(launch.direct.across, launch.direct.down), 32 * warps, 0, queue.stream>>>(make_params<N>(target, layers, launch));
}

}  // namespace

void lay_direct(const Target& target, const std::vector<Layer>& layers, const ComposeLaunch& how, Queue queue) {
  (int(layers.size()) <= tuning.few_layers ? launch<tuning.few_layers> : launch<max_pads>)(target, layers, how, queue);
}

}  // namespace cudavision::blend
