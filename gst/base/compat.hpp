// SPDX-License-Identifier: LGPL-2.1-or-later
// Differences between versions of GStreamer's CUDA library, and nothing else. 1.22: the producer of CUDA memory has finished before
// it pushes, and memory knows no stream. Since 1.24 memory may carry a stream on which its producer's work is still under way.
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

/// Minor version of the GStreamer that runs, which may be newer than the one built with.
inline guint running_minor() {
  guint major, minor, micro, nano;
  gst_version(&major, &minor, &micro, &nano);
  return minor;
}

inline bool cuda_allocates(const FormatInfo& format) { return format.cuda_since > 0 && running_minor() >= format.cuda_since; }

/// Sizes that libgstcuda gets wrong. At odd heights it allocates too little for NV21 since 1.24, and 1.22 loses the last plane of
/// planar 4:2:0 when the CPU reads it; at odd widths it leaves the last Cr of packed 4:2:2 behind when frames cross the bus.
inline bool cuda_fails_size(const FormatInfo& format, int width, int height) {
  if (width % 2 == 1 && format.sets[0].shares_plane()) return true;
  if (height % 2 == 0) return false;
  if (running_minor() >= 24) return format.format == Format::NV21;
  return format.set_count == 3 && format.sets[1].shift_y > 0;
}

#if CUDAVISION_CUDA

/// Whether what was built fits what runs: without streams it would not wait for the work of newer elements.
inline bool fits_running_library() { return CUDAVISION_CUDA_STREAMS || running_minor() < 24; }

#if CUDAVISION_CUDA_STREAMS

/// A CUDA stream of our own, in the form that this version shares with other elements.
class Stream {
 public:
  explicit Stream(GstCudaContext* context) : stream_(gst_cuda_stream_new(context)) {}
  ~Stream() { gst_clear_cuda_stream(&stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  bool ok() const { return stream_ != nullptr; }
  CUstream handle() const { return gst_cuda_stream_get_handle(stream_); }
  /// Buffers of the pool will say that they are written on this stream.
  void set_on(GstStructure* pool_config) const { gst_buffer_pool_config_set_cuda_stream(pool_config, stream_); }
  /// Goes over to the stream of a pool that a neighbour offers: what is read and written there is then in order by itself.
  void follow(GstStructure* pool_config) {
    if (GstCudaStream* offered = gst_buffer_pool_config_get_cuda_stream(pool_config)) {
      gst_clear_cuda_stream(&stream_);
      stream_ = offered;
    }
  }
  /// Waits for a producer's work on the memory that another stream may still be doing.
  void wait_for_writer(GstCudaMemory* memory) const {
    if (gst_cuda_memory_get_stream(memory) != stream_) gst_cuda_memory_sync(memory);
  }
  /// Waits for consumers of memory that comes back from its pool: they may be reading it on its own stream.
  void wait_for_readers(GstCudaMemory* memory) const {
    GstCudaStream* stream = gst_cuda_memory_get_stream(memory);
    if (stream && stream != stream_) CuStreamSynchronize(gst_cuda_stream_get_handle(stream));
  }

 private:
  GstCudaStream* stream_;
};

/// The memory's work is done: readers need not wait.
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
