// SPDX-License-Identifier: LGPL-2.1-or-later
// Loads the samples of a tile. A warp loads R rows of 256 samples; samples outside the frame are zero.
//
//   a row of a tile:   | quad 0 of lanes 0 … 31 (128 samples) | quad 1 of lanes 0 … 31 (128 samples) |
//   lane l:              samples 4l … 4l + 3                    samples 128 + 4l … 128 + 4l + 3
//
// Contiguous samples are loaded a quad at a time. All other samples (interleaved, unaligned, luma of RGB) are unpacked.
// Aligned pixels of three bytes or of four samples are loaded four at a time. Other pixels are loaded one by one,
// which takes much longer.
#pragma once

#include "kernels/core/luma.hpp"
#include "kernels/cuda/rows.cuh"
#include "kernels/integral/cuda_params.hpp"

namespace cudavision::integral {

/// The samples that a lane holds: two quads of each of R rows.
template <typename T, int R>
struct LaneSamples {
  std::uint32_t words[R][2][sizeof(T)];
};

/// The type of a quad as one word of memory.
template <typename T>
using QuadWord = std::conditional_t<sizeof(T) == 1, std::uint32_t, uint2>;

/// The samples of a warp's rows in shared memory.
template <typename T>
using RowWords = std::uint32_t[sizeof(T)][tile_width / 4];

/// Stores four samples in quad `at` of a row.
template <typename T>
__device__ __forceinline__ void put_quad(const std::uint32_t (&samples)[4], int at, RowWords<T>& row) {
  if constexpr (sizeof(T) == 1) {
    row[0][at] =
        __byte_perm(__byte_perm(samples[0], samples[1], 0x0040), __byte_perm(samples[2], samples[3], 0x0040), 0x5410);
  } else {
    row[0][at] = __byte_perm(samples[0], samples[1], 0x5410);
    row[1][at] = __byte_perm(samples[2], samples[3], 0x5410);
  }
}

/// Unpacks samples one by one, from any address. Not inlined, because this path is long and rare.
template <typename T, int R>
__device__ __noinline__ void unpack_samples(const SumJob& job, int x, int y, int lane, RowWords<T>* rows) {
  const auto sample = [&](T word) { return sample_of(word, job.shift, job.max_value); };
#pragma unroll 2
  for (int r = 0; r < R; ++r) {
    const int row = y + r;
    T parts[2][4][3] = {};
#pragma unroll
    for (int q = 0; q < 2; ++q)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int column = x + 128 * q + j;
        if (unsigned(row) >= unsigned(job.height) || unsigned(column) >= unsigned(job.width)) continue;
#pragma unroll
        for (int c = 0; c < 3; ++c)
          if (c == 0 || job.luma)
            parts[q][j][c] = __ldg(
                reinterpret_cast<const T*>(job.src[c] + row * job.src_pitch[c] + std::ptrdiff_t(column) * job.step));
      }
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      std::uint32_t samples[4];
#pragma unroll
      for (int j = 0; j < 4; ++j)
        samples[j] = job.luma ? luma_of(sample(parts[q][j][0]), sample(parts[q][j][1]), sample(parts[q][j][2]))
                              : int(parts[q][j][0]);
      put_quad<T>(samples, q * 32 + lane, rows[r]);
    }
  }
}

/// Loads four pixels of four samples, to which `from` points.
template <typename T>
__device__ __forceinline__ void load_pixels(const unsigned char* from, std::uint32_t (&words)[4 * sizeof(T)]) {
#pragma unroll
  for (int v = 0; v < int(sizeof(T)); ++v) {
    const uint4 four = __ldg(reinterpret_cast<const uint4*>(from) + v);
    words[4 * v] = four.x, words[4 * v + 1] = four.y, words[4 * v + 2] = four.z, words[4 * v + 3] = four.w;
  }
}
/// Loads four pixels of three bytes and splits them into one word each. The last byte of each word is unused.
__device__ __forceinline__ void load_triples(const unsigned char* from, std::uint32_t (&words)[4]) {
  const auto* const at = reinterpret_cast<const std::uint32_t*>(from);
  const std::uint32_t a = __ldg(at), b = __ldg(at + 1), c = __ldg(at + 2);
  words[0] = a, words[1] = __funnelshift_r(a, b, 24), words[2] = __funnelshift_r(b, c, 16), words[3] = c >> 8;
}

