// SPDX-License-Identifier: LGPL-2.1-or-later
// How elements pass on memory that the GPU still writes. It depends on the version of GStreamer's CUDA library:
//
//   since 1.24  Memory has a stream. Work that is submitted there is in order with the memory's writers
//   and readers, in all elements.
//   1.22        Memory has no stream, and elements pass on finished memory. Elements of this plugin, which find each
//               other by handover_api() in allocation queries, pass on unfinished memory together with an event.
//
// Only for files that are built with CUDA.
#pragma once

#include <map>
#include <memory>

#include "gst/base/compat.hpp"
#include "gst/base/cuda_event.hpp"
#include "gst/base/log.hpp"

namespace cudavision {

/// Makes `later` wait on the device for all work that was submitted to `earlier`. `event`: to be used for it.
inline void put_in_order(CUstream earlier, CUstream later, const CudaEvent& event) {
  if (earlier == later || (event.record(earlier) && event.hold_up(later))) return;
  cudaStreamSynchronize(earlier);
}

#if CUDAVISION_CUDA_STREAMS

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
  /// Makes this stream the one on which buffers of a pool are written.
  void set_on(GstStructure* pool_config) const { gst_buffer_pool_config_set_cuda_stream(pool_config, stream_); }
  /// (transfer full) The stream of a pool that a neighbour offers; nullptr if it has none, or has this one.
  GstCudaStream* other_stream(GstStructure* pool_config) const {
    GstCudaStream* offered = gst_buffer_pool_config_get_cuda_stream(pool_config);
    if (offered == stream_) gst_clear_cuda_stream(&offered);
    return offered;
  }
  /// Changes to `stream` (taken). All work must be done.
  void change_to(GstCudaStream* stream) {
    gst_clear_cuda_stream(&stream_);
    stream_ = stream;
  }

  /// Orders later work of this stream after the writer of the memory.
  void wait_for_writer(GstCudaMemory* memory) const {
    GstCudaStream* stream = gst_cuda_memory_get_stream(memory);
    if (!stream || stream == stream_) return;
    // GST_CUDA_MEMORY_TRANSFER_NEED_SYNC does not tell whether this is necessary,
    // because another reader clears it before it waits.
    if (memory->context == context_)
      put_in_order(gst_cuda_stream_get_handle(stream), handle(), event_);
    else
      wait_for_peer(memory->context, gst_cuda_stream_get_handle(stream));
  }
  /// Whether the next writer of the memory comes after the work of this stream anyway.
  bool precedes_next_writer(GstCudaMemory* memory) const { return gst_cuda_memory_get_stream(memory) == stream_; }
  /// Makes the next writer of the memory follow the work of this stream so far. Returns false if that is not possible.
  bool hold_up_next_writer(GstCudaMemory* memory) const {
    GstCudaStream* stream = gst_cuda_memory_get_stream(memory);
    if (stream) put_in_order(handle(), gst_cuda_stream_get_handle(stream), event_);
    return stream != nullptr;
  }
  /// Orders later work of this stream after the readers of memory that comes from a pool.
  /// They read it on the memory's stream.
  void wait_for_readers(GstCudaMemory* memory) const {
    if (GstCudaStream* stream = gst_cuda_memory_get_stream(memory))
      put_in_order(gst_cuda_stream_get_handle(stream), handle(), event_);
  }
  bool can_hand_over(bool) const { return true; }
  /// For memory that is passed on unchanged: makes sure that nobody reads it before its writer is done.
  /// Returns false if that is not possible.
  bool pass_on(GstCudaMemory*, bool) const { return true; }
  /// Lets others find out when the work of this stream on the memory is done. Returns false if that is not possible.
  bool hand_over(GstCudaMemory* memory, bool) const {
    GstCudaStream* stream = gst_cuda_memory_get_stream(memory);
    if (!stream) return false;
    put_in_order(handle(), gst_cuda_stream_get_handle(stream), event_);
    GST_MINI_OBJECT_FLAG_SET(memory, GST_CUDA_MEMORY_TRANSFER_NEED_SYNC);
    return true;
  }
  /// (transfer full) Memory around the picture of somebody else; `video` describes it, and free(data) is called when it
  /// is freed. nullptr if that is not possible.
  GstMemory* wrap(GstCudaContext* context, const GstVideoInfo& video, void* picture, gpointer data,
                  GDestroyNotify free) const {
    return gst_cuda_allocator_alloc_wrapped(nullptr, context, stream_, &video, CUdeviceptr(picture), data, free);
  }

 private:
  /// Orders later work of this stream after a stream of another context, in which the event must be.
  void wait_for_peer(GstCudaContext* peer, CUstream stream) const {
    const CurrentContext current(peer);
    std::unique_ptr<CudaEvent>& event = peer_events_[peer];
    if (!event) event = std::make_unique<CudaEvent>(peer);
    put_in_order(stream, handle(), *event);
  }

  GstCudaContext* const context_;  // that of stream_, which holds a reference
  CudaEvent event_;
  GstCudaStream* stream_;
  mutable std::map<GstCudaContext*, std::unique_ptr<CudaEvent>> peer_events_;  // each holds a reference to its context
};

inline void offer_handover(GstQuery*) {}
inline bool takes_handover(GstQuery*) { return true; }
/// Records that the memory is written completely, so that readers need not wait.
inline void mark_finished(GstCudaMemory* memory) { GST_MEMORY_FLAG_UNSET(memory, GST_CUDA_MEMORY_TRANSFER_NEED_SYNC); }
/// Records that others write the memory on the device.
inline void mark_unfinished(GstCudaMemory* memory) {
  GST_MINI_OBJECT_FLAG_SET(memory, GST_CUDA_MEMORY_TRANSFER_NEED_DOWNLOAD);
  if (gst_cuda_memory_get_stream(memory)) GST_MINI_OBJECT_FLAG_SET(memory, GST_CUDA_MEMORY_TRANSFER_NEED_SYNC);
}

