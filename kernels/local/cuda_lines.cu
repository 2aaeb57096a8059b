// SPDX-License-Identifier: LGPL-2.1-or-later
// Determines which kernels of cuda_lines_kernel.cuh are compiled, launches them, and fills chroma that becomes neutral.
#include "kernels/cuda/device.hpp"
#include "kernels/local/cuda_lines_kernel.cuh"

namespace cudavision::local {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// The kernels for samples T of C channels. The channels in `mask` are filtered. Sum: the type of a window's sum.
template <Operation operation, typename T, int C, unsigned mask, typename Sum, bool planes = false>
LineKernels kernels_for() {
  using S = LineKernelShape<T, C, mask, operation, planes>;
  return {reinterpret_cast<const void*>(running_sums<S>), reinterpret_cast<const void*>(lines<S, Sum>)};
}

/// The kernels of each operation for interleaved bytes: colours, and one sample of two.
template <Operation operation>
LineKernels kernels_for_bytes(const LineShape& shape) {
  if (shape.channels == 2) return kernels_for<operation, u8, 2, 1, u32>();
  return shape.channels == 3 ? kernels_for<operation, u8, 3, 7, u32>() : kernels_for<operation, u8, 4, 7, u32>();
}

LineKernels mean_kernels(const LineShape& shape) {
  constexpr Operation mean = Operation::box_mean;
  if (shape.sample_bytes == 2) {
    if (shape.channels == 4) return kernels_for<mean, u16, 4, 7, u64>();
    if (shape.channels == 2)
      return shape.wide ? kernels_for<mean, u16, 2, 3, u64>() : kernels_for<mean, u16, 2, 3, u32>();
    return shape.wide ? kernels_for<mean, u16, 1, 1, u64>() : kernels_for<mean, u16, 1, 1, u32>();
  }
  if (shape.channels == 1) return shape.wide ? kernels_for<mean, u8, 1, 1, u64>() : kernels_for<mean, u8, 1, 1, u32>();
  if (shape.wide) return {};
  if (shape.channels == 2 && shape.filtered == 3) return kernels_for<mean, u8, 2, 3, u32>();
  return shape.mask() == 10 ? kernels_for<mean, u8, 4, 10, u32>() : kernels_for_bytes<mean>(shape);
}

LineKernels threshold_kernels(const LineShape& shape) {
  constexpr Operation threshold = Operation::threshold;
  if (shape.sample_bytes == 2) {
    if (shape.planes) return {};  // uses tables
    if (shape.channels == 4) return kernels_for<threshold, u16, 4, 7, u64>();
    return kernels_for<threshold, u16, 1, 1, u64>();
  }
  if (shape.wide) return {};
  if (shape.planes) return kernels_for<threshold, u8, 1, 1, u32, true>();
  return shape.channels == 1 ? kernels_for<threshold, u8, 1, 1, u32>() : kernels_for_bytes<threshold>(shape);
}

LineKernels deviation_kernels(const LineShape& shape) {
  constexpr Operation deviation = Operation::deviation;
  if (shape.sample_bytes == 2) return {};  // tables are faster
  if (shape.channels == 1) return kernels_for<deviation, u8, 1, 1, u64>();
  return shape.wide ? LineKernels{} : kernels_for_bytes<deviation>(shape);
}

/// Fills quads. A thread fills four pixels of a row.
template <typename T, int C>
__global__ void __launch_bounds__(128) fill(const __grid_constant__ cuda::SetView view, int value) {
  const int x = (view.x0 & -4) + 4 * int(blockIdx.x * blockDim.x + threadIdx.x);
  cuda::Quad<T, C> quad;
#pragma unroll
  for (int c = 0; c < C; ++c)
#pragma unroll
    for (int w = 0; w < int(sizeof(T)); ++w)
      quad.word[c][w] = std::uint32_t(value) * (sizeof(T) == 1 ? 0x1010101u : 0x10001u);
  for (int y = view.y0 + blockIdx.y; y < view.y1; y += gridDim.y) cuda::store_quad<T, C>(view, x, y, quad);
}

/// Calls f with the kernel that fills a set.
template <typename F>
Status with_fill(const FormatInfo& format, int set, F f) {
  return cuda::with_layout(format, [&](auto sample, auto first, auto rest) {
    using T = decltype(sample);
    return set == 0 ? f(fill<T, decltype(first)::value>) : f(fill<T, decltype(rest)::value>);
  });
}

}  // namespace

LineKernels line_kernels(const LineShape& shape) {
  if (shape.operation == Operation::threshold) return threshold_kernels(shape);
  return shape.operation == Operation::deviation ? deviation_kernels(shape) : mean_kernels(shape);
}

Status load_lines(const LineShape& shape, int shared_limit) {
  const LineKernels kernels = line_kernels(shape);
  const Status status = cuda::load_kernel(kernels.running, "cannot load the kernel for running sums");
  return status.ok() ? cuda::load_kernel(kernels.sliding, "cannot load the kernel for windows", shared_limit) : status;
}

Status launch_lines(const LineShape& shape, const LineJob& job, Queue queue) {
  const LineKernels kernels = line_kernels(shape);
  const LineSchedule& s = job.schedule;
  const auto launch = [&](const void* kernel, dim3 blocks, int threads, int shared_bytes) {
    void* arguments[] = {const_cast<LineJob*>(&job)};
    return cuda::check(cudaLaunchKernel(kernel, blocks, dim3(threads), arguments, shared_bytes, queue.stream),
                       "cannot launch the windows");
  };
  if (s.stored_entries > 0) {
    const dim3 blocks(divide_up(s.stored_chunks, line_stored_threads), divide_up(s.stored_entries, band_entries));
    if (Status status = launch(kernels.running, blocks, line_stored_threads, 0); !status.ok()) return status;
  }
  return launch(kernels.sliding, dim3(s.strips, s.blocks_y), s.threads, s.shared_bytes);
}

Status load_fill(const FormatInfo& format, int set) {
  return with_fill(format, set,
                   [](auto kernel) { return cuda::load_kernel(kernel, "cannot load the kernel that fills chroma"); });
}

Status launch_fill(const FormatInfo& format, int set, const cuda::SetView& view, int value, Queue queue) {
  return with_fill(format, set, [&](auto kernel) {
    const int quads = divide_up(view.x1 - (view.x0 & -4), 4);
    kernel<<<dim3(divide_up(quads, 128), view.y1 - view.y0), 128, 0, queue.stream>>>(view, value);
    return cuda::check(cudaGetLastError(), "cannot fill the chroma");
  });
}

}  // namespace cudavision::local
