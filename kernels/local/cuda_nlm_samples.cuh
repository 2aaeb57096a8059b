// SPDX-License-Identifier: LGPL-2.1-or-later
// How non-local means represent samples, differences and squares.
//
// A word holds two samples, one below the other. Samples of up to 10 bits are half-precision numbers, sample / 32.
// Other samples are integers. Differences are exact. With 8 bits, squares and sums of squares are rounded to half
// precision, so the exponent of a weight is accurate to 1/1000. With more bits, they are sums of two half-precision
// numbers, which together have 22 bits.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "kernels/local/cuda_nlm_schedule.hpp"

namespace cudavision::local {

using std::uint32_t;

constexpr int parts_of(Samples samples) { return samples == Samples::bits8 ? 1 : 2; }
template <Samples samples>
using Stored = std::conditional_t<samples == Samples::bits8, std::uint8_t, std::uint16_t>;
/// Samples are divided by this number, so that sums of squares stay in the range of half precision.
constexpr float unit_of(Samples samples) { return samples == Samples::bits16 ? 2048 : 32; }

__device__ __forceinline__ __half2 halves(uint32_t word) { return *reinterpret_cast<const __half2*>(&word); }
__device__ __forceinline__ uint32_t word(__half2 halves) { return *reinterpret_cast<const uint32_t*>(&halves); }
__device__ __forceinline__ uint32_t pack(float low, float high) { return word(__floats2half2_rn(low, high)); }

template <Samples samples>
__device__ __forceinline__ uint32_t word_of(uint32_t upper, uint32_t lower) {
  const uint32_t both = upper | lower << 16;
  if constexpr (samples == Samples::bits16) return both;
  // 0x6400 | sample is the half-precision number 1024 + sample.
  return word(__hfma2(halves(both | 0x64006400), __float2half2_rn(1 / 32.f), __float2half2_rn(-32)));
}

/// One of the samples in a word, in sample values.
template <Samples samples>
__device__ __forceinline__ float sample_in(uint32_t word, int which) {
  if constexpr (samples == Samples::bits16) return float(which ? word >> 16 : word & 0xffff);
  return 32 * (which ? __high2float(halves(word)) : __low2float(halves(word)));
}

/// The differences of two words, divided by unit_of(samples).
template <Samples samples>
struct Difference {
  uint32_t both;
  Difference() = default;
  __device__ Difference(uint32_t a, uint32_t b) : both(word(__hsub2(halves(a), halves(b)))) {}
  __device__ float value(int which) const { return which ? __high2float(halves(both)) : __low2float(halves(both)); }
};
template <>
struct Difference<Samples::bits16> {
  float values[2];
  Difference() = default;
  __device__ Difference(uint32_t a, uint32_t b) {
    // The upper half of a float32, with a sample below it, is 4096 + sample / 2048.
    values[0] =
        __uint_as_float(__byte_perm(a, 0x45800000, 0x7610)) - __uint_as_float(__byte_perm(b, 0x45800000, 0x7610));
    values[1] =
        __uint_as_float(__byte_perm(a, 0x45800000, 0x7632)) - __uint_as_float(__byte_perm(b, 0x45800000, 0x7632));
  }
  __device__ float value(int which) const { return values[which]; }
};

/// Represents two float32 numbers as sums of half-precision numbers.
__device__ __forceinline__ void split(float low, float high, uint32_t (&parts)[2]) {
  parts[0] = pack(low, high);
  parts[1] = pack(low - __low2float(halves(parts[0])), high - __high2float(halves(parts[0])));
}

template <Samples samples>
__device__ __forceinline__ void square(const Difference<samples>& d, uint32_t (&parts)[parts_of(samples)]) {
  if constexpr (samples == Samples::bits16) {
    split(d.values[0] * d.values[0], d.values[1] * d.values[1], parts);
  } else {
    const __half2 v = halves(d.both), high = __hmul2(v, v);
    parts[0] = word(high);
    if constexpr (samples == Samples::bits10) parts[1] = word(__hfma2(v, v, __hneg2(high)));
  }
}

}  // namespace cudavision::local
