// SPDX-License-Identifier: LGPL-2.1-or-later
// Refines the outline of the mask of an adaptive background (adaptive_outline.hpp), after the mask was filled
// (cuda_enclosed.cu). The opening kernel shows the result.
//
//   grid: (width / 32, height / 8) of the frame; a warp has a word of 32 pixels, a lane has one of them
//
// Most lanes are away from the outline and copy their bit.
//
// Where to change what:
//   which pixels changed      adaptive_outline.hpp, for both backends
#include "kernels/cuda/device.hpp"
#include "kernels/diff/adaptive_outline.hpp"
#include "kernels/diff/cuda_adaptive_outline.hpp"

namespace cudavision::diff {
namespace {

constexpr int outline_rows = 8;

__device__ __forceinline__ bool bit_at(const unsigned char* mask, std::ptrdiff_t pitch, int x, int y) {
  return mask[y * pitch + x / 8] >> x % 8 & 1;
}

template <typename T>
__global__ void __launch_bounds__(32 * outline_rows) refine(const __grid_constant__ Outlining p) {
  const int x = int(blockIdx.x) * 32 + int(threadIdx.x), y = int(blockIdx.y) * outline_rows + int(threadIdx.y);
  if (y >= p.job.whole_height) return;  // the whole warp
  const int log2_scale = p.job.log2_scale, block_x = x >> log2_scale, block_y = y >> log2_scale;
  const auto changed = [&](int u, int v) { return bit_at(p.mask, p.pitch, u, v); };
  bool here = false;
  if (x < p.job.whole_width) {
    here = changed(block_x, block_y);
    const bool unmasked = !p.unmasked || bit_at(p.unmasked, p.pitch, block_x, block_y);
    if (unmasked && adaptive::at_outline(p.job, block_x, block_y, changed))
      here = adaptive::pixel_changed<T>(p.job, x, y, changed);
  }
  const unsigned bits = __ballot_sync(~0u, here);
  if (threadIdx.x == 0) reinterpret_cast<std::uint32_t*>(p.refined + y * p.refined_pitch)[blockIdx.x] = bits;
}

const void* kernel_for(bool bytes) {
  return bytes ? reinterpret_cast<const void*>(refine<std::uint8_t>)
               : reinterpret_cast<const void*>(refine<std::uint16_t>);
}

}  // namespace

Status load_outlining(bool bytes) {
  return cuda::load_kernel(kernel_for(bytes), "cannot load the kernel of the outline");
}

Status launch_outlining(const Outlining& outlining, bool bytes, cudaStream_t stream) {
  Outlining p = outlining;
  void* arguments[] = {&p};
  const dim3 grid(unsigned(divide_up(p.job.whole_width, 32)), unsigned(divide_up(p.job.whole_height, outline_rows)));
  return cuda::check(cudaLaunchKernel(kernel_for(bytes), grid, dim3(32, outline_rows), arguments, 0, stream),
                     "cannot launch the kernel of the outline");
}

}  // namespace cudavision::diff
