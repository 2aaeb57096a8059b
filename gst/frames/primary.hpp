// SPDX-License-Identifier: LGPL-2.1-or-later
// Only for files that are built with CUDA.
#pragma once

#include <cstdint>

#include "gst/base/cuda/cuda_event.hpp"
#include "gst/frames/cuda_use.hpp"

namespace cudavision::frames {

/// The primary context of a device, which Python libraries use, and a thread that waits for work in this context. Made
/// once for each device, and kept until the process ends.
class Primary {
 public:
  /// The object for a device. Errors: settings, if there is no such device; resource.
  static Result<Primary*> of(int device_id);

  GstCudaContext* context() const { return context_; }
  /// The address at which kernels of this context can access an address of another context of the device, according to
  /// the driver. nullptr: none.
  void* reach(void* pointer) const;

  /// Calls action(data) on the thread when all work submitted to this context so far is done, on any stream. Actions
  /// run in order.
  void after_all_work(void (*action)(void*), void* data);
  /// Calls action(data) on the thread when the work of a stream of this context so far, and all earlier actions, are
  /// done.
  void after_work_of(CUstream stream, void (*action)(void*), void* data);
  /// Waits on the host for all work submitted to this context so far, at most for the given time. Returns whether it
  /// ended.
  bool wait_for_all_work(int milliseconds);
  /// Records an event of this context after all its work so far. Returns false if the driver cannot (before CUDA 12.5).
  bool record_all_work(cudaEvent_t event) const;

 private:
  struct Pending;

  Primary(GstCudaContext* context, CUcontext handle);
  template <typename Record>
  void after(Record&& record, void (*action)(void*), void* data);
  static void* run(void* self);

  GstCudaContext* const context_;
  const CUcontext handle_;
  GAsyncQueue* const queue_;
};

/// A stream by its number in Python: 1 and 2 are the default streams of the current context, other numbers are handles.
inline CUstream stream_of(std::intptr_t number) { return reinterpret_cast<CUstream>(number); }

/// Waits on the host for an event, at most for the given time. The context of the event must be current. Errors:
/// resource; late, with the text `late`.
Status wait_for_event(const CudaEvent& event, int milliseconds, const char* late);

}  // namespace cudavision::frames
