// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/soak/report.hpp"

#include <cstdio>
#include <utility>

namespace cudavision::soak {

void Report::act(const std::string& action) {
  note('#', action);
  const std::lock_guard<std::mutex> lock(mutex_);
  last_action_ = fair_time();
  action_before_ = std::exchange(last_action_text_, action);
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
  std::printf("FAILED: %s: %s\n", describe().c_str(), what.c_str());
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
  if (!last_action_text_.empty()) text += " \"" + last_action_text_ + "\"";
  if (!action_before_.empty()) text += " after \"" + action_before_ + "\"";
  return text;
}

}  // namespace cudavision::soak
