// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cuda_runtime_api.h>
#include <gst/gst.h>

#include "gst/base/cuda/current_context.hpp"

namespace cudavision {

/// A CUDA event: a mark in a stream that other streams and the host can wait for. It may be recorded repeatedly.
class CudaEvent {
 public:
  /// The context must be current.
  explicit CudaEvent(GstCudaContext* context) : event_(in_context<cudaEventDestroy>(context, create())) {}

  /// The event; nullptr if it could not be made.
  cudaEvent_t handle() const { return event_.get(); }
  /// Marks the end of the work submitted to `stream` so far. Returns false if that fails.
  bool record(CUstream stream) const { return event_ && cudaEventRecord(event_.get(), stream) == cudaSuccess; }
  /// Makes later work of `stream` wait on the device until the mark is reached. Returns false if that fails.
  bool hold_up(CUstream stream) const { return event_ && cudaStreamWaitEvent(stream, event_.get(), 0) == cudaSuccess; }
  /// cudaSuccess: the mark is reached; cudaErrorNotReady: not yet; other values: the device failed.
  cudaError_t query() const { return event_ ? cudaEventQuery(event_.get()) : cudaErrorInvalidResourceHandle; }
  /// Waits on the host until the mark is reached.
  cudaError_t wait() const { return event_ ? cudaEventSynchronize(event_.get()) : cudaErrorInvalidResourceHandle; }

 private:
  static cudaEvent_t create() {
    cudaEvent_t event;
    return cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess ? event : nullptr;
  }

  InContext<cudaEvent_t, cudaEventDestroy> event_;
};

/// Makes `later` wait on the device for all work submitted to `earlier`. Records `event` for this purpose.
inline void put_in_order(CUstream earlier, CUstream later, const CudaEvent& event) {
  if (earlier == later || (event.record(earlier) && event.hold_up(later))) return;
  cudaStreamSynchronize(earlier);
}

}  // namespace cudavision
