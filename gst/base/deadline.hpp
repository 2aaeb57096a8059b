// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace cudavision {

/// Calls a function in a thread of its own when a time has come, unless the time was moved before. The function may block.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(std::function<void()> reached);
  /// Waits until `reached` has returned.
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  /// Replaces the time at which `reached` is called, once; no value: never. For any thread, `reached` included. Costs no wake-up if the time
  /// moves to a later one, as it does with each frame of a stream.
  void set(std::optional<Clock::time_point> time);

 private:
  void run();

  const std::function<void()> reached_;
  std::mutex mutex_;  // for the members below
  std::condition_variable earlier_;
  std::optional<Clock::time_point> time_, sleeps_until_;
  bool ended_ = false;
  std::thread thread_;  // last, because it uses the others
};

}  // namespace cudavision
