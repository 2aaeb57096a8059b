// SPDX-License-Identifier: LGPL-2.1-or-later
// Memory with guarded ends: an access beyond the end crashes, even without a sanitizer.
#pragma once

#include <gst/gst.h>

#include <cstddef>

namespace cudavision::streams {

enum class Fence {
  page,  ///< an unreadable page follows the last byte
  heap,  ///< a malloc block of exactly this size; the address sanitizer guards both ends
};

/// (transfer full) Makes memory with a copy of `bytes`. GStreamer does not map `read_only` memory for writing. With
/// Fence::page the processor also refuses writes.
GstMemory* new_fenced_memory(const void* bytes, std::size_t size, Fence fence, bool read_only);

}  // namespace cudavision::streams
