// SPDX-License-Identifier: LGPL-2.1-or-later
// Memory without streams, for GStreamer 1.22. cuda_stream_1_24.hpp has the same functions and documents them.
// cuda_stream.hpp explains how they are used, and includes this file.
#pragma once

#include "gst/base/cuda/cuda_event.hpp"
#include "gst/base/log.hpp"

namespace cudavision {

using GstCudaStream = void;

inline GQuark written_quark() {
  static const GQuark quark = g_quark_from_static_string("cudavision-written");
  return quark;
}
/// The event that marks the end of writing to the memory; nullptr if the memory was always passed on finished. It stays
/// with the memory when the memory returns to its pool, and is reused.
inline CudaEvent* written_event(GstCudaMemory* memory) {
  return static_cast<CudaEvent*>(gst_mini_object_get_qdata(GST_MINI_OBJECT(memory), written_quark()));
}

class Stream {
 public:
  /// The context must be current.
  explicit Stream(GstCudaContext* context) : stream_(in_context<CuStreamDestroy>(context, create())) {}

  bool ok() const { return stream_ != nullptr; }
  CUstream handle() const { return stream_.get(); }
  void set_on(GstStructure*) const {}
  GstCudaStream* other_stream(GstStructure*) const { return nullptr; }
  void change_to(GstCudaStream*) {}

  void wait_for_writer(GstCudaMemory* memory) const {
    const CudaEvent* written = written_event(memory);
    if (written && !written->hold_up(handle())) (void)written->wait();
  }
  bool precedes_next_writer(GstCudaMemory*) const { return false; }
  bool hold_up_next_writer(GstCudaMemory*) const { return false; }
  /// Readers keep references until they are done.
  void wait_for_readers(GstCudaMemory*) const {}
  /// `taken`: the next element accepts unfinished memory.
  bool can_hand_over(bool taken) const { return taken; }
  /// Passes on memory that the writer handed over to this element. If the next element does not accept unfinished
  /// memory, the host waits for the writer.
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
      written = new CudaEvent(stream_.get_deleter().context.get());
      gst_mini_object_set_qdata(GST_MINI_OBJECT(memory), written_quark(), written,
                                [](gpointer event) { delete static_cast<CudaEvent*>(event); });
    }
    return written->record(handle());
  }

  GstMemory* wrap(GstCudaContext*, const GstVideoInfo&, void*, gpointer, GDestroyNotify) const { return nullptr; }

 private:
  static CUstream create() {
    CUstream stream;
    // The legacy default stream, where libgstcuda 1.22 copies for CPU readers, waits for this stream.
    return CuStreamCreate(&stream, CU_STREAM_DEFAULT) == CUDA_SUCCESS ? stream : nullptr;
  }

  InContext<CUstream, CuStreamDestroy> stream_;
};

/// The name of the hand-over in allocation queries. No such meta exists. Because of its tag, other elements drop the
/// name from their answers.
inline GType handover_api() {
  static const GType type = [] {
    static const gchar* tags[] = {"memory", nullptr};
    return gst_meta_api_type_register("GstCudaVisionHandoverAPI", tags);
  }();
  return type;
}
/// Adds to the answer to an allocation query that this element accepts memory that the GPU is still writing.
inline void offer_handover(GstQuery* query) { gst_query_add_allocation_meta(query, handover_api(), nullptr); }
/// Whether downstream added this to its answer.
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
inline bool hold_up_users(GstCudaMemory*, cudaEvent_t) { return false; }
inline bool can_wrap() { return false; }

}  // namespace cudavision
