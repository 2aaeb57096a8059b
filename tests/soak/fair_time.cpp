// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/soak/fair_time.hpp"

#include <dirent.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

namespace cudavision::soak {
namespace {

/// A thread that adds up the time. It ends with the process.
class Counter {
 public:
  Counter() {
    std::thread([this] { count(); }).detach();
  }
  double now() const { return seconds_; }

 private:
  void count() {
    using Clock = std::chrono::steady_clock;
    WorkMeter meter;
    meter.next();
    for (auto before = Clock::now();;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      const auto now = Clock::now();
      seconds_ = seconds_ + std::chrono::duration<double>(now - before).count() * share_of(meter.next());
      before = now;
    }
  }

  std::atomic<double> seconds_{0};
};

}  // namespace

double share_of(const Work& work) {
  const double wanted = double(work.ran) + double(work.waited);
  return wanted > 0 ? double(work.ran) / wanted : 1;
}

Work WorkMeter::next() {
  Work sum;
  std::map<std::string, Work> now;
  DIR* threads = opendir("/proc/self/task");
  while (const dirent* thread = threads ? readdir(threads) : nullptr) {
    std::ifstream file(std::string("/proc/self/task/") + thread->d_name + "/schedstat");
    Work work;
    if (!(file >> work.ran >> work.waited)) continue;
    now[thread->d_name] = work;
    const auto before = before_.find(thread->d_name);
    // A number may belong to a new thread by now.
    const bool is_same =
        before != before_.end() && before->second.ran <= work.ran && before->second.waited <= work.waited;
    sum.ran += work.ran - (is_same ? before->second.ran : 0);
    sum.waited += work.waited - (is_same ? before->second.waited : 0);
  }
  if (threads) closedir(threads);
  before_ = std::move(now);
  return sum;
}

double fair_time() {
  static const Counter* counter = new Counter;  // never freed, because its thread never ends
  return counter->now();
}

}  // namespace cudavision::soak
