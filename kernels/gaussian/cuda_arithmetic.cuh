// SPDX-License-Identifier: LGPL-2.1-or-later
// The arithmetic of a sample type: how products of bytes add up to sums. The integer matrix units multiply only bytes.
//
//   8 bit:  a row sum has 16 bits and is split into two bytes; a result takes two products down, one for each byte.
//   16 bit: samples and weights have two bytes each. The low and the high bytes of samples are separate planes, so
//           a row sum takes four products across (low · low, low · high and high · low in one sum, high · high); it is
//           exact in 32 bits and is split into four bytes. A result takes eight products down (two bytes of a weight
//           times four of a row sum). Products of the same power of 256 are summed.
//
// Lane 4g + t of a warp holds four elements of a product's result. Their (row, column) are (g, 2t), (g, 2t + 1), (g +
// 8, 2t) and (g + 8, 2t + 1). In the product across, rows are samples and columns are rows of the
// picture. In the product down, rows are rows of the picture and columns are samples.
//
// Samples are bytes or 16-bit words. cuda.cpp lists what another type would need.
//
// The identity is an axis that is not blurred. It would need the weight 1 (8 bit: 2⁸, 16 bit: 2¹⁶), which has one bit
// more than a weight can hold. A smaller weight is used instead, so the sums are smaller, and the selectors take other
// bytes of them:
//
//             weight across   row sum     weight down   result
//   8 bit     1, not 2⁸       byte 0      1, not 2⁸     byte 1, not 2
//   16 bit    1, not 2¹⁶      bytes 0, 1  2⁸, not 2¹⁶   bytes 0 and 1, not 1 and 2, of the sum divided by 2²⁴
#pragma once

#include <cstdint>

#include "kernels/gaussian/plan.hpp"

namespace cudavision::gaussian {

using std::uint16_t;
using std::uint32_t;
using std::uint8_t;

/// The weights of one axis by distance from the middle, in units of 2^−fraction_bits (see Axis).
struct AxisWeights {
  int radius;
  uint16_t weights[max_taps / 2 + 1];
};

/// Numbers for the arithmetic of a sample type.
struct SampleRules {
  uint32_t mask;  ///< 16 bit: bits of the samples in a stored word (two samples)
  uint32_t most;  ///< 16 bit: the largest samples of a stored word; ~0: no word exceeds them once `mask` is applied
  uint32_t out;   ///< __byte_perm selector for results
  uint32_t low, high;  ///< 16 bit: __byte_perm selectors for the lower and the upper bytes of two row sums
  uint32_t rounding;   ///< half a unit of the result: the initial value of one of the sums down
};

inline AxisWeights weights_of(const Axis& axis, int identity) {
  AxisWeights found{};
  found.radius = axis.radius();
  for (int i = 0; i <= found.radius; ++i) found.weights[i] = uint16_t(axis.weights[found.radius + i]);
  if (axis.is_identity()) found.weights[0] = uint16_t(identity);
  return found;
}
inline AxisWeights weights_across(const Axis& axis) { return weights_of(axis, 1); }
inline AxisWeights weights_down(const Axis& axis, int sample_bytes) {
  return weights_of(axis, sample_bytes == 1 ? 1 : 1 << 8);
}
/// 8 bit: the __byte_perm selector that packs two sums across into 16-bit row sums.
inline uint32_t pack_rule(const Axis& across) { return across.is_identity() ? 0x4302 : 0x5410; }
inline SampleRules sample_rules(const FormatInfo& format, const Axis& across, const Axis& down) {
  const bool bytes = format.sample_bytes() == 1, copies_x = across.is_identity(), copies_y = down.is_identity();
  SampleRules rules;
  rules.mask = bytes ? ~0u : ((0xffffu << format.shift) & 0xffffu) * 0x10001u;
  rules.most = (uint32_t(format.max_value()) << format.shift) * 0x10001u;
  if (bytes || rules.most == rules.mask) rules.most = ~0u;
  rules.out = bytes ? (copies_y ? 0x51 : 0x62) : (copies_y ? 0x5410 : 0x6521);
  // For a sum that is a sample, the upper bytes are 0, and become the lower bytes.
  rules.low = copies_x ? 0x7362 : 0x5140;
  rules.high = copies_x ? 0x5140 : 0x7362;
  rules.rounding = 1u << ((bytes ? 0 : format.shift) + (copies_y ? 7 : 15));
  return rules;
}

#ifdef __CUDACC__

/// For each sample type:
///   bytes:   bytes of a sample and of a weight;
///   planes:  byte planes of a row sum;
///   across, sums: how many sums make a row sum and a result: one for each power of 256, which is the byte's index in
///   the sample or row sum plus the byte's index in the weight;
///   tiles:   how many tiles of 8 samples share a result word;
///   sample(m): the sample of a block that row m of the product across computes;
///   rounded: which sum of a result begins with rules.rounding;
///   split(): splits the row sums of rows 2t, 2t + 1 (`top`), 2t + 8, 2t + 9 (`bottom`) of a group into byte planes;
///   finish(): the result words of rows g (`upper`) and g + 8 (`lower`).
template <typename T>
struct Arithmetic;

template <>
struct Arithmetic<uint8_t> {
  static constexpr int bytes = 1, planes = 2, across = 1, sums = 2, tiles = 2, rounded = 0;

