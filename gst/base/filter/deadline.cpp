// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/filter/deadline.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace cudavision {

struct Deadline::State {
  std::function<Time()> reached;
  std::thread thread;
  std::condition_variable earlier;
  std::mutex mutex;  // guards the members below
  Time time, sleeps_until;
  bool was_set = false;  // set() was called after the last call of `reached`
  bool ended = false;

  void run() {
    std::unique_lock lock(mutex);
    while (!ended) {
      if (time && *time <= Clock::now()) {
        time.reset();
        was_set = false;
        lock.unlock();
        const Time next = reached();
        lock.lock();
        if (!was_set) time = next;
        continue;
      }
      sleeps_until = time;
      if (sleeps_until)
        earlier.wait_until(lock, *sleeps_until);
      else
        earlier.wait(lock);
      sleeps_until.reset();
    }
  }
};

Deadline::Deadline(std::function<Time()> reached) : state_(std::make_shared<State>()) {
  state_->reached = std::move(reached);
  state_->thread = std::thread([state = state_] { state->run(); });
}

Deadline::~Deadline() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ended = true;
  }
  state_->earlier.notify_one();
  if (state_->thread.get_id() == std::this_thread::get_id())
    state_->thread.detach();
  else
    state_->thread.join();
}

void Deadline::set(Time time) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->time = time;
    state_->was_set = true;
    // The thread checks the time again when it wakes up.
    if (!time || (state_->sleeps_until && *state_->sleeps_until <= *time)) return;
  }
  state_->earlier.notify_one();
}

}  // namespace cudavision
