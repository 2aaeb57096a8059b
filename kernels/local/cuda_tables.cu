// SPDX-License-Identifier: LGPL-2.1-or-later
// Box mean, threshold and deviation on CUDA, from padded summed-area tables, which the plan computes first
// (kernels/integral). These kernels handle windows that neither cuda_windows.cu nor cuda_lines.cu can handle
// (cuda_box.cpp).
//
//   a table of the sums to the left of x and above y:   the sum of a window = D − C − B + A
//        x0        x1
//     y0 A ─────── B         A warp computes 128 pixels of a row: lane l computes pixels l, l + 32, l + 64, l + 96. So
//        │ window  │         adjacent lanes read adjacent entries. The results pass through shared memory. From there
//     y1 C ─────── D         each lane stores four adjacent pixels.
//
//   a block: box_warps rows × 128 pixels; the grid: the rectangle of one channel set; one launch for each set
//
// Where to change what: another operation: `result` in box_filter; another border: Axis of plan.hpp; another sample
// type: the quads of kernels/cuda/rows.cuh; another block shape: cuda_tuning.hpp.
#include "kernels/cuda/device.hpp"
#include "kernels/local/cuda_results.cuh"
#include "kernels/local/cuda_tables.cuh"
#include "kernels/local/cuda_tuning.hpp"

namespace cudavision::local {
namespace {

constexpr int box_width = 128;  ///< pixels of a row that a warp computes: four for each lane
constexpr int box_warps = tuning.box_warps;

/// The sum over [x0, x1) × [y0, y1). Sum may wrap, but must hold the sum of a window.
template <typename Sum>
__device__ __forceinline__ Sum box_sum(const unsigned char* table, std::ptrdiff_t pitch, int x0, int y0, int x1,
                                       int y1) {
  const auto *top = reinterpret_cast<const Sum*>(table + y0 * pitch),
             *bottom = reinterpret_cast<const Sum*>(table + y1 * pitch);
  return (__ldg(bottom + x1) - __ldg(bottom + x0)) - (__ldg(top + x1) - __ldg(top + x0));
}

template <typename T, int C, typename Sum>
__global__ void __launch_bounds__(32 * box_warps) box_filter(const __grid_constant__ TableJob job) {
  __shared__ __align__(16) T results[box_warps][C][box_width];
  const cuda::SetView& view = job.view;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int x = (view.x0 & -4) + blockIdx.x * box_width, y = view.y0 + blockIdx.y * box_warps + warp;
  if (y >= view.y1) return;
  int y0, y1;
  job.window.y.window(y, view.height, y0, y1);
  int x0[box_width / 32], x1[box_width / 32];
#pragma unroll
  for (int j = 0; j < box_width / 32; ++j)
    job.window.x.window(min(x + lane + 32 * j, view.width - 1), view.width, x0[j], x1[j]);
#pragma unroll
  for (int c = 0; c < C; ++c) {
    if (!(view.filtered >> c & 1)) continue;
#pragma unroll
    for (int j = 0; j < box_width / 32; ++j) {
      int result = job.neutral;
      if (job.sums[c]) {
        const int count = (x1[j] - x0[j]) * (y1 - y0);
        const Sum sum = box_sum<Sum>(job.sums[c], job.sums_pitch, x0[j], y0, x1[j], y1);
        if (job.operation == Operation::box_mean) {
          result = rounded_mean(sum, count);
        } else if (job.operation == Operation::threshold) {
          const int at = min(x + lane + 32 * j, view.width - 1);
          const Sum sample = box_sum<Sum>(job.sums[c], job.sums_pitch, at, y, at + 1, y + 1);
          result = double(std::int64_t(sample) * count) < __dmul_rn(double(sum), job.factor) ? 0 : view.max_value;
        } else {
          const std::uint64_t squares = box_sum<std::uint64_t>(job.squares[c], job.squares_pitch, x0[j], y0, x1[j], y1);
          const double mean = double(sum) / count;
          result = __double2int_rn(sqrt(fmax(__dsub_rn(double(squares) / count, __dmul_rn(mean, mean)), 0.0)));
        }
      }
      results[warp][c][lane + 32 * j] = T(result);
    }
  }
  __syncwarp();
  cuda::Quad<T, C> quad;
#pragma unroll
  for (int c = 0; c < C; ++c)
#pragma unroll
    for (int w = 0; w < int(sizeof(T)); ++w)
      quad.word[c][w] = reinterpret_cast<const std::uint32_t*>(results[warp][c])[lane * int(sizeof(T)) + w];
  cuda::store_quad<T, C>(view, x + 4 * lane, y, quad);
}

/// Calls f with the kernel for a channel set.
template <typename F>
Status with_kernel(const FormatInfo& format, integral::SumType type, int set, F f) {
  return cuda::with_layout(format, [&](auto sample, auto first, auto rest) -> Status {
    using T = decltype(sample);
    const auto choose = [&](auto channels) {
      constexpr int C = decltype(channels)::value;
      return f(type == integral::SumType::u32 ? box_filter<T, C, std::uint32_t> : box_filter<T, C, std::uint64_t>);
    };
    return set == 0 ? choose(first) : choose(rest);
  });
}

}  // namespace

Status load_tables(const FormatInfo& format, integral::SumType type) {
  const auto load = [](auto kernel) { return cuda::load_kernel(kernel, "cannot load the kernel for local filters"); };
  for (int set = 0; set < format.set_count; ++set)
    if (Status status = with_kernel(format, type, set, load); !status.ok()) return status;
  return {};
}

Status launch_tables(const FormatInfo& format, integral::SumType type, int set, const TableJob& job, Queue queue) {
  return with_kernel(format, type, set, [&](auto kernel) {
    const int width = job.view.x1 - (job.view.x0 & -4), height = job.view.y1 - job.view.y0;
    kernel<<<dim3(divide_up(width, box_width), divide_up(height, box_warps)), 32 * box_warps, 0, queue.stream>>>(job);
    return cuda::check(cudaGetLastError(), "cannot launch the local filter");
  });
}

}  // namespace cudavision::local
