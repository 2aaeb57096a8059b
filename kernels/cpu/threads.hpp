// SPDX-License-Identifier: LGPL-2.1-or-later
// Loops on OpenCV's threads. Waking a thread for a part of a loop, and its search for more work afterwards, costs about
// 0.1 ms of processor time, whatever the size of the part. So the number of threads depends on the work of the loop,
// and small loops run in the calling thread. Results never depend on the number of parts.
#pragma once

#include <cstdint>
#include <opencv2/core/utility.hpp>

namespace cudavision::cpu {

/// Makes OpenCV use the number of threads in OPENCV_FOR_THREADS_NUM, if it is at least 1. OpenCV reads this variable
/// only in builds with its own threads. A build with TBB, such as Debian's, ignores it.
void use_threads_of_environment();

/// An estimate of the work of a loop.
struct Work {
  double nanoseconds;  ///< time on one thread
  double grain;        ///< work that justifies another thread, in nanoseconds
};
/// Work on a picture that the next element waits for. More threads shorten the wait.
constexpr Work picture_work(double samples, double nanoseconds) { return {samples * nanoseconds, 1e5}; }
/// Work that finds motion. The other threads are left to decoders and other cameras.
constexpr Work analysis_work(double samples, double nanoseconds) { return {samples * nanoseconds, 1e6}; }

/// The number of parts into which a loop is split: 1 to `most`, and at most OpenCV's number of threads.
int parts_of(const Work& work, int most);
/// For tests: splits each loop into as many parts as possible, whatever its work. Always on with the thread sanitizer.
void split_all_loops(bool split);

/// The first row of part i, if `size` rows are split into `parts` parts.
constexpr int begin_of_part(int i, int parts, int size) { return int(std::int64_t(size) * i / parts); }

/// Calls body() in this thread. OpenCV loops inside body() also run in this thread.
template <typename Body>
void in_one_thread(Body&& body) {
  cv::parallel_for_({0, 1}, [&](const cv::Range&) { body(); });
}
/// Calls body(part) for each part from 0 to parts − 1. Each part runs in one thread.
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
/// Calls body(begin, end) for ranges that together make up [0, size).
template <typename Body>
void for_ranges(int size, const Work& work, Body&& body) {
  if (size <= 0) return;
  const int parts = parts_of(work, size);
  for_parts(parts, [&](int part) { body(begin_of_part(part, parts, size), begin_of_part(part + 1, parts, size)); });
}

}  // namespace cudavision::cpu
