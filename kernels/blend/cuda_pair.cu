// SPDX-License-Identifier: LGPL-2.1-or-later
// Mixes two pictures with the same 8-bit format and the output's size: d + weight · (s − d) on stored samples. This is
// the most common case of blending. It is limited by memory, so each thread moves 16 bytes at a time.
//
//   mix_planes, mix_pixels: one thread for each chunk of 16 bytes, numbered through all rows of all planes.
//
//   plane 0   ┌─ 0 ─┬─ 1 ─┬─ 2 ─┐   plane 1   ┌─ 6 ─┬─ 7 ─┬─ 8 ─┐   thread: blockIdx.x · pair_threads + threadIdx.x
//             ├─ 3 ─┼─ 4 ─┼─ 5 ─┤             └─────┴─────┴─────┘   chunk:  16 samples, or 4 pixels of four bytes
//             └─────┴─────┴─────┘
//
//   mix_keyed_420: one thread for each chunk of chroma (8 pairs of Cb, Cr) and the two chunks of luma that share it.
//
//   luma      ┌─ 0 ─┬─ 1 ─┬─ 2 ─┐   chroma    ┌─ 0 ─┬─ 1 ─┬─ 2 ─┐
//             ├─ 0 ─┼─ 1 ─┼─ 2 ─┤             └─────┴─────┴─────┘
//             └─────┴─────┴─────┘
//
// Where to change what
//   which frames come here, and which kernel they take   schedule_pair() in cuda_schedule.cpp
//   threads of a block                                   cuda_tuning.hpp
//   how pixels of four bytes are mixed                   PixelMix and pixel_mix() in cuda_schedule.cpp; mixed_pixel()
//                                                        here
//   how samples are rounded                              mixed() here
#include "kernels/blend/cuda_chunk.cuh"
#include "kernels/blend/cuda_launch.hpp"

namespace cudavision::blend {
namespace {

// ---- Mixing ---------------------------------------------------------------------------------------------------------

/// d + weight · (s − d) for biased numbers, rounded to nearest or down. The lowest byte of the result is the sample.
template <bool Down>
__device__ __forceinline__ float mixed(float s, float d, float weight) {
  return Down ? __fmaf_rd(weight, s - d, d) : fmaf(weight, s - d, d);
}
template <bool Down>
__device__ __forceinline__ uint32_t mixed_word(uint32_t s, uint32_t d, const float (&weights)[4]) {
  return pack(mixed<Down>(biased(s, 0), biased(d, 0), weights[0]), mixed<Down>(biased(s, 1), biased(d, 1), weights[1]),
              mixed<Down>(biased(s, 2), biased(d, 2), weights[2]), mixed<Down>(biased(s, 3), biased(d, 3), weights[3]));
}

// ---- Kernels --------------------------------------------------------------------------------------------------------

/// The key's weight for pixels that share chroma, or have no chroma. Their R', G' and B' differ only by luma · slope.
/// So the largest difference from the key follows from luma and from the differences at luma 0.
struct LumaKey {
  float slope, above, below;

