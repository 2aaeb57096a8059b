// SPDX-License-Identifier: LGPL-2.1-or-later
// Lays a picture over another one of the same 8-bit format and of the output's size with an operator on R', G' and B' (subtract, multiply,
// screen, difference, min, max). The arithmetic is lay_pixel(), as in cuda_compose.cu; this kernel moves 16 bytes at a time.
//
//   operate_gray, operate_pixels: one thread for each chunk of 16 bytes: 16 gray samples, or 4 pixels of four bytes.
//
//        plane 0   ┌─ 0 ─┬─ 1 ─┬─ 2 ─┐      thread: blockIdx.x · pair_threads + threadIdx.x
//                  ├─ 3 ─┼─ 4 ─┼─ 5 ─┤
//                  └─────┴─────┴─────┘
//
//   operate_420: one thread for each chunk of chroma (8 pairs of Cb, Cr) and the two chunks of luma that share it.
//
//        luma      ┌─ 0 ─┬─ 1 ─┬─ 2 ─┐          chroma    ┌─ 0 ─┬─ 1 ─┬─ 2 ─┐
//                  ├─ 0 ─┼─ 1 ─┼─ 2 ─┤                    └─────┴─────┴─────┘
//                  └─────┴─────┴─────┘
//
// Where to change what
//   which frames come here, and which kernel they take   schedule_pair() in cuda_schedule.cpp
//   threads of a block                                   cuda_tuning.hpp
//   the operators                                        operate() in arithmetic.hpp
#include "kernels/blend/cuda_chunk.cuh"
#include "kernels/blend/cuda_launch.hpp"

namespace cudavision::blend {
namespace {

/// Parameters of these kernels. alpha: of the upper picture where its format has none, in steps of the output's.
struct OperateJob {
  PairJob pair;
  Target target;
  float alpha;
};

/// The sample nearest to a number, in the lowest bits.
__device__ __forceinline__ float biased_sample(float value) { return value + round_bias; }

template <Operator Op>
__global__ void __launch_bounds__(tuning.pair_threads) operate_gray(const __grid_constant__ OperateJob job) {
  const int index = blockIdx.x * tuning.pair_threads + threadIdx.x;
  if (index >= job.pair.total) return;
  const PairPlane& plane = job.pair.planes[0];
  const int y = index / plane.chunks, x = (index - y * plane.chunks) * 16;
  Chunk above, below;
  load_chunks(plane, x, y, above, below);
  Chunk out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float samples[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float s[4] = {number(above.word[i], j), 0, 0, job.alpha};
      float d[4] = {number(below.word[i], j)};
      lay_pixel<Op, 1>(job.target, job.pair.layer, 1, s, d);
      samples[j] = biased_sample(d[0]);
    }
    out.word[i] = pack(samples[0], samples[1], samples[2], samples[3]);
  }
  store_chunk(plane.dst + y * plane.dst_pitch, x, plane.row_bytes, out);
}

/// Channels: 3, or 4 with alpha. The samples are R', G' and B' in any order.
template <Operator Op, int Channels>
__global__ void __launch_bounds__(tuning.pair_threads) operate_pixels(const __grid_constant__ OperateJob job) {
  const int index = blockIdx.x * tuning.pair_threads + threadIdx.x;
  if (index >= job.pair.total) return;
  const PairPlane& plane = job.pair.planes[0];
  const int y = index / plane.chunks, x = (index - y * plane.chunks) * 16;
  Chunk above, below;
  load_chunks(plane, x, y, above, below);
  const auto& order = job.target.packed.order;
  const uint32_t places = 0u << 4 * order[0] | 1u << 4 * order[1] | 2u << 4 * order[2] | 3u << 4 * order[3];
  Chunk out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float s[4], d[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      s[c] = c < Channels ? number(above.word[i], order[c]) : job.alpha;
      d[c] = number(below.word[i], order[c]);
    }
    if (Channels == 4) s[3] *= job.pair.layer.alpha_scale;
    lay_pixel<Op, Channels, true>(job.target, job.pair.layer, 1, s, d);
    if (Channels < 4) d[3] = job.target.max;
    const uint32_t components = pack(biased_sample(d[0]), biased_sample(d[1]), biased_sample(d[2]), biased_sample(d[3]));
    out.word[i] = __byte_perm(components, 0, places);
  }
  store_chunk(plane.dst + y * plane.dst_pitch, x, plane.row_bytes, out);
}

