// SPDX-License-Identifier: LGPL-2.1-or-later
// Only for files that are built with CUDA.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "gst/base/cuda_event.hpp"

namespace cudavision {

/// The buffers that the GPU may still read, of one element. Each keeps a reference until the work that reads it is done, so that its
/// pool does not give it to a writer.
///
///   streaming thread:   add(a) add(b) submitted()   add(c) submitted() …       an event after the work of each frame
///   streaming thread, or a thread of the plugin once in a millisecond:         drops the references whose event was reached
///
/// The thread is needed if no frame follows: an upstream pool that waits for one of these buffers would wait for ever.
/// add(), submitted() and finished() are for one thread, with the CUDA context current.
class InFlight {
 public:
  explicit InFlight(GstCudaContext* context);
  ~InFlight();
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  /// Keeps a reference to a buffer for the work that is being submitted.
  void add(GstBuffer* buffer) { added_.push_back(gst_buffer_ref(buffer)); }
  /// The work that reads the added buffers was submitted to `stream`. Returns false if no event can be recorded: the work must be
  /// waited for.
  bool submitted(CUstream stream);
  /// All work was waited for. Drops all references.
  void finished();
  /// Drops the references whose work is done. Returns whether some are left. For any thread.
  bool drop_reached();

 private:
  struct Frame {
    std::unique_ptr<CudaEvent> read;
    std::size_t buffers;
  };

  std::unique_ptr<CudaEvent> new_event();
  void drop_oldest(std::vector<GstBuffer*>& dropped);

  GstCudaContext* const context_;
  std::vector<GstBuffer*> added_;
  // Under the mutex:
  std::mutex mutex_;
  std::deque<Frame> frames_;
  std::deque<GstBuffer*> buffers_;                 // of all frames
  std::vector<std::unique_ptr<CudaEvent>> spare_;  // events to use again
};

}  // namespace cudavision
