// SPDX-License-Identifier: LGPL-2.1-or-later
// Updates the mixtures of Gaussians of a frame (see mog2.hpp) and stores which pixels are foreground.
//
//   grid: (width / 64, height); a lane has one pixel; a warp stores the bits of 32 pixels as one word
//
// If light was switched (cuda_light.cuh), the kernel runs a second time for the frame, and the mixtures begin with it.
//
// Where to change what:
//   the model              mog2.hpp, for both backends
//   another block shape    cuda_tuning.hpp (mixture_threads)
#include <algorithm>

#include "kernels/cuda/device.hpp"
#include "kernels/diff/cuda_mog2.hpp"
#include "kernels/diff/cuda_tuning.hpp"

namespace cudavision::diff {
namespace {

template <typename T, int C>
__global__ void __launch_bounds__(tuning.mixture_threads, tuning.mixture_blocks[C / 2])
    update(const __grid_constant__ mog2::Job job, unsigned char* foreground, int pitch, const State* state, bool anew) {
  constexpr int threads = tuning.mixture_threads;
  if (anew && !state->light) return;
  const int x = blockIdx.x * threads + threadIdx.x;
  for (int y = blockIdx.y; y < job.height; y += gridDim.y) {
    bool changed = false;
    if (x < job.width) {
      mog2::Pixel<T, C> pixel(job, x, y);
      changed = pixel.update(job, mog2::rates_of(job, state->began), x, y);
    }
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
  return cuda::load_kernel(kernel(sample_bytes, channels), "cannot load the mixture kernel");
}

Status launch_mog2(const mog2::Job& job, int sample_bytes, int channels, unsigned char* foreground, int pitch, const State* state,
                   bool anew, cudaStream_t stream) {
  constexpr int threads = tuning.mixture_threads;
  const dim3 grid((job.width + threads - 1) / threads, anew ? std::min(job.height, tuning.restart_blocks) : job.height);
  void* arguments[] = {const_cast<mog2::Job*>(&job), &foreground, &pitch, &state, &anew};
  return cuda::check(cudaLaunchKernel(kernel(sample_bytes, channels), grid, dim3(threads), arguments, 0, stream),
                     "cannot launch the mixture");
}

}  // namespace cudavision::diff