/// NV12 and NV21 of even size: 16 × 2 pixels per thread, and the 16 bytes of chroma that they share.
template <Operator Op>
__global__ void __launch_bounds__(tuning.pair_threads) operate_420(const __grid_constant__ OperateJob job) {
  const int index = blockIdx.x * tuning.pair_threads + threadIdx.x;
  if (index >= job.pair.total) return;
  const PairPlane &luma = job.pair.planes[0], &chroma = job.pair.planes[1];
  const int y = index / chroma.chunks, x = (index - y * chroma.chunks) * 16;
  Chunk above_chroma, below_chroma, above[2], below[2], out[2], out_chroma;
  load_chunks(chroma, x, y, above_chroma, below_chroma);
#pragma unroll
  for (int r = 0; r < 2; ++r) load_chunks(luma, x, 2 * y + r, above[r], below[r]);
  const bool swapped = job.pair.swapped;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float samples[2][4], means[4];
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const float a = number(above_chroma.word[i], 2 * pair), b = number(above_chroma.word[i], 2 * pair + 1);
      const float c = number(below_chroma.word[i], 2 * pair), e = number(below_chroma.word[i], 2 * pair + 1);
      float laid[2][2][4];  // row, column, component
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const float s[4] = {number(above[r].word[i], 2 * pair + j), swapped ? b : a, swapped ? a : b, job.alpha};
          float(&d)[4] = laid[r][j];
          d[0] = number(below[r].word[i], 2 * pair + j), d[1] = swapped ? e : c, d[2] = swapped ? c : e, d[3] = 0;
          lay_pixel<Op, 3>(job.target, job.pair.layer, 1, s, d);
          samples[r][2 * pair + j] = biased_sample(d[0]);
        }
        // As in write_chroma(): first down, then across.
#pragma unroll
      for (int k = 1; k < 3; ++k) {
        const float first = (laid[0][0][k] + laid[1][0][k]) * 0.5f, second = (laid[0][1][k] + laid[1][1][k]) * 0.5f;
        means[2 * pair + k - 1] = biased_sample((first + second) * 0.5f);
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) out[r].word[i] = pack(samples[r][0], samples[r][1], samples[r][2], samples[r][3]);
    out_chroma.word[i] = swapped ? pack(means[1], means[0], means[3], means[2]) : pack(means[0], means[1], means[2], means[3]);
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) store_chunk(luma.dst + (2 * y + r) * luma.dst_pitch, x, luma.row_bytes, out[r]);
  store_chunk(chroma.dst + y * chroma.dst_pitch, x, chroma.row_bytes, out_chroma);
}

using OperateKernel = void (*)(OperateJob);

template <Operator Op>
OperateKernel operate_kernel(PairLaunch::Kernel kernel, bool alpha) {
  if (kernel == PairLaunch::Kernel::operate_gray) return operate_gray<Op>;
  if (kernel == PairLaunch::Kernel::operate_420) return operate_420<Op>;
  return alpha ? operate_pixels<Op, 4> : operate_pixels<Op, 3>;
}

}  // namespace

void operate_pair(const PairLaunch& launch, const Target& target, Queue queue) {
  const Layer& layer = launch.job.layer;
  const OperateJob job{launch.job, target, layer.opaque * layer.alpha_scale};
  OperateKernel kernel = nullptr;
  with_operator(layer.op, [&](auto op) {
    if constexpr (operates_on_rgb(op())) kernel = operate_kernel<op()>(launch.kernel, target.alpha);
  });
  const int blocks = (job.pair.total + tuning.pair_threads - 1) / tuning.pair_threads;
  kernel<<<blocks, tuning.pair_threads, 0, queue.stream>>>(job);
}

}  // namespace cudavision::blend
