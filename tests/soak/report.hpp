// SPDX-License-Identifier: LGPL-2.1-or-later
// What is known of one pipeline: what was done to it last, whether frames come, what went wrong.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <string>

#include "tests/soak/fair_time.hpp"

namespace cudavision::soak {

class Report {
 public:
  Report(std::string name, std::uint64_t seed) : name_(std::move(name)), seed_(seed) {}

  /// The controller of the pipeline begins an action.
  void act(const std::string& action);
  /// The pipeline has stopped.
  void end() { ended_ = true; }
  bool ended() const { return ended_; }
  /// A frame reached a sink.
  void deliver();
  /// Counts a failure, and prints the first ones at once, with the last actions. Any thread may call it.
  void fail(const std::string& what);

  int failures() const { return failures_; }
  long frames() const { return frames_; }
  long actions() const { return actions_; }
  /// Seconds of fair_time() since the last frame, and since the last action began.
  double silence() const { return fair_time() - last_frame_; }
  double standstill() const { return fair_time() - last_action_; }
  /// Name, seed and the last two actions, for a message.
  std::string describe() const;
  /// The last actions, one a line, with the seconds since each began and the frames that had come by then.
  std::string history() const;

 private:
  using Clock = std::chrono::steady_clock;

  const std::string name_;
  const std::uint64_t seed_;
  std::atomic<long> frames_{0}, actions_{0};
  std::atomic<int> failures_{0};
  std::atomic<bool> ended_{false};
  std::atomic<double> last_frame_{fair_time()}, last_action_{fair_time()};
  struct Action {
    std::string text;
    long frames;
    Clock::time_point begin;
  };
  mutable std::mutex mutex_;
  std::deque<Action> last_actions_;  // the newest last
};

}  // namespace cudavision::soak
