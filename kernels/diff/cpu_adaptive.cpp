// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/cpu_adaptive.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/diff/adaptive_settle.hpp"

namespace cudavision::diff::adaptive {
namespace {

/// The first row of a part of `size` rows.
int row_of_part(int part, int parts, int size) { return int(std::int64_t(size) * part / parts); }

/// Calls work(i, begin, end) for each of `parts` parts of `size` rows, on OpenCV's threads.
template <typename Work>
void for_parts(int parts, int size, Work work) {
  if (parts == 1) return work(0, 0, size);
  cv::parallel_for_({0, parts}, [&](const cv::Range& range) {
    for (int part = range.start; part < range.end; ++part)
      work(part, row_of_part(part, parts, size), row_of_part(part + 1, parts, size));
  });
}

}  // namespace

void CpuSteps::prepare(const Job& job, bool bytes) {
  const int parts = int(threads_.size());
  for_parts(parts, job.cells_y, [&](int part, int begin, int end) {
    Thread& thread = threads_[std::size_t(part)];
    // New means overwrite the old ones, so each part saves the rows that it shares with others before any part learns.
    if (!job.begin)
      thread.strip.prepare(job, row_of_part(part, parts, job.height), row_of_part(part + 1, parts, job.height));
    for (int cell_y = begin; cell_y < end; ++cell_y) {
      for (int y = cell_y * cell; y < std::min((cell_y + 1) * cell, job.height); ++y)
        prepare_row(job, bytes, y, thread.samples);
      if (job.compensates && !job.begin) measure_cells(job, cell_y, thread.light);
    }
  });
}

std::uint64_t CpuSteps::update(Job job, bool bytes, std::uint64_t began, const cv::Mat& unmasked, cv::Mat& changed) {
  constexpr int least_rows = 4 * Strip::reach;  // least rows of a part
  threads_.resize(std::size_t(std::clamp(job.height / least_rows, 1, std::max(1, cv::getNumThreads()))));
  prepare(job, bytes);
  if (job.begin) {
    changed.setTo(0);
    return 0;
  }
  if (job.compensates) settle_light(job, light_);
  const Rates rates = rates_of(job, job.number - began);
  const int parts = int(threads_.size());
  std::vector<std::uint64_t> sums(threads_.size());
  for_parts(parts, job.height, [&](int part, int, int) {
    sums[std::size_t(part)] = threads_[std::size_t(part)].strip.update(job, light_, rates, unmasked, changed);
  });
  return std::accumulate(sums.begin(), sums.end(), std::uint64_t(0));
}

void begin_anew(const Job& job, std::uint64_t kept) {
  for (int y = 0; y < job.height; ++y)
    for (int x = 0; x < job.width; ++x) {
      if (kept >> camera::sector_of(x, y, job.width, job.height) & 1) continue;
      for (int c = 0; c < job.channels; ++c) {
        const std::size_t i = c * job.pixels() + job.at(x, y);
        job.next_mean[i] = from_fixed(int(job.frame[i]));
      }
      job.recent[job.at(x, y)] = 0;
      job.stays[job.at(x, y)] = 0, job.stays[job.pixels() + job.at(x, y)] = counted;
    }
}

}  // namespace cudavision::diff::adaptive
