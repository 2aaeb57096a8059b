// SPDX-License-Identifier: LGPL-2.1-or-later
// Windows that slide along rows of column sums in shared memory, one row for each lane. See cuda_windows.cu.
//
//   sum(x) = sum(x − 1) + column[x + r] − column[x − r − 1]
//
//   quads of a row   │ 0 … 7 │ 8 … 15 │ …   the column sums of 8 samples each
//   right ends       ├ P ─ ─ ┼ ─ ─ ─ P      The window of sample x, a multiple of 8, ends at sum P of a quad. The
//   left ends        ├ ─ Q ─ ┼ ─ ─ Q        previous window begins at sum Q. The compiler knows P and Q from the
//                                           radius, so one instruction reads each sum from a known half of a register.
//
// If samples have C channels, the channels alternate, and each has its own sum.
#pragma once

#include "kernels/local/cuda_window_columns.cuh"

namespace cudavision::local {

/// sum + a · b: a holds two unsigned 16-bit numbers, b two signed 8-bit numbers.
__device__ __forceinline__ int add_halves(std::uint32_t a, std::uint32_t b, int sum) {
  int result;
  asm("dp2a.lo.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
}

/// Two adjacent quads of 16-bit column sums, in the order of WindowColumns::quad().
struct SumPair {
  uint4 first, second;

  /// Adds or subtracts column j, 0 … 15.
  template <bool minus>
  __device__ __forceinline__ void add(int j, int& sum) const {
    const std::uint32_t words[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
    const std::uint32_t one = minus ? 0xff : 1;
    sum = add_halves(words[j / 4 * 2 + j % 2], j / 2 % 2 ? one << 8 : one, sum);
  }
};

/// The window sums of a lane.
template <int C, int P>
struct SumWalk {
  static constexpr int Q = (16 - P - C) % 8;
  const uint4 *right, *left;
  SumPair rights, lefts;
  int sums[2] = {0, 0};  ///< [channel]

  /// Sets the sums for the window before sample `x` of the row, each increased by `added`. `reach`: C · radius.
  __device__ __forceinline__ void begin(const uint4* row, int x, int reach, int added) {
    right = row + (x + reach) / 8;
    left = row + (x - reach - C) / 8;
    rights = {right[0], right[1]}, lefts = {left[0], left[1]};
#pragma unroll 4
    for (const uint4* q = left; q < right; ++q) {
      const uint4 four = *q;
      sums[0] = add_halves(four.x, 0x0101, sums[0]), sums[1] = add_halves(four.y, 0x0101, sums[1]);
      sums[0] = add_halves(four.z, 0x0101, sums[0]), sums[1] = add_halves(four.w, 0x0101, sums[1]);
    }
#pragma unroll
    for (int j = 0; j < P; ++j) rights.add<false>(j, sums[j % 2]);
#pragma unroll
    for (int j = 0; j < Q; ++j) lefts.add<true>(j, sums[j % 2]);
    if (C == 1) sums[0] += sums[1];
    sums[0] += added, sums[1] += added;
  }

  /// The sums for the next 8 samples. Loads the quads of the following 8 samples, which may lie after the end of the
  /// row.
  __device__ __forceinline__ void next(int (&out)[8]) {
    ++right, ++left;
    const uint4 next_right = right[1], next_left = left[1];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      rights.add<false>(P + j, sums[j % C]);
      lefts.add<true>(Q + j, sums[j % C]);
      out[j] = sums[j % C];
    }
    rights = {rights.second, next_right}, lefts = {lefts.second, next_left};
  }
};

/// The sums of squares of a lane, for one channel. `apart`: quads from samples 0 … 3 of a chunk to samples 4 … 7.
template <int P>
struct SquareWalk {
  static constexpr int Q = 7 - P;
  const uint4 *right, *left;
  int apart;
  std::uint32_t rights[16], lefts[16];
  std::uint32_t sum = 0;

  __device__ __forceinline__ void load(const uint4* from, std::uint32_t* to) const {
    const uint4 a = from[0], b = from[apart];
    to[0] = a.x, to[1] = a.y, to[2] = a.z, to[3] = a.w, to[4] = b.x, to[5] = b.y, to[6] = b.z, to[7] = b.w;
  }
  __device__ __forceinline__ void begin(const uint4* row, int x, int reach) {
    right = row + (x + reach) / 8;
    left = row + (x - reach - 1) / 8;
    load(right, rights), load(left, lefts);
#pragma unroll 2
    for (const uint4* q = left; q < right; ++q) {
      std::uint32_t eight[8];
      load(q, eight);
#pragma unroll
      for (int j = 0; j < 8; ++j) sum += eight[j];
    }
#pragma unroll
    for (int j = 0; j < P; ++j) sum += rights[j];
#pragma unroll
    for (int j = 0; j < Q; ++j) sum -= lefts[j];
  }
  __device__ __forceinline__ void next(std::uint32_t (&out)[8]) {
    load(++right, rights + 8), load(++left, lefts + 8);
#pragma unroll
    for (int j = 0; j < 8; ++j) out[j] = sum += rights[P + j] - lefts[Q + j];
#pragma unroll
    for (int j = 0; j < 8; ++j) rights[j] = rights[8 + j], lefts[j] = lefts[8 + j];
  }
};

}  // namespace cudavision::local
