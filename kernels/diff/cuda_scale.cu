// SPDX-License-Identifier: LGPL-2.1-or-later
// Frames at a reduced size (Params::analysis_scale): shrinks frames before the comparison, and enlarges the shown
// difference.
//
//   grid: (width / 256, height, channels) of the written picture; a thread has one sample
//
//   shrink    |s s s s|s s s s|…        enlarge   |a|b|…  ->  |a a a a|b b b b|…     here with scale = 4
//             |s s s s|s s s s|…   ->  |a|b|…                 |a a a a|b b b b|…
//             |s s s s|s s s s|…                                     …
//             |s s s s|s s s s|…
//
// Where to change what:
//   which pictures          cuda.cpp
//   another block shape     cuda_tuning.hpp (scale_threads)
#include "kernels/core/sample.hpp"
#include "kernels/diff/cuda_stages.hpp"
#include "kernels/diff/cuda_tuning.hpp"

namespace cudavision::diff {
namespace {

template <typename T>
__global__ void __launch_bounds__(tuning.scale_threads) shrink(const __grid_constant__ Scaling job) {
  const Scaling::Channel& channel = job.channels[blockIdx.z];
  const int x = blockIdx.x * tuning.scale_threads + threadIdx.x;
  if (x >= channel.width) return;
  const int left = x << job.log2_scale, right = min((x + 1) << job.log2_scale, channel.from_width);
  for (int y = blockIdx.y; y < channel.height; y += gridDim.y) {
    const int top = y << job.log2_scale, bottom = min((y + 1) << job.log2_scale, channel.from_height);
    unsigned sum = 0;
    for (int row = top; row < bottom; ++row)
      for (int at = left; at < right; ++at)
        sum += sample_of(*reinterpret_cast<const T*>(channel.from.at(at, row)), job.shift, job.max);
    const unsigned count = unsigned(right - left) * unsigned(bottom - top);
    *reinterpret_cast<T*>(channel.to.at(x, y)) = T((sum + count / 2) / count << job.shift);
  }
}

template <typename T>
__global__ void __launch_bounds__(tuning.scale_threads) enlarge(const __grid_constant__ Scaling job) {
  const Scaling::Channel& channel = job.channels[blockIdx.z];
  const int x = blockIdx.x * tuning.scale_threads + threadIdx.x;
  if (x >= channel.width) return;
  for (int y = blockIdx.y; y < channel.height; y += gridDim.y) {
    const int log2_scale = channel.copied ? 0 : job.log2_scale;
    *reinterpret_cast<T*>(channel.to.at(x, y)) =
        channel.from.data ? *reinterpret_cast<const T*>(channel.from.at(x >> log2_scale, y >> log2_scale))
                          : T(channel.value);
  }
}

const void* kernel(int sample_bytes, bool shrinks) {
  if (shrinks)
    return sample_bytes == 1 ? reinterpret_cast<const void*>(shrink<std::uint8_t>)
                             : reinterpret_cast<const void*>(shrink<std::uint16_t>);
  return sample_bytes == 1 ? reinterpret_cast<const void*>(enlarge<std::uint8_t>)
                           : reinterpret_cast<const void*>(enlarge<std::uint16_t>);
}

}  // namespace

Scaling scaling_of(const Plan& plan, const Image& small, const Image& whole, bool shrinks, const Image& src) {
  const FormatInfo& format = info(plan.geometry.format);
  const RoleValues black = black_values(format);
  Scaling job;
  job.log2_scale = plan.log2_scale();
  job.shift = format.shift;
  job.max = format.max_value();
  for (int i = 0; i < format.color_sets(); ++i) {
    const ChannelSet& set = format.sets[i];
    const Rect of_whole = plan.geometry.grid(set), of_small = plan.analysis.grid(set);
    for (int c = 0; c < set.channels; ++c) {
      const Role role = set.roles[c];
      const bool copied = !is_color(role);
      const ChannelView inner = channel_of(small, set, c), outer = channel_of(whole, set, c);
      if (role == Role::other || (shrinks && (copied || !inner.data))) continue;
      const Rect &size = shrinks ? of_small : of_whole, &from_size = shrinks ? of_whole : of_small;
      job.channels[job.count++] = {shrinks  ? outer
                                   : copied ? channel_of(src, set, c)
                                            : inner,
                                   shrinks ? inner : outer,
                                   size.width,
                                   size.height,
                                   from_size.width,
                                   from_size.height,
                                   copied,
                                   unsigned(black[std::size_t(role)]) << format.shift};
    }
  }
  return job;
}

Status load_scaling(int sample_bytes) {
  Status status = cuda::load_kernel(kernel(sample_bytes, true), "cannot load the scaling kernel");
  return status.ok() ? cuda::load_kernel(kernel(sample_bytes, false), "cannot load the scaling kernel") : status;
}

Status launch_scaling(const Scaling& job, int sample_bytes, bool shrinks, cudaStream_t stream) {
  if (job.count == 0) return {};
  int width = 0, height = 0;
  for (int i = 0; i < job.count; ++i) {
    width = std::max(width, job.channels[i].width);
    height = std::max(height, job.channels[i].height);
  }
  const dim3 grid(unsigned(divide_up(width, tuning.scale_threads)), unsigned(height), unsigned(job.count));
  void* arguments[] = {const_cast<Scaling*>(&job)};
  return cuda::check(
      cudaLaunchKernel(kernel(sample_bytes, shrinks), grid, dim3(unsigned(tuning.scale_threads)), arguments, 0, stream),
      "cannot launch the scaling");
}

}  // namespace cudavision::diff
