// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/cuda/bus_copies.hpp"

#include <algorithm>
#include <vector>

#include "gst/base/cuda/cuda_stream.hpp"
#include "gst/base/cuda/page_locks.hpp"
#include "gst/base/frame.hpp"
#include "kernels/cuda/filter.hpp"

namespace cudavision {

namespace {

CUstream new_stream() {
  CUstream stream;
  return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess ? stream : nullptr;
}

}  // namespace

BusCopies::BusCopies(GstCudaContext* context)
    : order_(context),
      read_{CudaEvent(context), CudaEvent(context)},
      downloaded_{CudaEvent(context), CudaEvent(context)},
      up_(in_context<cudaStreamDestroy>(context, new_stream())),
      down_(in_context<cudaStreamDestroy>(context, new_stream())) {}

Status BusCopies::upload(const Image& host, const Image& device, CUstream kernels) {
  (void)read_[turn_].hold_up(up_.get());
  // A frame that passes through is downloaded from the picture that its upload wrote.
  (void)downloaded_[turn_].hold_up(up_.get());
  Status status = copy_planes(host, device, cudaMemcpyHostToDevice, up_.get(), "cannot upload a frame");
  put_in_order(up_.get(), kernels, order_);
  return status;
}

Status BusCopies::download(const Image& device, const Image& host, CUstream kernels) {
  put_in_order(kernels, down_.get(), order_);
  return copy_planes(device, host, cudaMemcpyDeviceToHost, down_.get(), "cannot download a frame");
}

void BusCopies::end_frame(CUstream kernels) {
  (void)read_[turn_].record(kernels);
  (void)downloaded_[turn_].record(down_.get());
  turn_ = 1 - turn_;
}

namespace {

PageLocked page_locked(const Plane& plane, const PlaneExtent& extent) {
  const std::size_t row = std::min(extent.row_bytes, std::size_t(plane.pitch));  // see copied_row()
  return cudavision::page_locked(plane.data, std::size_t(plane.pitch) * std::size_t(extent.rows - 1) + row);
}

cudaError_t copy_plane(const Plane& from, const Plane& to, const PlaneExtent& extent, cudaMemcpyKind kind,
                       CUstream stream) {
  return cudaMemcpy2DAsync(to.data, to.pitch, from.data, from.pitch, copied_row(extent, from, to), extent.rows, kind,
                           stream);
}

/// Copies a plane that is only partly page-locked, through other memory. Waits until the copy is done.
cudaError_t copy_mixed_plane(const Plane& from, const Plane& to, const PlaneExtent& extent, cudaMemcpyKind kind,
                             CUstream stream) {
  std::vector<char> memory(extent.row_bytes * std::size_t(extent.rows));
  const Plane rows{memory.data(), std::ptrdiff_t(extent.row_bytes)};
  const bool up = kind == cudaMemcpyHostToDevice;
  if (up) copy_rows(from, rows, copied_row(extent, from, rows), extent.rows);
  cudaError_t result = copy_plane(up ? rows : from, up ? to : rows, extent, kind, stream);
  if (result == cudaSuccess) result = cudaStreamSynchronize(stream);
  if (!up && result == cudaSuccess) copy_rows(rows, to, copied_row(extent, rows, to), extent.rows);
  return result;
}

}  // namespace

Status copy_planes(const Image& from, const Image& to, cudaMemcpyKind kind, CUstream stream, const char* what) {
  const Image& host = kind == cudaMemcpyHostToDevice ? from : to;
  for (int i = 0; i < info(from.geometry.format).planes; ++i) {
    const PlaneExtent bytes = extent(from.geometry, i);
    const auto is_mixed = [&] { return page_locked(host.planes[i], bytes) == PageLocked::partly; };
    cudaError_t result = is_mixed() ? copy_mixed_plane(from.planes[i], to.planes[i], bytes, kind, stream)
                                    : copy_plane(from.planes[i], to.planes[i], bytes, kind, stream);
    if (result == cudaErrorInvalidValue && is_mixed()) {  // another element has just locked overlapping memory
      cudaGetLastError();                                 // clears the error, which the next call would return
      result = copy_mixed_plane(from.planes[i], to.planes[i], bytes, kind, stream);
    }
    if (Status status = cuda::check(result, what); !status.ok()) return status;
  }
  return {};
}

bool is_page_locked(const Image& host) {
  for (int i = 0; i < info(host.geometry.format).planes; ++i)
    if (page_locked(host.planes[i], extent(host.geometry, i)) != PageLocked::yes) return false;
  return true;
}

}  // namespace cudavision
