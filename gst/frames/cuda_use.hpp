// SPDX-License-Identifier: LGPL-2.1-or-later
// All CUDA functions that arrays need. A build without CUDA has cuda_use_none.cpp.
//
// Consumers (PyTorch, CuPy, JAX, Numba) work in the primary context of a device, on streams that only they know. Frames
// are in the context of the pipeline, which is the same context if the application shares it
// (cudavision_frames_context()). The host does not wait:
//
//   wait_for_writer()   writer's stream ──event──▶ consumer's stream
//   hand_back()         consumer's stream(s) ──event──▶ stream of the memory   (1.22: it has none, so the host waits)
//   end()               event of all work in the primary context ──▶ a thread, which then gives the buffer back
//
// end() does not ask for the consumer's stream: the stream may no longer exist, and the array may also have been used
// on other streams.
#pragma once

#include <gst/gst.h>

#include <cstdint>
#include <memory>

#include "gst/frames/frames.h"
#include "kernels/core/status.hpp"

namespace cudavision::frames {

bool is_cuda_memory(GstMemory* memory);

/// The use of a block of CUDA memory by consumers.
class CudaUse {
 public:
  virtual ~CudaUse() = default;

  /// `memory`: CUDA memory that lives at least as long as this object. Errors: resource.
  static Result<std::unique_ptr<CudaUse>> make(GstMemory* memory);

  virtual int device_id() const = 0;
  /// The address for kernels of the primary context. Errors: resource, if they cannot access this memory.
  virtual Result<void*> address(void* mapped) const = 0;
  /// Call this before consumers write to the memory.
  virtual void mark_written() = 0;

  /// See cudavision_owner_wait() and cudavision_owner_hand_back(). Errors: resource, late.
  virtual Status wait_for_writer(std::intptr_t stream) = 0;
  virtual Status hand_back(std::intptr_t stream, int milliseconds) = 0;
  /// Calls end(data), which deletes this object, when the work of the primary context so far is done; immediately if
  /// nobody used the memory.
  virtual void end(void (*end)(void*), void* data) = 0;
};

/// (transfer full) See cudavision_frames_context(). Errors: settings, if there is no such device; resource.
Result<GstContext*> primary_context(int device_id);
/// See cudavision_frames_drain().
int drain(int milliseconds);

}  // namespace cudavision::frames
