// SPDX-License-Identifier: LGPL-2.1-or-later
// Time as this process gets it: on a busy machine, where threads wait for a processor, it passes more slowly. A
// pipeline that delivers nothing for ten seconds of this time hangs; one that only waits for its turn does not.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <thread>

namespace cudavision::soak {

/// What the threads of this process did, in ns, as far as the kernel tells it (/proc/self/task/*/schedstat).
struct Work {
  std::uint64_t ran = 0;
  std::uint64_t waited = 0;  ///< for a processor, while they could have run
};

/// The share of the time in which threads ran that wanted to: 1 if none had to wait.
double share_of(const Work& work);

/// Adds up the work of threads that come and go.
class WorkMeter {
 public:
  /// The work since the last call, of the threads that there are now.
  Work next();

 private:
  std::map<std::string, Work> before_;  // by thread
};

/// Seconds of the time since the first call. Any thread may call it.
double fair_time();

}  // namespace cudavision::soak
