// SPDX-License-Identifier: LGPL-2.1-or-later
// Sums of quads: four adjacent samples of a row, packed into words. To sum another kind of sample, change SampleQuad.
#pragma once

#include <type_traits>

#include "kernels/cuda/warp.cuh"
#include "kernels/integral/cuda_params.hpp"

namespace cudavision::integral {

/// Four packed samples of type T, or their squares. LineSum holds the sum of any row or column of a frame.
template <typename T, bool squared>
struct SampleQuad {
  using LineSum = std::conditional_t<sizeof(T) == 2 && squared, std::uint64_t, std::uint32_t>;
  /// Holds the sum of a column of a tile: 128 rows × 255 fit in 16 bits.
  using ColumnSum = std::conditional_t<sizeof(T) == 1 && !squared, std::uint16_t, LineSum>;
  const std::uint32_t (&words)[sizeof(T)];
  __device__ __forceinline__ explicit SampleQuad(const std::uint32_t (&from)[sizeof(T)]) : words(from) {}

  /// Sample j, squared if `squared`.
  __device__ __forceinline__ LineSum value(int j) const {
    const std::uint32_t sample =
        sizeof(T) == 1 ? words[0] >> 8 * j & 0xff : words[j / 2 % sizeof(T)] >> j % 2 * 16 & 0xffff;
    return squared ? LineSum(sample) * sample : sample;
  }

  /// sums[j] = start + value(0) + … + value(j).
  __device__ __forceinline__ void prefix(LineSum start, LineSum (&sums)[4]) const {
    if constexpr (sizeof(T) == 1) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const std::uint32_t first = 0xffffffffu >> (24 - 8 * j);
        sums[j] = squared ? __dp4a(words[0] & first, words[0], start) : __dp4a(words[0], 0x01010101u & first, start);
      }
    } else {
      sums[0] = start + value(0);
#pragma unroll
      for (int j = 1; j < 4; ++j) sums[j] = sums[j - 1] + value(j);
    }
  }
  __device__ __forceinline__ LineSum sum() const {
    if constexpr (sizeof(T) == 1)
      return __dp4a(words[0], squared ? words[0] : 0x01010101u, 0u);
    else
      return value(0) + value(1) + value(2) + value(3);
  }

  /// The sums of four columns over the rows of a warp. Two sums of bytes share a word, because 16 rows × 255 fit in 16
  /// bits.
  struct Columns {
    static constexpr bool paired = sizeof(T) == 1 && !squared;
    LineSum sums[paired ? 2 : 4] = {};

    __device__ __forceinline__ void add(const SampleQuad& quad) {
      if constexpr (paired) {
        sums[0] += quad.words[0];  // byte 0 and byte 2, plus 256 × bytes 1 and 3
        sums[1] += __byte_perm(quad.words[0], 0, 0x4341);
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[j] += quad.value(j);
      }
    }
    template <typename ColumnSums>
    __device__ __forceinline__ ColumnSums sums_of() const {
      const LineSum even = sums[0] - (sums[1] << 8);
      ColumnSums columns;
#pragma unroll
      for (int j = 0; j < 4; ++j)
        columns.of[j] = paired ? (j % 2 ? sums[1] : even) >> j / 2 * 16 & 0xffff : sums[paired ? 0 : j];
      return columns;
    }
  };
};

/// The sums of four adjacent columns.
template <typename Sum>
struct alignas(sizeof(Sum) < 4 ? 8 : 16) ColumnSums {
  Sum of[4];
};

/// For N rows: before[n][q] = the sum of all samples of row n before this lane's quad q. In a row, the first quads of
/// all lanes precede all second quads. `quad_sums` holds the sums of this lane's quads.
template <typename T, bool squared, int N, typename LineSum>
__device__ __forceinline__ void exclusive_sums(const LineSum (&quad_sums)[N][2], int lane, LineSum (&before)[N][2]) {
  if constexpr (sizeof(T) == 1 && !squared) {  // 32 lanes × 4 × 255 fit in 16 bits: one scan serves both quads
    std::uint32_t sums[N];
#pragma unroll
    for (int n = 0; n < N; ++n) sums[n] = quad_sums[n][0] | quad_sums[n][1] << 16;
    cuda::warp_scan(sums, lane);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      before[n][0] = (sums[n] & 0xffff) - quad_sums[n][0];
      before[n][1] = (sums[n] >> 16) - quad_sums[n][1] + (__shfl_sync(~0u, sums[n], 31) & 0xffff);
    }
  } else {
    LineSum sums[2 * N];
#pragma unroll
    for (int n = 0; n < 2 * N; ++n) sums[n] = quad_sums[n / 2][n % 2];
    cuda::warp_scan(sums, lane);
#pragma unroll
    for (int n = 0; n < N; ++n) {
      before[n][0] = sums[2 * n] - quad_sums[n][0];
      before[n][1] = sums[2 * n + 1] - quad_sums[n][1] + __shfl_sync(~0u, sums[2 * n], 31);
    }
  }
}

}  // namespace cudavision::integral
