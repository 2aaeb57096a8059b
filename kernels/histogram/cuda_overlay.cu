// SPDX-License-Identifier: LGPL-2.1-or-later
// Draws a histogram into a picture. First, one block per channel computes the heights of the channel's bars. Then a
// grid of threads blends the bars.
//
//   bar_heights: block c = channel c                 draw_bars: a thread blends pixels of a set
//   thread t: columns t, t + 1024, …                 block: 64 × 4 threads; z: channel set
//
// To change what is drawn, see overlaid() in arithmetic.hpp; to change colours, see resolve() in overlay.cpp.
#include <algorithm>

#include "kernels/core/sample.hpp"
#include "kernels/cuda/memory.hpp"
#include "kernels/histogram/aligned_overlay.hpp"
#include "kernels/histogram/arithmetic.hpp"
#include "kernels/histogram/cuda_pictures.hpp"

namespace cudavision::histogram {
namespace {

/// Computes the heights of the bars of a channel with one block: first the largest count, then each column.
__global__ void __launch_bounds__(table_threads)
    bar_heights(const std::uint32_t* counts, std::uint16_t* heights, const __grid_constant__ OverlayPlan plan) {
  __shared__ std::uint32_t largest;
  const std::uint32_t* const of_channel = counts + std::size_t(blockIdx.x) * plan.bins;
  if (threadIdx.x == 0) largest = 0;
  __syncthreads();
  std::uint32_t largest_of_thread = 0;
  for (int bin = threadIdx.x; bin < plan.bins; bin += blockDim.x)
    largest_of_thread = max(largest_of_thread, of_channel[bin]);
  atomicMax(&largest, largest_of_thread);
  __syncthreads();
  for (int x = threadIdx.x; x < plan.position.width; x += blockDim.x) {
    const int begin = first_bin(x, plan.bins, plan.position.width);
    const int end = max(begin + 1, first_bin(x + 1, plan.bins, plan.position.width));
    std::uint32_t count = 0;
    for (int bin = begin; bin < end; ++bin) count = max(count, of_channel[bin]);
    heights[blockIdx.x * plan.position.width + x] =
        std::uint16_t(bar_height(count, largest, plan.position.height, plan.log));
  }
}

struct Drawing {
  unsigned char* data;
  std::ptrdiff_t pitch;
  int x0, y0, x1, y1;  ///< samples of the grid
  int channels, shift_x, shift_y, sample_bytes, shift, max_value;
  std::uint8_t roles[4];
};
struct Drawings {
  Drawing sets[max_sets];
  OverlayPlan plan;
  const std::uint16_t* heights;
};

__global__ void __launch_bounds__(tuning.picture_threads) draw_bars(const __grid_constant__ Drawings params) {
  const Drawing& set = params.sets[blockIdx.z];
  const Rect& at = params.plan.position;
  for (int y = set.y0 + int(blockIdx.y * blockDim.y + threadIdx.y); y < set.y1; y += gridDim.y * blockDim.y)
    for (int x = set.x0 + int(blockIdx.x * blockDim.x + threadIdx.x); x < set.x1; x += gridDim.x * blockDim.x) {
      const unsigned covering =
          covering_bars(params.plan, params.heights, (x << set.shift_x) - at.x, (y << set.shift_y) - at.y);
      unsigned char* const row = set.data + y * set.pitch;
      for (int c = 0; c < set.channels; ++c) {
        if (set.roles[c] >= std::uint8_t(Role::alpha)) continue;
        if (set.sample_bytes == 1) {
          unsigned char& sample = row[x * set.channels + c];
          sample = static_cast<unsigned char>(overlaid(params.plan, sample, set.roles[c], covering));
        } else {
          std::uint16_t& sample = reinterpret_cast<std::uint16_t*>(row)[x * set.channels + c];
          const int below = sample_of(sample, set.shift, set.max_value);
          sample = std::uint16_t(overlaid(params.plan, below, set.roles[c], covering) << set.shift);
        }
      }
    }
}

class CudaOverlay final : public AlignedOverlay {
 public:
  CudaOverlay(OverlayPlan plan, const Counting& histogram) : AlignedOverlay(Backend::cuda), histogram_(histogram) {
    params_.plan = plan;
  }

  /// The context must be current.
  Status prepare() {
    const std::size_t heights = std::size_t(params_.plan.channels) * params_.plan.position.width;
    if (Status status = heights_.allocate(heights * sizeof(std::uint16_t)); !status.ok()) return status;
    params_.heights = heights_.data<std::uint16_t>();
    const Status status = cuda::load_kernel(bar_heights, "cannot load the overlay");
    return status.ok() ? cuda::load_kernel(draw_bars, "cannot load the overlay") : status;
  }

 private:
  Status draw(const Image& picture, Queue queue) override {
    const FormatInfo& format = info(params_.plan.geometry.format);
    bar_heights<<<params_.plan.channels, table_threads, 0, queue.stream>>>(
        histogram_.latest(), heights_.data<std::uint16_t>(), params_.plan);
    if (Status status = cuda::check(cudaGetLastError(), "cannot launch the overlay"); !status.ok()) return status;
    int width = 0, height = 0;
    for (int i = 0; i < format.set_count; ++i) {
      const ChannelSet& set = format.sets[i];
      const Rect rect = overlay_rect(params_.plan, set);
      const Plane& plane = picture.planes[set.plane];
      Drawing& drawing = params_.sets[i];
      drawing = {static_cast<unsigned char*>(plane.data),
                 plane.pitch,
                 rect.x,
                 rect.y,
                 rect.x + rect.width,
                 rect.y + rect.height,
                 set.channels,
                 set.shift_x,
                 set.shift_y,
                 format.sample_bytes(),
                 format.shift,
                 format.max_value(),
                 {}};
      for (int c = 0; c < set.channels; ++c) drawing.roles[c] = std::uint8_t(set.roles[c]);
      width = std::max(width, rect.width);
      height = std::max(height, rect.height);
    }
    if (width == 0 || height == 0) return {};
    draw_bars<<<picture_grid(width, height, format.set_count), picture_block(), 0, queue.stream>>>(params_);
    return cuda::check(cudaGetLastError(), "cannot launch the overlay");
  }

  const Counting& histogram_;
  cuda::DeviceMemory heights_;
  Drawings params_{};
};

}  // namespace

Result<std::unique_ptr<Overlay>> make_overlay_cuda(OverlayPlan plan, const Counting& histogram) {
  auto overlay = std::make_unique<CudaOverlay>(plan, histogram);
  if (Status status = overlay->prepare(); !status.ok()) return status;
  return std::unique_ptr<Overlay>(std::move(overlay));
}

}  // namespace cudavision::histogram
