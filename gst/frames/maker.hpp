// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/video/video.h>

#include <atomic>
#include <memory>
#include <vector>

#include "gst/frames/cuda_use.hpp"
#include "kernels/core/image.hpp"

namespace cudavision::frames {

/// The objects that own imported arrays, until the last reference is dropped, on any thread.
class Sources {
 public:
  Sources(const CudavisionSource* sources, int count) : sources_(sources, sources + count) {}
  Sources(const Sources&) = delete;
  Sources& operator=(const Sources&) = delete;

  Sources* ref() {
    references_.fetch_add(1, std::memory_order_relaxed);
    return this;
  }
  void unref() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) end();
  }

 private:
  ~Sources();
  void end();

  std::atomic<int> references_{1};
  const std::vector<CudavisionSource> sources_;
};

enum class Copy { if_necessary, always, never };

/// Makes buffers in CUDA memory from arrays.
class Maker {
 public:
  virtual ~Maker() = default;

  /// Makes a maker. Errors: settings, resource.
  static Result<std::unique_ptr<Maker>> make(const Geometry& geometry, int device_id);

  /// The stream on which the arrays must be ready.
  virtual std::intptr_t stream() const = 0;
  /// Makes stream() wait for the work submitted to another stream so far. Errors: resource.
  virtual Status wait_for(std::intptr_t stream) = 0;

  struct Made {
    GstBuffer* buffer;  ///< transfer full
    bool copied;
  };
  /// Makes a buffer from arrays on the device, and keeps references to the sources as long as they are needed. Errors:
  /// frame, if arrays must be copied but may not be; resource; late.
  virtual Result<Made> buffer_of(const Image& arrays, Sources* sources, Copy copy, int milliseconds) = 0;
};

/// (transfer full) A buffer in system memory that consists of the arrays.
GstBuffer* system_buffer_of(const Image& arrays, Sources* sources);

/// Adds the meta that describes where the planes are: `offsets` bytes from the start of the buffer.
void describe_layout(GstBuffer* buffer, const Image& picture, const gsize* offsets);

}  // namespace cudavision::frames
