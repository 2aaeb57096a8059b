// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/soak/report.hpp"

#include <cstdio>

namespace cudavision::soak {

void Report::act(const std::string& action) {
  const std::lock_guard<std::mutex> lock(mutex_);
  before_ = std::move(action_);
  action_ = action;
  last_action_ = now();
  ++actions_;
}

void Report::deliver() {
  last_frame_ = now();
  ++frames_;
}

void Report::fail(const std::string& what) {
  constexpr int most_printed = 5;
  if (++failures_ > most_printed) return;
  std::printf("FAILED: %s: %s\n", describe().c_str(), what.c_str());
  std::fflush(stdout);
}

std::string Report::describe() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return name_ + ", seed " + std::to_string(seed_) + ", frame " + std::to_string(frames_) + ", action " + std::to_string(actions_) +
         " \"" + action_ + "\" after \"" + before_ + "\"";
}

}  // namespace cudavision::soak
