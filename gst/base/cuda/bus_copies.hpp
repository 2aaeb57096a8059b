// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "gst/base/cuda/cuda_event.hpp"
#include "kernels/core/image.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

/// Copies frames across the bus. Each direction has its own stream, so the upload of frame 3, the kernels of frame 2
/// and the download of frame 1 overlap:
///
///   upload stream     U1   U2   U3
///   stream of kernels      K1   K2   K3
///   download stream             D1   D2   D3
///
/// The device pictures that copies read or write come in pairs, which are used alternately (Staging). So U3 and K3,
/// which reuse the pictures of frame 1, wait on the device for K1 and D1. For one thread, with the CUDA context
/// current.
class BusCopies {
 public:
  explicit BusCopies(GstCudaContext* context);

  bool ok() const { return up_ && down_; }
  CUstream upload_stream() const { return up_.get(); }
  CUstream download_stream() const { return down_.get(); }

  /// Copies all planes. Later work of `kernels` waits for the copy. Errors: resource.
  Status upload(const Image& host, const Image& device, CUstream kernels);
  /// Copies all planes after the work submitted to `kernels` so far. Errors: resource.
  Status download(const Image& device, const Image& host, CUstream kernels);
  /// Makes later work of `kernels` in this frame wait for the download that read the same picture of a pair.
  void wait_for_download(CUstream kernels) const { (void)downloaded_[turn_].hold_up(kernels); }
  /// Call this when all work of a frame was submitted.
  void end_frame(CUstream kernels);

 private:
  CudaEvent order_;                    // for immediate use: orders two streams
  CudaEvent read_[2], downloaded_[2];  // ends of the kernels and of the downloads of the last two frames
  int turn_ = 0;                       // index into these for the current frame and for the frame two before it
  const InContext<CUstream, cudaStreamDestroy> up_, down_;
};

/// Copies all planes of a picture to or from the device. Errors: resource; `what` precedes CUDA's text.
Status copy_planes(const Image& from, const Image& to, cudaMemcpyKind kind, CUstream stream, const char* what);

/// Whether all planes of a picture in system memory are page-locked,
/// so that the GPU copies them by itself while the host continues.
bool is_page_locked(const Image& host);

}  // namespace cudavision
