// SPDX-License-Identifier: LGPL-2.1-or-later
// Kernels of 3 × 3, 5 × 5 and 7 × 7 weights on 16-bit samples, unrolled: weights are constant operands, and one byte
// permutation and one addition convert a sample to float32.
//
//   lane 0     lane 1            lane 31      a block: small_warps strips, one above the other
//   +--------+--------+-- … --+--------+ -    a warp:  128 pixels across, R rows of results
//   | 4 px   | 4 px   |       | 4 px   | R    a lane:  4 pixels × R rows of results. It holds R + K − 1 rows of
//   | R rows | R rows |       | R rows | |             samples in registers, each with a quad of samples on both
//   +--------+--------+-- … --+--------+ -             sides:  [quad][4 px][quad]
//
// Error of the square root. A gradient of 16-bit samples is √s with s = u² + v² and integers |u|, |v| ≤ 4·65535 < 2^18.
// u and v are exact in float32. s has a relative error below 2^-23 (two roundings), half of which reaches the root;
// sqrt.approx.f32 adds at most 2^-23 (PTX ISA). So the root is off by less than 1.5·2^-23·√s, and before it saturates
// (√s < 65536) by less than 0.012 steps: the result is the correctly rounded one or its neighbour. For s < 2^20, where
// s is exact, it is the correctly rounded result: √s is at least 1 / (8·√s) away from k + ½, because s is an integer
// and (k + ½)² = k² + k + ¼, and the error 2^-23·√s is less. This holds for all 8-bit and 10-bit results with divisor 1
// and bias 0. The test ConvolveGradient checks both bounds with these errors.
//
// Where to change what:
//   another border         "Walks" in CONTRIBUTING.md; one whose pixels are not computed:
//                          store_result() in cuda_results.cuh
//   another sample type    sample() and insert() below, to_sample() in cuda_results.cuh, small_kernel() at the end
//   another block shape    cuda_tuning.hpp (small_…); a new side: tuning.small_reach and choose() below
#include "kernels/convolve/cuda_results.cuh"

namespace cudavision::convolve {
namespace {

using T = std::uint16_t;  // the type of all samples; other files process 8-bit samples

constexpr int pixels = 4;  // pixels of a lane: a quad
/// The words of a quad, and of a lane's row of samples, which has a quad on each side for the windows. Both are in
/// stored order (interleaved).
template <int C>
constexpr int quad_words = C * sizeof(T);
template <int C>
constexpr int row_words = 3 * quad_words<C>;

/// The word of channel c of a pixel of the strip, and the byte in this word.
template <int C>
struct SampleAt {
  int word, byte;
  __device__ constexpr SampleAt(int pixel, int c)
      : word((pixel * C + c) * int(sizeof(T)) / 4), byte((pixel * C + c) * int(sizeof(T)) % 4) {}
};

/// The stored word of a sample as float32: its bytes become the mantissa of 2^23 + word. odd: see convolve_channel().
template <int C, int N>
__device__ __forceinline__ float sample(const std::uint32_t (&row)[N], int pixel, int c, int odd) {
  const SampleAt<C> at(pixel + 4, c);  // after the left quad
  const int byte = at.byte + 2 * odd, selector = 0x7400 | (byte + 1) << 4 | byte;
  return __uint_as_float(__byte_perm(row[at.word], 0x4b000000, selector)) - 8388608.0f;
}

/// Writes a sample into the words of a row of results.
template <int C, int N>
__device__ __forceinline__ void insert(std::uint32_t (&words)[N], int pixel, int c, int odd, std::uint32_t value) {
  const SampleAt<C> at(pixel, c);
  if (C == 1 && at.byte == 0)
    words[at.word] = value;  // the first sample of a word without other sets
  else
    words[at.word] = __byte_perm(words[at.word], value, at.byte + odd ? 0x5410 : 0x3254);
}

template <int C, int N>
__device__ __forceinline__ void load_strip(const unsigned char* at, std::uint32_t (&row)[N]) {
  constexpr int q = quad_words<C>;
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    std::uint32_t quad[q];
    cuda::load_words<q, quad_alignment(C, sizeof(T))>(at + (k - 1) * 4 * q, quad);
#pragma unroll
    for (int i = 0; i < q; ++i) row[k * q + i] = quad[i];
  }
}

/// The shape of the kernels for C channels and a side of K.
template <int C, int K>
struct SmallShape {
  static constexpr int R = small_rows(C, K), radius = K / 2, rows = R + K - 1;  ///< rows: rows of samples
};

/// Loads the rows of samples of a lane whose windows are inside the frame's width. row_index: as in convolve_strip().
template <int C, int rows>
__device__ __forceinline__ void load_inside(const SmallJob& job, int x, const int* row_index,
                                            std::uint32_t (&raw)[rows][row_words<C>]) {
  const SetView& view = job.view;
  const unsigned char* const column = view.src + std::ptrdiff_t(x) * (C * sizeof(T));
  const int pitch = int(view.src_pitch);
#pragma unroll
  for (int i = 0; i < rows; ++i) load_strip<C>(column + std::int64_t(max(row_index[i], 0)) * pitch, raw[i]);
  if (view.border == Border::constant) {
#pragma unroll
    for (int i = 0; i < rows; ++i)
      if (row_index[i] < 0) {
#pragma unroll
        for (int w = 0; w < row_words<C>; ++w) raw[i][w] = job.border_words[w % quad_words<C>];
      }
  }
  if (view.max_value != 0xffff) {  // clear unused bits and clamp to the depth, without shifting
    const std::uint32_t mask = (0xffffu << view.shift & 0xffffu) * 0x10001u,
                        most = (std::uint32_t(view.max_value) << view.shift) * 0x10001u;
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int w = 0; w < row_words<C>; ++w) raw[i][w] = __vminu2(raw[i][w] & mask, most);
  }
}

