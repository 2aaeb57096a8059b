// SPDX-License-Identifier: LGPL-2.1-or-later
// Only the differences between versions of GStreamer's CUDA library: headers and limits. cuda_stream.hpp has the rest.
#pragma once

#include <gst/gst.h>

#include "kernels/core/backend.hpp"
#include "kernels/core/format.hpp"
#include "kernels/core/status.hpp"

#if CUDAVISION_CUDA
#ifndef GST_USE_UNSTABLE_API
#define GST_USE_UNSTABLE_API
#endif
#if __has_include(<gst/cuda/gstcuda.h>)
#include <gst/cuda/gstcuda.h>
#define CUDAVISION_CUDA_STREAMS 1
#else
#include <gst/cuda/gstcudabufferpool.h>
#include <gst/cuda/gstcudacontext.h>
#include <gst/cuda/gstcudaloader.h>
#include <gst/cuda/gstcudamemory.h>
#include <gst/cuda/gstcudautils.h>
#define CUDAVISION_CUDA_STREAMS 0
#endif
#endif

namespace cudavision::compat {

/// The minor version of the installed GStreamer, which may be newer than the version at build time.
inline guint running_minor() {
  guint major, minor, micro, nano;
  gst_version(&major, &minor, &micro, &nano);
  return minor;
}

inline bool cuda_allocates(const FormatInfo& format) {
  return format.cuda_since > 0 && running_minor() >= format.cuda_since;
}

/// Whether libgstcuda has a bug at this size. At odd widths it does not copy the last Cr of packed 4:2:2 across the
/// bus. At odd heights it allocates too little for NV21 since 1.24; in 1.22 it loses the last plane of planar 4:2:0
/// when the CPU reads it.
inline bool cuda_fails_size(const FormatInfo& format, int width, int height) {
  if (width % 2 == 1 && format.sets[0].shares_plane()) return true;
  if (height % 2 == 0) return false;
  if (running_minor() >= 24) return format.format == Format::NV21;
  return format.is_planar() && format.is_420();
}

#if CUDAVISION_CUDA

/// Checks that this build works with the installed library. A build without streams would not wait for the work of
/// GStreamer 1.24's elements. Errors: resource.
inline Status check_running_library() {
  if (CUDAVISION_CUDA_STREAMS || running_minor() < 24) return {};
  return Status::resource(
      "this plugin was built for the CUDA library of GStreamer 1.22, and must be rebuilt for the installed one");
}

#endif  // CUDAVISION_CUDA

}  // namespace cudavision::compat