  /// This order makes the samples of a lane adjacent.
  __device__ static int sample(int m) { return (m & 7) / 2 * 4 + (m & 1) + m / 8 * 2; }

  __device__ static void split(const SampleRules&, uint32_t pack, const int (&top)[1][4], const int (&bottom)[1][4],
                               int half, uint32_t* words) {
    const uint32_t a = __byte_perm(top[0][2 * half], top[0][2 * half + 1], pack);
    const uint32_t b = __byte_perm(bottom[0][2 * half], bottom[0][2 * half + 1], pack);
    words[0] = __byte_perm(a, b, 0x6420);
    words[1] = __byte_perm(a, b, 0x7531);
  }

  __device__ static void finish(const SampleRules& rules, const int (&sum)[2][2][4], uint32_t& upper, uint32_t& lower) {
    uint32_t pair[2][2];
#pragma unroll
    for (int tile = 0; tile < 2; ++tile)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        pair[i][tile] = __byte_perm(sum[tile][1][2 * i] * 256 + sum[tile][0][2 * i],
                                    sum[tile][1][2 * i + 1] * 256 + sum[tile][0][2 * i + 1], rules.out);
    upper = __byte_perm(pair[0][0], pair[0][1], 0x5410);
    lower = __byte_perm(pair[1][0], pair[1][1], 0x5410);
  }
};

template <>
struct Arithmetic<uint16_t> {
  static constexpr int bytes = 2, planes = 4, across = 3, sums = 5, tiles = 1, rounded = 2;

  __device__ static int sample(int m) { return m; }

  /// Clears the bits of stored words that are not part of a sample, and limits samples to the largest sample value.
  template <int N>
  __device__ static void clamp(const SampleRules& rules, uint32_t (&words)[N]) {
    if (rules.mask != ~0u) {
#pragma unroll
      for (uint32_t& word : words) word &= rules.mask;
    }
    if (rules.most != ~0u) {
#pragma unroll
      for (uint32_t& word : words) word = __vminu2(word, rules.most);
    }
  }

  /// The exact row sum, from the low · low, mixed and high · high products.
  __device__ static uint32_t row_sum(const int (&sum)[3][4], int i) {
    return sum[2][i] * 65536u + (sum[1][i] * 256u + sum[0][i]);
  }

  __device__ static void split(const SampleRules& rules, uint32_t, const int (&top)[3][4], const int (&bottom)[3][4],
                               int half, uint32_t* words) {
    const uint32_t a = row_sum(top, 2 * half), b = row_sum(top, 2 * half + 1);
    const uint32_t c = row_sum(bottom, 2 * half), d = row_sum(bottom, 2 * half + 1);
    const uint32_t ab = __byte_perm(a, b, rules.low), cd = __byte_perm(c, d, rules.low);
    words[0] = __byte_perm(ab, cd, 0x5410);
    words[1] = __byte_perm(ab, cd, 0x7632);
    const uint32_t ab_high = __byte_perm(a, b, rules.high), cd_high = __byte_perm(c, d, rules.high);
    words[2] = __byte_perm(ab_high, cd_high, 0x5410);
    words[3] = __byte_perm(ab_high, cd_high, 0x7632);
  }

  __device__ static void finish(const SampleRules& rules, const int (&sum)[1][5][4], uint32_t& upper, uint32_t& lower) {
    uint32_t value[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      uint32_t carry = sum[0][0][i];
      carry = sum[0][1][i] + (carry >> 8);
      carry = sum[0][2][i] + (carry >> 8);
      carry = sum[0][3][i] + (carry >> 8);
      value[i] = sum[0][4][i] * 256u + carry;  // the sum divided by 2²⁴
    }
    upper = __byte_perm(value[0], value[1], rules.out) & rules.mask;
    lower = __byte_perm(value[2], value[3], rules.out) & rules.mask;
  }
};

#endif

}  // namespace cudavision::gaussian
