// SPDX-License-Identifier: LGPL-2.1-or-later
// The state of one pipeline: its last actions, whether frames arrive, and its failures.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "tests/soak/fair_time.hpp"
#include "tests/soak/journal.hpp"

namespace cudavision::soak {

class Report {
 public:
  /// `number` is the number of the pipeline in the journal. The journal may be NULL.
  Report(std::string name, std::uint64_t seed, int number, std::shared_ptr<Journal> journal)
      : name_(std::move(name)), seed_(seed), number_(number), journal_(std::move(journal)) {}

  void note(char mark, const std::string& text) const {
    if (journal_) journal_->write(number_, frames_, mark, text);
  }
  /// The controller of the pipeline begins an action.
  void act(const std::string& action);
  void end() { ended_ = true; }
  bool ended() const { return ended_; }
  void deliver();
  /// Counts a failure, and prints the first ones immediately. May be called in any thread.
  void fail(const std::string& what);

  /// Injects a fault: the next frame counts as wrong.
  void spoil_next() { spoils_ = true; }
  bool spoils() { return spoils_ && spoils_.exchange(false); }

  int number() const { return number_; }
  const std::string& name() const { return name_; }
  int failures() const { return failures_; }
  std::string first_failure() const;
  long frames() const { return frames_; }
  long actions() const { return actions_; }
  /// Seconds of fair_time() since the last frame, and since the last action began.
  double silence() const { return fair_time() - last_frame_; }
  double standstill() const { return fair_time() - last_action_; }
  /// Name, seed and the last two actions, for a message.
  std::string describe() const;

 private:
  const std::string name_;
  const std::uint64_t seed_;
  const int number_;
  const std::shared_ptr<Journal> journal_;
  std::atomic<long> frames_{0}, actions_{0};
  std::atomic<int> failures_{0};
  std::atomic<bool> ended_{false}, spoils_{false};
  std::atomic<double> last_frame_{fair_time()}, last_action_{fair_time()};
  mutable std::mutex mutex_;
  std::string last_action_text_, action_before_;
  std::string first_failure_;
};

}  // namespace cudavision::soak
