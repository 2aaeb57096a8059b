// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/bus_copies.hpp"

#include "gst/base/cuda_stream.hpp"
#include "kernels/cuda/filter.hpp"

namespace cudavision {

BusCopies::BusCopies(GstCudaContext* context)
    : order_(context),
      read_{CudaEvent(context), CudaEvent(context)},
      downloaded_{CudaEvent(context), CudaEvent(context)},
      context_(GST_CUDA_CONTEXT(gst_object_ref(context))) {
  for (CUstream* stream : {&up_, &down_})
    if (cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking) != cudaSuccess) *stream = nullptr;
}

BusCopies::~BusCopies() {
  if (const CurrentContext current(context_); current)
    for (CUstream stream : {up_, down_})
      if (stream) cudaStreamDestroy(stream);
  gst_object_unref(context_);
}

Status BusCopies::upload(const Image& host, const Image& device, CUstream kernels) {
  (void)read_[turn_].hold_up(up_);
  (void)downloaded_[turn_].hold_up(up_);  // frames that are only carried over are downloaded from the picture of their upload
  Status status = copy_planes(host, device, cudaMemcpyHostToDevice, up_, "cannot upload a frame");
  put_in_order(up_, kernels, order_);
  return status;
}

Status BusCopies::download(const Image& device, const Image& host, CUstream kernels) {
  put_in_order(kernels, down_, order_);
  return copy_planes(device, host, cudaMemcpyDeviceToHost, down_, "cannot download a frame");
}

void BusCopies::end_frame(CUstream kernels) {
  (void)read_[turn_].record(kernels);
  (void)downloaded_[turn_].record(down_);
  turn_ = 1 - turn_;
}

Status copy_planes(const Image& from, const Image& to, cudaMemcpyKind kind, CUstream stream, const char* what) {
  for (int i = 0; i < info(from.geometry.format).planes; ++i) {
    const PlaneExtent bytes = extent(from.geometry, i);
    const Plane &src = from.planes[i], &dst = to.planes[i];
    Status status = cuda::check(
        cudaMemcpy2DAsync(dst.data, dst.pitch, src.data, src.pitch, copied_row(bytes, src, dst), bytes.rows, kind, stream), what);
    if (!status.ok()) return status;
  }
  return {};
}

bool is_page_locked(const void* data) {
  cudaPointerAttributes attributes;
  const bool known = cudaPointerGetAttributes(&attributes, data) == cudaSuccess;
  if (!known) cudaGetLastError();  // clears the error, which would appear in the next call
  return known && attributes.type == cudaMemoryTypeHost;
}

}  // namespace cudavision
