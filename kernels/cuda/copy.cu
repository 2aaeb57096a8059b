// SPDX-License-Identifier: LGPL-2.1-or-later
// Copies the rectangles of a region, the samples of a picture that are in an ellipse or a polygon, and whole pictures.
// If a filter computes the box around a shape in a separate picture, the shape is copied to the output. If the filter
// computes the whole frame, the samples of the input are copied back.
//
//   ┌─ 32 pixels ─┬─ 32 pixels ─┬ …   A block copies 32 pixels of four rows. A thread copies the channels of one pixel,
//   │ row 0       │ block       │     if the shape holds it. The grid covers the largest rectangle. If a grid has too
//   │ row 1     ▄▄│▄▄▄ (1, 0)   │     many rows, each thread continues further down. blockIdx.z is the channel set. A
//   │ row 2   ▄███│█████▄       │     set that shares its plane with another copies only its own samples.
//   │ row 3  ▄████│██████▄      │
//   ├─────────────┼─────────────┼ …
//
// Regions of interest are small and have any alignment, so wider accesses would gain little. A shape is an argument of
// the launch. So a region of many shapes needs no device memory and no upload, but each shape needs two launches: this
// one and the filter's. Each thread tests the pixels of its sample (up to four) exactly, with
// OutlineView::holds_sample().
#include "kernels/core/outline.hpp"
#include "kernels/cuda/filter.hpp"
#include "kernels/cuda/memory.hpp"

namespace cudavision::cuda {
namespace {

/// A rectangle to copy in one channel set of a frame.
struct CopyJob {
  const unsigned char* src;  ///< first row of the plane
  unsigned char* dst;
  std::ptrdiff_t src_pitch, dst_pitch;
  Rect rect;  ///< in pixels of the set
  int channels;
  unsigned own;  ///< bit c: channel c is copied
  int shift_x, shift_y;
};

/// A shape, and which samples belong to it.
struct OutlineShape {
  PackedOutline outline;
  int width, height;  ///< size of the picture
  Coverage coverage;

  __device__ bool holds(const CopyJob& job, int x, int y) const {
    return outline.view().holds_sample(x, y, job.shift_x, job.shift_y, width, height, coverage);
  }
};
/// Holds all samples of the rectangle.
struct Whole {
  __device__ bool holds(const CopyJob&, int, int) const { return true; }
};

template <typename Held>
struct CopyJobs {
  CopyJob sets[max_sets];
  Held held;
};
static_assert(sizeof(CopyJobs<OutlineShape>) < 4096, "older drivers allow no more for the parameters of a kernel");

template <typename T, typename Held>
__global__ void __launch_bounds__(128) copy_held(const __grid_constant__ CopyJobs<Held> jobs) {
  const CopyJob& job = jobs.sets[blockIdx.z];
  const int x = job.rect.x + blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= job.rect.x + job.rect.width) return;
  for (int y = job.rect.y + blockIdx.y * blockDim.y + threadIdx.y; y < job.rect.y + job.rect.height;
       y += gridDim.y * blockDim.y) {
    if (!jobs.held.holds(job, x, y)) continue;
    const T* const from = reinterpret_cast<const T*>(job.src + y * job.src_pitch) + std::ptrdiff_t(x) * job.channels;
    T* const to = reinterpret_cast<T*>(job.dst + y * job.dst_pitch) + std::ptrdiff_t(x) * job.channels;
    for (int c = 0; c < job.channels; ++c)
      if (job.own >> c & 1) to[c] = from[c];
  }
}

template <typename Held>
auto kernel_of(const FormatInfo& format) {
  return format.sample_bytes() == 1 ? copy_held<std::uint8_t, Held> : copy_held<std::uint16_t, Held>;
}

/// Copies the samples of the rectangles for which `held` is true.
template <typename Held>
Status copy_sets(const FormatInfo& format, const Image& src, const Image& dst, const SetRects& rects, const Held& held,
                 const char* what, Queue queue) {
  CopyJobs<Held> jobs{{}, held};
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
  kernel_of<Held>(format)<<<grid, block, 0, queue.stream>>>(jobs);
  return check(cudaGetLastError(), what);
}

}  // namespace

/// Loads the kernel, so that the first region with a shape does not wait. If loading fails, the launch fails later and
/// reports the error.
CudaFilter::CudaFilter(const Geometry& geometry, bool filter_alpha) : Filter(geometry, Backend::cuda, filter_alpha) {
  (void)load_kernel(kernel_of<OutlineShape>(info(geometry.format)), "cannot load the copy of a shape");
}

Status CudaFilter::copy_rects(const Image& src, const Image& dst, const SetRects& rects, Queue queue) {
  return copy_sets(info(geometry().format), src, dst, rects, Whole{}, "cannot launch the region copy", queue);
}

Status CudaFilter::copy_outline(const Image& src, const Image& dst, const SetRects& rects, const Outline& outline,
                                Coverage coverage, Queue queue) {
  return copy_sets(info(geometry().format), src, dst, rects,
                   OutlineShape{pack(outline), geometry().width, geometry().height, coverage},
                   "cannot launch the copy of a shape", queue);
}

}  // namespace cudavision::cuda

namespace cudavision {

Status copy_picture_cuda(const Image& from, const Image& to, Queue queue, int first_plane) {
  for (int plane = first_plane; plane < info(from.geometry.format).planes; ++plane) {
    const PlaneExtent bytes = extent(from.geometry, plane);
    const Plane &source = from.planes[plane], &target = to.planes[plane];
    Status status = cuda::check(
        cudaMemcpy2DAsync(target.data, target.pitch, source.data, source.pitch, copied_row(bytes, source, target),
                          bytes.rows, cudaMemcpyDeviceToDevice, queue.stream),
        "cannot copy a frame on the device");
    if (!status.ok()) return status;
  }
  return {};
}

Result<std::shared_ptr<void>> picture_memory_cuda(std::size_t bytes) {
  const auto memory = std::make_shared<cuda::DeviceMemory>();
  if (Status status = memory->allocate(bytes); !status.ok()) return status;
  return std::shared_ptr<void>(memory, memory->data());
}

}  // namespace cudavision
