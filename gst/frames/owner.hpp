// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "gst/frames/cuda_use.hpp"
#include "gst/frames/frames.h"
#include "kernels/core/image.hpp"

namespace cudavision::frames {

/// Keeps a buffer and the mapping of its memory. References are counted, because arrays of several libraries hold them
/// and drop them on any thread. Dropping the last reference ends the owner; in CUDA memory it ends when the GPU no
/// longer uses the memory.
class Owner {
 public:
  /// `mapping` is freed together with the owner.
  Owner(GstBuffer* buffer, std::shared_ptr<const void> mapping, std::unique_ptr<CudaUse> cuda)
      : buffer_(gst_buffer_ref(buffer)), mapping_(std::move(mapping)), cuda_(std::move(cuda)) {}
  ~Owner() {
    mapping_.reset();
    gst_buffer_unref(buffer_);
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  Owner* ref() {
    references_.fetch_add(1, std::memory_order_relaxed);
    return this;
  }
  void unref() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (cuda_)
      cuda_->end([](void* self) { delete static_cast<Owner*>(self); }, this);
    else
      delete this;
  }

  /// The use by CUDA consumers; nullptr for system memory.
  CudaUse* cuda() const { return cuda_.get(); }

 private:
  std::atomic<int> references_{1};
  GstBuffer* const buffer_;
  std::shared_ptr<const void> mapping_;
  const std::unique_ptr<CudaUse> cuda_;
};

/// The layout of a plane whose rows are `pitch` bytes apart, without data. In packed 4:2:2, each pair is a luma and a
/// chroma sample.
CudavisionArray plane_array(const Geometry& geometry, int plane, std::ptrdiff_t pitch);

/// Writes the message to `error`, and returns the number for it (see frames.h).
int report(const Status& status, char* error, std::size_t room);

}  // namespace cudavision::frames
