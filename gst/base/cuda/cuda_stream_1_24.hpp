// SPDX-License-Identifier: LGPL-2.1-or-later
// Streams of memory, for GStreamer 1.24 and newer. cuda_stream.hpp explains how they are used, and includes this file.
#pragma once

#include <map>
#include <memory>

#include "gst/base/cuda/cuda_event.hpp"

namespace cudavision {

/// The CUDA stream of an element, in the form that this version shares with other elements.
class Stream {
 public:
  /// The context must be current.
  explicit Stream(GstCudaContext* context)
      : context_(context), event_(context), stream_(gst_cuda_stream_new(context)) {}
  ~Stream() { gst_clear_cuda_stream(&stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  bool ok() const { return stream_ != nullptr; }
  CUstream handle() const { return gst_cuda_stream_get_handle(stream_); }
  /// Makes the buffers of a pool use this stream for writing.
  void set_on(GstStructure* pool_config) const { gst_buffer_pool_config_set_cuda_stream(pool_config, stream_); }
  /// (transfer full) The stream of a pool that a neighbour offers; nullptr if the pool has none, or has this one.
  GstCudaStream* other_stream(GstStructure* pool_config) const {
    GstCudaStream* offered = gst_buffer_pool_config_get_cuda_stream(pool_config);
    if (offered == stream_) gst_clear_cuda_stream(&offered);
    return offered;
  }
  /// Switches to `stream` (taken). All work must be done.
  void change_to(GstCudaStream* stream) {
    gst_clear_cuda_stream(&stream_);
    stream_ = stream;
  }

  /// Makes later work of this stream wait for the writer of the memory.
  void wait_for_writer(GstCudaMemory* memory) const {
    GstCudaStream* stream = gst_cuda_memory_get_stream(memory);
    if (!stream || stream == stream_) return;
    // GST_CUDA_MEMORY_TRANSFER_NEED_SYNC does not show whether this is necessary, because another reader clears it
    // before it waits.
    if (memory->context == context_)
      put_in_order(gst_cuda_stream_get_handle(stream), handle(), event_);
    else
      wait_for_peer(memory->context, gst_cuda_stream_get_handle(stream));
  }
  /// Whether the next writer of the memory runs after the work of this stream in any case.
  bool precedes_next_writer(GstCudaMemory* memory) const { return gst_cuda_memory_get_stream(memory) == stream_; }
  /// Makes the next writer of the memory wait for the work submitted to this stream so far. Returns false if that is
  /// not possible.
  bool hold_up_next_writer(GstCudaMemory* memory) const {
    GstCudaStream* stream = gst_cuda_memory_get_stream(memory);
    if (stream) put_in_order(handle(), gst_cuda_stream_get_handle(stream), event_);
    return stream != nullptr;
  }
  /// Makes later work of this stream wait for the readers of memory that comes from a pool. They read it on the
  /// memory's stream.
  void wait_for_readers(GstCudaMemory* memory) const {
    if (GstCudaStream* stream = gst_cuda_memory_get_stream(memory))
      put_in_order(gst_cuda_stream_get_handle(stream), handle(), event_);
  }
  bool can_hand_over(bool) const { return true; }
  /// For memory that is passed on unchanged: ensures that nobody reads it before its writer is done. Returns false if
  /// that is not possible.
  bool pass_on(GstCudaMemory*, bool) const { return true; }
  /// Lets others detect when the work of this stream on the memory is done. Returns false if that is not possible.
  bool hand_over(GstCudaMemory* memory, bool) const {
    GstCudaStream* stream = gst_cuda_memory_get_stream(memory);
    if (!stream) return false;
    put_in_order(handle(), gst_cuda_stream_get_handle(stream), event_);
    GST_MINI_OBJECT_FLAG_SET(memory, GST_CUDA_MEMORY_TRANSFER_NEED_SYNC);
    return true;
  }
  /// (transfer full) Memory that wraps a foreign picture. `video` describes the picture. free(data) is called when the
  /// memory is freed. nullptr if that is not possible.
  GstMemory* wrap(GstCudaContext* context, const GstVideoInfo& video, void* picture, gpointer data,
                  GDestroyNotify free) const {
    return gst_cuda_allocator_alloc_wrapped(nullptr, context, stream_, &video, CUdeviceptr(picture), data, free);
  }

 private:
  /// Makes later work of this stream wait for a stream of another context.
  void wait_for_peer(GstCudaContext* peer, CUstream stream) const {
    const CurrentContext current(peer);
    std::unique_ptr<CudaEvent>& event = peer_events_[peer];
    if (!event) event = std::make_unique<CudaEvent>(peer);
    put_in_order(stream, handle(), *event);
  }

  GstCudaContext* const context_;  // the context of stream_, which holds a reference
  CudaEvent event_;
  GstCudaStream* stream_;
  mutable std::map<GstCudaContext*, std::unique_ptr<CudaEvent>> peer_events_;  // each holds its context
};

inline void offer_handover(GstQuery*) {}
inline bool takes_handover(GstQuery*) { return true; }
/// Records that the memory is completely written, so that readers need not wait.
inline void mark_finished(GstCudaMemory* memory) { GST_MEMORY_FLAG_UNSET(memory, GST_CUDA_MEMORY_TRANSFER_NEED_SYNC); }
/// Records that others are writing the memory on the device.
inline void mark_unfinished(GstCudaMemory* memory) {
  GST_MINI_OBJECT_FLAG_SET(memory, GST_CUDA_MEMORY_TRANSFER_NEED_DOWNLOAD);
  if (gst_cuda_memory_get_stream(memory)) GST_MINI_OBJECT_FLAG_SET(memory, GST_CUDA_MEMORY_TRANSFER_NEED_SYNC);
}

// For foreign streams, which may be in another context of the device.

/// Makes later work of `stream`, in `context`, wait on the device for the writer of the memory.
/// Returns false if that fails.
inline bool follow_writer(GstCudaMemory* memory, GstCudaContext* context, CUstream stream) {
  const CurrentContext writing(memory->context);
  if (!writing) return false;
  const CudaEvent written(memory->context);
  GstCudaStream* writer = gst_cuda_memory_get_stream(memory);  // nullptr: the default stream of its context
  if (!written.record(writer ? gst_cuda_stream_get_handle(writer) : nullptr)) return false;
  const CurrentContext reading(context);
  return reading && written.hold_up(stream);
}
/// Makes later users of the memory wait on the device for an event. Returns false if that fails.
inline bool hold_up_users(GstCudaMemory* memory, cudaEvent_t event) {
  GstCudaStream* stream = gst_cuda_memory_get_stream(memory);
  const CurrentContext using_it(memory->context);
  if (!stream || !using_it || cudaStreamWaitEvent(gst_cuda_stream_get_handle(stream), event, 0) != cudaSuccess)
    return false;
  GST_MINI_OBJECT_FLAG_SET(memory, GST_CUDA_MEMORY_TRANSFER_NEED_SYNC);
  return true;
}
inline bool can_wrap() { return true; }

}  // namespace cudavision
