// SPDX-License-Identifier: LGPL-2.1-or-later
// Updates the mixtures of Gaussians of a frame (see mog2.hpp) and stores which pixels are foreground.
//
//   grid: (width / 64, height); a lane has one pixel; a warp stores the bits of 32 pixels as one word
//
// Most modes of a pixel keep their variance and means, which are then not written. In random pictures this saves a
// fifth of the memory traffic.
//
// If the light was switched (cuda_light.cuh), update_anew processes the frame a second time, and the mixtures restart
// with it.
//
// Where to change what:
//   the model              mog2.hpp, for both backends
//   another block shape    cuda_tuning.hpp (mixture_threads)
#include <algorithm>

#include "kernels/diff/cuda_stages.hpp"
#include "kernels/diff/cuda_tuning.hpp"

namespace cudavision::diff {
namespace {

template <typename T, int C>
__device__ __forceinline__ void update_row(const mog2::Job& job, unsigned char* foreground, int pitch,
                                           const State* state, int y) {
  const int x = blockIdx.x * tuning.mixture_threads + threadIdx.x;
  bool changed = false;
  if (x < job.width) {
    mog2::Pixel<T, C> pixel(job, x, y);
    changed = pixel.update(job, mog2::rates_of(job, state->began), x, y);
  }
  const unsigned bits = __ballot_sync(~0u, changed);
  if (threadIdx.x % 32 == 0) *reinterpret_cast<unsigned*>(foreground + std::ptrdiff_t(y) * pitch + x / 8) = bits;
}

template <typename T, int C>
__global__ void __launch_bounds__(tuning.mixture_threads, tuning.mixture_blocks[C / 2])
    update(const __grid_constant__ mog2::Job job, unsigned char* foreground, int pitch, const State* state) {
  update_row<T, C>(job, foreground, pitch, state, blockIdx.y);
}

/// The grid has fewer blocks than rows, because nearly all launches end immediately. A loop in update() would cost 8
/// registers.
template <typename T, int C>
__global__ void __launch_bounds__(tuning.mixture_threads)
    update_anew(const __grid_constant__ mog2::Job job, unsigned char* foreground, int pitch, const State* state) {
  if (!state->light) return;
  for (int y = blockIdx.y; y < job.height; y += gridDim.y) update_row<T, C>(job, foreground, pitch, state, y);
}

template <typename T>
const void* kernel(int channels, bool anew) {
  if (channels == 1) return reinterpret_cast<const void*>(anew ? update_anew<T, 1> : update<T, 1>);
  return reinterpret_cast<const void*>(anew ? update_anew<T, 3> : update<T, 3>);
}
const void* kernel(int sample_bytes, int channels, bool anew) {
  return sample_bytes == 1 ? kernel<std::uint8_t>(channels, anew) : kernel<std::uint16_t>(channels, anew);
}

}  // namespace

Status load_mog2(int sample_bytes, int channels) {
  for (bool anew : {false, true})
    if (Status status = cuda::load_kernel(kernel(sample_bytes, channels, anew), "cannot load the mixture kernel");
        !status.ok())
      return status;
  return {};
}

Status launch_mog2(const mog2::Job& job, int sample_bytes, int channels, unsigned char* foreground, int pitch,
                   const State* state, bool anew, cudaStream_t stream) {
  constexpr int threads = tuning.mixture_threads;
  const dim3 grid(divide_up(job.width, threads), anew ? std::min(job.height, tuning.mixture_restart_rows) : job.height);
  void* arguments[] = {const_cast<mog2::Job*>(&job), &foreground, &pitch, &state};
  return cuda::check(cudaLaunchKernel(kernel(sample_bytes, channels, anew), grid, dim3(threads), arguments, 0, stream),
                     "cannot launch the mixture");
}

}  // namespace cudavision::diff
