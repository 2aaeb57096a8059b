// SPDX-License-Identifier: LGPL-2.1-or-later
// Computes, from window sums, the bytes that cuda_windows.cu writes: four results at a time, for whole windows or for
// windows that the frame cuts. For the threshold, the byte is the smallest sample that becomes white; the kernel
// compares.
#pragma once

#include "kernels/local/cuda_results.cuh"
#include "kernels/local/local.hpp"

namespace cudavision::local {

/// Packs the low bytes of four words.
__device__ __forceinline__ std::uint32_t pack(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return __byte_perm(__byte_perm(a, b, 0x40), __byte_perm(c, d, 0x40), 0x5410);
}

/// Calls f(k) for four results, and packs them.
template <typename F>
__device__ __forceinline__ std::uint32_t pack_each(F f) {
  return pack(f(0), f(1), f(2), f(3));
}

/// Four quotients by two factors, one too small and one too large: quotient(k, factor) for k = 0 … 3. If the quotients
/// differ, exact(k) is used.
template <typename Factor, typename Quotient, typename Exact>
__device__ __forceinline__ std::uint32_t pack_certain(const Factor (&low)[4], const Factor (&high)[4],
                                                      Quotient quotient, Exact exact) {
  std::uint32_t result = pack_each([&](int k) { return quotient(k, low[k]); });
  if (result != pack_each([&](int k) { return quotient(k, high[k]); })) result = pack_each(exact);
  return result;
}
/// Factors whose distance from 1 exceeds the error of approximate factors.
constexpr float less = 1 - 0x1p-20f, more = 1 + 0x1p-20f;

/// For each operation:
///   set(): sets the number of samples of a whole window;
///   added: the number by which the sums were increased; four(): the results of four whole windows; cut(): the results
///   of four windows of `counts` samples; `per_count`: about 1 / counts.
/// `wide`: sums may reach 2^23.
template <Operation operation, bool wide>
struct WindowResults;

/// An odd count has no halves to round. (S + 2^23) as an integer has the bits of a float, and the product with the
/// nearest float of 1 / count is wrong by less than the distance to a half, 1 / (2 · count), if 255 · count is below
/// 2^23: otherwise `wide`.
template <>
struct WindowResults<Operation::box_mean, false> {
  static constexpr int added = 0x4b000000;
  float per_whole;

  __device__ __forceinline__ void set(int count, double) { per_whole = __frcp_rn(float(count)); }
  __device__ __forceinline__ std::uint32_t four(const int* sums, const std::uint32_t*) const {
    return pack_each([&](int k) { return quotient(sums[k], per_whole); });
  }
  __device__ __forceinline__ std::uint32_t cut(const int* sums, const std::uint32_t*, const int (&counts)[4],
                                               const float (&per_count)[4]) const {
    const float low[4] = {per_count[0] * less, per_count[1] * less, per_count[2] * less, per_count[3] * less};
    const float high[4] = {per_count[0] * more, per_count[1] * more, per_count[2] * more, per_count[3] * more};
    return pack_certain(
        low, high, [&](int k, float factor) { return quotient(sums[k], factor); },
        [&](int k) { return mean(sums[k] - added, counts[k], per_count[k]); });
  }
  static __device__ __forceinline__ std::uint32_t quotient(int sum, float factor) {
    return __float_as_uint(fmaf(__int_as_float(sum) - 0x1p23f, factor, 0x1.8p23f));
  }
};

template <>
struct WindowResults<Operation::box_mean, true> {
  int added;
  Divider divider;

  __device__ __forceinline__ void set(int count, double) {
    divider.set(count);
    added = divider.half;
  }
  __device__ __forceinline__ std::uint32_t four(const int* sums, const std::uint32_t*) const {
    std::uint32_t v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) v[k] = __umulhi(sums[k], divider.factor);
    return __byte_perm(__byte_perm(v[0], v[1], divider.select), __byte_perm(v[2], v[3], divider.select), 0x5410);
  }
  __device__ __forceinline__ std::uint32_t cut(const int* sums, const std::uint32_t*, const int (&counts)[4],
                                               const float (&per_count)[4]) const {
    return pack_each([&](int k) { return mean(sums[k] - added, counts[k], per_count[k]); });
  }
};

/// The least sample p with p · count ≥ sum · factor, where the right side is a float64: the quotient, rounded up.
__device__ __forceinline__ std::uint32_t least_white(int sum, double factor, int count, float per_count) {
  const double least = __dmul_rn(double(sum), factor), n = count;
  int quotient = __float2int_ru(float(least) * per_count);
  if (double(quotient) * n < least) ++quotient;
  if (double(quotient - 1) * n >= least) --quotient;
  return quotient;
}

template <>
struct WindowResults<Operation::threshold, false> {
  static constexpr int added = 0x4b000000;
  double factor;
  int count_whole;
  float low, high;

