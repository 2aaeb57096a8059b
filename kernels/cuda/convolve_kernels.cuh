// SPDX-License-Identifier: LGPL-2.1-or-later
// What the kernels of the convolution share: their parameters, and how sums become samples.
#pragma once

#include <cstdint>

#include "../convolve.hpp"
#include "convolve_tuning.hpp"
#include "pixels.cuh"

namespace cudavision::cuda::convolve {

/// One channel set, cut into tiles of one block each.
template <typename Acc>
struct Job {
  SetView view;
  int first_block = 0, tiles_x = 1;     ///< its blocks count row by row from first_block
  Rect whole;                           ///< pixels outside become the border value or keep the input (Border::fill, copy)
  bool src_wide = false, dst_wide = false;  ///< planes are aligned for the widest access of a strip
  std::uint32_t border_words[8] = {};   ///< a quad of border values as it is stored
  Acc before[4] = {}, after[4] = {};    ///< by channel, see finish
};

/// Parameters of a kernel. Weights are by value: two streams never share them.
template <typename Acc, int Count>
struct Params {
  Job<Acc> jobs[3];
  int width = 1, height = 1;      ///< of the kernel
  int anchor_x = 0, anchor_y = 0;
  int stride = 0;                 ///< of rows of weights
  bool absolute = false;
  Acc scale = 1;
  alignas(16) Acc weights[Count] = {};  ///< row-major; or the row, then at `column_at` the column; or two kernels (gradient)
};

inline constexpr int padded_side = (convolve_max_side + 3) / 4 * 4;
inline constexpr int column_at = padded_side;
/// Weights of the unrolled kernels (two of 7 × 7), of the two-pass ones, and of the direct ones in float32 and float64. Rows are
/// padded to whole quads but in float64: kernel parameters end at 32764 bytes.
using SmallParams = Params<float, 2 * (2 * small_reach + 1) * (2 * small_reach + 1)>;
template <typename Acc>
using TwoPassParams = Params<Acc, 2 * padded_side>;
template <typename Acc>
using DirectParams = Params<Acc, convolve_max_side * (sizeof(Acc) == 4 ? padded_side : convolve_max_side)>;
static_assert(sizeof(DirectParams<double>) <= 32764 && sizeof(DirectParams<float>) <= 32764);

enum class Small { direct, two_pass, gradient };

struct SmallKernel {
  const void* function;  ///< takes SmallParams
  int rows[2];           ///< of results a thread computes, for the first set and for the others
};
/// The unrolled kernel of side × side (3, 5 or 7) weights for a format.
SmallKernel small_kernel(const FormatInfo& format, int side, Small kind);

/// The kernel of any size: takes DirectParams or TwoPassParams of the accumulator's type.
const void* tile_kernel(const FormatInfo& format, bool two_pass, bool wide);

/// Floats from row to row of a tile: its windows, and as many more as four weights at a time may read past them.
CUDAVISION_HOST_DEVICE constexpr int tile_pitch(int kernel_width) { return tile_width + (kernel_width + 3) / 4 * 4; }
/// Shared memory of a block of `warps` warps.
constexpr std::size_t tile_bytes(int warps, int rows_each, int kernel_width, int kernel_height, bool two_pass, std::size_t sum_bytes) {
  const std::size_t rows = warps * rows_each + kernel_height - 1;
  return rows * (tile_pitch(kernel_width) * sizeof(float) + (two_pass ? tile_width * sum_bytes : 0));
}

/// Pixels a thread of the unrolled kernels computes across.
constexpr int strip_pixels(int channels, int sample_bytes) { return channels * sample_bytes == 1 ? 8 : 4; }
/// Alignment of planes that lets a strip be accessed as few words.
constexpr int strip_alignment(int channels, int sample_bytes) {
  return channels * sample_bytes == 1 ? 8 : quad_alignment(channels, sample_bytes);
}

#ifdef __CUDACC__

__device__ __forceinline__ float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double multiply_add(double a, double b, double c) { return fma(a, b, c); }

/// The scaled sum to the nearest sample value, half to even. Without `absolute` the host has added `after` to `before`.
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

/// Samples of N sums of one channel.
template <typename T, int N, typename Acc, int Count>
__device__ __forceinline__ void finish(const Params<Acc, Count>& p, const Job<Acc>& job, int c, const Acc (&sums)[N], std::uint32_t (&samples)[N]) {
  Acc values[N];
#pragma unroll
  for (int j = 0; j < N; ++j) values[j] = multiply_add(sums[j], p.scale, job.before[c]);
  if (p.absolute) {
#pragma unroll
    for (int j = 0; j < N; ++j) values[j] = fabs(values[j]) + job.after[c];
  }
#pragma unroll
  for (int j = 0; j < N; ++j) samples[j] = to_sample<T>(values[j], job.view.max_value);
}

/// Writes a quad, with the pixels whose window leaves the frame replaced where the border asks for it.
template <typename T, int C, typename Acc>
__device__ __forceinline__ void store_result(const Job<Acc>& job, int x, int y, Quad<T, C> quad) {
  const SetView& view = job.view;
  const Rect& whole = job.whole;
  if (x < whole.x || x + 4 > whole.x + whole.width || y < whole.y || y >= whole.y + whole.height) {
    if (y < view.y0 || y >= view.y1) return;
    Quad<T, C> other{};
    if (view.border == Border::copy) other = load_quad<T, C>(view, x, y);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (y >= whole.y && y < whole.y + whole.height && x + j >= whole.x && x + j < whole.x + whole.width) continue;
      constexpr int per_word = 4 / sizeof(T);
      const int bit = j % per_word * 8 * int(sizeof(T));
      const std::uint32_t mask = ((1u << 8 * (sizeof(T) % 4)) - 1) << bit;
#pragma unroll
      for (int c = 0; c < C; ++c) {
        const std::uint32_t value = view.border == Border::copy ? other.word[c][j / per_word] : std::uint32_t(view.border_value[c]) << bit;
        quad.word[c][j / per_word] = (quad.word[c][j / per_word] & ~mask) | (value & mask);
      }
    }
  }
  store_quad<T, C>(view, x, y, quad);
}

#endif  // __CUDACC__

}  // namespace cudavision::cuda::convolve
