// SPDX-License-Identifier: LGPL-2.1-or-later
// Lays a picture over another one with an operator on R', G' and B' (subtract, multiply, screen, difference, min, max).
// Both have the same 8-bit format and the output's size. The arithmetic is lay_pixel(), as in cuda_compose.cu; these
// kernels move 16 bytes at a time.
//
//   operate_gray, operate_pixels: one thread for each chunk of 16 bytes: 16 gray samples, or 4 pixels of four bytes.
//
//        plane 0   ┌─ lane 0 ─┬─ lane 1 ─┬─ … 31 ─┐
//                  ├─ lane 0 ─┼─ lane 1 ─┼─ … 31 ─┤      a warp has 32 chunks of a row, a block some rows
//                  └──────────┴──────────┴────────┘
//
//   operate_420: one thread for each chunk of chroma (8 pairs of Cb, Cr) and the two chunks of luma that share it.
//
//        luma      ┌─ lane 0 ─┬─ lane 1 ─┬─ …     chroma    ┌─ lane 0 ─┬─ lane 1 ─┬─ …
//                  ├─ lane 0 ─┼─ lane 1 ─┼─ …               └──────────┴──────────┴─ …
//                  └──────────┴──────────┴─ …
//
// Where to change what
//   which frames come here, and which kernel they take   schedule_pair() in cuda_schedule.cpp
//   threads of a block                                   cuda_tuning.hpp
//   the operators                                        operate() in arithmetic.hpp
#include <cmath>

#include "kernels/blend/cuda_chunk.cuh"
#include "kernels/blend/cuda_launch.hpp"

namespace cudavision::blend {
namespace {

/// Parameters of these kernels.
struct OperateJob {
  PairJob pair;
  Target target;
  Matrix tiny_to_rgb;  ///< the target's to_rgb, for samples of tiny()
  float alpha;         ///< alpha of the upper picture if its format has none, in steps of the output's alpha
};

/// The first byte and the row of the thread's chunk.
__device__ __forceinline__ int2 chunk_of_thread() {
  return make_int2((blockIdx.x * 32 + threadIdx.x % 32) * 16,
                   blockIdx.y * (tuning.operate_threads / 32) + threadIdx.x / 32);
}

/// Rounds a number to the nearest sample, which is in the lowest bits of the result.
__device__ __forceinline__ float biased_sample(float value) { return value + round_bias; }

template <Operator Op>
__global__ void __launch_bounds__(tuning.operate_threads) operate_gray(const __grid_constant__ OperateJob job) {
  const PairPlane& plane = job.pair.planes[0];
  const auto [x, y] = chunk_of_thread();
  if (y >= plane.rows || x >= plane.row_bytes) return;
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
      lay_pixel<Op, 1, Matrices::bounded>(job.target, job.pair.layer, 1, s, d);
      samples[j] = biased_sample(d[0]);
    }
    out.word[i] = pack(samples[0], samples[1], samples[2], samples[3]);
  }
  store_chunk(plane.dst + y * plane.dst_pitch, x, plane.row_bytes, out);
}

/// Channels: 3, or 4 with alpha. Fourth: the byte that is alpha or padding. The others are R', G' and B' in any order.
template <Operator Op, int Channels, int Fourth>
__global__ void __launch_bounds__(tuning.operate_threads, tuning.operate_pixel_blocks)
    operate_pixels(const __grid_constant__ OperateJob job) {
  const PairPlane& plane = job.pair.planes[0];
  const auto [x, y] = chunk_of_thread();
  if (y >= plane.rows || x >= plane.row_bytes) return;
  Chunk above, below;
  load_chunks(plane, x, y, above, below);
  constexpr int first = Fourth == 0 ? 1 : 0;  // the first colour byte
  constexpr uint32_t fourth = 255u << 8 * Fourth;
  Chunk out;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float s[4], d[4], bytes[4];
#pragma unroll
    for (int c = 0; c < 3; ++c) s[c] = number(above.word[i], first + c), d[c] = number(below.word[i], first + c);
    s[3] = Channels == 4 ? number(above.word[i], Fourth) : job.alpha;
    d[3] = Channels == 4 ? number(below.word[i], Fourth) : 0;
    lay_pixel<Op, Channels, Matrices::equal>(job.target, job.pair.layer, 1, s, d);
#pragma unroll
    for (int c = 0; c < 3; ++c) bytes[first + c] = biased_sample(d[c]);
    bytes[Fourth] = biased_sample(d[3]);
    const uint32_t word = pack(bytes[0], bytes[1], bytes[2], bytes[3]);
    out.word[i] = Channels < 4 ? word | fourth : d[3] > 0.5f ? word : ~fourth;
  }
  store_chunk(plane.dst + y * plane.dst_pitch, x, plane.row_bytes, out);
}

