// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/poller.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace cudavision {

struct Polled::Entry {
  std::atomic<bool> busy{false};
  std::mutex mutex;            // held while `poll` runs
  std::function<bool()> poll;  // empty: removed

  /// Returns whether the object is still busy.
  bool poll_once() {
    if (!busy.exchange(false)) return false;
    std::lock_guard lock(mutex);
    if (poll && poll()) busy = true;
    return busy;
  }
};

namespace {

class Poller {
 public:
  static Poller& of(Polled::Purpose purpose) {
    static auto* const pollers = new Poller[2];  // never deleted, because a process may end with running pipelines
    return pollers[int(purpose)];
  }

  void add(std::shared_ptr<Polled::Entry> entry) {
    std::lock_guard changing(changing_);
    std::lock_guard lock(mutex_);
    if (all_.empty()) {
      ended_ = false;
      thread_ = std::thread([this] { run(); });
    }
    all_.push_back(std::move(entry));
  }

  void remove(const std::shared_ptr<Polled::Entry>& entry) {
    {
      // Without locking `changing_`, because poll() may run code that creates or destroys other elements.
      std::lock_guard lock(entry->mutex);
      entry->poll = nullptr;
    }
    std::lock_guard changing(changing_);
    {
      std::lock_guard lock(mutex_);
      all_.erase(std::find(all_.begin(), all_.end(), entry));
      ended_ = all_.empty();
      if (!ended_) return;
    }
    wake_.notify_all();
    thread_.join();
  }

  void wake() {
    if (busy_ || busy_.exchange(true)) return;
    std::lock_guard lock(mutex_);  // so that the thread is either before its test of busy_, or waiting
    wake_.notify_all();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      wake_.wait(lock, [this] { return ended_ || busy_; });
      wake_.wait_for(lock, std::chrono::milliseconds(1), [this] { return ended_; });
      busy_ = false;
      const std::vector<std::shared_ptr<Polled::Entry>> all = all_;
      lock.unlock();
      for (const auto& entry : all)
        if (entry->poll_once()) busy_ = true;
      lock.lock();
    }
  }

  std::mutex changing_;  // locked while the thread starts or ends
  std::mutex mutex_;     // guards all_ and ended_
  std::condition_variable wake_;
  std::vector<std::shared_ptr<Polled::Entry>> all_;
  std::atomic<bool> busy_{false};  // whether an object may be busy
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace

Polled::Polled(Purpose purpose, std::function<bool()> poll) : purpose_(purpose), entry_(std::make_shared<Entry>()) {
  entry_->poll = std::move(poll);
  Poller::of(purpose_).add(entry_);
}

Polled::~Polled() { Poller::of(purpose_).remove(entry_); }

void Polled::wake() {
  entry_->busy = true;
  Poller::of(purpose_).wake();
}

}  // namespace cudavision
