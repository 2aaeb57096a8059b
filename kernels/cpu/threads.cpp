// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/cpu/threads.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <opencv2/core/utility.hpp>

namespace cudavision::cpu {

void use_threads_of_environment() {
  const char* const text = std::getenv("OPENCV_FOR_THREADS_NUM");
  if (!text) return;
  int threads = 0;
  const char* const end = text + std::strlen(text);
  if (const auto [rest, error] = std::from_chars(text, end, threads);
      error == std::errc() && rest == end && threads > 0)
    cv::setNumThreads(threads);
}

}  // namespace cudavision::cpu
