// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "gst/base/cuda/cuda_event.hpp"
#include "kernels/core/image.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

/// Copies frames across the bus. Each direction has its own stream, so the upload of frame 3, the kernels of frame 2
/// and the download of frame 1 run at the same time:
///
///   upload stream     U1   U2   U3
///   stream of kernels      K1   K2   K3
///   download stream             D1   D2   D3
///
/// The pictures on the device that copies write or read come in pairs, which are used in turn (Staging). So U3 and K3,
/// which use the pictures of frame 1 again, wait on the device for K1 and D1. For one thread,
/// with the CUDA context current.
class BusCopies {
 public:
  explicit BusCopies(GstCudaContext* context);

  bool ok() const { return up_ && down_; }
  CUstream upload_stream() const { return up_.get(); }
  CUstream download_stream() const { return down_.get(); }

  /// Copies all planes; later work of `kernels` follows. Errors: resource.
  Status upload(const Image& host, const Image& device, CUstream kernels);
  /// Copies all planes after the work of `kernels` so far. Errors: resource.
  Status download(const Image& device, const Image& host, CUstream kernels);
  /// Makes later work of `kernels` in this frame follow the download that read the same picture of a pair.
  void wait_for_download(CUstream kernels) const { (void)downloaded_[turn_].hold_up(kernels); }
  /// All work of a frame was submitted.
  void end_frame(CUstream kernels);

 private:
  CudaEvent order_;                    // used at once, for the order of two streams
  CudaEvent read_[2], downloaded_[2];  // the ends of the kernels and of the downloads of the last two frames
  int turn_ = 0;                       // the index into these for the current frame and for the frame two before it
  const InContext<CUstream, cudaStreamDestroy> up_, down_;
};

/// Copies all planes of a picture to or from the device. Errors: resource, with `what` in front of CUDA's text.
Status copy_planes(const Image& from, const Image& to, cudaMemcpyKind kind, CUstream stream, const char* what);

/// Whether all planes of a picture in system memory are page-locked,
/// so that the GPU copies them by itself while the host continues.
bool is_page_locked(const Image& host);

}  // namespace cudavision