  /// `least`, `most`: the smallest and the largest of the three differences from the key at luma 0.
  __device__ LumaKey(const Layer& layer, float least, float most)
      : slope(layer.to_key.m[0][0] * layer.key_scale),
        above(fmaf(most, layer.key_scale, -layer.key_offset)),
        below(fmaf(-least, layer.key_scale, -layer.key_offset)) {}
  __device__ float weight(float luma) const {
    return fmaxf(__saturatef(fmaf(slope, luma, above)), __saturatef(fmaf(-slope, luma, below)));
  }
};

/// Mixes all samples with the same weight, in any 8-bit format, or gray with a key.
template <bool Keyed, bool Down>
__global__ void __launch_bounds__(tuning.pair_threads) mix_planes(const __grid_constant__ PairJob job) {
  const int index = blockIdx.x * tuning.pair_threads + threadIdx.x;
  if (index >= job.total) return;
  int p = 0;
  while (p + 1 < job.plane_count && index >= job.planes[p + 1].begin) ++p;
  const PairPlane& plane = job.planes[p];
  const int y = (index - plane.begin) / plane.chunks, x = (index - plane.begin - y * plane.chunks) * 16;
  Chunk above, below;
  load_chunks(plane, x, y, above, below);
  const Layer& layer = job.layer;
  float low = fminf(fminf(layer.key[0], layer.key[1]), layer.key[2]),
        high = fmaxf(fmaxf(layer.key[0], layer.key[1]), layer.key[2]);
  if (Keyed && layer.first_pixel)
    low = high = fmaf(layer.to_key.m[0][0], float(__ldg(plane.above)), layer.to_key.m[0][3]);
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

/// Mixes one pixel of four bytes. s: the upper pixel, d: the lower pixel, k: the key's weight. Fourth: the byte that is
/// alpha or padding.
template <PixelMix Mix, int Fourth>
__device__ __forceinline__ uint32_t mixed_pixel(const PairJob& job, uint32_t s, uint32_t d, float k) {
  constexpr float max = 255;
  constexpr uint32_t fourth = 255u << 8 * Fourth;
  [[maybe_unused]] const auto whole = [&](float v) { return rounded_alpha(job.layer, v); };
  if constexpr (Mix == PixelMix::over) {
    const float over = whole(number(s, Fourth) * job.weight * k),
                rest = whole(number(d, Fourth) * (max - over) * (1 / max));
    const float sum = over + rest, share = __fdividef(over, sum);  // share: weight of the upper pixel's colour
    float bytes[4];
#pragma unroll
    for (int b = 0; b < 4; ++b)
      bytes[b] = b == Fourth ? sum + round_bias
                             : biased(d, b) + fmaf(share, biased(s, b) - biased(d, b), job.layer.color_bias);
    return sum > 0.5f ? pack(bytes[0], bytes[1], bytes[2], bytes[3]) : ~fourth;
  }
  float weight = k;
  if constexpr (Mix == PixelMix::on_opaque || Mix == PixelMix::on_opaque_down)
    weight = whole(number(s, Fourth) * job.weight * k) * (1 / max);
  else if constexpr (Mix != PixelMix::source)
    weight *= job.weight;
  if constexpr (Mix == PixelMix::on_opaque_down) {
    // mixed<true>() would round integers down by one, because this weight is not exact.
    float bytes[4];
#pragma unroll
    for (int b = 0; b < 4; ++b)
      bytes[b] = biased(d, b) + fmaf(weight, biased(s, b) - biased(d, b), job.layer.color_bias);
    return pack(bytes[0], bytes[1], bytes[2], bytes[3]) | fourth;
  }
  const float weights[4] = {weight, weight, weight, weight};
  const uint32_t word = mixed_word<Mix == PixelMix::padded_down>(s, d, weights);
  if constexpr (Mix == PixelMix::source) {
    const float was = number(d, Fourth);
    const float fourth_value = was + weight * (whole(number(s, Fourth) * job.weight) - was);
    return (word & ~fourth) | uint32_t(__float2int_rn(fourth_value)) << 8 * Fourth;
  }
  return Mix == PixelMix::all ? word : word | fourth;
}

/// Mixes pixels of four bytes, four per thread.
template <PixelMix Mix, int Fourth, bool Keyed>
__global__ void __launch_bounds__(tuning.pair_threads) mix_pixels(const __grid_constant__ PairJob job) {
  const int index = blockIdx.x * tuning.pair_threads + threadIdx.x;
  if (index >= job.total) return;
  const PairPlane& plane = job.planes[0];
  const int y = index / plane.chunks, x = (index - y * plane.chunks) * 16;
  Chunk above, below;
  load_chunks(plane, x, y, above, below);
  constexpr int first = Fourth == 0 ? 1 : 0;  // the first colour byte
  float key[3] = {};
  if constexpr (Keyed) {
#pragma unroll
    for (int c = 0; c < 3; ++c) key[c] = job.layer.key[c];
    if (job.layer.first_pixel) {
      const uint32_t word = __ldg(reinterpret_cast<const uint32_t*>(plane.above));
#pragma unroll
      for (int c = 0; c < 3; ++c)
        key[c] = fmaf(job.layer.to_key.m[c][c], number(word, first + c), job.layer.to_key.m[c][3]);
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
      for (int c = 0; c < 3; ++c)
        rgb[c] = fmaf(job.layer.to_key.m[c][c], number(s, first + c), job.layer.to_key.m[c][3]);
      k = key_weight(job.layer, key, rgb[0], rgb[1], rgb[2]);
    }
    out.word[i] = mixed_pixel<Mix, Fourth>(job, s, d, k);
  }
  store_chunk(plane.dst + y * plane.dst_pitch, x, plane.row_bytes, out);
}

/// Mixes NV12 and NV21 of even size with a key: 16 × 2 pixels per thread, and the 16 bytes of chroma that they share.
template <bool Down>
__global__ void __launch_bounds__(tuning.pair_threads) mix_keyed_420(const __grid_constant__ PairJob job) {
  const int index = blockIdx.x * tuning.pair_threads + threadIdx.x;
  const PairPlane &luma = job.planes[0], &chroma = job.planes[1];
  if (index >= job.total) return;
  const int y = index / chroma.chunks, x = (index - y * chroma.chunks) * 16;
  Chunk s, d, above[2], below[2];
  load_chunks(chroma, x, y, s, d);
#pragma unroll
  for (int r = 0; r < 2; ++r) load_chunks(luma, x, 2 * y + r, above[r], below[r]);
  const Layer& layer = job.layer;
  const Matrix& m = layer.to_key;
  const int cb = job.swapped, cr = 1 - cb;
  float key[3] = {layer.key[0], layer.key[1], layer.key[2]};
  if (layer.first_pixel) {
    const float first[3] = {float(__ldg(luma.above)), float(__ldg(chroma.above + cb)), float(__ldg(chroma.above + cr))};
#pragma unroll
    for (int c = 0; c < 3; ++c) key[c] = m.row(c, first[0], first[1], first[2]);
  }
  const float factor = Down ? 1 : job.weight;
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
      float sum = 0;  // sum of the weights of the four pixels that share chroma
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int j = 2 * pair; j < 2 * pair + 2; ++j) {
          const float k = of.weight(number(above[r].word[i], j));
          luma_weights[r][j] = k * job.weight;
          sum += k;
        }
      weights[2 * pair] = weights[2 * pair + 1] = sum * (0.25f * factor);
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

// ---- Choice of the kernel -------------------------------------------------------------------------------------------

using PairKernel = void (*)(PairJob);

template <int Fourth, bool Keyed>
PairKernel pixel_kernel(PixelMix mix) {
  switch (mix) {
    case PixelMix::all:
      return mix_pixels<PixelMix::all, Fourth, Keyed>;
    case PixelMix::padded:
      return mix_pixels<PixelMix::padded, Fourth, Keyed>;
    case PixelMix::padded_down:
      return mix_pixels<PixelMix::padded_down, Fourth, Keyed>;
    case PixelMix::source:
      return mix_pixels<PixelMix::source, Fourth, Keyed>;
    case PixelMix::on_opaque:
      return mix_pixels<PixelMix::on_opaque, Fourth, Keyed>;
    case PixelMix::on_opaque_down:
      return mix_pixels<PixelMix::on_opaque_down, Fourth, Keyed>;
    case PixelMix::over:
      return mix_pixels<PixelMix::over, Fourth, Keyed>;
  }
  return nullptr;
}
PairKernel pixel_kernel(PixelMix mix, int fourth, bool keyed) {
  if (fourth == 0) return keyed ? pixel_kernel<0, true>(mix) : pixel_kernel<0, false>(mix);
  return keyed ? pixel_kernel<3, true>(mix) : pixel_kernel<3, false>(mix);
}
PairKernel plane_kernel(bool keyed, bool down) {
  if (down) return keyed ? mix_planes<true, true> : mix_planes<false, true>;
  return keyed ? mix_planes<true, false> : mix_planes<false, false>;
}

}  // namespace

void mix_pair(const PairLaunch& launch, Queue queue) {
  const PairKernel kernel = launch.kernel == PairLaunch::Kernel::planes ? plane_kernel(launch.keyed, launch.down)
                            : launch.kernel == PairLaunch::Kernel::pixels
                                ? pixel_kernel(launch.mix, launch.fourth, launch.keyed)
                            : launch.down ? mix_keyed_420<true>
                                          : mix_keyed_420<false>;
  const int blocks = (launch.job.total + tuning.pair_threads - 1) / tuning.pair_threads;
  kernel<<<blocks, tuning.pair_threads, 0, queue.stream>>>(launch.job);
}

}  // namespace cudavision::blend
