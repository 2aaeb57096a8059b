// SPDX-License-Identifier: LGPL-2.1-or-later
// Copies the samples of a picture that are in an ellipse or a polygon. There are two cases. A filter may compute the
// box around the shape into a separate picture; this kernel then copies the shape to the output. Or the filter may
// compute the whole frame; this kernel then copies the input's samples back.
//
//   ┌─ 32 pixels ─┬─ 32 pixels ─┬ …   A block copies 32 pixels of four rows. A thread copies the channels of one pixel
//   │ row 0       │ block       │     if the shape holds the pixel. The grid covers the box. If a grid has too many
//   │ row 1     ▄▄│▄▄▄ (1, 0)   │     rows, each thread continues further down. blockIdx.z is the channel set. A set
//   │ row 2   ▄███│█████▄       │     that shares its plane with another copies only its own samples.
//   │ row 3  ▄████│██████▄      │
//   ├─────────────┼─────────────┼ …
//
// A shape is an argument of the launch. So a region of many shapes needs no memory on the device and no upload, but
// each shape needs two launches: this one and the filter's. Each thread tests the pixels of its sample (up to four)
// exactly, by OutlineView::holds_sample().
#include "kernels/core/outline.hpp"
#include "kernels/cuda/filter.hpp"

namespace cudavision::cuda {
namespace {

/// The box in one channel set of a frame.
struct SetJob {
  const unsigned char* src;  ///< first row of the plane
  unsigned char* dst;
  std::ptrdiff_t src_pitch, dst_pitch;
  Rect rect;  ///< in pixels of the set
  int channels;
  unsigned own;  ///< bit c: channel c is copied
  int shift_x, shift_y;
};

struct OutlineJobs {
  SetJob sets[max_sets];
  PackedOutline outline;
  int width, height;  ///< size of the picture
  Coverage coverage;
};
static_assert(sizeof(OutlineJobs) < 4096, "older drivers allow no more for the parameters of a kernel");

template <typename T>
__global__ void __launch_bounds__(128) copy_held(const __grid_constant__ OutlineJobs jobs) {
  const SetJob& job = jobs.sets[blockIdx.z];
  const int x = job.rect.x + blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= job.rect.x + job.rect.width) return;
  for (int y = job.rect.y + blockIdx.y * blockDim.y + threadIdx.y; y < job.rect.y + job.rect.height;
       y += gridDim.y * blockDim.y) {
    if (!jobs.outline.view().holds_sample(x, y, job.shift_x, job.shift_y, jobs.width, jobs.height, jobs.coverage))
      continue;
    const T* const from = reinterpret_cast<const T*>(job.src + y * job.src_pitch) + std::ptrdiff_t(x) * job.channels;
    T* const to = reinterpret_cast<T*>(job.dst + y * job.dst_pitch) + std::ptrdiff_t(x) * job.channels;
    for (int c = 0; c < job.channels; ++c)
      if (job.own >> c & 1) to[c] = from[c];
  }
}

using Kernel = void (*)(OutlineJobs);
Kernel kernel_of(const FormatInfo& format) {
  return format.sample_bytes() == 1 ? copy_held<std::uint8_t> : copy_held<std::uint16_t>;
}

}  // namespace

/// Loads the kernel, so that the first region with a shape does not wait. If that fails, the launch fails and says why.
CudaFilter::CudaFilter(const Geometry& geometry, bool filter_alpha) : Filter(geometry, Backend::cuda, filter_alpha) {
  (void)load_kernel(kernel_of(info(geometry.format)), "cannot load the copy of a shape");
}

Status CudaFilter::copy_outline(const Image& src, const Image& dst, const SetRects& rects, const Outline& outline,
                                Coverage coverage, Queue queue) {
  const FormatInfo& format = info(geometry().format);
  OutlineJobs jobs{};
  jobs.outline = pack(outline);
  jobs.width = geometry().width;
  jobs.height = geometry().height;
  jobs.coverage = coverage;
  int count = 0, width = 0, height = 0;
  for (int i = 0; i < format.set_count; ++i) {
    const ChannelSet& set = format.sets[i];
    if (rects[i].empty()) continue;
    const Plane &from = src.planes[set.plane], &to = dst.planes[set.plane];
    unsigned own = 0;
    for (int c = 0; c < set.channels; ++c) own |= unsigned(set.roles[c] != Role::other) << c;
    jobs.sets[count++] = {static_cast<const unsigned char*>(from.data),
                          static_cast<unsigned char*>(to.data),
                          from.pitch,
                          to.pitch,
                          rects[i],
                          set.channels,
                          own,
                          set.shift_x,
                          set.shift_y};
    width = max(width, rects[i].width);
    height = max(height, rects[i].height);
  }
  if (count == 0) return {};
  const dim3 block(32, 4), grid((width + 31) / 32, min((height + 3) / 4, 65535), count);
  kernel_of(format)<<<grid, block, 0, queue.stream>>>(jobs);
  return check(cudaGetLastError(), "cannot launch the copy of a shape");
}

}  // namespace cudavision::cuda
