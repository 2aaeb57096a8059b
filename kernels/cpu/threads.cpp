// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/cpu/threads.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace cudavision::cpu {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

std::atomic<bool> splits_all{sanitized};

}  // namespace

void use_threads_of_environment() {
  const char* const text = std::getenv("OPENCV_FOR_THREADS_NUM");
  if (!text) return;
  int threads = 0;
  const char* const end = text + std::strlen(text);
  if (const auto [rest, error] = std::from_chars(text, end, threads);
      error == std::errc() && rest == end && threads > 0)
    cv::setNumThreads(threads);
}

int parts_of(const Work& work, int most) {
  const int threads = std::clamp(cv::getNumThreads(), 1, std::max(1, most));
  return splits_all ? threads : int(std::clamp(work.nanoseconds / work.grain, 1.0, double(threads)));
}

void split_all_loops(bool split) { splits_all = split || sanitized; }

}  // namespace cudavision::cpu
