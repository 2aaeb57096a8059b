// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/deadline.hpp"

namespace cudavision {

Deadline::Deadline(std::function<void()> reached) : reached_(std::move(reached)), thread_([this] { run(); }) {}

Deadline::~Deadline() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  earlier_.notify_one();
  thread_.join();
}

void Deadline::set(std::optional<Clock::time_point> time) {
  {
    const std::lock_guard lock(mutex_);
    time_ = time;
    if (!time || (sleeps_until_ && *sleeps_until_ <= *time)) return;  // the thread looks again when it wakes up
  }
  earlier_.notify_one();
}

void Deadline::run() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    if (time_ && *time_ <= Clock::now()) {
      time_.reset();
      lock.unlock();
      reached_();
      lock.lock();
      continue;
    }
    sleeps_until_ = time_;
    if (sleeps_until_)
      earlier_.wait_until(lock, *sleeps_until_);
    else
      earlier_.wait(lock);
    sleeps_until_.reset();
  }
}

}  // namespace cudavision