/// Loads the rows of samples of the lanes at the sides of the frame (not `inside`). The whole warp loads the rows of
/// each such lane, because a single lane would take a long time. `words`: the warp's shared memory.
template <int C, int rows>
__device__ __forceinline__ void load_edges(const SetView& view, int x, bool inside, const int* row_index,
                                           std::uint32_t* words, std::uint32_t (&raw)[rows][row_words<C>]) {
  const int lane = threadIdx.x % 32;
  for (unsigned edges = __ballot_sync(~0u, x < view.x1 && !inside); edges; edges &= edges - 1) {
    const int edge = __ffs(int(edges)) - 1, edge_x = __shfl_sync(~0u, x, edge);
    for (int item = lane; item < rows * 3; item += 32) {
      std::uint32_t quad[quad_words<C>];
      cuda::interleave<T, C>(cuda::load_quad<T, C>(view, edge_x + (item % 3 - 1) * 4, row_index[item / 3]), quad);
#pragma unroll
      for (int w = 0; w < quad_words<C>; ++w) words[item * quad_words<C> + w] = quad[w] << view.shift;
    }
    __syncwarp();
    if (lane == edge) {
#pragma unroll
      for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int w = 0; w < row_words<C>; ++w) raw[i][w] = words[i * row_words<C> + w];
    }
    __syncwarp();
  }
}

/// Adds row i of samples to the sums of the R rows of results, in one pass. `others`: the sums of a gradient's second
/// kernel.
template <int K, Small kind, int R>
__device__ __forceinline__ void add_row(const SmallParams& p, int i, const float (&window)[pixels + K - 1],
                                        float (&sums)[R][pixels], float (&others)[R][pixels]) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (i < r || i - r >= K) continue;
#pragma unroll
    for (int k = 0; k < K; ++k) {
      const int at = (i - r) * K + k;
#pragma unroll
      for (int j = 0; j < pixels; ++j) {
        sums[r][j] = fmaf(p.weights[at], window[j + k], at == 0 ? 0 : sums[r][j]);
        if (kind == Small::gradient)
          others[r][j] = fmaf(p.weights[K * K + at], window[j + k], at == 0 ? 0 : others[r][j]);
      }
    }
  }
}

