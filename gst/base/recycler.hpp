// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

#include <functional>
#include <vector>

namespace cudavision {

/// Memories of one size for results that are pushed with buffers. Large memories take long to allocate, so a memory is
/// reused when nobody else holds it. For one thread. Memories may outlive this object.
class Recycler {
 public:
  /// `allocate`: returns (transfer full) a new memory, or nullptr.
  explicit Recycler(std::function<GstMemory*()> allocate) : allocate_(std::move(allocate)) {}
  ~Recycler();
  Recycler(Recycler&& other) = default;
  Recycler& operator=(Recycler&&) = delete;

  /// (transfer full) A memory that nobody else holds; nullptr if none can be allocated.
  GstMemory* take();

 private:
  std::function<GstMemory*()> allocate_;
  std::vector<GstMemory*> memories_;
};

}  // namespace cudavision
