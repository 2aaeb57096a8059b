// SPDX-License-Identifier: LGPL-2.1-or-later
// Memory whose end can be seen: a read or write beyond it crashes, also without a sanitizer.
#pragma once

#include <gst/gst.h>

#include <cstddef>

namespace cudavision::fuzz {

enum class Fence {
  page,  ///< what follows the last byte is a page that cannot be read
  heap,  ///< a block of malloc of exactly this size, which the address sanitizer watches at both ends
};

/// (transfer full) Memory that holds a copy of `bytes`. Memory that is `read_only` is so for GStreamer, and behind a fence of pages
/// for the processor too.
GstMemory* new_fenced_memory(const void* bytes, std::size_t size, Fence fence, bool read_only);

}  // namespace cudavision::fuzz
