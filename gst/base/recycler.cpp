// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/recycler.hpp"

#include <algorithm>

namespace cudavision {

Recycler::~Recycler() {
  for (GstMemory* memory : memories_) gst_memory_unref(memory);
}

GstMemory* Recycler::take() {
  constexpr int most_spare = 2;  // more are freed, after a downstream element that held many returned them
  GstMemory* unused = nullptr;
  int spare = 0;
  memories_.erase(std::remove_if(memories_.begin(), memories_.end(),
                                 [&](GstMemory* memory) {
                                   // Only this list refers to a memory with one reference,
                                   // so no other thread can take one.
                                   if (GST_MINI_OBJECT_REFCOUNT_VALUE(memory) > 1) return false;
                                   if (!unused) {
                                     unused = memory;
                                     return false;
                                   }
                                   if (++spare <= most_spare) return false;
                                   gst_memory_unref(memory);
                                   return true;
                                 }),
                  memories_.end());
  if (!unused && (unused = allocate_())) memories_.push_back(unused);
  return unused ? gst_memory_ref(unused) : nullptr;
}

}  // namespace cudavision