/// NV12 and NV21 of even size: 16 × 2 pixels per thread, and the 16 bytes of chroma that they share.
template <Operator Op>
__global__ void __launch_bounds__(tuning.operate_threads, tuning.operate_420_blocks)
    operate_420(const __grid_constant__ OperateJob job) {
  const PairPlane &luma = job.pair.planes[0], &chroma = job.pair.planes[1];
  const auto [x, y] = chunk_of_thread();
  if (y >= chroma.rows || x >= chroma.row_bytes) return;
  Chunk above_chroma, below_chroma, above[2], below[2], out[2], out_chroma;
  load_chunks(chroma, x, y, above_chroma, below_chroma);
#pragma unroll
  for (int r = 0; r < 2; ++r) load_chunks(luma, x, 2 * y + r, above[r], below[r]);
  const uint32_t order = job.pair.swapped ? 0x2301 : 0x3210;  // Cb before Cr
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t over = __byte_perm(above_chroma.word[i], 0, order),
                   under = __byte_perm(below_chroma.word[i], 0, order);
    float samples[2][4], means[4];
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const float cb = tiny(over, 2 * pair), cr = tiny(over, 2 * pair + 1);
      const float under_cb = number(under, 2 * pair), under_cr = number(under, 2 * pair + 1);
      float laid[2][2][4];  // row, column, component
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const float s[4] = {tiny(above[r].word[i], 2 * pair + j), cb, cr, job.alpha};
          float(&d)[4] = laid[r][j];
          d[0] = number(below[r].word[i], 2 * pair + j), d[1] = under_cb, d[2] = under_cr, d[3] = 0;
          lay_pixel<Op, 3, Matrices::bounded>(job.target, job.pair.layer, 1, job.tiny_to_rgb, s, d);
          samples[r][2 * pair + j] = biased_sample(d[0]);
        }
        // Gives the same bits as write_chroma(), which adds two numbers at a time: first down, then across.
#pragma unroll
      for (int k = 1; k < 3; ++k) {
        const float first = laid[0][0][k] + laid[1][0][k], second = laid[0][1][k] + laid[1][1][k];
        means[2 * pair + k - 1] = biased_sample((first + second) * 0.25f);
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) out[r].word[i] = pack(samples[r][0], samples[r][1], samples[r][2], samples[r][3]);
    out_chroma.word[i] = __byte_perm(pack(means[0], means[1], means[2], means[3]), 0, order);
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) store_chunk(luma.dst + (2 * y + r) * luma.dst_pitch, x, luma.row_bytes, out[r]);
  store_chunk(chroma.dst + y * chroma.dst_pitch, x, chroma.row_bytes, out_chroma);
}

using OperateKernel = void (*)(OperateJob);

template <Operator Op>
OperateKernel operate_kernel(const PairLaunch& launch, bool alpha) {
  if (launch.kernel == PairLaunch::Kernel::operate_gray) return operate_gray<Op>;
  if (launch.kernel == PairLaunch::Kernel::operate_420) return operate_420<Op>;
  if (launch.fourth == 0) return alpha ? operate_pixels<Op, 4, 0> : operate_pixels<Op, 3, 0>;
  return alpha ? operate_pixels<Op, 4, 3> : operate_pixels<Op, 3, 3>;
}

}  // namespace

void operate_pair(const PairLaunch& launch, const Target& target, Queue queue) {
  const Layer& layer = launch.job.layer;
  OperateJob job{launch.job, target, target.to_rgb, layer.opaque * layer.alpha_scale};
  for (auto& row : job.tiny_to_rgb.m)
    for (int c = 0; c < 3; ++c) row[c] = std::ldexp(row[c], -tiny_exponent);
  OperateKernel kernel = nullptr;
  with_operator(layer.op, [&](auto op) {
    if constexpr (operates_on_rgb(op())) kernel = operate_kernel<op()>(launch, target.alpha);
  });
  const PairPlane& plane = job.pair.planes[launch.kernel == PairLaunch::Kernel::operate_420];
  constexpr int rows = tuning.operate_threads / 32;
  const dim3 blocks((plane.chunks + 31) / 32, (plane.rows + rows - 1) / rows);
  kernel<<<blocks, tuning.operate_threads, 0, queue.stream>>>(job);
}

}  // namespace cudavision::blend
