// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

#include <memory>

namespace cudavision {
namespace detail {

struct Unref {
  void operator()(GstBuffer* buffer) const { gst_buffer_unref(buffer); }
  void operator()(GstCaps* caps) const { gst_caps_unref(caps); }
  void operator()(GstContext* context) const { gst_context_unref(context); }
  void operator()(GstEvent* event) const { gst_event_unref(event); }
  void operator()(GstMemory* memory) const { gst_memory_unref(memory); }
  void operator()(GstQuery* query) const { gst_query_unref(query); }
  void operator()(GstSample* sample) const { gst_sample_unref(sample); }
  void operator()(gpointer object) const { gst_object_unref(object); }
};

}  // namespace detail

/// A reference to a GstObject or to one of the types above, which this object drops at its end; or nullptr.
template <typename T>
using Owned = std::unique_ptr<T, detail::Unref>;

/// Takes over a reference.
template <typename T>
Owned<T> owned(T* taken) {
  return Owned<T>(taken);
}

/// Adds a reference to a GstObject.
template <typename T>
Owned<T> new_reference(T* object) {
  return Owned<T>(static_cast<T*>(gst_object_ref(object)));
}

}  // namespace cudavision
