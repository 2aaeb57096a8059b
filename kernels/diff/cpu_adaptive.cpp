// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/cpu_adaptive.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/cpu/threads.hpp"
#include "kernels/diff/adaptive_settle.hpp"

namespace cudavision::diff::adaptive {
namespace {

using cpu::begin_of_part;

/// The work of a frame: reads its samples, then compares and learns the pixels of the analysis.
cpu::Work work_of(const Job& job) {
  const double samples = double(job.whole_width) * job.whole_height * job.channels,
               pixels = double(job.width) * job.height * job.channels;
  return cpu::analysis_work(1, 0.1 * samples + 3 * pixels);
}

}  // namespace

void CpuSteps::prepare(const Job& job, bool bytes) {
  const int parts = int(threads_.size());
  cpu::for_parts(parts, [&](int part) {
    Thread& thread = threads_[std::size_t(part)];
    // New means overwrite the old ones. So each part saves the rows that it shares with other parts before any part
    // learns.
    if (!job.begin)
      thread.strip.prepare(job, begin_of_part(part, parts, job.height), begin_of_part(part + 1, parts, job.height));
    for (int cell_y = begin_of_part(part, parts, job.cells_y); cell_y < begin_of_part(part + 1, parts, job.cells_y);
         ++cell_y) {
      for (int y = cell_y * cell; y < std::min((cell_y + 1) * cell, job.height); ++y)
        prepare_row(job, bytes, y, thread.samples);
      if (job.compensates && !job.begin) measure_cells(job, cell_y, thread.light);
    }
  });
}

std::uint64_t CpuSteps::update(const Job& job, bool bytes, std::uint64_t began, const cv::Mat& unmasked,
                               cv::Mat& changed) {
  constexpr int least_rows = 4 * Strip::reach;  // minimum rows of a part
  threads_.resize(std::size_t(cpu::parts_of(work_of(job), job.height / least_rows)));
  prepare(job, bytes);
  if (job.begin) {
    changed.setTo(0);
    return 0;
  }
  if (job.compensates) settle_light(job, light_);
  const Rates rates = rates_of(job, job.number - began);
  const int parts = int(threads_.size());
  std::vector<std::uint64_t> sums(threads_.size());
  cpu::for_parts(parts, [&](int part) {
    sums[std::size_t(part)] = threads_[std::size_t(part)].strip.update(job, light_, rates, unmasked, changed);
  });
  return std::accumulate(sums.begin(), sums.end(), std::uint64_t(0));
}

void begin_anew(const Job& job, const camera::Decision& decision, const Relight& light) {
  for (int y = 0; y < job.height; ++y)
    for (int x = 0; x < job.width; ++x) {
      const int sector = camera::sector_of(x, y, job.width, job.height);
      const bool stays = decision.kept >> sector & 1;
      for (int c = 0; c < job.channels; ++c) {
        const std::size_t i = c * job.pixels() + job.at(x, y);
        job.next_mean[i] = stays ? light.apply(c, job.next_mean[i]) : from_fixed(int(job.frame[i]));
      }
      if (stays) {
        if (!(decision.held >> sector & 1)) doubt_background(job, job.at(x, y));
        continue;
      }
      job.recent[job.at(x, y)] = 0;
      restart_counts(job, job.at(x, y));
    }
}

}  // namespace cudavision::diff::adaptive