/// Unpacks whole quads of aligned pixels of `channels` samples: three bytes, or four samples.
template <int channels, bool luma, typename T, int R>
__device__ __forceinline__ void unpack_pixels(const SumJob& job, int x, int y, int lane, RowWords<T> (&rows)[R]) {
  constexpr int together = 4 / sizeof(T);  // rows that are loaded at the same time
  const int channel[3] = {job.channel[0], job.channel[1], job.channel[2]};
  const bool inside[2] = {unsigned(x) < unsigned(job.width), unsigned(x + 128) < unsigned(job.width)};
  constexpr int pixel_bytes = channels * sizeof(T);
  const unsigned char* at = job.pixels + y * job.src_pitch[0] + std::ptrdiff_t(x) * pixel_bytes;
#pragma unroll 1
  for (int r = 0; r < R; r += together) {
    std::uint32_t words[together][2][4 * sizeof(T)] = {};
#pragma unroll
    for (int i = 0; i < together; ++i, at += job.src_pitch[0])
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        if (!inside[q] || unsigned(y + r + i) >= unsigned(job.height)) continue;
        if constexpr (channels == 3)
          load_triples(at + q * 128 * pixel_bytes, words[i][q]);
        else
          load_pixels<T>(at + q * 128 * pixel_bytes, words[i][q]);
      }
#pragma unroll
    for (int i = 0; i < together; ++i)
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        std::uint32_t samples[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          // The float 2^23 + sample, made with one permutation.
          const auto biased = [&](int c) {
            if constexpr (sizeof(T) == 1)
              return __uint_as_float(__byte_perm(words[i][q][j], 0x4b000000, 0x7650 | channel[c]));
            else
              return __uint_as_float(__byte_perm(channel[c] < 2 ? words[i][q][2 * j] : words[i][q][2 * j + 1],
                                                 0x4b000000, channel[c] % 2 ? 0x7632 : 0x7610));
          };
          samples[j] =
              luma ? std::uint32_t(luma_of_biased(biased(0), biased(1), biased(2), luma_weights(LumaMatrix::bt601)))
                   : __float_as_uint(biased(0));
        }
        put_quad<T>(samples, q * 32 + lane, rows[r + i]);
      }
  }
}

/// Loads R rows of a tile for a warp, beginning at column `x` (a multiple of 4) and row `y`. `rows`: the warp's part of
/// shared memory, for unpacked samples. `pixels`: whether to include the code for aligned pixels.
template <bool pixels, typename T, int R>
__device__ __forceinline__ void load_rows(const SumJob& job, int x, int y, int lane, RowWords<T> (&rows)[R],
                                          LaneSamples<T, R>& into) {
  const int own_x = x + 4 * lane;
  const bool whole = job.whole_quads || x + tile_width <= job.width;
  if (job.quads && whole) {
    const unsigned char* at = job.src[0] + y * job.src_pitch[0] + std::ptrdiff_t(own_x) * sizeof(T);
    const bool inside[2] = {unsigned(own_x) < unsigned(job.width), unsigned(own_x + 128) < unsigned(job.width)};
#pragma unroll
    for (int r = 0; r < R; ++r, at += job.src_pitch[0]) {
      const bool row_inside = unsigned(y + r) < unsigned(job.height);
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        QuadWord<T> quad{};
        if (row_inside && inside[q]) quad = *reinterpret_cast<const QuadWord<T>*>(at + q * 128 * sizeof(T));
        if constexpr (sizeof(T) == 1)
          into.words[r][q][0] = quad;
        else
          into.words[r][q][0] = quad.x, into.words[r][q][1] = quad.y;
      }
    }
  } else {
    if (!pixels || !job.pixels || !whole)
      unpack_samples<T, R>(job, own_x, y, lane, rows);
    else if (job.step == 4 * sizeof(T))
      job.luma ? unpack_pixels<4, true, T, R>(job, own_x, y, lane, rows)
               : unpack_pixels<4, false, T, R>(job, own_x, y, lane, rows);
    else if constexpr (sizeof(T) == 1)
      job.luma ? unpack_pixels<3, true, T, R>(job, own_x, y, lane, rows)
               : unpack_pixels<3, false, T, R>(job, own_x, y, lane, rows);
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int q = 0; q < 2; ++q)
#pragma unroll
        for (int w = 0; w < int(sizeof(T)); ++w) into.words[r][q][w] = rows[r][w][q * 32 + lane];
  }
  if constexpr (sizeof(T) == 2) {
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int q = 0; q < 2; ++q) cuda::to_samples(into.words[r][q], job.shift, job.max_value);
  }
}

}  // namespace cudavision::integral