// For streams of others, which may be in another context of the device.

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
/// Whether users of the memory follow its stream. Otherwise it must be finished when they get it.
inline bool users_follow_stream(GstCudaMemory* memory) { return gst_cuda_memory_get_stream(memory) != nullptr; }
/// Makes later users of the memory wait on the device for an event. Returns false if that is not possible.
inline bool hold_up_users(GstCudaMemory* memory, cudaEvent_t event) {
  GstCudaStream* stream = gst_cuda_memory_get_stream(memory);
  const CurrentContext using_it(memory->context);
  if (!stream || !using_it || cudaStreamWaitEvent(gst_cuda_stream_get_handle(stream), event, 0) != cudaSuccess)
    return false;
  GST_MINI_OBJECT_FLAG_SET(memory, GST_CUDA_MEMORY_TRANSFER_NEED_SYNC);
  return true;
}
inline bool can_wrap() { return true; }

#else

using GstCudaStream = void;

inline GQuark written_quark() {
  static const GQuark quark = g_quark_from_static_string("cudavision-written");
  return quark;
}
/// The event after which the memory is written; nullptr if the memory was always passed on finished. It stays with the
/// memory when that goes back to its pool, and is recorded again.
inline CudaEvent* written_event(GstCudaMemory* memory) {
  return static_cast<CudaEvent*>(gst_mini_object_get_qdata(GST_MINI_OBJECT(memory), written_quark()));
}

class Stream {
 public:
  /// The context must be current.
  explicit Stream(GstCudaContext* context) : context_(GST_CUDA_CONTEXT(gst_object_ref(context))) {
    // A stream that the legacy default stream waits for: libgstcuda 1.22 copies for CPU readers there.
    if (CuStreamCreate(&stream_, CU_STREAM_DEFAULT) != CUDA_SUCCESS) stream_ = nullptr;
  }
  ~Stream() {
    if (const CurrentContext current(context_); current && stream_) CuStreamDestroy(stream_);
    gst_object_unref(context_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  bool ok() const { return stream_ != nullptr; }
  CUstream handle() const { return stream_; }
  void set_on(GstStructure*) const {}
  GstCudaStream* other_stream(GstStructure*) const { return nullptr; }
  void change_to(GstCudaStream*) {}

  void wait_for_writer(GstCudaMemory* memory) const {
    const CudaEvent* written = written_event(memory);
    if (written && !written->hold_up(stream_)) (void)written->wait();
  }
  bool precedes_next_writer(GstCudaMemory*) const { return false; }
  bool hold_up_next_writer(GstCudaMemory*) const { return false; }
  /// Readers keep references until they are done.
  void wait_for_readers(GstCudaMemory*) const {}
  /// `taken`: the next element takes unfinished memory.
  bool can_hand_over(bool taken) const { return taken; }
  /// The writer handed the memory over to this element. If the next element takes no unfinished memory,
  /// the host waits for the writer.
  bool pass_on(GstCudaMemory* memory, bool taken) const {
    const CudaEvent* written = taken ? nullptr : written_event(memory);
    if (!written || written->query() == cudaSuccess) return true;
    GST_LOG("waits for the GPU, which writes a frame that passes through");
    return written->wait() == cudaSuccess;
  }
  bool hand_over(GstCudaMemory* memory, bool taken) const {
    if (!taken) return false;
    CudaEvent* written = written_event(memory);
    if (!written) {
      written = new CudaEvent(context_);
      gst_mini_object_set_qdata(GST_MINI_OBJECT(memory), written_quark(), written,
                                [](gpointer event) { delete static_cast<CudaEvent*>(event); });
    }
    return written->record(stream_);
  }

  GstMemory* wrap(GstCudaContext*, const GstVideoInfo&, void*, gpointer, GDestroyNotify) const { return nullptr; }

 private:
  GstCudaContext* context_;
  CUstream stream_ = nullptr;
};

/// Names the hand-over in allocation queries. No such meta exists.
/// Other elements drop the name from their answers, because of its tag.
inline GType handover_api() {
  static const GType type = [] {
    static const gchar* tags[] = {"memory", nullptr};
    return gst_meta_api_type_register("GstCudaVisionHandoverAPI", tags);
  }();
  return type;
}
/// Says in the answer to an allocation query that this element takes memory that the GPU still writes.
inline void offer_handover(GstQuery* query) { gst_query_add_allocation_meta(query, handover_api(), nullptr); }
/// Whether downstream said so.
inline bool takes_handover(GstQuery* query) { return gst_query_find_allocation_meta(query, handover_api(), nullptr); }
inline void mark_finished(GstCudaMemory*) {}
inline void mark_unfinished(GstCudaMemory* memory) {
  GST_MINI_OBJECT_FLAG_SET(memory, GST_CUDA_MEMORY_TRANSFER_NEED_DOWNLOAD);
}

inline bool follow_writer(GstCudaMemory* memory, GstCudaContext* context, CUstream stream) {
  const CudaEvent* written = written_event(memory);
  const CurrentContext reading(context);
  return !written || (reading && written->hold_up(stream));
}
inline bool users_follow_stream(GstCudaMemory*) { return false; }
inline bool hold_up_users(GstCudaMemory*, cudaEvent_t) { return false; }
inline bool can_wrap() { return false; }

#endif

}  // namespace cudavision
