// SPDX-License-Identifier: LGPL-2.1-or-later
// Kernels of 3 × 3, 5 × 5 and 7 × 7 weights on 16-bit samples, unrolled: weights as constant operands, samples turned to float32 by
// one byte permutation and one addition.
#include "kernels/convolve/cuda_kernels.cuh"

namespace cudavision::cuda::convolve {
namespace {

/// What a thread works on: a quad of neighbouring pixels, and as halo a quad on each side, all as they are stored: interleaved
/// words.
template <typename T, int C>
struct Strip {
  static constexpr int pixels = small_pixels, quads = 1;
  static constexpr int quad_words = C * sizeof(T), words = quads * quad_words, row_words = words + 2 * quad_words;
};

/// Word and place in it of channel c of a pixel, counted from the strip's first.
template <typename T, int C>
struct Place {
  int word, byte;
  __device__ constexpr Place(int pixel, int c)
      : word((pixel * C + c) * int(sizeof(T)) / 4), byte((pixel * C + c) * int(sizeof(T)) % 4) {}
};

/// The stored sample in float32. Its bytes become the mantissa of 2^23 + sample.
template <typename T, int C, int N>
__device__ __forceinline__ float sample(const std::uint32_t (&row)[N], int pixel, int c) {
  const Place<T, C> place(pixel + 4, c);  // past the left halo
  const int selector = sizeof(T) == 1 ? 0x7440 | place.byte : 0x7400 | (place.byte + 1) << 4 | place.byte;
  return __uint_as_float(__byte_perm(row[place.word], 0x4b000000, selector)) - 8388608.0f;
}

/// Puts a sample in its place.
template <typename T, int C, int N>
__device__ __forceinline__ void insert(std::uint32_t (&words)[N], int pixel, int c, std::uint32_t value) {
  const Place<T, C> place(pixel, c);
  if (C == 1 && place.byte == 0)
    words[place.word] = value;  // the first of a word that is all ours
  else if (sizeof(T) == 1)
    words[place.word] = __byte_perm(words[place.word], value, 0x3210 + ((4 - place.byte) << 4 * place.byte));
  else
    words[place.word] = __byte_perm(words[place.word], value, place.byte ? 0x5410 : 0x3254);
}

template <typename T, int C, int N>
__device__ __forceinline__ void load_strip(const unsigned char* at, std::uint32_t (&row)[N]) {
  using S = Strip<T, C>;
  constexpr int q = S::quad_words, alignment = quad_alignment(C, sizeof(T));
  std::uint32_t left[q], middle[S::words], right[q];
  detail::load_words<q, alignment>(at - 4 * q, left);
  detail::load_words<S::words, quad_alignment(C, sizeof(T))>(at, middle);
  detail::load_words<q, alignment>(at + 4 * S::words, right);
#pragma unroll
  for (int i = 0; i < q; ++i) row[i] = left[i], row[q + S::words + i] = right[i];
#pragma unroll
  for (int i = 0; i < S::words; ++i) row[q + i] = middle[i];
}

template <typename T, int C, int K, Small kind>
__device__ __forceinline__ void convolve_strip(const SmallParams& p, const SmallJob& job) {
  using S = Strip<T, C>;
  constexpr int R = small_rows(C, K), radius = K / 2, rows = R + K - 1, quads = S::quads + 2;
  constexpr int centre = S::quad_words;
  const SetView& view = job.view;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int block = blockIdx.x - job.first_block, tile_y = block / job.tiles_x, tile_x = block - tile_y * job.tiles_x;
  const int x = (view.x0 & -S::pixels) + (tile_x * 32 + lane) * S::pixels, y = view.y0 + (tile_y * small_warps + warp) * R;
  if (y >= view.y1) return;

  __shared__ int row_index[small_warps][rows];
  __shared__ std::uint32_t edge_words[small_warps][rows * quads * S::quad_words];
  if (lane < rows) row_index[warp][lane] = border_index(y - radius + lane, view.height, view.border);
  __syncwarp();

  std::uint32_t raw[rows][S::row_words];
  const bool inside = view.src_aligned && x >= 4 && x + S::pixels + 4 <= view.width;
  if (inside) {
    const unsigned char* const column = view.src + std::ptrdiff_t(x) * (C * sizeof(T));
    const int pitch = int(view.src_pitch);
#pragma unroll
    for (int i = 0; i < rows; ++i) load_strip<T, C>(column + std::int64_t(max(row_index[warp][i], 0)) * pitch, raw[i]);
    if (view.border == Border::constant) {
#pragma unroll
      for (int i = 0; i < rows; ++i)
        if (row_index[warp][i] < 0) {
#pragma unroll
          for (int w = 0; w < S::row_words; ++w) raw[i][w] = job.border_words[w % S::quad_words];
        }
    }
    if (sizeof(T) == 2 && view.max_value != 0xffff) {  // samples, but where they are stored
      const std::uint32_t mask = (0xffffu << view.shift & 0xffffu) * 0x10001u,
                          most = (std::uint32_t(view.max_value) << view.shift) * 0x10001u;
#pragma unroll
      for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int w = 0; w < S::row_words; ++w) raw[i][w] = __vminu2(raw[i][w] & mask, most);
    }
  }
  // Strips at the frame's sides: the whole warp fetches each of them, for alone a lane would wait long.
  for (unsigned edges = __ballot_sync(~0u, x < view.x1 && !inside); edges; edges &= edges - 1) {
    const int edge = __ffs(int(edges)) - 1, edge_x = __shfl_sync(~0u, x, edge);
    for (int item = lane; item < rows * quads; item += 32) {
      std::uint32_t words[S::quad_words];
      detail::interleave<T, C>(load_quad<T, C>(view, edge_x + (item % quads - 1) * 4, row_index[warp][item / quads]), words);
#pragma unroll
      for (int w = 0; w < S::quad_words; ++w) edge_words[warp][item * S::quad_words + w] = words[w] << view.shift;
    }
    __syncwarp();
    if (lane == edge) {
#pragma unroll
      for (int i = 0; i < rows; ++i)
#pragma unroll
        for (int w = 0; w < S::row_words; ++w) raw[i][w] = edge_words[warp][i * S::row_words + w];
    }
    __syncwarp();
  }
  if (x >= view.x1) return;

