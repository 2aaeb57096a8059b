// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/cuda/filter.hpp"
#include "kernels/diff/cuda_mog2.hpp"

namespace cudavision::cuda::diff {
namespace {

using cudavision::detail::mog2::Job;

constexpr int threads = 128;

/// One pixel a thread; the state is read and written once, along the row.
template <typename T, int C>
__global__ void __launch_bounds__(threads) update(const __grid_constant__ Job job, unsigned char* foreground, int pitch) {
  const int x = blockIdx.x * threads + threadIdx.x;
  for (int y = blockIdx.y; y < job.height; y += gridDim.y) {
    const bool changed = x < job.width && cudavision::detail::mog2::pixel<T, C>(job, x, y);
    const unsigned bits = __ballot_sync(~0u, changed);
    if (threadIdx.x % 32 == 0) *reinterpret_cast<unsigned*>(foreground + std::ptrdiff_t(y) * pitch + x / 8) = bits;
  }
}

const void* kernel(int sample_bytes, int channels) {
  if (sample_bytes == 1)
    return channels == 1 ? reinterpret_cast<const void*>(update<std::uint8_t, 1>)
                         : reinterpret_cast<const void*>(update<std::uint8_t, 3>);
  return channels == 1 ? reinterpret_cast<const void*>(update<std::uint16_t, 1>)
                       : reinterpret_cast<const void*>(update<std::uint16_t, 3>);
}

}  // namespace

Status load_mog2(int sample_bytes, int channels) {
  cudaFuncAttributes attributes;
  return check(cudaFuncGetAttributes(&attributes, kernel(sample_bytes, channels)), "cannot load the mixture kernel");
}

Status launch_mog2(const Job& job, int sample_bytes, int channels, unsigned char* foreground, int pitch, cudaStream_t stream) {
  const dim3 grid((job.width + threads - 1) / threads, job.height);
  void* arguments[] = {const_cast<Job*>(&job), &foreground, &pitch};
  return check(cudaLaunchKernel(kernel(sample_bytes, channels), grid, dim3(threads), arguments, 0, stream),
               "cannot launch the mixture");
}

}  // namespace cudavision::cuda::diff
