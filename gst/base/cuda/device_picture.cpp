// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/cuda/device_picture.hpp"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "gst/base/cuda/current_context.hpp"
#include "kernels/core/format.hpp"
#include "kernels/cuda/device.hpp"

namespace cudavision {
namespace {

void free_plane(void* plane) { (void)cuda::check(cudaFree(plane), ""); }  // fails if the context is dead

struct DevicePicture {
  Image image;
  std::vector<InContext<void*, free_plane>> planes;
};

}  // namespace

Result<std::shared_ptr<const Image>> new_device_picture(GstCudaContext* context, const Geometry& geometry) {
  const auto picture = std::make_shared<DevicePicture>();
  picture->image.geometry = geometry;
  for (int i = 0; i < info(geometry.format).planes; ++i) {
    const PlaneExtent bytes = extent(geometry, i);
    void* plane = nullptr;
    std::size_t pitch = 0;
    if (Status status = cuda::check(cudaMallocPitch(&plane, &pitch, bytes.row_bytes, bytes.rows),
                                    "cannot allocate a frame on the device");
        !status.ok())
      return status;
    picture->planes.push_back(in_context<free_plane>(context, plane));
    picture->image.planes[i] = {plane, std::ptrdiff_t(pitch)};
  }
  return std::shared_ptr<const Image>(picture, &picture->image);
}

}  // namespace cudavision
