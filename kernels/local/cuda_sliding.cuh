// SPDX-License-Identifier: LGPL-2.1-or-later
// Sums of windows that slide along a row of column sums in shared memory. See cuda_windows.cu.
//
//   sum(x) = sum(x − 1) + column[x + r] − column[x − r − 1]
//
// A lane owns N neighbouring samples. It reads both ends of their windows in quads of 16 bytes. `shift` is the place of the first right end
// within its quad; it follows from the radius, so that the samples are taken from registers that the compiler knows.
//
// Quad q of a row lies at place(q): so the lanes of a warp, which read every second or every fourth quad, use all banks.
#pragma once

#include <cstdint>

namespace cudavision::local {

__device__ __forceinline__ uint4 load_shared(std::uint32_t address) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address) : "memory");
  return v;
}
__device__ __forceinline__ void store_shared(std::uint32_t address, uint4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

/// Column sums of `bits` bits (16 or 32) in shared memory: rows of quads, each row followed by a quad of zeros.
template <int N, int bits>
struct ColumnRow {
  static constexpr int per_quad = 128 / bits, quads_of_chunk = N / per_quad;

  std::uint32_t address;  ///< of the row
  int quads;              ///< of the row

  __device__ __forceinline__ static int place(int q) {
    return quads_of_chunk == 1 ? q : quads_of_chunk == 2 ? q ^ (q >> 3 & 1) : q ^ (q >> 3 & 3);
  }
  /// The address of quad q; of zeros if the row has no such quad.
  __device__ __forceinline__ std::uint32_t at(int q) const {
    return address + 16 * (unsigned(q) < unsigned(quads) ? place(q) : quads);
  }
  __device__ __forceinline__ std::uint32_t inside(int q) const { return address + 16 * place(q); }

  /// The column sum of sample s.
  __device__ __forceinline__ std::uint32_t sample(int s) const {
    const std::uint32_t from = inside(s / per_quad) + s % per_quad * (bits / 8);
    std::uint32_t value;
    if constexpr (bits == 16) {
      std::uint16_t half;
      asm volatile("ld.shared.u16 %0, [%1];" : "=h"(half) : "r"(from) : "memory");
      value = half;
    } else {
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(from) : "memory");
    }
    return value;
  }
};

/// The window sums of N samples, less that of the sample before the first one: sums[j]. `run`: by channel, in the end the last of them.
template <int N, int C, int bits, int shift, typename Sum>
__device__ __forceinline__ void slide(const std::uint32_t (&right)[N * bits / 128 + 1],
                                      const std::uint32_t (&left)[N * bits / 128 + 1], Sum (&run)[C], Sum (&sums)[N]) {
  constexpr int per_quad = 128 / bits, left_shift = (2 * per_quad - C - shift) % per_quad, quads = N / per_quad;
  const auto value = [](const std::uint32_t(&words)[8], int k) {
    if (bits == 32) return words[k];
    return k % 2 ? words[k / 2] >> 16 : words[k / 2] & 0xffff;
  };
  uint4 r = load_shared(right[0]), l = load_shared(left[0]);
#pragma unroll
  for (int q = 0; q < quads; ++q) {
    uint4 next_r = r, next_l = l;
    if (shift != 0 || q + 1 < quads) next_r = load_shared(right[q + 1]);
    if (left_shift != 0 || q + 1 < quads) next_l = load_shared(left[q + 1]);
    const std::uint32_t rights[8] = {r.x, r.y, r.z, r.w, next_r.x, next_r.y, next_r.z, next_r.w};
    const std::uint32_t lefts[8] = {l.x, l.y, l.z, l.w, next_l.x, next_l.y, next_l.z, next_l.w};
#pragma unroll
    for (int k = 0; k < per_quad; ++k) {
      run[k % C] += Sum(value(rights, shift + k)) - value(lefts, left_shift + k);
      sums[q * per_quad + k] = run[k % C];
    }
    r = next_r, l = next_l;
  }
}

/// Computes the window sums of the chunks of a warp, which follow each other along the row. Sum: an unsigned type in which they fit.
template <int N, int C, int bits, typename Sum = std::uint32_t>
class Slider {
 public:
  /// Begins with chunk `chunk`, which is lane 0's. `radius` in pixels.
  __device__ __forceinline__ Slider(const ColumnRow<N, bits>& row, int radius, int chunk, int lane)
      : row_(row), radius_(radius), lane_(lane) {
    // The window of the pixel before the first one.
    const int before = chunk * (N / C) - 1, end = min(before + radius + 1, row.quads * row.per_quad / C);
    for (int x = max(before - radius, 0) + lane; x < end; x += 32) {
#pragma unroll
      for (int c = 0; c < C; ++c) sum_[c] += row.sample(x * C + c);
    }
#pragma unroll
    for (int c = 0; c < C; ++c) sum_[c] = cuda::warp_sum(sum_[c]);
  }

  /// The window sums of the lane's chunk, each increased by `added`. `chunk`: lane 0's, 32 more than in the call before.
  __device__ __forceinline__ void next(int chunk, Sum added, Sum (&sums)[N]) {
    constexpr int own = ColumnRow<N, bits>::quads_of_chunk, count = own + 1, per_quad = ColumnRow<N, bits>::per_quad;
    const int r = own * chunk + C * radius_ / per_quad,
              l = own * chunk - (C * (radius_ + 1) + per_quad - 1) / per_quad;  // of lane 0
    std::uint32_t right[count], left[count];
    if (l >= 0 && r + own * 32 < row_.quads) {
#pragma unroll
      for (int k = 0; k < count; ++k) right[k] = row_.inside(r + own * lane_ + k), left[k] = row_.inside(l + own * lane_ + k);
    } else {
#pragma unroll
      for (int k = 0; k < count; ++k) right[k] = row_.at(r + own * lane_ + k), left[k] = row_.at(l + own * lane_ + k);
    }
    Sum run[C] = {};
    switch (C * radius_ % per_quad) {
      case 0:
        slide<N, C, bits, 0>(right, left, run, sums);
        break;
      case 2:
        slide<N, C, bits, 2>(right, left, run, sums);
        break;
      case 4:
        if constexpr (bits == 16) slide<N, C, bits, 4>(right, left, run, sums);
        break;
      case 6:
        if constexpr (bits == 16) slide<N, C, bits, 6>(right, left, run, sums);
        break;
      case 1:
        if constexpr (C == 1) slide<N, C, bits, 1>(right, left, run, sums);
        break;
      case 3:
        if constexpr (C == 1) slide<N, C, bits, 3>(right, left, run, sums);
        break;
      case 5:
        if constexpr (C == 1 && bits == 16) slide<N, C, bits, 5>(right, left, run, sums);
        break;
      default:
        if constexpr (C == 1 && bits == 16) slide<N, C, bits, 7>(right, left, run, sums);
    }
    Sum scan[C];
#pragma unroll
    for (int c = 0; c < C; ++c) scan[c] = run[c];
    cuda::warp_scan(scan, lane_);
#pragma unroll
    for (int c = 0; c < C; ++c) {
      const Sum before = sum_[c] + scan[c] - run[c] + added;
      sum_[c] += __shfl_sync(~0u, scan[c], 31);
#pragma unroll
      for (int j = c; j < N; j += C) sums[j] += before;
    }
  }

 private:
  const ColumnRow<N, bits> row_;
  const int radius_, lane_;
  Sum sum_[C] = {};  ///< of the window before the next chunk of lane 0
};

}  // namespace cudavision::local
