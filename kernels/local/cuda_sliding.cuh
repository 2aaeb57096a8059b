// SPDX-License-Identifier: LGPL-2.1-or-later
// Sums of windows that slide along a row of 32-bit column sums in shared memory. See cuda_lines_kernel.cuh.
//
//   sum(x) = sum(x − 1) + column[x + r] − column[x − r − 1]
//
// A lane has N adjacent samples. It reads both ends of their windows in quads of 16 bytes. `shift` is the position of
// the first right end within its quad. It follows from the radius, so the compiler knows the register of each sample.
//
// Quad q of a row is stored at swizzled(q), so that the lanes of a warp, which read every second quad, use all banks.
#pragma once

#include <cstdint>

namespace cudavision::local {

__device__ __forceinline__ uint4 load_shared(std::uint32_t address) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}
__device__ __forceinline__ void store_shared(std::uint32_t address, uint4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

/// Column sums in shared memory: rows of quads, each row followed by a quad of zeros.
template <int N>
struct ColumnRow {
  static constexpr int quads_of_chunk = N / 4;
  static_assert(quads_of_chunk == 2);

  std::uint32_t address;  ///< address of the row
  int quads;              ///< quads of the row

  __device__ __forceinline__ static int swizzled(int q) { return q ^ (q >> 3 & 1); }
  /// The address of quad q, or of a quad of zeros if the row has no such quad.
  __device__ __forceinline__ std::uint32_t at(int q) const {
    return address + 16 * (unsigned(q) < unsigned(quads) ? swizzled(q) : quads);
  }
  __device__ __forceinline__ std::uint32_t inside(int q) const { return address + 16 * swizzled(q); }

  /// The column sum of sample s.
  __device__ __forceinline__ std::uint32_t sample(int s) const {
    std::uint32_t value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(inside(s / 4) + s % 4 * 4) : "memory");
    return value;
  }
};

/// sums[j]: the window sums of N samples, minus the window sum of the sample before the first sample.
template <int N, int shift, typename Sum>
__device__ __forceinline__ void slide(const std::uint32_t (&right)[N / 4 + 1], const std::uint32_t (&left)[N / 4 + 1],
                                      Sum (&sums)[N]) {
  constexpr int left_shift = 3 - shift, quads = N / 4;
  Sum run = 0;
  uint4 r = load_shared(right[0]), l = load_shared(left[0]);
#pragma unroll
  for (int q = 0; q < quads; ++q) {
    uint4 next_r = r, next_l = l;
    if (shift != 0 || q + 1 < quads) next_r = load_shared(right[q + 1]);
    if (left_shift != 0 || q + 1 < quads) next_l = load_shared(left[q + 1]);
    const std::uint32_t rights[8] = {r.x, r.y, r.z, r.w, next_r.x, next_r.y, next_r.z, next_r.w};
    const std::uint32_t lefts[8] = {l.x, l.y, l.z, l.w, next_l.x, next_l.y, next_l.z, next_l.w};
#pragma unroll
    for (int k = 0; k < 4; ++k) sums[q * 4 + k] = run += Sum(rights[shift + k]) - lefts[left_shift + k];
    r = next_r, l = next_l;
  }
}

/// Computes the window sums of the chunks of a warp, which are consecutive along the row. Sum: an unsigned type that
/// can hold the sums.
template <int N, typename Sum>
class Slider {
 public:
  /// Starts with chunk `chunk` for lane 0. `radius`: in pixels.
  __device__ __forceinline__ Slider(const ColumnRow<N>& row, int radius, int chunk, int lane)
      : row_(row), radius_(radius), lane_(lane) {
    // The window of the pixel before the first pixel.
    const int before = chunk * N - 1, end = min(before + radius + 1, row.quads * 4);
    for (int x = max(before - radius, 0) + lane; x < end; x += 32) sum_ += row.sample(x);
    sum_ = cuda::warp_sum(sum_);
  }

  /// The window sums of the lane's chunk. `chunk`: the chunk of lane 0, 32 more than in the previous call.
  __device__ __forceinline__ void next(int chunk, Sum (&sums)[N]) {
    constexpr int chunk_quads = ColumnRow<N>::quads_of_chunk, count = chunk_quads + 1;
    const int r = chunk_quads * chunk + radius_ / 4, l = chunk_quads * chunk - (radius_ + 4) / 4;  // quads of lane 0
    std::uint32_t right[count], left[count];
    if (l >= 0 && r + chunk_quads * 32 < row_.quads) {
#pragma unroll
      for (int k = 0; k < count; ++k)
        right[k] = row_.inside(r + chunk_quads * lane_ + k), left[k] = row_.inside(l + chunk_quads * lane_ + k);
    } else {
#pragma unroll
      for (int k = 0; k < count; ++k)
        right[k] = row_.at(r + chunk_quads * lane_ + k), left[k] = row_.at(l + chunk_quads * lane_ + k);
    }
    switch (radius_ % 4) {
      case 0:
        slide<N, 0>(right, left, sums);
        break;
      case 1:
        slide<N, 1>(right, left, sums);
        break;
      case 2:
        slide<N, 2>(right, left, sums);
        break;
      default:
        slide<N, 3>(right, left, sums);
    }
    const Sum own_sum = sums[N - 1];
    Sum scan[1] = {own_sum};
    cuda::warp_scan(scan, lane_);
    const Sum before = sum_ + scan[0] - own_sum;
    sum_ += __shfl_sync(~0u, scan[0], 31);
#pragma unroll
    for (int j = 0; j < N; ++j) sums[j] += before;
  }

 private:
  const ColumnRow<N> row_;
  const int radius_, lane_;
  Sum sum_ = 0;  ///< sum of the window before the next chunk of lane 0
};

}  // namespace cudavision::local
