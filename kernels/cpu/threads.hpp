// SPDX-License-Identifier: LGPL-2.1-or-later
// Loops on OpenCV's threads. A thread that is woken for a part of a loop, and looks for more work after it, costs about
// 0.1 ms of processor time, whatever the part is. So a loop gets as many threads as its work is worth, and small loops
// run in the thread that calls them. Results never depend on the number of parts.
#pragma once

#include <cstdint>
#include <opencv2/core/utility.hpp>

namespace cudavision::cpu {

/// Makes OpenCV use the number of threads in OPENCV_FOR_THREADS_NUM, if that is a number of at least 1. OpenCV itself
/// reads that variable only in builds with OpenCV's own threads. A build with TBB, such as Debian's, ignores it.
void use_threads_of_environment();

/// The work of a loop. It need not be exact.
struct Work {
  double nanoseconds;  ///< of one thread
  double grain;        ///< work that is worth a thread, in nanoseconds
};
/// The work on a picture that the next element waits for: threads shorten the wait.
constexpr Work picture_work(double samples, double nanoseconds) { return {samples * nanoseconds, 1e5}; }
/// The work that finds motion. Decoders and other cameras need the other threads.
constexpr Work analysis_work(double samples, double nanoseconds) { return {samples * nanoseconds, 1e6}; }

/// The number of parts in which a loop runs: 1 to `most`, and at most OpenCV's number of threads.
int parts_of(const Work& work, int most);
/// For tests: each loop has as many parts as it can, whatever its work is. Always true with the thread sanitizer.
void split_all_loops(bool split);

/// Part i of `parts` of `size` rows begins with this row.
constexpr int begin_of_part(int i, int parts, int size) { return int(std::int64_t(size) * i / parts); }

/// Calls body() in this thread, and keeps OpenCV's own loops that body() calls in it.
template <typename Body>
void in_one_thread(Body&& body) {
  cv::parallel_for_({0, 1}, [&](const cv::Range&) { body(); });
}
/// Calls body(part) for 0 … parts − 1, each in one thread.
template <typename Body>
void for_parts(int parts, Body&& body) {
  if (parts == 1) return body(0);
  cv::parallel_for_(
      {0, parts},
      [&](const cv::Range& range) {
        for (int part = range.start; part < range.end; ++part) body(part);
      },
      parts);
}
/// Calls body(begin, end) for ranges that together are 0 … size.
template <typename Body>
void for_ranges(int size, const Work& work, Body&& body) {
  if (size <= 0) return;
  const int parts = parts_of(work, size);
  for_parts(parts, [&](int part) { body(begin_of_part(part, parts, size), begin_of_part(part + 1, parts, size)); });
}

}  // namespace cudavision::cpu