/// Adds row i of samples for Small::rows_then_columns: sums along the row, and adds the sums to the columns.
template <int K, int R>
__device__ __forceinline__ void add_row_in_two_passes(const SmallParams& p, int i,
                                                      const float (&window)[pixels + K - 1], float (&sums)[R][pixels]) {
  float across[pixels];
#pragma unroll
  for (int j = 0; j < pixels; ++j) {
    across[j] = p.weights[0] * window[j];
#pragma unroll
    for (int k = 1; k < K; ++k) across[j] = fmaf(p.weights[k], window[j + k], across[j]);
  }
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int k = i - r;
    if (k < 0 || k >= K) continue;
#pragma unroll
    for (int j = 0; j < pixels; ++j) sums[r][j] = fmaf(p.weights[K + k], across[j], k == 0 ? 0 : sums[r][j]);
  }
}

/// Convolves channel c + odd of a lane's samples, and inserts the results into `out`. odd: 0, or 1 if c is even, so
/// that the same code serves both samples of a word.
template <int C, int K, Small kind>
__device__ __forceinline__ void convolve_channel(const SmallParams& p, const SmallJob& job, int c, int odd,
                                                 const std::uint32_t (&raw)[SmallShape<C, K>::rows][row_words<C>],
                                                 std::uint32_t (&out)[SmallShape<C, K>::R][quad_words<C>]) {
  constexpr int R = SmallShape<C, K>::R, radius = SmallShape<C, K>::radius, rows = SmallShape<C, K>::rows;
  float sums[R][pixels], others[R][pixels];
#pragma unroll
  for (int i = 0; i < rows; ++i) {
    float window[pixels + K - 1];
#pragma unroll
    for (int j = 0; j < pixels + K - 1; ++j) window[j] = sample<C>(raw[i], j - radius, c, odd);
    if constexpr (kind == Small::rows_then_columns)
      add_row_in_two_passes<K, R>(p, i, window, sums);
    else
      add_row<K, kind, R>(p, i, window, sums, others);
    if (i < K - 1) continue;
    constexpr int last = K - 1;
    const int r = i - last;
    if (kind == Small::gradient) {
#pragma unroll
      for (int j = 0; j < pixels; ++j) {
        // See "Error of the square root" above.
        asm("sqrt.approx.f32 %0, %1;"
            : "=f"(sums[r][j])
            : "f"(fmaf(sums[r][j], sums[r][j], others[r][j] * others[r][j])));
      }
    }
    std::uint32_t samples[pixels];
    finish<T>(job, c + odd, sums[r], samples);
#pragma unroll
    for (int j = 0; j < pixels; ++j) insert<C>(out[r], j, c, odd, samples[j]);
  }
}

/// Writes R rows of a lane's results. All must be inside the region.
template <int C, int R>
__device__ __forceinline__ void store_whole(const SetView& view, int x, int y, std::uint32_t (&out)[R][quad_words<C>]) {
  unsigned char* at = view.dst + y * view.dst_pitch + std::ptrdiff_t(x) * (C * sizeof(T));
#pragma unroll
  for (int r = 0; r < R; ++r) {
#pragma unroll
    for (int w = 0; w < quad_words<C>; ++w) out[r][w] <<= view.shift;  // the low sample has `shift` zero bits on top
    cuda::store_words<quad_words<C>, quad_alignment(C, sizeof(T))>(at, out[r]);
    at += view.dst_pitch;
  }
}

/// Of the R rows of a lane's results, writes the rows inside the region.
template <int C, int R>
__device__ __forceinline__ void store_partly(const SmallJob& job, int x, int y,
                                             const std::uint32_t (&out)[R][quad_words<C>]) {
  std::uint32_t results[R][quad_words<C>];  // indexed at run time: the rare case must not be unrolled
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int w = 0; w < quad_words<C>; ++w) results[r][w] = out[r][w];
#pragma unroll 1
  for (int r = 0; r < R; ++r) store_result<T, C>(job, x, y + r, cuda::deinterleave<T, C>(results[r]));
}

