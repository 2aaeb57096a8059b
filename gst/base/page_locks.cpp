// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/page_locks.hpp"

#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>

#include "gst/base/current_context.hpp"
#include "gst/base/log.hpp"

namespace cudavision {
namespace {

/// Visits after which a memory is page-locked. Locking costs about as much as copying the memory a few times.
constexpr int visits_before_lock = 3;
/// Most bytes that are locked at a time: 32 frames of RGBA in 4K. Page-locked memory cannot be swapped out.
constexpr gsize most_bytes = gsize(1) << 30;

std::atomic<gsize> locked_bytes{0};

/// What is known of a memory; goes with it.
struct Visits {
  const void* visitor;
  int count = 0;
  void* locked = nullptr;  // the address, if it is locked
  gsize bytes = 0;
  GstCudaContext* context = nullptr;  // if it is locked
};

/// Called before the memory is freed.
void forget(gpointer data) {
  auto* visits = static_cast<Visits*>(data);
  if (visits->locked) {
    if (const CurrentContext current(visits->context); current && cudaHostUnregister(visits->locked) != cudaSuccess)
      cudaGetLastError();
    locked_bytes -= visits->bytes;
    gst_object_unref(visits->context);
  }
  delete visits;
}

Visits& visits_of(GstMemory* memory, const void* visitor) {
  static const GQuark quark = g_quark_from_static_string("cudavision-visits");
  auto* visits = static_cast<Visits*>(gst_mini_object_get_qdata(GST_MINI_OBJECT(memory), quark));
  if (!visits) {
    visits = new Visits{visitor};
    gst_mini_object_set_qdata(GST_MINI_OBJECT(memory), quark, visits, forget);
  }
  return *visits;
}

void lock(GstMemory* memory, GstMapFlags access, Visits& visits, GstCudaContext* context) {
  GstMapInfo map;
  if (!gst_memory_map(memory, &map, access)) return;
  void* const begin = map.data - memory->offset;  // the whole memory: its part in use may be another one later
  const gsize bytes = memory->maxsize;
  if (locked_bytes.fetch_add(bytes) + bytes > most_bytes) {
    locked_bytes -= bytes;
    GST_DEBUG("a memory of %" G_GSIZE_FORMAT " bytes stays pageable: enough are page-locked", bytes);
  } else if (const cudaError_t error = cudaHostRegister(begin, bytes, cudaHostRegisterPortable); error != cudaSuccess) {
    cudaGetLastError();  // clears the error, which would appear in the next call
    locked_bytes -= bytes;
    GST_DEBUG("a memory of %" G_GSIZE_FORMAT " bytes stays pageable: %s", bytes, cudaGetErrorString(error));
  } else {
    visits.locked = begin;
    visits.bytes = bytes;
    visits.context = GST_CUDA_CONTEXT(gst_object_ref(context));
  }
  gst_memory_unmap(memory, &map);
}

}  // namespace

void page_lock_recurring(GstBuffer* buffer, GstMapFlags access, GstCudaContext* context, const void* visitor) {
  static std::mutex mutex;  // several elements may look at a memory at the same time
  std::lock_guard guard(mutex);
  for (guint i = 0; i < gst_buffer_n_memory(buffer); ++i) {
    GstMemory* memory = gst_buffer_peek_memory(buffer, i);
    // A part of another memory may outlive the lock, and the data of other kinds of memory may move.
    if (memory->parent || !gst_memory_is_type(memory, GST_ALLOCATOR_SYSMEM)) continue;
    Visits& visits = visits_of(memory, visitor);
    if (visits.visitor == visitor && visits.count < visits_before_lock && ++visits.count == visits_before_lock)
      lock(memory, access, visits, context);
  }
}

}  // namespace cudavision
