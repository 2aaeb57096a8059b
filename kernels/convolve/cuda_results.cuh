// SPDX-License-Identifier: LGPL-2.1-or-later
// Converts sums to stored samples, for cuda_small.cu and cuda_tile.cu. Results of the matrix units are stored by
// StripSums::step() and cuda_units.cuh (strips), and by store() in cuda_matrix_tile.cu, which uses to_sample().
#pragma once

#include "kernels/convolve/cuda_params.cuh"

namespace cudavision::convolve {

__device__ __forceinline__ float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double multiply_add(double a, double b, double c) { return fma(a, b, c); }

/// The nearest sample value, rounded half to even, saturated. T: the type of the stored word.
template <typename T>
__device__ __forceinline__ std::uint32_t to_sample(float value, int max_value) {
  std::uint32_t sample;
  if constexpr (sizeof(T) == 1) {
    asm("cvt.rni.sat.u8.f32 %0, %1;" : "=r"(sample) : "f"(value));
    return sample;
  } else {
    asm("cvt.rni.sat.u32.f32 %0, %1;" : "=r"(sample) : "f"(value));
    return min(sample, std::uint32_t(max_value));
  }
}
template <typename T>
__device__ __forceinline__ std::uint32_t to_sample(double value, int max_value) {
  return std::uint32_t(__double2int_rn(fmin(fmax(value, 0.0), double(max_value))));
}

/// The samples for N sums of channel c. Without `absolute`, `before` already includes `after`.
template <typename T, int N, typename Acc>
__device__ __forceinline__ void finish(const SetJob<Acc>& job, int c, const Acc (&sums)[N],
                                       std::uint32_t (&samples)[N]) {
  Acc values[N];
#pragma unroll
  for (int j = 0; j < N; ++j) values[j] = multiply_add(sums[j], job.scale, job.before[c]);
  if (job.absolute) {
#pragma unroll
    for (int j = 0; j < N; ++j) values[j] = fabs(values[j]) + job.after[c];
  }
#pragma unroll
  for (int j = 0; j < N; ++j) samples[j] = to_sample<T>(values[j], job.view.max_value);
}

/// Writes the quad at (x, y). Border::fill and Border::copy: replaces pixels whose window leaves the frame.
template <typename T, int C, typename Acc>
__device__ __forceinline__ void store_result(const SetJob<Acc>& job, int x, int y, Quad<T, C> quad) {
  const SetView& view = job.view;
  const Rect& whole = job.whole;
  if (x < whole.x || x + 4 > whole.x + whole.width || y < whole.y || y >= whole.y + whole.height) {
    if (y < view.y0 || y >= view.y1) return;
    Quad<T, C> other{};
    if (view.border == Border::copy) other = cuda::load_quad<T, C>(view, x, y);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (y >= whole.y && y < whole.y + whole.height && x + j >= whole.x && x + j < whole.x + whole.width) continue;
      constexpr int per_word = 4 / sizeof(T);
      const int bit = j % per_word * 8 * int(sizeof(T));
      const std::uint32_t mask = ((1u << 8 * (sizeof(T) % 4)) - 1) << bit;
#pragma unroll
      for (int c = 0; c < C; ++c) {
        const std::uint32_t value =
            view.border == Border::copy ? other.word[c][j / per_word] : std::uint32_t(view.border_value[c]) << bit;
        quad.word[c][j / per_word] = (quad.word[c][j / per_word] & ~mask) | (value & mask);
      }
    }
  }
  cuda::store_quad<T, C>(view, x, y, quad);
}

}  // namespace cudavision::convolve
