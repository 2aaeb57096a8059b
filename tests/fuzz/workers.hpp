// SPDX-License-Identifier: LGPL-2.1-or-later
// Processes that run cases side by side, so that one that crashes or hangs is counted, and the others go on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace cudavision::fuzz {

struct Counts {
  std::uint64_t passed = 0, failed = 0;
};

/// What a worker runs for a case. It says on stderr what the case is before it begins, and returns whether all went well.
using RunCase = std::function<bool(std::uint64_t number)>;

/// Runs the cases first … first + count - 1 in `jobs` processes. For a case that fails, what the worker wrote to stderr meanwhile
/// is printed, and which signal ended it. A case that takes longer than `limit_s` is aborted. Ends early when `most_failures` have
/// failed. Must be called before this process has threads.
Counts run_in_workers(std::uint64_t first, std::uint64_t count, int jobs, int limit_s, std::uint64_t most_failures,
                      const std::function<void()>& prepare, const RunCase& run);

}  // namespace cudavision::fuzz
