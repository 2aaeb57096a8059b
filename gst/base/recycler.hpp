// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

#include <functional>
#include <vector>

namespace cudavision {

/// Memories of one size for results that leave with buffers. Those that nobody holds any more are handed out again, as large ones
/// take long to allocate. For one thread; what was handed out may outlive it.
class Recycler {
 public:
  /// `allocate`: (transfer full) a new memory, or NULL.
  explicit Recycler(std::function<GstMemory*()> allocate) : allocate_(std::move(allocate)) {}
  ~Recycler();
  Recycler(Recycler&& other) = default;
  Recycler& operator=(Recycler&&) = delete;

  /// (transfer full) A memory that nobody else holds; NULL where none can be allocated.
  GstMemory* take();

 private:
  std::function<GstMemory*()> allocate_;
  std::vector<GstMemory*> memories_;
};

}  // namespace cudavision
