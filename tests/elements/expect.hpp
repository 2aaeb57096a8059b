// SPDX-License-Identifier: LGPL-2.1-or-later
// For test programs without a test framework. It may be used in any thread.
#pragma once

#include <atomic>
#include <cstdio>
#include <string>

namespace cudavision::test {

inline std::atomic<int> failures{0};

/// Counts and prints a failure unless `holds`.
inline void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::printf("FAILED: %s\n", what.c_str());
  ++failures;
}

/// Prints the number of failures. Returns the exit status of the program.
inline int exit_status() {
  std::printf("%d failures\n", failures.load());
  return failures > 0;
}

}  // namespace cudavision::test