  std::uint32_t out[R][S::words];
  if (C > 1) {
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int w = 0; w < S::words; ++w) out[r][w] = raw[r + radius][centre + w];
  }
#pragma unroll
  for (int c = 0; c < C; ++c) {
    if (C > 1 && !(view.filtered >> c & 1)) continue;
    float sums[R][S::pixels], others[R][S::pixels];
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      float window[S::pixels + K - 1];
#pragma unroll
      for (int j = 0; j < S::pixels + K - 1; ++j) window[j] = sample<T, C>(raw[i], j - radius, c);
      if constexpr (kind == Small::two_pass) {
        float across[S::pixels];
#pragma unroll
        for (int j = 0; j < S::pixels; ++j) {
          across[j] = p.weights[0] * window[j];
#pragma unroll
          for (int k = 1; k < K; ++k) across[j] = fmaf(p.weights[k], window[j + k], across[j]);
        }
#pragma unroll
        for (int r = 0; r < R; ++r) {
          const int k = i - r;
          if (k < 0 || k >= K) continue;
#pragma unroll
          for (int j = 0; j < S::pixels; ++j) sums[r][j] = fmaf(p.weights[K + k], across[j], k == 0 ? 0 : sums[r][j]);
        }
      } else {
#pragma unroll
        for (int r = 0; r < R; ++r) {
          if (i < r || i - r >= K) continue;
#pragma unroll
          for (int k = 0; k < K; ++k) {
            const int at = (i - r) * K + k;
#pragma unroll
            for (int j = 0; j < S::pixels; ++j) {
              sums[r][j] = fmaf(p.weights[at], window[j + k], at == 0 ? 0 : sums[r][j]);
              if (kind == Small::gradient) others[r][j] = fmaf(p.weights[K * K + at], window[j + k], at == 0 ? 0 : others[r][j]);
            }
          }
        }
      }
      if (i < K - 1) continue;
      constexpr int last = K - 1;
      const int r = i - last;
      if (kind == Small::gradient) {
#pragma unroll
        for (int j = 0; j < S::pixels; ++j) {
          // Its error of 2^-23 never reaches a half between the roots of neighbouring integers that 8-bit samples give.
          asm("sqrt.approx.f32 %0, %1;" : "=f"(sums[r][j]) : "f"(fmaf(sums[r][j], sums[r][j], others[r][j] * others[r][j])));
        }
      }
      std::uint32_t samples[S::pixels];
      finish<T>(p, job, c, sums[r], samples);
#pragma unroll
      for (int j = 0; j < S::pixels; ++j) insert<T, C>(out[r], j, c, samples[j]);
    }
  }

  const Rect& whole = job.whole;
  constexpr unsigned all = (1u << C) - 1;
  if (view.dst_aligned && view.own == all && x >= view.x0 && x + S::pixels <= view.x1 && y + R <= view.y1 && x >= whole.x &&
      x + S::pixels <= whole.x + whole.width && y >= whole.y && y + R <= whole.y + whole.height) {
    unsigned char* at = view.dst + y * view.dst_pitch + std::ptrdiff_t(x) * (C * sizeof(T));
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (sizeof(T) == 2) {
#pragma unroll
        for (int w = 0; w < S::words; ++w) out[r][w] <<= view.shift;  // the low sample has `shift` zero bits on top
      }
      detail::store_words<S::words, quad_alignment(C, sizeof(T))>(at, out[r]);
      at += view.dst_pitch;
    }
    return;
  }
  std::uint32_t kept[R][S::words];  // indexed at run time, in local memory: the rare case must not unroll
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int w = 0; w < S::words; ++w) kept[r][w] = out[r][w];
#pragma unroll 1
  for (int i = 0; i < R * S::quads; ++i) {
    std::uint32_t words[S::quad_words];
#pragma unroll
    for (int w = 0; w < S::quad_words; ++w) words[w] = kept[i / S::quads][i % S::quads * S::quad_words + w];
    store_result<T, C>(job, x + i % S::quads * 4, y + i / S::quads, detail::deinterleave<T, C>(words));
  }
}

