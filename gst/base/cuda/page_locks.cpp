// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/cuda/page_locks.hpp"

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>

#include "gst/base/cuda/current_context.hpp"
#include "gst/base/log.hpp"

namespace cudavision {
namespace {

/// The number of visits after which a memory is page-locked. Locking costs about as much as a few copies of the memory.
constexpr int visits_before_lock = 3;
/// The maximum number of bytes that are locked at a time: 32 frames of 4K RGBA. Page-locked memory cannot be swapped
/// out.
constexpr gsize most_bytes = gsize(1) << 30;

/// The ranges that this file has page-locked. They do not overlap.
class Ranges {
 public:
  static Ranges& all() {
    static auto* const ranges = new Ranges;  // never deleted, because a process may end with running pipelines
    return *ranges;
  }

  /// Adds a range, unless this would exceed the limit or the range overlaps a locked range. Returns whether it was
  /// added.
  bool add(const void* begin, gsize bytes) {
    const std::lock_guard lock(mutex_);
    if (sum_ + bytes > most_bytes || overlap(address(begin), bytes) != PageLocked::no) return false;
    ranges_[address(begin)] = bytes;
    sum_ += bytes;
    return true;
  }
  void remove(const void* begin) {
    const std::lock_guard lock(mutex_);
    const auto range = ranges_.find(address(begin));
    sum_ -= range->second;
    ranges_.erase(range);
  }
  /// How much of a range is inside these ranges.
  PageLocked contains(const void* begin, gsize bytes) const {
    const std::lock_guard lock(mutex_);
    return overlap(address(begin), bytes);
  }
  /// Whether one of these ranges has a byte in a page of the given range.
  bool share_pages(const void* begin, gsize bytes) const {
    constexpr guintptr page = 4096;
    const guintptr first = address(begin) & ~(page - 1), end = (address(begin) + bytes + page - 1) & ~(page - 1);
    const std::lock_guard lock(mutex_);
    return overlap(first, end - first) != PageLocked::no;
  }

 private:
  static guintptr address(const void* data) { return reinterpret_cast<guintptr>(data); }

  PageLocked overlap(guintptr begin, gsize bytes) const {
    const auto after = ranges_.lower_bound(begin + bytes);  // the first range that begins after the given one
    if (after == ranges_.begin()) return PageLocked::no;
    const auto [first, size] = *std::prev(after);
    if (first + size <= begin) return PageLocked::no;
    return first <= begin && begin + bytes <= first + size ? PageLocked::yes : PageLocked::partly;
  }

  mutable std::mutex mutex_;
  std::map<guintptr, gsize> ranges_;  // begin, bytes
  gsize sum_ = 0;
};

/// The visits to a memory. This data is freed with the memory.
struct Visits {
  const void* visitor;
  int count = 0;
  void* locked = nullptr;           // the address, if the memory is locked
  Owned<GstCudaContext> context{};  // set if the memory is locked
};

/// Called before the memory is freed.
void forget(gpointer data) {
  auto* visits = static_cast<Visits*>(data);
  if (visits->locked) {
    if (const CurrentContext current(visits->context.get());
        current && cudaHostUnregister(visits->locked) != cudaSuccess)
      cudaGetLastError();
    Ranges::all().remove(visits->locked);
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
  void* const begin = map.data - memory->offset;  // the whole memory, because another part of it may be used later
  const gsize bytes = memory->maxsize;
  if (!Ranges::all().add(begin, bytes)) {
    GST_DEBUG("a memory of %" G_GSIZE_FORMAT " bytes stays pageable: enough are page-locked, or a part of it is",
              bytes);
  } else if (const cudaError_t error = cudaHostRegister(begin, bytes, cudaHostRegisterPortable); error != cudaSuccess) {
    cudaGetLastError();  // clears the error, which the next call would return
    Ranges::all().remove(begin);
    GST_DEBUG("a memory of %" G_GSIZE_FORMAT " bytes stays pageable: %s", bytes, cudaGetErrorString(error));
  } else {
    visits.locked = begin;
    visits.context = new_reference(context);
  }
  gst_memory_unmap(memory, &map);
}

/// Whether an address is page-locked, by this file or by others.
bool is_page_locked(const void* data) {
  cudaPointerAttributes attributes;
  const bool known = cudaPointerGetAttributes(&attributes, data) == cudaSuccess;
  if (!known) cudaGetLastError();  // clears the error, which the next call would return
  return known && attributes.type == cudaMemoryTypeHost;
}

}  // namespace

PageLocked page_locked(const void* begin, gsize bytes) {
  if (const PageLocked ours = Ranges::all().contains(begin, bytes); ours != PageLocked::no) return ours;
  const bool first = is_page_locked(begin), last = is_page_locked(static_cast<const char*>(begin) + bytes - 1);
  if (!first && !last) return PageLocked::no;
  // Locks of adjacent memories may extend into the pages at the ends.
  return first && last && !Ranges::all().share_pages(begin, bytes) ? PageLocked::yes : PageLocked::partly;
}

void page_lock_recurring(GstBuffer* buffer, GstMapFlags access, GstCudaContext* context, const void* visitor) {
  static std::mutex mutex;  // several elements may visit a memory at once
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
