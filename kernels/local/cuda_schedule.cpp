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

WindowSchedule schedule_windows(Operation operation, const Rect& grid, int channels, const Rect& rect, int radius_x, int radius_y,
                                int multiprocessors) {
  WindowSchedule s;
  const int pixels = chunk_samples(operation) / channels;
  s.first = std::max(rect.x - radius_x, 0) / (stored_alignment / channels) * (stored_alignment / channels);
  s.chunks = divide_up(std::min(rect.x + rect.width + radius_x, grid.width) - s.first, pixels);
  s.threads = divide_up(s.chunks, 32) * 32;
  const int resident = std::min(std::max(resident_threads / s.threads, 1), tuning.most_resident_blocks);
  s.rows = std::max(divide_up(rect.height, multiprocessors * resident), std::min(tuning.least_rows, rect.height));
  s.blocks = divide_up(rect.height, s.rows);
  s.batch = std::min(s.rows, operation == Operation::deviation ? tuning.deviation_batch : tuning.mean_batch);
  s.segment = best_segment(divide_up(s.chunks, 32), s.batch, s.threads / 32);
  s.shared_bytes = s.batch * (column_row_bytes(operation, s.chunks) + square_row_bytes(operation, s.chunks));
  s.interval = interval_rows(radius_y);
  if (s.interval > 0) {
    s.table_y = std::max(rect.y - radius_y, 0);
    s.intervals = divide_up(std::min(rect.y + rect.height + radius_y, grid.height) - s.table_y, s.interval);
  }
  return s;
}

StoredBytes stored_bytes(Operation operation, const Rect& grid, int channels, int radius_y) {
  const int interval = interval_rows(radius_y);
  if (interval == 0) return {};
  const std::size_t samples = std::size_t(divide_up(grid.width * channels, stored_alignment)) * stored_alignment;
  const std::size_t sums = samples * divide_up(grid.height, interval);
  return {sums * 2, operation == Operation::deviation ? sums * 4 : 0};
}

}  // namespace cudavision::local
