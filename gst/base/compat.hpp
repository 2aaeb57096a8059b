// SPDX-License-Identifier: LGPL-2.1-or-later
// Differences between versions of GStreamer's CUDA library, and nothing else. 1.22: the producer of CUDA memory has finished before
// it pushes, and memory knows no stream. Since 1.24 memory may carry a stream on which its producer's work is still under way.
#pragma once

#ifndef GST_USE_UNSTABLE_API
#define GST_USE_UNSTABLE_API
#endif

#include <gst/gst.h>
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

namespace cudavision::compat {

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
  /// Waits for work on the memory that another stream may still be doing.
  void wait_for(GstCudaMemory* memory) const {
    if (gst_cuda_memory_get_stream(memory) != stream_) gst_cuda_memory_sync(memory);
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
  void wait_for(GstCudaMemory*) const {}

 private:
  GstCudaContext* context_;
  CUstream stream_ = nullptr;
};

inline void mark_finished(GstCudaMemory*) {}

#endif

}  // namespace cudavision::compat
