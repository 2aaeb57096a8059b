// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

namespace cudavision {

/// Calls a function in a separate thread at a given time, unless the time is changed first. The function may block.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = std::optional<Clock::time_point>;  ///< no value: never

  /// `reached` returns the time of the next call. This time is ignored if set() was called meanwhile.
  explicit Deadline(std::function<Time()> reached);
  /// Waits until `reached` has returned, unless it is called from there.
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  /// Replaces the time at which `reached` is called. For any thread, but not while another thread destroys this object.
  /// Moving the time later, as each frame of a stream does, costs no wake-up.
  void set(Time time);

 private:
  struct State;
  const std::shared_ptr<State> state_;  // shared with the thread, which may outlive this object
};

}  // namespace cudavision
