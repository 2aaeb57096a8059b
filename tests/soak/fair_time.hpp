// SPDX-License-Identifier: LGPL-2.1-or-later
// Time as this process experiences it: it passes more slowly on a busy machine, where threads wait for a processor. A
// pipeline that delivers nothing for ten seconds of this time hangs; one that only waits for a processor does not.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace cudavision::soak {

/// What the threads of this process did, in ns, as far as the kernel reports it (/proc/self/task/*/schedstat).
struct Work {
  std::uint64_t ran = 0;
  std::uint64_t waited = 0;  ///< for a processor, while they were ready to run
};

/// The share of the time in which ready threads ran: 1 if none had to wait.
double share_of(const Work& work);

/// Adds up the work of threads that start and end.
class WorkMeter {
 public:
  /// The work of the current threads since the last call.
  Work next();

 private:
  std::map<std::string, Work> before_;  // by thread
};

/// Seconds of this time since the first call. It may be called in any thread.
double fair_time();

}  // namespace cudavision::soak
