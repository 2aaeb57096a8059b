// SPDX-License-Identifier: LGPL-2.1-or-later
// Worker processes that run cases in parallel. A case that crashes or hangs is counted, and the others continue.
#pragma once

#include <cstdint>
#include <functional>

namespace cudavision::fuzz {

struct Counts {
  std::int64_t passed = 0, failed = 0;
};

/// Runs one case in a worker. Writes a description of the case to stderr first. Returns whether the case passed.
using RunCase = std::function<bool(std::int64_t number)>;

/// Runs the cases first … first + count − 1 in `jobs` processes. For each failed case it prints the stderr of the
/// worker, and the signal that ended it. A case that takes longer than `limit_s` seconds is aborted. Stops early after
/// `most_failures` failures. Each worker calls `prepare` once before its first case. Call this before the process has
/// threads.
Counts run_in_workers(std::int64_t first, std::int64_t count, int jobs, int limit_s, std::int64_t most_failures,
                      const std::function<void()>& prepare, const RunCase& run);

}  // namespace cudavision::fuzz
