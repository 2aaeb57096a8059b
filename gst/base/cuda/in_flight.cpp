// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/cuda/in_flight.hpp"

#include "gst/base/log.hpp"

namespace cudavision {
namespace {

/// The maximum number of frames that may be in flight. With many more, the host would only run further ahead of a busy
/// GPU.
constexpr std::size_t most_frames = 16;
/// The number of frames in flight above which the streaming thread checks which are done. A check costs a microsecond.
constexpr std::size_t usual_frames = 2;

void unref_all(const std::vector<GstBuffer*>& buffers) {
  for (GstBuffer* buffer : buffers) gst_buffer_unref(buffer);
}

}  // namespace

InFlight::InFlight(GstCudaContext* context) : context_(new_reference(context)) {
  polled_.emplace(Polled::Purpose::references, [this] { return poll(); });
}

InFlight::~InFlight() {
  polled_.reset();  // first, so that no other thread uses this object from here on
  if (const CurrentContext current(context_.get()); current)
    for (const Frame& frame : frames_) (void)frame.done->wait();
  finished(cudaSuccess);
}

std::unique_ptr<CudaEvent> InFlight::new_event() {
  if (spare_.empty()) return std::make_unique<CudaEvent>(context_.get());
  auto event = std::move(spare_.back());
  spare_.pop_back();
  return event;
}

/// Moves the references of the oldest frame, whose work ended with `result`, to `dropped`.
void InFlight::drop_oldest(cudaError_t result, std::vector<GstBuffer*>& dropped) {
  if (result != cudaSuccess) failure_ = result;
  Frame& frame = frames_.front();
  dropped.insert(dropped.end(), buffers_.begin(), buffers_.begin() + std::ptrdiff_t(frame.buffers));
  buffers_.erase(buffers_.begin(), buffers_.begin() + std::ptrdiff_t(frame.buffers));
  spare_.push_back(std::move(frame.done));
  frames_.pop_front();
}

/// Moves the references of frames up to this ticket, whose work ended with `result`, to `dropped`.
void InFlight::drop_until(std::uint64_t ticket, cudaError_t result, std::vector<GstBuffer*>& dropped) {
  while (!frames_.empty() && frames_.front().ticket <= ticket) drop_oldest(result, dropped);
}

/// Moves the references of finished frames to `dropped`, until at most `most_left` frames are left or the oldest frame
/// is not finished. If the device failed, all frames count as finished.
void InFlight::drop_reached(std::size_t most_left, std::vector<GstBuffer*>& dropped) {
  while (frames_.size() > most_left) {
    const cudaError_t result = frames_.front().done->query();
    if (result == cudaErrorNotReady) return;
    drop_oldest(result, dropped);
  }
}

std::optional<std::uint64_t> InFlight::submitted(CUstream stream, bool named) {
  if (added_.empty() && !named) return 0;
  const auto ticket = push(added_, stream);
  if (ticket) added_.clear();
  return ticket;
}

bool InFlight::keep(GstBuffer* buffer, CUstream stream) {
  gst_buffer_ref(buffer);
  const bool pushed = push({buffer}, stream).has_value();
  if (!pushed) gst_buffer_unref(buffer);
  return pushed;
}

/// Adds a frame that is done when the work submitted to `stream` so far is done. On success, takes the references to
/// the buffers.
std::optional<std::uint64_t> InFlight::push(const std::vector<GstBuffer*>& buffers, CUstream stream) {
  std::vector<GstBuffer*> dropped;
  std::optional<std::uint64_t> ticket;
  {
    std::unique_lock lock(mutex_);
    drop_reached(usual_frames, dropped);
    if (frames_.size() >= most_frames) {
      GST_LOG("waits for the GPU: %u frames are in flight", guint(most_frames));
      const std::uint64_t oldest = frames_.front().ticket;
      const cudaError_t result = wait(frames_.front(), lock);
      drop_until(oldest, result, dropped);
    }
    if (auto event = new_event(); event->record(stream)) {
      ticket = ++last_ticket_;
      frames_.push_back({*ticket, std::move(event), buffers.size()});
      buffers_.insert(buffers_.end(), buffers.begin(), buffers.end());
    }
  }
  unref_all(dropped);
  polled_->wake();
  return ticket;
}

void InFlight::finished(cudaError_t result) {
  std::vector<GstBuffer*> dropped(std::move(added_));
  added_.clear();
  {
    std::lock_guard lock(mutex_);
    if (result != cudaSuccess) failure_ = result;
    while (!frames_.empty()) drop_oldest(result, dropped);
  }
  unref_all(dropped);
  await_poller();
}

/// The frame with this ticket, or nullptr if the frame is done.
const InFlight::Frame* InFlight::find(std::uint64_t ticket) const {
  for (const Frame& frame : frames_)
    if (frame.ticket == ticket) return &frame;
  return nullptr;
}

cudaError_t InFlight::query(std::uint64_t ticket) {
  std::lock_guard lock(mutex_);
  const Frame* frame = find(ticket);
  return frame ? cudaErrorNotReady : failure_;
}

/// Waits until the work of a frame is done. Unlocks the mutex meanwhile, so that the poller can continue with other
/// elements. The event stays valid: the poller may drop the frame, but only the user of this object, who waits here,
/// records and destroys events.
cudaError_t InFlight::wait(const Frame& frame, std::unique_lock<std::mutex>& lock) {
  const CudaEvent& done = *frame.done;
  lock.unlock();
  const cudaError_t result = done.wait();
  lock.lock();
  return result;
}

cudaError_t InFlight::wait(std::uint64_t ticket) {
  std::vector<GstBuffer*> dropped;
  cudaError_t result;
  {
    std::unique_lock lock(mutex_);
    const Frame* frame = find(ticket);
    result = frame ? wait(*frame, lock) : failure_;
    drop_until(ticket, result, dropped);
  }
  unref_all(dropped);
  await_poller();
  return result;
}

/// Called by the poller. Returns whether references remain.
bool InFlight::poll() {
  const std::lock_guard polling(polling_);
  std::vector<GstBuffer*> dropped;
  bool left;
  {
    std::lock_guard lock(mutex_);
    if (!frames_.empty()) {
      if (const CurrentContext current(context_.get()); current)
        drop_reached(0, dropped);
      else  // the device failed
        while (!frames_.empty()) drop_oldest(cudaErrorDevicesUnavailable, dropped);
    }
    left = !frames_.empty();
  }
  unref_all(dropped);
  return left;
}

}  // namespace cudavision
