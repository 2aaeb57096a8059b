// SPDX-License-Identifier: LGPL-2.1-or-later
// Computes samples from window sums. The results equal those in float64, but the code hardly uses float64.
#pragma once

#include <cstdint>

namespace cudavision::local {

/// Divides a sum by a count that is the same for many sums. The quotient, at most 255, is a byte of the high word of
/// (sum + count / 2) · factor, where factor = 2^(32 + 8·byte) / count, rounded up:
/// exact for sums below 256 · count and counts below 2^24.
struct Divider {
  int count = 0;
  std::uint32_t factor = 0, half = 0;
  int select = 0;  ///< the byte: a selector of __byte_perm for two words

  __device__ __forceinline__ void set(int n) {
    if (n == count) return;
    count = n;
    const int byte = n < 1 << 12 ? 0 : n < 1 << 16 ? 1 : n < 1 << 20 ? 2 : 3;
    const std::uint64_t power = std::uint64_t(1) << (32 + 8 * byte);
    factor = n == 1 ? 0xffffffffu : std::uint32_t((power + n - 1) / n);
    half = n == 1 ? 1 : n / 2;  // 1: (sum + 1) · 0xffffffff has the high word `sum`
    select = 0x40 + byte * 0x11;
  }
};

/// Divides a sum below 2^31 by a count that is the same for many sums: up to 2^15 for samples of 16 bits, up to 2^23
/// for 8 bits. With 2^shift < count, factor = 2^(32 + shift) / count, rounded up, has 32 bits, and (sum + count / 2) ·
/// factor / 2^(32 + shift) is exact.
struct MeanDivider {
  int count = 0, shift = 0;
  std::uint32_t factor = 0, half = 0;
  double per_count = 0;

  __device__ __forceinline__ void set(int n) {
    if (n == count) return;
    count = n;
    shift = n == 1 ? 0 : 31 - __clz(n - 1);
    factor = n == 1 ? 0xffffffffu : std::uint32_t(((std::uint64_t(1) << (32 + shift)) + n - 1) / n);
    half = n == 1 ? 1 : n / 2;  // 1: (sum + 1) · 0xffffffff has the high word `sum`
    per_count = 1.0 / n;
  }
  /// sum / count, rounded half to even.
  __device__ __forceinline__ std::uint32_t mean(std::uint32_t sum) const {
    std::uint32_t quotient = __umulhi(sum + half, factor) >> shift;
    if (count % 2 == 0 && sum + half == quotient * count) quotient &= ~1u;
    return quotient;
  }
};

/// The standard deviation in float64, rounded half to even. Not inlined: short code stays in the instruction cache.
inline __device__ __noinline__ int exact_deviation(double sum, double squares, int count) {
  const double mean = __ddiv_rn(sum, count);
  return __double2int_rn(sqrt(fmax(__dsub_rn(__ddiv_rn(squares, count), __dmul_rn(mean, mean)), 0.0)));
}
/// The standard deviation, rounded half to even; `per_count`: about 1 / count. Computed exactly only near halves.
__device__ __forceinline__ int deviation(double sum, double squares, int count, double per_count) {
  const double mean = sum * per_count;
  const float variance = float(fma(-mean, mean, squares * per_count));
  float root;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(fmaxf(variance, 0.0f)));
  const float rounded = rintf(root);
  return fabsf(root - rounded) < 0.4999f - root * 0x1p-21f ? int(rounded) : exact_deviation(sum, squares, count);
}

/// The approximate reciprocal, accurate to 1 ulp.
__device__ __forceinline__ float fast_reciprocal(float n) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(n));
  return result;
}
__device__ __forceinline__ float reciprocal(int n) { return fast_reciprocal(float(n)); }

/// sum / count, at most 255, rounded half to even. `per_count`: about 1 / count. The estimate is off by at most one.
__device__ __forceinline__ int mean(int sum, int count, float per_count) {
  const int quotient = __float_as_int(fmaf(float(sum), per_count, 0x1.8p23f)) & 0x1ff;
  const int rest = 2 * (sum - quotient * count), odd = quotient & 1;
  return quotient + (rest + odd > count) - (odd - rest > count);
}

/// sum / count rounded half to even, for quotients below 2^16. The float32 estimate is off by at most one.
__device__ __forceinline__ int rounded_mean(std::uint64_t sum, int count) {
  int quotient = int(float(sum) * (1.0f / float(count)));
  std::int64_t rest = std::int64_t(sum) - std::int64_t(quotient) * count;
  if (rest < 0) --quotient, rest += count;
  if (rest >= count) ++quotient, rest -= count;
  return quotient + (2 * rest + (quotient & 1) > count);
}

/// (count · standard deviation)², exactly.
__device__ __forceinline__ std::uint64_t spread(std::uint32_t sum, std::uint32_t squares, int count) {
  return std::uint64_t(squares) * std::uint32_t(count) - std::uint64_t(sum) * sum;
}

/// The standard deviation, not rounded, accurate to 1e-4. `per_count`: 1 / count. Conversions and roots run at an
/// eighth of the rate of sums, so the high word, which is below 2^23, is converted by using the bits of 2^23 + word.
__device__ __forceinline__ float approximate_deviation(std::uint64_t spread, float per_count) {
  const float high = __int_as_float(0x4b000000 | int(spread >> 32)) - 0x1p23f;
  float root;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(fmaf(high, 0x1p32f, float(std::uint32_t(spread)))));
  return root * per_count;
}

/// The standard deviation, rounded half to even. `approximate` is near a half. Exact, because it compares squares.
__device__ __forceinline__ int rounded_deviation(std::uint64_t spread, int count, float approximate) {
  const int below = __float2int_rd(approximate);
  const std::uint32_t half = std::uint32_t(2 * below + 1) * std::uint32_t(count);  // 2 · count · (below + 1/2)
  return below + (4 * spread + (below & 1) > std::uint64_t(half) * half);
}

}  // namespace cudavision::local
