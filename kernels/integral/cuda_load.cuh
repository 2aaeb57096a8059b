// SPDX-License-Identifier: LGPL-2.1-or-later
// Loading the samples of a tile. A warp loads R rows of 256 samples; samples outside of the frame are zero.
//
//   a row of a tile:   | quad 0 of lanes 0 … 31 (128 samples) | quad 1 of lanes 0 … 31 (128 samples) |
//   lane l:              samples 4l … 4l + 3                    samples 128 + 4l … 128 + 4l + 3
//
// Contiguous samples are loaded a quad at a time. All other samples (interleaved, unaligned, luma of RGB) are unpacked, which takes
// much longer; the sum pass therefore stores unpacked samples for the write pass.
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

/// A quad as one word of memory.
template <typename T>
using QuadWord = std::conditional_t<sizeof(T) == 1, std::uint32_t, uint2>;

template <typename T, int R>
__device__ __forceinline__ void pack_quad(const T (&samples)[4], int r, int q, LaneSamples<T, R>& into) {
  constexpr int per_word = 4 / sizeof(T);
#pragma unroll
  for (int w = 0; w < int(sizeof(T)); ++w) {
    std::uint32_t word = 0;
#pragma unroll
    for (int j = 0; j < per_word; ++j) word |= std::uint32_t(samples[w * per_word + j]) << 8 * int(sizeof(T)) * j;
    into.words[r][q][w] = word;
  }
}

/// Unpacks from aligned pixels of four samples, a whole pixel at a time.
template <typename T, int R>
__device__ __forceinline__ void unpack_pixels(const Job& job, int x, int y, LaneSamples<T, R>& into) {
  using Pixel = std::conditional_t<sizeof(T) == 1, std::uint32_t, uint2>;
  constexpr int together = 2;  // rows in flight
#pragma unroll 1
  for (int r = 0; r < R; r += together) {
    Pixel pixels[together][2][4];
#pragma unroll
    for (int i = 0; i < together; ++i)
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        const int row = y + r + i, at = x + 128 * q;
        const auto* const from = reinterpret_cast<const Pixel*>(job.pixels + row * job.src_pitch[0]) + at;
        const bool inside = row >= 0 && row < job.height;
        if (inside && at + 4 <= job.width) {
#pragma unroll
          for (int v = 0; v < int(sizeof(T)); ++v)
            reinterpret_cast<uint4*>(pixels[i][q])[v] = __ldg(reinterpret_cast<const uint4*>(from) + v);
        } else {
#pragma unroll
          for (int j = 0; j < 4; ++j) pixels[i][q][j] = inside && at + j < job.width ? __ldg(from + j) : Pixel{};
        }
      }
#pragma unroll
    for (int i = 0; i < together; ++i)
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        T samples[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const auto sample = [&](int c) {
            const int channel = job.channel[c];
            if constexpr (sizeof(T) == 1)
              return int(pixels[i][q][j] >> 8 * channel & 0xff);
            else
              return int((channel < 2 ? pixels[i][q][j].x : pixels[i][q][j].y) >> channel % 2 * 16 & 0xffff);
          };
          samples[j] = T(job.luma ? luma_of(sample(0), sample(1), sample(2)) : sample(0));
        }
        pack_quad(samples, r + i, q, into);
      }
  }
}

/// Unpacks samples one by one, from any address.
template <typename T, int R>
__device__ __forceinline__ void unpack_samples(const Job& job, int x, int y, LaneSamples<T, R>& into) {
#pragma unroll 2
  for (int r = 0; r < R; ++r) {
    const int row = y + r;
    const bool inside = row >= 0 && row < job.height;
    T parts[2][4][3] = {};
#pragma unroll
    for (int q = 0; q < 2; ++q)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int column = x + 128 * q + j;
        if (!inside || column >= job.width) continue;
#pragma unroll
        for (int c = 0; c < 3; ++c)
          if (c == 0 || job.luma)
            parts[q][j][c] =
                __ldg(reinterpret_cast<const T*>(job.src[c] + row * job.src_pitch[c] + std::ptrdiff_t(column) * job.step));
      }
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      T samples[4];
#pragma unroll
      for (int j = 0; j < 4; ++j)
        samples[j] = job.luma ? T(luma_of(parts[q][j][0], parts[q][j][1], parts[q][j][2])) : parts[q][j][0];
      pack_quad(samples, r, q, into);
    }
  }
}

/// Not inlined: this path is long, and the kernel contains it twice.
template <typename T, int R>
__device__ __noinline__ void unpack(const Job& job, int x, int y, LaneSamples<T, R>& into) {
  if (job.pixels)
    unpack_pixels(job, x, y, into);
  else
    unpack_samples(job, x, y, into);
}

/// Loads R rows of a tile for a warp, from column `x` (a multiple of 256) and row `y` on.
template <typename T, int R>
__device__ __forceinline__ void load_rows(const Job& job, int x, int y, int lane, LaneSamples<T, R>& into) {
  const int own_x = x + 4 * lane;
  if (job.quads && (job.whole_quads || x + tile_width <= job.width)) {
    const unsigned char* at = job.src[0] + y * job.src_pitch[0] + std::ptrdiff_t(own_x) * sizeof(T);
    const bool inside[2] = {own_x < job.width, own_x + 128 < job.width};
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
    LaneSamples<T, R> unpacked;  // in local memory
    unpack<T, R>(job, own_x, y, unpacked);
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int q = 0; q < 2; ++q)
#pragma unroll
        for (int w = 0; w < int(sizeof(T)); ++w) into.words[r][q][w] = unpacked.words[r][q][w];
  }
  if constexpr (sizeof(T) == 2) {
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int q = 0; q < 2; ++q) cuda::to_samples(into.words[r][q], job.shift, job.max_value);
  }
}

/// Stores unpacked samples for the write pass. `x`: the column of the lane's first quad.
template <typename T, int R>
__device__ __forceinline__ void store_unpacked(const Job& job, int x, int y, const LaneSamples<T, R>& samples) {
  unsigned char* at = job.unpacked + y * job.unpacked_pitch + std::ptrdiff_t(x) * sizeof(T);
#pragma unroll
  for (int r = 0; r < R; ++r, at += job.unpacked_pitch)
#pragma unroll
    for (int q = 0; q < 2; ++q) {
      if (y + r < 0 || y + r >= job.height || x + 128 * q >= job.width) continue;
      QuadWord<T> quad;
      if constexpr (sizeof(T) == 1)
        quad = samples.words[r][q][0];
      else
        quad = make_uint2(samples.words[r][q][0], samples.words[r][q][1]);
      *reinterpret_cast<QuadWord<T>*>(at + q * 128 * sizeof(T)) = quad;
    }
}

}  // namespace cudavision::integral
