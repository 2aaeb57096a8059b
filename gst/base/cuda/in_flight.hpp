// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "gst/base/cuda/cuda_event.hpp"
#include "gst/base/poller.hpp"

namespace cudavision {

/// The frames of an element that the GPU is still working on. Each frame keeps references to the buffers that the work
/// reads, so that their pools do not give them to a writer.
///
///   streaming thread:       add(a) add(b) submitted()   add(c) submitted() …   an event after the work of each frame
///   streaming thread, or the poller:                    drops references whose event was reached
///
/// The poller is needed if no frame follows: otherwise an upstream pool could wait for one of these buffers forever.
/// For one thread, with the CUDA context current.
class InFlight {
 public:
  explicit InFlight(GstCudaContext* context);
  ~InFlight();
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  /// Keeps a reference to a buffer for the work that is being submitted.
  void add(GstBuffer* buffer) { added_.push_back(gst_buffer_ref(buffer)); }
  /// Call this when the work of a frame, which reads the added buffers, was submitted to `stream`. If `named`, returns
  /// its ticket for query() and wait(), otherwise any number. No value: no event can be recorded, and the caller must
  /// wait for the work.
  std::optional<std::uint64_t> submitted(CUstream stream, bool named);
  /// Keeps a reference to a buffer until the work submitted to `stream` so far is done. Returns false if no event can
  /// be recorded.
  bool keep(GstBuffer* buffer, CUstream stream);
  /// Leaves only the added buffers whose keep(buffer) is true.
  template <typename F>
  void filter_added(F&& keep) {
    const auto dropped = std::stable_partition(added_.begin(), added_.end(), keep);
    std::for_each(dropped, added_.end(), gst_buffer_unref);
    added_.erase(dropped, added_.end());
  }
  /// Call this with the result of waiting for all work. Drops all references; on return, the poller holds none either.
  void finished(cudaError_t result);

  /// The state of the work with this ticket at the last check by submitted() or the poller: cudaSuccess,
  /// cudaErrorNotReady, or the error of the device. Does not call the driver.
  cudaError_t query(std::uint64_t ticket);
  /// Waits until the work with this ticket is done. On return, the references kept for it are dropped, so that metas
  /// can be added to its frame.
  cudaError_t wait(std::uint64_t ticket);

 private:
  struct Frame {
    std::uint64_t ticket;
    std::unique_ptr<CudaEvent> done;
    std::size_t buffers;
  };

  std::unique_ptr<CudaEvent> new_event();
  std::optional<std::uint64_t> push(const std::vector<GstBuffer*>& buffers, CUstream stream);
  bool poll();
  /// Waits until the poller has dropped the references that it removed.
  void await_poller() { const std::lock_guard lock(polling_); }
  cudaError_t wait(const Frame& frame, std::unique_lock<std::mutex>& lock);
  void drop_until(std::uint64_t ticket, cudaError_t result, std::vector<GstBuffer*>& dropped);
  void drop_reached(std::size_t most_left, std::vector<GstBuffer*>& dropped);
  void drop_oldest(cudaError_t result, std::vector<GstBuffer*>& dropped);
  const Frame* find(std::uint64_t ticket) const;

  const Owned<GstCudaContext> context_;
  std::vector<GstBuffer*> added_;
  std::uint64_t last_ticket_ = 0;
  // Locked by the poller while it removes and drops references. Always locked before mutex_.
  std::mutex polling_;
  // Under the mutex:
  std::mutex mutex_;
  std::deque<Frame> frames_;
  std::deque<GstBuffer*> buffers_;                 // of all frames
  std::vector<std::unique_ptr<CudaEvent>> spare_;  // events to reuse
  cudaError_t failure_ = cudaSuccess;              // the failure of the device

  std::optional<Polled> polled_;
};

}  // namespace cudavision
