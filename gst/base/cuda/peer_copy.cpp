// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/cuda/peer_copy.hpp"

#include <dlfcn.h>

namespace cudavision {
namespace {

CUcontext handle_of(GstCudaContext* context) { return static_cast<CUcontext>(gst_cuda_context_get_handle(context)); }

}  // namespace

void* driver_function(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);  // stays loaded, like libgstcuda's own handle
  return driver ? dlsym(driver, name) : nullptr;
}

Status copy_from_peer(GstCudaContext* peer, const Image& from, GstCudaContext* own, const Image& to, CUstream stream) {
  // The CUDA runtime has such a function for devices, but not for contexts.
  static const auto copy = reinterpret_cast<decltype(&cuMemcpy3DPeerAsync)>(driver_function("cuMemcpy3DPeerAsync"));
  if (!copy) return Status::resource("the CUDA driver cannot copy between devices: it has no cuMemcpy3DPeerAsync");
  for (int i = 0; i < info(from.geometry.format).planes; ++i) {
    const PlaneExtent bytes = extent(from.geometry, i);
    CUDA_MEMCPY3D_PEER plane{};
    plane.srcMemoryType = plane.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    plane.srcContext = handle_of(peer);
    plane.srcDevice = CUdeviceptr(from.planes[i].data);
    plane.srcPitch = std::size_t(from.planes[i].pitch);
    plane.dstContext = handle_of(own);
    plane.dstDevice = CUdeviceptr(to.planes[i].data);
    plane.dstPitch = std::size_t(to.planes[i].pitch);
    plane.WidthInBytes = copied_row(bytes, from.planes[i], to.planes[i]);
    plane.Height = bytes.rows;
    plane.Depth = 1;
    if (const CUresult result = copy(&plane, stream); result != CUDA_SUCCESS) {
      const gchar* text = nullptr;
      CuGetErrorString(result, &text);
      return Status::resource(std::string("cannot copy a frame from another CUDA context: ") +
                              (text ? text : "unknown error"));
    }
  }
  return {};
}

int device_of(GstCudaContext* context) {
  guint device = 0;
  g_object_get(context, "cuda-device-id", &device, nullptr);
  return int(device);
}

}  // namespace cudavision
