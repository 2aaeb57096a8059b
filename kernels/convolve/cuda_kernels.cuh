// SPDX-License-Identifier: LGPL-2.1-or-later
// What the kernels of the convolution share: their parameters, and how sums become samples.
#pragma once

#include <cstdint>

#include "kernels/convolve/convolve.hpp"
#include "kernels/convolve/cuda_tuning.hpp"
#include "kernels/cuda/rows.cuh"

namespace cudavision::cuda::convolve {

/// One channel set, cut into tiles of one block each.
template <typename Acc>
struct Job {
  SetView view;
  int first_block = 0;
  Rect whole;                         ///< pixels outside become the border value or keep the input (Border::fill, copy)
  Acc scale = 1;                      ///< of sums; 0 makes a gradient's chroma neutral
  Acc before[4] = {}, after[4] = {};  ///< by channel, see finish
  bool absolute = false;
};

/// For the unrolled kernels: tiles of 32 quads across and small_warps · small_rows rows, row by row.
struct SmallJob : Job<float> {
  int tiles_x = 1;
  std::uint32_t border_words[8] = {};  ///< a quad of border values as it is stored
};
/// For the tiled ones: tiles, row by row.
template <typename Acc>
struct TileJob : Job<Acc> {
  int tiles_x = 1;
};

/// Parameters of a kernel. Weights are by value: two streams never share them.
template <typename AnyJob, typename Acc, int Count>
struct Params {
  AnyJob jobs[3];
  int width = 1, height = 1;  ///< of the kernel
  int anchor_x = 0, anchor_y = 0;
  int stride = 0;  ///< of rows of weights
  using Sum = Acc;
  alignas(16) Acc weights[Count] = {};  ///< row-major; or the row, then at `column_at` the column; or two kernels (gradient)
};

inline constexpr int padded_side = (convolve_max_side + 3) / 4 * 4;
inline constexpr int column_at = padded_side;
/// Weights of the unrolled kernels (two of 7 × 7), of the two-pass ones, and of the direct ones in float32 and float64. Rows are
/// padded to whole quads but in float64: kernel parameters end at 32764 bytes.
using SmallParams = Params<SmallJob, float, 2 * (2 * small_reach + 1) * (2 * small_reach + 1)>;
template <typename Acc>
using TwoPassParams = Params<TileJob<Acc>, Acc, 2 * padded_side>;
template <typename Acc>
using DirectParams = Params<TileJob<Acc>, Acc, convolve_max_side*(sizeof(Acc) == 4 ? padded_side : convolve_max_side)>;
static_assert(sizeof(DirectParams<double>) <= 32764 && sizeof(DirectParams<float>) <= 32764);

enum class Small { direct, two_pass, gradient };

/// The unrolled kernel of side × side (3, 5 or 7) weights for a format of 16-bit samples, which takes SmallParams; nullptr: there
/// is none.
const void* small_kernel(const FormatInfo& format, int side, Small kind);

/// The kernel of any size: takes DirectParams or TwoPassParams of the accumulator's type. nullptr: the matrix units do it.
const void* tile_kernel(const FormatInfo& format, bool two_pass, bool wide);

/// Floats from row to row of a tile: its windows, and as many more as four weights at a time may read past them.
CUDAVISION_HOST_DEVICE constexpr int tile_pitch(int kernel_width) { return tile_width + (kernel_width + 3) / 4 * 4; }
/// Shared memory of a block of `warps` warps: the tile, the row results of two passes, and where each row comes from.
constexpr std::size_t tile_bytes(int warps, int rows_each, int kernel_width, int kernel_height, bool two_pass,
                                 std::size_t sum_bytes) {
  const std::size_t rows = warps * rows_each + kernel_height - 1;
  return rows * (tile_pitch(kernel_width) * sizeof(float) + (two_pass ? tile_width * sum_bytes : 0) + sizeof(int));
}

/// How weights are held in half precision: one number each, the sum of two, or two kernels of one number each.
enum class Matrix { single, pair, gradient };

/// For the matrix units: strips of 128 pixels and so many rows for each warp, or tiles.
struct MatrixJob : Job<float> {
  int tiles_x = 1, tiles_y = 1;
  int rows = 1;                        ///< of results of a warp
  bool pair_aligned = false;           ///< of the destination, for two pixels
  std::uint32_t border_words[4] = {};  ///< a quad of border values as it is stored
};

/// Weights are half precision numbers in `weights`, row-major: the larger parts, then the smaller ones. For strips they are laid
/// out as the lanes of a warp hold them, a matrix for each row of weights.
struct MatrixParams {
  MatrixJob jobs[3];
  int width = 1, height = 1, anchor_x = 0, anchor_y = 0;
  union {
    uint2 fragments[2][7][32];
    std::uint16_t weights[2][convolve_max_side * convolve_max_side];
  };
};
static_assert(sizeof(MatrixParams) <= 32764);

/// The kernel of side × side weights that stay in registers; nullptr: there is none. And that of any size. Both take MatrixParams.
const void* matrix_strip_kernel(const FormatInfo& format, int side, Matrix kind);
const void* matrix_tile_kernel(const FormatInfo& format, Matrix kind);

/// Steps of 16 samples that the windows of 8 outputs take.
CUDAVISION_HOST_DEVICE constexpr int matrix_steps(int kernel_width) { return (8 + kernel_width - 1 + 15) / 16; }
/// Quads of samples across a tile. Words from row to row of a tile, and of weights amid zeros.
CUDAVISION_HOST_DEVICE constexpr int matrix_tile_quads(int kernel_width) { return (120 + 16 * matrix_steps(kernel_width)) / 4; }
CUDAVISION_HOST_DEVICE constexpr int matrix_pitch(int kernel_width) { return 56 + 16 * matrix_steps(kernel_width); }
CUDAVISION_HOST_DEVICE constexpr int matrix_weight_row(int kernel_width) { return 8 * matrix_steps(kernel_width) + 5; }
constexpr std::size_t matrix_tile_bytes(int warps, int kernel_width, int kernel_height, int parts) {
  const std::size_t rows = warps * matrix_tile_rows + kernel_height - 1;
  return sizeof(std::uint32_t) *
         (rows * (matrix_pitch(kernel_width) + 1) + 2 * parts * kernel_height * matrix_weight_row(kernel_width));
}

/// Pixels a thread of the unrolled kernels computes across.
inline constexpr int small_pixels = 4;

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
template <typename T, int N, typename P, typename Acc>
__device__ __forceinline__ void finish(const P& p, const Job<Acc>& job, int c, const Acc (&sums)[N], std::uint32_t (&samples)[N]) {
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
        const std::uint32_t value =
            view.border == Border::copy ? other.word[c][j / per_word] : std::uint32_t(view.border_value[c]) << bit;
        quad.word[c][j / per_word] = (quad.word[c][j / per_word] & ~mask) | (value & mask);
      }
    }
  }
  store_quad<T, C>(view, x, y, quad);
}

#endif  // __CUDACC__

}  // namespace cudavision::cuda::convolve
