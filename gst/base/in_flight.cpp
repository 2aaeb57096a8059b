// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/in_flight.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <thread>

#include "gst/base/log.hpp"

namespace cudavision {
namespace {

/// Frames whose references are kept. Many more would only let the host run ahead of a GPU that is busy.
constexpr std::size_t most_frames = 16;

/// The thread that drops references when no frame follows. It exists while there is an InFlight, and sleeps while all are empty.
class Dropper {
 public:
  static Dropper& instance() {
    static auto* const dropper = new Dropper;  // never deleted, because a process may end with running pipelines
    return *dropper;
  }

  void add(InFlight* one) {
    std::lock_guard changing(changing_);
    std::lock_guard lock(mutex_);
    all_.push_back(one);
    if (all_.size() > 1) return;
    ended_ = false;
    thread_ = std::thread([this] { run(); });
  }
  void remove(InFlight* one) {
    std::lock_guard changing(changing_);
    {
      std::lock_guard lock(mutex_);
      all_.erase(std::find(all_.begin(), all_.end(), one));
      ended_ = all_.empty();
    }
    if (!ended_) return;
    wake_.notify_all();
    thread_.join();
  }
  /// To be called when references are kept.
  void wake() {
    if (busy_ || busy_.exchange(true)) return;
    std::lock_guard lock(mutex_);  // so that the thread is either before its test of busy_ or waiting
    wake_.notify_all();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      wake_.wait(lock, [this] { return ended_ || busy_; });
      wake_.wait_for(lock, std::chrono::milliseconds(1), [this] { return ended_; });
      busy_ = false;
      for (InFlight* one : all_)
        if (one->drop_reached()) busy_ = true;
    }
  }

  std::mutex changing_;  // held while the thread starts or ends
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<InFlight*> all_;
  std::atomic<bool> busy_{false};  // references may be kept
  bool ended_ = false;
  std::thread thread_;
};

void unref_all(const std::vector<GstBuffer*>& buffers) {
  for (GstBuffer* buffer : buffers) gst_buffer_unref(buffer);
}

}  // namespace

InFlight::InFlight(GstCudaContext* context) : context_(GST_CUDA_CONTEXT(gst_object_ref(context))) { Dropper::instance().add(this); }

InFlight::~InFlight() {
  Dropper::instance().remove(this);
  if (gst_cuda_context_push(context_)) {
    for (const Frame& frame : frames_) frame.read->wait();
    gst_cuda_context_pop(nullptr);
  }
  finished();
  gst_object_unref(context_);
}

std::unique_ptr<CudaEvent> InFlight::new_event() {
  if (spare_.empty()) return std::make_unique<CudaEvent>(context_);
  auto event = std::move(spare_.back());
  spare_.pop_back();
  return event;
}

/// Moves the references of the oldest frame to `dropped`.
void InFlight::drop_oldest(std::vector<GstBuffer*>& dropped) {
  Frame& frame = frames_.front();
  dropped.insert(dropped.end(), buffers_.begin(), buffers_.begin() + std::ptrdiff_t(frame.buffers));
  buffers_.erase(buffers_.begin(), buffers_.begin() + std::ptrdiff_t(frame.buffers));
  spare_.push_back(std::move(frame.read));
  frames_.pop_front();
}

bool InFlight::submitted(CUstream stream) {
  if (added_.empty()) return true;
  std::vector<GstBuffer*> dropped;
  bool recorded;
  {
    std::lock_guard lock(mutex_);
    auto event = new_event();
    recorded = event->record(stream);
    frames_.push_back({std::move(event), added_.size()});
    buffers_.insert(buffers_.end(), added_.begin(), added_.end());
    added_.clear();
    while (!frames_.empty() && frames_.front().read->reached() && recorded) drop_oldest(dropped);
    if (frames_.size() > most_frames) {
      GST_LOG("waits for the GPU: %u frames are in flight", guint(most_frames));
      frames_.front().read->wait();
      drop_oldest(dropped);
    }
  }
  unref_all(dropped);
  Dropper::instance().wake();
  return recorded;
}

void InFlight::finished() {
  std::vector<GstBuffer*> dropped(std::move(added_));
  added_.clear();
  {
    std::lock_guard lock(mutex_);
    while (!frames_.empty()) drop_oldest(dropped);
  }
  unref_all(dropped);
}

bool InFlight::drop_reached() {
  std::vector<GstBuffer*> dropped;
  bool left;
  {
    std::lock_guard lock(mutex_);
    if (!frames_.empty() && gst_cuda_context_push(context_)) {
      while (!frames_.empty() && frames_.front().read->reached()) drop_oldest(dropped);
      gst_cuda_context_pop(nullptr);
    }
    left = !frames_.empty();
  }
  unref_all(dropped);
  return left;
}

}  // namespace cudavision
