// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/local/cuda_schedule.hpp"

#include <algorithm>

namespace cudavision::local {
namespace {

constexpr int most_chunks = 1024;                 // the threads of a block
constexpr int most_rows_of_window = 65535 / 255;  // whose sum fits 16 bits
constexpr int resident_threads = 1024;            // of a multiprocessor: the kernel's 64 registers allow no more
constexpr int stored_alignment = 16;              // samples: a thread of column_sums reads 16

/// Rows of an interval; 0: adding up the rows of the first window costs less than reading stored sums.
int interval_rows(int radius_y) { return 2 * radius_y + 1 > tuning.most_added_rows ? tuning.interval_rows : 0; }

/// The steps of a segment for which the warps of a block finish a batch first. A segment begins with the sum of a whole window, which
/// takes about as long as a step.
int best_segment(int steps, int batch, int warps) {
  int best = 1, least = 0;
  for (int segment = 1; segment <= steps; ++segment) {
    const int time = divide_up(batch * divide_up(steps, segment), warps) * (segment + 1);
    if (least == 0 || time < least) best = segment, least = time;
  }
  return best;
}

}  // namespace

bool can_slide(const Plan& plan, int set) {
  const FormatInfo& format = info(plan.geometry.format);
  const ChannelSet& channels = format.sets[set];
  if (plan.operation == Operation::pixelate || format.sample_bytes() != 1 || channels.channels > 2) return false;
  for (int c = 0; c < channels.channels; ++c)
    if (!is_color(channels.roles[c])) return false;
  if (plan.operation != Operation::box_mean && channels.channels > 1) return false;
  if (plan.operation == Operation::threshold && channels.roles[0] != Role::luma) return false;  // luma of red, green and blue
  const Rect grid = plan.geometry.grid(channels);
  const std::int64_t width = std::min(2 * plan.radius[set].x + 1, grid.width),
                     height = std::min(2 * plan.radius[set].y + 1, grid.height);
  if (height > most_rows_of_window) return false;
  if (plan.operation == Operation::deviation && width * height * 255 * 255 > 0xffffffffll) return false;
  return divide_up(grid.width * channels.channels, chunk_samples(plan.operation)) <= most_chunks;
}

WindowLaunch schedule_windows(Operation operation, const std::vector<WindowSet>& sets, int multiprocessors) {
  WindowLaunch launch;
  int most_chunks_of_row = 0, most_height = 0;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const WindowSet& set = sets[i];
    const int aligned = stored_alignment / set.channels, pixels = chunk_samples(operation) / set.channels;
    WindowSchedule& s = launch.sets[i];
    s.first = std::max(set.rect.x - set.radius_x, 0) / aligned * aligned;
    s.chunks = divide_up(std::min(set.rect.x + set.rect.width + set.radius_x, set.grid.width) - s.first, pixels);
    s.interval = interval_rows(set.radius_y);
    if (s.interval > 0) {
      s.table_y = std::max(set.rect.y - set.radius_y, 0);
      s.intervals = divide_up(std::min(set.rect.y + set.rect.height + set.radius_y, set.grid.height) - s.table_y, s.interval);
    }
    most_chunks_of_row = std::max(most_chunks_of_row, s.chunks);
    most_height = std::max(most_height, set.rect.height);
  }
  launch.threads = divide_up(most_chunks_of_row, 32) * 32;
  const int resident = std::min(std::max(resident_threads / launch.threads, 1), tuning.most_resident_blocks);
  const auto blocks = [&](int rows) {
    int count = 0;
    for (const WindowSet& set : sets) count += divide_up(set.rect.height, rows);
    return count;
  };
  launch.rows = std::min(tuning.least_rows, most_height);
  while (launch.rows < most_height && blocks(launch.rows) > multiprocessors * resident) ++launch.rows;
  launch.batch = std::min(launch.rows, operation == Operation::deviation ? tuning.deviation_batch : tuning.mean_batch);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    WindowSchedule& s = launch.sets[i];
    s.blocks = divide_up(sets[i].rect.height, launch.rows);
    s.segment = best_segment(divide_up(s.chunks, 32), launch.batch, launch.threads / 32);
    launch.blocks += s.blocks;
  }
  launch.shared_bytes =
      launch.batch * (column_row_bytes(operation, most_chunks_of_row) + square_row_bytes(operation, most_chunks_of_row));
  return launch;
}

StoredBytes stored_bytes(Operation operation, const Rect& grid, int channels, int radius_y) {
  const int interval = interval_rows(radius_y);
  if (interval == 0) return {};
  const std::size_t samples = std::size_t(divide_up(grid.width * channels, stored_alignment)) * stored_alignment;
  const std::size_t sums = samples * divide_up(grid.height, interval);
  return {sums * 2, operation == Operation::deviation ? sums * 4 : 0};
}

}  // namespace cudavision::local
