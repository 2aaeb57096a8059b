// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/local/cuda_schedule.hpp"

#include <algorithm>

namespace cudavision::local {
namespace {

constexpr int chunk = 8;        // in samples
constexpr int most_rows = 256;  // most rows of a block
constexpr int least_tiles = 4;  // fewest tiles of a strip; with fewer, blocks read more than they write
constexpr int most_rows_of_window = 65535 / 255;  // a sum of this many bytes fits in 16 bits

/// The rows of an interval. 0: adding up the rows of the first window is faster than reading stored sums.
int interval_rows(int radius_y) { return 2 * radius_y + 1 > tuning.most_added_rows ? tuning.interval_rows : 0; }

/// The maximum number of tiles of a strip. The first chunk begins at a multiple of 8, up to 7 samples before the first
/// window.
int most_tiles(int channels, int radius_x) {
  return (window_threads * chunk - channels * (2 * radius_x + 1) - (chunk - 1)) / window_tile;
}

/// The number of intervals needed above row `end`, counted from `table_y`, the first row of the window of the row above
/// the rectangle.
int intervals_to(int table_y, int end) { return divide_up(end - table_y, tuning.interval_rows); }

/// The approximate number of instructions of a warp for each of these steps.
struct Cost {
  int start = 300;  ///< start of a block
  int move = 18;    ///< move by a row
  int add = 9;      ///< add a row of the first window
  int tile = 260;   ///< compute a tile of a batch of rows
  int begin = 80;   ///< begin the first window of a group, for a batch of rows
  int sum = 5;      ///< add a chunk of this first window
};
constexpr Cost cost;

/// The time of blocks that take one time unit each, on a multiprocessor that holds `resident` blocks. With few blocks,
/// the multiprocessor often waits.
double time_of(int blocks, int resident) {
  const int last = blocks % resident;
  return blocks - last + (last == 0 ? 0 : std::max(last + 0.6, 3.0));
}

/// The time of a block, and the additional time of a block whose windows are cut at the top or bottom.
struct BlockTime {
  double plain = 0, cut = 0;
};

/// Divides a set into strips and blocks.
BlockTime divide(const WindowSet& set, int rows, int batch, WindowSchedule& s) {
  s.left = set.rect.x * set.channels / window_tile * window_tile;
  const int all = divide_up((set.rect.x + set.rect.width) * set.channels - s.left, window_tile),
            groups = window_threads / batch;
  const int window = 2 * set.radius_y + 1, interval = interval_rows(set.radius_y), batches = divide_up(rows, batch);
  const int first = cost.add * (interval ? window / interval + interval / 2 : window);
  BlockTime least;
  for (int strips = divide_up(all, most_tiles(set.channels, set.radius_x)), i = 0; i < 4; ++i, ++strips) {
    const int tiles = divide_up(all, strips), per_group = divide_up(tiles, groups);
    const int walk = per_group * cost.tile + cost.begin + (2 * set.radius_x + 1) * set.channels / chunk * cost.sum;
    const double time = cost.start + first + rows * cost.move + batches * walk;
    if (least.plain > 0 && time * strips >= least.plain * s.strips) continue;
    least = {time, 0.7 * walk * std::min(divide_up(set.radius_y, batch), batches)};
    s.strips = divide_up(all, tiles), s.tiles = tiles, s.per_group = per_group;
  }
  s.blocks = divide_up(set.rect.height, rows) * s.strips;
  return least;
}

}  // namespace

bool can_slide(const Plan& plan, int set) {
  const FormatInfo& format = info(plan.geometry.format);
  const ChannelSet& channels = format.sets[set];
  if (plan.operation == Operation::pixelate || format.sample_bytes() != 1 || channels.channels > 2) return false;
  for (int c = 0; c < channels.channels; ++c)
    if (!is_color(channels.roles[c])) return false;
  if (plan.operation != Operation::box_mean && channels.channels > 1) return false;
  // In other formats, the threshold needs luma computed from red, green and blue.
  if (plan.operation == Operation::threshold && channels.roles[0] != Role::luma) return false;
  const Rect grid = plan.geometry.grid(channels);
  const std::int64_t width = std::min(2 * plan.radius[set].x + 1, grid.width),
                     height = std::min(2 * plan.radius[set].y + 1, grid.height);
  if (height > most_rows_of_window) return false;
  if (plan.operation == Operation::deviation && width * height * 255 * 255 > 0xffffffffll) return false;
  return most_tiles(channels.channels, std::min(plan.radius[set].x, grid.width)) >= least_tiles;
}

WindowLaunch schedule_windows(Operation operation, const std::vector<WindowSet>& sets, int multiprocessors) {
  const int lines = operation == Operation::deviation ? 3 : 1;
  WindowLaunch launch;
  double least = 0;
  int most_height = 0;
  bool wide = false;
  for (const WindowSet& set : sets) {
    most_height = std::max(most_height, set.rect.height);
    const std::int64_t window =
        std::int64_t(std::min(2 * set.radius_x + 1, set.grid.width)) * std::min(2 * set.radius_y + 1, set.grid.height);
    wide = wide || window * 255 >= 1 << 23;
  }
  for (const int batch : {8, 16})
    for (int rows = batch; rows < most_height + batch && rows <= most_rows; rows += batch) {
      // Deviations have batches of 8 rows. Wide sums have batches of 16, which are faster for frames of at least 1080p.
      if (operation == Operation::deviation ? batch == 16 : wide && batch == 8) continue;
      WindowLaunch tried;
      tried.rows = rows, tried.batch = batch;
      double work = 0, longest = 0;
      for (std::size_t i = 0; i < sets.size(); ++i) {
        const BlockTime block = divide(sets[i], rows, batch, tried.sets[i]);
        tried.blocks += tried.sets[i].blocks;
        work += block.plain * tried.sets[i].blocks;
        longest = std::max(longest, block.cut);
      }
      const int resident = window_blocks(operation, batch), each = divide_up(tried.blocks, multiprocessors);
      double time = work / tried.blocks * time_of(each, resident);
      if (each <= resident) time += longest;  // no other blocks occupy the multiprocessor meanwhile
      if (least > 0 && time >= least) continue;
      least = time;
      launch = tried;
    }
  launch.wide = wide;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const WindowSet& set = sets[i];
    WindowSchedule& s = launch.sets[i];
    s.interval = interval_rows(set.radius_y);
    if (s.interval == 0) continue;
    s.table_y = set.rect.y - set.radius_y - 1;
    s.intervals = intervals_to(s.table_y, std::min(set.rect.y + set.rect.height + set.radius_y, set.grid.height));
    const int reach = set.radius_x * set.channels;
    s.stored_first = std::max(s.left - reach - set.channels, 0) / chunk;
    s.stored_chunks =
        divide_up(std::min(s.left + s.strips * s.tiles * window_tile + reach, set.grid.width * set.channels), chunk) -
        s.stored_first;
  }
  launch.shared_bytes = 16 * lines * launch.batch * window_pitch + window_threads / 32 * 1024;
  return launch;
}

std::size_t stored_bytes(Operation operation, const Rect& grid, int channels, int radius_y) {
  radius_y = std::min(radius_y, grid.height);
  if (interval_rows(radius_y) == 0) return 0;
  const int intervals = intervals_to(-radius_y - 1, grid.height) + 1, lines = operation == Operation::deviation ? 3 : 1;
  return std::size_t(divide_up(grid.width * channels, chunk)) * 16 * lines * intervals;
}

}  // namespace cudavision::local