  __device__ __forceinline__ void set(int count, double share) {
    factor = share;
    count_whole = count;
    low = __double2float_rd(share / count * (1 - 0x1p-50));
    high = __double2float_ru(share / count * (1 + 0x1p-50));
  }
  __device__ __forceinline__ std::uint32_t four(const int* sums, const std::uint32_t*) const {
    const float lows[4] = {low, low, low, low}, highs[4] = {high, high, high, high};
    return pack_certain(
        lows, highs, [&](int k, float by) { return quotient(sums[k], by); },
        [&](int k) { return least_white(sums[k] - added, factor, count_whole, reciprocal(count_whole)); });
  }
  __device__ __forceinline__ std::uint32_t cut(const int* sums, const std::uint32_t*, const int (&counts)[4],
                                               const float (&per_count)[4]) const {
    const float less_share = float(factor) * less, more_share = float(factor) * more;
    const float lows[4] = {per_count[0] * less_share, per_count[1] * less_share, per_count[2] * less_share,
                           per_count[3] * less_share};
    const float highs[4] = {per_count[0] * more_share, per_count[1] * more_share, per_count[2] * more_share,
                            per_count[3] * more_share};
    return pack_certain(
        lows, highs, [&](int k, float by) { return quotient(sums[k], by); },
        [&](int k) { return least_white(sums[k] - added, factor, counts[k], per_count[k]); });
  }
  static __device__ __forceinline__ std::uint32_t quotient(int sum, float by) {
    return __float_as_uint(__fmaf_ru(__int_as_float(sum) - 0x1p23f, by, 0x1p23f));
  }
};

template <>
struct WindowResults<Operation::threshold, true> {
  static constexpr int added = 0;
  double factor;
  int count_whole;
  std::uint32_t low, high;  ///< factor / count, scaled so that a byte of the high word of a product is the quotient
  std::uint64_t up;
  int select;

  __device__ __forceinline__ void set(int count, double share) {
    factor = share;
    count_whole = count;
    const int byte = count < 1 << 12 ? 0 : count < 1 << 16 ? 1 : 2;
    const double power = double(std::uint64_t(1) << (32 + 8 * byte));
    low = std::uint32_t(fmin(fmax(power * share / count - 1, 0.0), 0x1p32 - 4));
    high = low + 3;
    up = (std::uint64_t(1) << (32 + 8 * byte)) - 1;
    select = 0x40 + byte * 0x11;
  }
  __device__ __forceinline__ std::uint32_t four(const int* sums, const std::uint32_t*) const {
    std::uint32_t a[4], b[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      a[k] = std::uint32_t((std::uint64_t(std::uint32_t(sums[k])) * low + up) >> 32);
      b[k] = std::uint32_t((std::uint64_t(std::uint32_t(sums[k])) * high + up) >> 32);
    }
    const auto bytes = [&](const std::uint32_t(&v)[4]) {
      return __byte_perm(__byte_perm(v[0], v[1], select), __byte_perm(v[2], v[3], select), 0x5410);
    };
    std::uint32_t result = bytes(a);
    if (result != bytes(b)) {
#pragma unroll
      for (int k = 0; k < 4; ++k) a[k] = least_white(sums[k], factor, count_whole, reciprocal(count_whole));
      result = pack(a[0], a[1], a[2], a[3]);
    }
    return result;
  }
  __device__ __forceinline__ std::uint32_t cut(const int* sums, const std::uint32_t*, const int (&counts)[4],
                                               const float (&per_count)[4]) const {
    return pack_each([&](int k) { return least_white(sums[k], factor, counts[k], per_count[k]); });
  }
};

template <bool wide>
struct WindowResults<Operation::deviation, wide> {
  static constexpr int added = 0;
  int count_whole;
  float per_whole;

  __device__ __forceinline__ void set(int count, double) {
    count_whole = count;
    per_whole = reciprocal(count);
  }
  __device__ __forceinline__ std::uint32_t four(const int* sums, const std::uint32_t* squares) const {
    float farthest = 0;
    std::uint32_t v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float result = approximate_deviation(spread(sums[k], squares[k], count_whole), per_whole),
                  shifted = result + 0x1.8p23f;  // rounds half to even; the low byte is the integer
      farthest = fmaxf(farthest, fabsf(result - (shifted - 0x1.8p23f)));
      v[k] = __float_as_uint(shifted);
    }
    if (farthest > 0.4999f) {
#pragma unroll
      for (int k = 0; k < 4; ++k) v[k] = one(sums[k], squares[k], count_whole, per_whole);
    }
    return pack(v[0], v[1], v[2], v[3]);
  }
  __device__ __forceinline__ std::uint32_t cut(const int* sums, const std::uint32_t* squares, const int (&counts)[4],
                                               const float (&per_count)[4]) const {
    return pack_each([&](int k) { return one(sums[k], squares[k], counts[k], per_count[k]); });
  }
  static __device__ __forceinline__ std::uint32_t one(int sum, std::uint32_t square, int count, float per_count) {
    const std::uint64_t exact = spread(sum, square, count);
    const float result = approximate_deviation(exact, per_count), shifted = result + 0x1.8p23f;
    return fabsf(result - (shifted - 0x1.8p23f)) > 0.4999f ? rounded_deviation(exact, count, result)
                                                           : __float_as_int(shifted);
  }
};

/// Each byte is 0xff if the byte of a is at least the byte of b, otherwise 0.
__device__ __forceinline__ std::uint32_t at_least(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t high = 0x80808080, difference = (a | high) - (b & ~high);  // of 7 bits; bit 7: not negative
  const std::uint32_t greater = (a & ~b) | (~(a ^ b) & difference);
  std::uint32_t mask;
  asm("prmt.b32 %0, %1, 0, 0xba98;" : "=r"(mask) : "r"(greater));
  return mask;
}

}  // namespace cudavision::local
