// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/soak/report.hpp"

#include <cstdio>

namespace cudavision::soak {

void Report::act(const std::string& action) {
  constexpr std::size_t most_kept = 20;
  note('#', action);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (last_actions_.size() == most_kept) last_actions_.pop_front();
  last_action_ = fair_time();
  last_actions_.push_back({action, frames_, Clock::now()});
  ++actions_;
}

void Report::deliver() {
  last_frame_ = fair_time();
  ++frames_;
}

void Report::fail(const std::string& what) {
  constexpr int most_printed = 5;
  note('!', what);
  if (++failures_ == 1) {
    const std::lock_guard<std::mutex> lock(mutex_);
    first_failure_ = what.substr(0, what.find('\n'));
  }
  if (failures_ > most_printed) return;
  std::printf("FAILED: %s: %s\n%s", describe().c_str(), what.c_str(), history().c_str());
  std::fflush(stdout);
}

std::string Report::first_failure() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return first_failure_;
}

std::string Report::describe() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string text = name_ + ", seed " + std::to_string(seed_) + ", frame " + std::to_string(frames_) + ", action " +
                     std::to_string(actions_);
  const std::size_t count = last_actions_.size();
  if (count > 0) text += " \"" + last_actions_[count - 1].text + "\"";
  if (count > 1) text += " after \"" + last_actions_[count - 2].text + "\"";
  return text;
}

std::string Report::history() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string text;
  for (const Action& action : last_actions_) {
    char line[64];
    std::snprintf(line, sizeof line,
                  "  %6.2f s ago, frame %ld: ", std::chrono::duration<double>(Clock::now() - action.begin).count(),
                  action.frames);
    text += line + action.text + "\n";
  }
  return text;
}

}  // namespace cudavision::soak
