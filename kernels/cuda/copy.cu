// SPDX-License-Identifier: LGPL-2.1-or-later
// Copies the rectangles of a region, and whole pictures.
//
//   ┌─ 128 bytes ─┬─ 128 bytes ─┬ …   A block copies 128 bytes of two rows, a thread one byte. The grid covers the
//   │ row 0       │ block       │     largest rectangle. If a grid has too many rows, each thread continues further
//   │ row 1       │ (1, 0)      │     down. blockIdx.z is the channel set. A set that shares its plane with another
//   ├─────────────┼─────────────┼ …   copies only its own bytes.
#include "kernels/cuda/filter.hpp"
#include "kernels/cuda/memory.hpp"

namespace cudavision::cuda {
namespace {

/// One channel set of a frame.
struct CopyJob {
  const unsigned char* src;
  unsigned char* dst;
  std::ptrdiff_t src_pitch, dst_pitch;
  int row_bytes, rows;  ///< size of the rectangle; src and dst point at its first byte
  int channels;         ///< bytes per pixel; used only if `own` is not all ones
  unsigned own;         ///< bit c: byte c of each pixel belongs to the set
};

struct CopyJobs {
  CopyJob jobs[max_sets];
};

/// Copies rectangles byte by byte. Regions of interest are small and have any alignment,
/// so wider accesses would gain little.
__global__ void copy_bytes(CopyJobs jobs) {
  const CopyJob& job = jobs.jobs[blockIdx.z];
  for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < job.rows; y += gridDim.y * blockDim.y)
    for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < job.row_bytes; x += gridDim.x * blockDim.x)
      if (job.own == ~0u || (job.own >> (x % job.channels) & 1))
        job.dst[y * job.dst_pitch + x] = job.src[y * job.src_pitch + x];
}

}  // namespace

Status CudaFilter::copy_rects(const Image& src, const Image& dst, const SetRects& rects, Queue queue) {
  const FormatInfo& format = info(geometry().format);
  CopyJobs jobs{};
  int count = 0, row_bytes = 0, rows = 0;
  for (int i = 0; i < format.set_count; ++i) {
    const ChannelSet& set = format.sets[i];
    if (rects[i].empty()) continue;
    const int pixel_bytes = set.channels * format.sample_bytes();
    const Plane &from = src.planes[set.plane], &to = dst.planes[set.plane];
    const std::ptrdiff_t x = std::ptrdiff_t(rects[i].x) * pixel_bytes, y = rects[i].y;
    unsigned own = ~0u;
    if (set.shares_plane()) {
      own = 0;
      for (int c = 0; c < set.channels; ++c) own |= unsigned(set.roles[c] != Role::other) << c;
    }
    jobs.jobs[count++] = {static_cast<const unsigned char*>(from.data) + y * from.pitch + x,
                          static_cast<unsigned char*>(to.data) + y * to.pitch + x,
                          from.pitch,
                          to.pitch,
                          rects[i].width * pixel_bytes,
                          rects[i].height,
                          set.channels,
                          own};
    row_bytes = max(row_bytes, rects[i].width * pixel_bytes);
    rows = max(rows, rects[i].height);
  }
  if (count == 0) return {};
  const dim3 block(128, 2), grid((row_bytes + 127) / 128, min((rows + 1) / 2, 65535), count);
  copy_bytes<<<grid, block, 0, queue.stream>>>(jobs);
  return check(cudaGetLastError(), "cannot launch the region copy");
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
