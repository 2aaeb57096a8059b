// SPDX-License-Identifier: LGPL-2.1-or-later
// Only the differences between versions of GStreamer's CUDA library. In 1.22 the producer of CUDA memory finishes before
// it pushes a buffer, and memory has no stream. Since 1.24 memory can have a stream on which its producer may still be working.
#pragma once

#include <gst/gst.h>

#include "kernels/core/backend.hpp"
#include "kernels/core/format.hpp"

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

/// The minor version of the installed GStreamer, which may be newer than the one at build time.
inline guint running_minor() {
  guint major, minor, micro, nano;
  gst_version(&major, &minor, &micro, &nano);
  return minor;
}

inline bool cuda_allocates(const FormatInfo& format) { return format.cuda_since > 0 && running_minor() >= format.cuda_since; }

/// Whether libgstcuda has a bug at this size. At odd widths it does not copy the last Cr of packed 4:2:2 across the bus. At odd
/// heights it allocates too little for NV21 since 1.24; in 1.22 it loses the last plane of planar 4:2:0 when the CPU reads it.
inline bool cuda_fails_size(const FormatInfo& format, int width, int height) {
  if (width % 2 == 1 && format.sets[0].shares_plane()) return true;
  if (height % 2 == 0) return false;
  if (running_minor() >= 24) return format.format == Format::NV21;
  return format.set_count == 3 && format.sets[1].shift_y > 0;
}

#if CUDAVISION_CUDA

/// Whether this build works with the installed library. A build without streams would not wait for the work of elements of 1.24.
inline bool fits_running_library() { return CUDAVISION_CUDA_STREAMS || running_minor() < 24; }

#if CUDAVISION_CUDA_STREAMS

/// The CUDA stream of an element, in the form that this version shares with other elements.
class Stream {
 public:
  explicit Stream(GstCudaContext* context) : stream_(gst_cuda_stream_new(context)) {}
  ~Stream() { gst_clear_cuda_stream(&stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  bool ok() const { return stream_ != nullptr; }
  CUstream handle() const { return gst_cuda_stream_get_handle(stream_); }
  /// Makes this stream the one on which buffers of a pool are written.
  void set_on(GstStructure* pool_config) const { gst_buffer_pool_config_set_cuda_stream(pool_config, stream_); }
  /// Adopts the stream of a pool that a neighbour offers, if it has one: work of both elements is then in order by itself.
  void follow(GstStructure* pool_config) {
    if (GstCudaStream* offered = gst_buffer_pool_config_get_cuda_stream(pool_config)) {
      gst_clear_cuda_stream(&stream_);
      stream_ = offered;
    }
  }
  /// Waits until the producer has written the memory, if it works on another stream.
  void wait_for_writer(GstCudaMemory* memory) const {
    if (gst_cuda_memory_get_stream(memory) != stream_) gst_cuda_memory_sync(memory);
  }
  /// Waits until consumers have read memory that comes from a pool. They read it on the memory's stream.
  void wait_for_readers(GstCudaMemory* memory) const {
    GstCudaStream* stream = gst_cuda_memory_get_stream(memory);
    if (stream && stream != stream_) CuStreamSynchronize(gst_cuda_stream_get_handle(stream));
  }

 private:
  GstCudaStream* stream_;
};

/// Records that the memory is written completely, so that readers need not wait.
inline void mark_finished(GstCudaMemory* memory) { GST_MEMORY_FLAG_UNSET(memory, GST_CUDA_MEMORY_TRANSFER_NEED_SYNC); }

#else

class Stream {
 public:
  explicit Stream(GstCudaContext* context) : context_(GST_CUDA_CONTEXT(gst_object_ref(context))) {
    if (!gst_cuda_context_push(context_)) return;
    // A stream that the legacy default stream waits for: libgstcuda 1.22 copies for CPU readers there.
    if (CuStreamCreate(&stream_, CU_STREAM_DEFAULT) != CUDA_SUCCESS) stream_ = nullptr;
    gst_cuda_context_pop(nullptr);
  }
  ~Stream() {
    if (stream_ && gst_cuda_context_push(context_)) {
      CuStreamDestroy(stream_);
      gst_cuda_context_pop(nullptr);
    }
    gst_object_unref(context_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  bool ok() const { return stream_ != nullptr; }
  CUstream handle() const { return stream_; }
  void set_on(GstStructure*) const {}
  void follow(GstStructure*) {}
  void wait_for_writer(GstCudaMemory*) const {}
  void wait_for_readers(GstCudaMemory*) const {}

 private:
  GstCudaContext* context_;
  CUstream stream_ = nullptr;
};

inline void mark_finished(GstCudaMemory*) {}

#endif

#endif  // CUDAVISION_CUDA

}  // namespace cudavision::compat