/// Computes the strip of a warp. row_index: the row of the frame for each row of samples; −1: the border value.
template <int C, int K, Small kind>
__device__ __forceinline__ void convolve_strip(const SmallParams& p, const SmallJob& job) {
  constexpr int R = SmallShape<C, K>::R, warps = tuning.small_warps, radius = SmallShape<C, K>::radius,
                rows = SmallShape<C, K>::rows;
  const SetView& view = job.view;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const Place tile = tile_place(blockIdx.x - job.first_block, job.tiles_x);
  const int x = (view.x0 & -pixels) + (tile.x * 32 + lane) * pixels, y = view.y0 + (tile.y * warps + warp) * R;
  if (y >= view.y1) return;

  __shared__ int row_index[warps][rows];
  __shared__ std::uint32_t edge_words[warps][rows * row_words<C>];
  if (lane < rows) row_index[warp][lane] = border_index(y - radius + lane, view.height, view.border);
  __syncwarp();

  std::uint32_t raw[rows][row_words<C>];
  const bool inside = view.src_aligned && x >= 4 && x + pixels + 4 <= view.width;
  if (inside) load_inside<C, rows>(job, x, row_index[warp], raw);
  load_edges<C, rows>(view, x, inside, row_index[warp], edge_words[warp], raw);
  if (x >= view.x1) return;

  std::uint32_t out[R][quad_words<C>];
  if (C > 1) {
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int w = 0; w < quad_words<C>; ++w) out[r][w] = raw[r + radius][quad_words<C> + w];
  }
  constexpr int together = C == 4 ? 2 : 1;  // channels that share code, because it is long
#pragma unroll
  for (int c = 0; c < C; c += together) {
#pragma unroll 1
    for (int odd = 0; odd < together; ++odd) {
      if (C > 1 && !(view.filtered >> (c + odd) & 1)) continue;
      convolve_channel<C, K, kind>(p, job, c, odd, raw, out);
    }
  }

  const Rect& whole = job.whole;
  constexpr unsigned all = (1u << C) - 1;
  if (view.dst_aligned && view.own == all && x >= view.x0 && x + pixels <= view.x1 && y + R <= view.y1 &&
      x >= whole.x && x + pixels <= whole.x + whole.width && y >= whole.y && y + R <= whole.y + whole.height)
    return store_whole<C, R>(view, x, y, out);
  store_partly<C, R>(job, x, y, out);
}

template <int C0, int C1, int K, Small kind>
__global__ void __launch_bounds__(32 * tuning.small_warps) convolve_small(const __grid_constant__ SmallParams p) {
  if (C0 == 4 || blockIdx.x < p.jobs[1].first_block) {  // formats with four samples in a pixel have one set
    convolve_strip<C0, K, kind>(p, p.jobs[0]);
  } else {
    const SmallJob& job = p.jobs[blockIdx.x >= p.jobs[2].first_block ? 2 : 1];
    convolve_strip<C1, K, kind>(p, job);
  }
}

template <int C0, int C1>
const void* choose(int side, Small kind) {
  const auto kernel = [](auto function) { return reinterpret_cast<const void*>(function); };
  if (kind == Small::gradient)  // a 3 × 3 kernel; the side is 5 if the anchor is not in the middle
    return side == 3 ? kernel(convolve_small<C0, C1, 3, Small::gradient>)
                     : kernel(convolve_small<C0, C1, 5, Small::gradient>);
  if (side == 3) return kernel(convolve_small<C0, C1, 3, Small::direct>);
  if (side == 5 && kind == Small::direct) return kernel(convolve_small<C0, C1, 5, Small::direct>);
  if (side == 5) return kernel(convolve_small<C0, C1, 5, Small::rows_then_columns>);
  if (kind == Small::direct) return kernel(convolve_small<C0, C1, 7, Small::direct>);
  return kernel(convolve_small<C0, C1, 7, Small::rows_then_columns>);
}

}  // namespace

const void* small_kernel(const FormatInfo& format, int side, Small kind) {
  const void* function = nullptr;
  cuda::with_layout(format, [&](auto sample, auto first, auto rest) {
    if constexpr (sizeof(sample) == sizeof(T))
      function = choose<decltype(first)::value, decltype(rest)::value>(side, kind);
  });
  return function;
}

}  // namespace cudavision::convolve