template <typename T, int C0, int C1, int K, Small kind>
__global__ void __launch_bounds__(32 * small_warps) convolve_small(const __grid_constant__ SmallParams p) {
  if (blockIdx.x < p.jobs[1].first_block) {
    convolve_strip<T, C0, K, kind>(p, p.jobs[0]);
  } else {
    const SmallJob& job = p.jobs[blockIdx.x >= p.jobs[2].first_block ? 2 : 1];
    convolve_strip<T, C1, K, kind>(p, job);
  }
}

template <typename T, int C0, int C1>
const void* choose(int side, Small kind) {
  const auto kernel = [](auto function) { return reinterpret_cast<const void*>(function); };
  if (kind == Small::gradient && side == 3) return kernel(convolve_small<T, C0, C1, 3, Small::gradient>);
  if (kind == Small::gradient)
    return side == 5 ? kernel(convolve_small<T, C0, C1, 5, Small::gradient>) : nullptr;  // anchor in a corner
  if (side == 3) return kernel(convolve_small<T, C0, C1, 3, Small::direct>);
  if (side == 5 && kind == Small::direct) return kernel(convolve_small<T, C0, C1, 5, Small::direct>);
  if (side == 5) return kernel(convolve_small<T, C0, C1, 5, Small::two_pass>);
  if (kind == Small::direct) return kernel(convolve_small<T, C0, C1, 7, Small::direct>);
  return kernel(convolve_small<T, C0, C1, 7, Small::two_pass>);
}

}  // namespace

const void* small_kernel(const FormatInfo& format, int side, Small kind) {
  const void* function = nullptr;
  with_layout(format, [&](auto sample, auto first, auto rest) {
    if constexpr (sizeof(sample) == 2)
      function = choose<decltype(sample), decltype(first)::value, decltype(rest)::value>(side, kind);
  });
  return function;
}

}  // namespace cudavision::cuda::convolve
