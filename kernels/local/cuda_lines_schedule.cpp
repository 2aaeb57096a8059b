// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/local/cuda_lines_schedule.hpp"

#include <algorithm>

namespace cudavision::local {
namespace {

constexpr int shared_total = 220 * 1024;

/// Bytes of a row of windows in shared memory: lines of 16-byte quads, and a quad of zeros.
int row_bytes(const LineShape& shape, int threads) { return shape.lines() * (threads * shape.chunk() / 4 + 1) * 16; }

bool has_stored_sums(int radius_y) { return 2 * radius_y + 1 > tuning.most_added_rows; }

}  // namespace

bool line_sums_fit(const LineShape& shape, std::int64_t window) {
  const bool large = shape.sample_bytes == 2 || shape.operation == Operation::deviation;  // values of 16 bits
  return window <= (large ? 1 << 15 : 1 << 23);
}

LineSchedule schedule_lines(const LineShape& shape, const Rect& grid, const Rect& rect, int radius_x, int radius_y,
                            int multiprocessors, int shared_limit) {
  LineSchedule s;
  const int chunk = shape.chunk(), right = rect.x + rect.width;
  s.left = rect.x / line_results * line_results;
  // The pixels that a strip reads: its own, and those on both sides that the windows reach and that are in the frame,
  // in whole chunks and results.
  const int halo = divide_up(std::min(radius_x, grid.width), line_results) * line_results,
            first = std::max(s.left - halo, 0);
  const int width = divide_up(right - s.left, line_results) * line_results;
  const int whole = divide_up(std::min(right + radius_x, grid.width) - first, line_results) * line_results;
  for (s.threads = tuning.line_threads; s.threads <= shape.most_threads(); s.threads *= 2) {
    const int read = s.threads * chunk;
    const bool last = s.threads * 2 > shape.most_threads() || row_bytes(shape, 2 * s.threads) > shared_limit;
    s.strip = whole <= read ? width : read - 2 * halo;
    if (s.strip >= width || s.strip * 8 >= read * tuning.line_eighths || (last && s.strip * 4 >= read)) break;
    if (last) return {};
  }
  s.strips = divide_up(width, s.strip);
  s.strip = divide_up(divide_up(width, s.strips), line_results) * line_results;
  s.threads = divide_up(divide_up(std::min(s.strip + 2 * halo, whole), chunk), 32) * 32;
  const int resident = std::max(shape.most_threads() / s.threads, 1);
  const int most_blocks = divide_up(multiprocessors * resident, s.strips);
  s.rows = std::max(divide_up(rect.height, most_blocks), std::min(tuning.least_rows, rect.height));
  s.blocks_y = divide_up(rect.height, s.rows);
  const int bytes = row_bytes(shape, s.threads);
  s.batch = std::clamp(std::min(shared_total / resident, shared_limit) / bytes, 1, std::min(tuning.line_batch, s.rows));
  s.shared_bytes = s.batch * bytes;
  const int steps = divide_up(s.strip, 32 * line_results), warps = s.threads / 32;
  s.segment = 1;
  for (int segment = 1, least = 0; segment <= steps; ++segment) {
    const int time = divide_up(s.batch * divide_up(steps, segment), warps) * (segment + 1 + radius_x / 128);
    if (least == 0 || time < least) s.segment = segment, least = time;
  }
  if (has_stored_sums(radius_y)) {
    s.stored_first = first;
    s.stored_chunks = whole / chunk;
    s.stored_y = std::max(rect.y - radius_y, 0);
    s.stored_entries = divide_up(std::min(rect.y + rect.height + radius_y, grid.height) - s.stored_y, stored_rows);
  }
  return s;
}

std::size_t stored_line_bytes(const LineShape& shape, const Rect& grid, int radius_y) {
  if (!has_stored_sums(radius_y)) return 0;
  return std::size_t(divide_up(grid.width, line_results)) * line_results * shape.lines() *
         divide_up(grid.height, stored_rows) * sizeof(std::uint32_t);
}

}  // namespace cudavision::local
