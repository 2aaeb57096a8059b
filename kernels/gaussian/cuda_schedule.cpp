// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/gaussian/cuda_schedule.hpp"

#include <algorithm>

namespace cudavision::gaussian {
namespace {

template <typename Shapes>
int find(const Shapes& shapes, int window_groups_x, int window_groups_y) {
  const auto holds = [&](const KernelShape& shape) {
    return window_groups_x <= shape.window_groups_x && window_groups_y <= shape.window_groups_y;
  };
  const auto found = std::find_if(shapes.begin(), shapes.end(), holds);
  return found == shapes.end() ? -1 : int(found - shapes.begin());
}

}  // namespace

Window window_of(int reach, int radius_y, int element_bytes) {
  const int unit = element_bytes == pixel_bytes ? 16 : 8;
  Window window;
  window.reach = reach;
  window.lead = divide_up(window.reach, unit) * unit;
  window.window_groups_x = divide_up(window.lead + 16 * element_bytes + window.reach, 16 * element_bytes);
  window.window_groups_y = divide_up(2 * radius_y + 16, 16);
  return window;
}

int find_shape(int element_bytes, int window_groups_x, int window_groups_y) {
  if (element_bytes == pixel_bytes) return find(pixel_shapes, window_groups_x, window_groups_y);
  return element_bytes == 1 ? find(byte_shapes, window_groups_x, window_groups_y)
                            : find(word_shapes, window_groups_x, window_groups_y);
}

int strip_shared(int element_bytes, int shape) {
  const KernelShape& s = element_bytes == pixel_bytes ? pixel_shapes[shape]
                         : element_bytes == 1         ? byte_shapes[shape]
                                                      : word_shapes[shape];
  return StripLayout(element_bytes, s.window_groups_x, s.window_groups_y).size;
}

int large_bytes(int sample_bytes, int window_groups_x, int window_groups_y, int warps) {
  return sample_bytes == 1 ? LargeLayout<1>(window_groups_x, window_groups_y, warps).size
                           : LargeLayout<2>(window_groups_x, window_groups_y, warps).size;
}

int large_window(int sample_bytes, int window_groups_x, int window_groups_y) {
  return 16 * sample_bytes *
         (sample_bytes == 1 ? LargeLayout<1>(window_groups_x, window_groups_y, 1).loads
                            : LargeLayout<2>(window_groups_x, window_groups_y, 1).loads);
}

int large_warps(int sample_bytes, int window_groups_x, int window_groups_y, int shared_limit) {
  int warps = tuning.large_warps;
  while (warps > 0 && large_bytes(sample_bytes, window_groups_x, window_groups_y, warps) > shared_limit) --warps;
  return warps;
}

Schedule cut(const std::array<SetWork, max_sets>& work, int sets, const Workers& workers,
             const std::array<int, max_sets>& steps) {
  Schedule schedule;
  for (int i = 0; i < sets; ++i) {
    const SetWork& from = work[i];
    SetSchedule& set = schedule.sets[i];
    set.steps = steps[i];
    set.edge_steps = std::max(1, steps[i] * workers.edge_percent / 100);
    set.first_block = schedule.blocks;
    set.strips = from.strips();
    if (set.strips == 0) continue;
    // The window of strip n is [begin + width · n, begin + width · n + window).
    const int begin = from.origin() - from.lead;
    // The last position in the row where a window can begin.
    const int end = from.row_bytes - workers.window;
    // The number of strips whose window does not leave the row on the right.
    const int fit = begin <= end ? (end - begin) / from.width + 1 : 0;
    set.left = std::min(set.strips, begin < 0 ? divide_up(-begin, from.width) : 0);
    if (from.all_edges || fit <= set.left) set.left = set.strips;
    set.edges = set.left + std::max(0, set.strips - std::max(fit, set.left));
    set.edge_blocks = divide_up(set.edges * divide_up(from.steps(), set.edge_steps), workers.warps);
    set.blocks_x = divide_up(set.strips - set.edges, workers.warps);
    schedule.blocks += set.edge_blocks + set.blocks_x * divide_up(from.steps(), set.steps);
  }
  return schedule;
}

Schedule make_schedule(const std::array<SetWork, max_sets>& work, int sets, const Workers& workers) {
  const int overhead = workers.window_groups_y - 1 + tuning.start_steps;
  Schedule best;
  long least = 0;
  for (int steps = 1; steps <= workers.max_steps; ++steps) {
    std::array<int, max_sets> same;
    same.fill(steps);
    const Schedule schedule = cut(work, sets, workers, same);
    const long cost = long(divide_up(schedule.blocks, workers.slots)) * (steps + overhead);
    if (steps == 1 || cost <= least) least = cost, best = schedule;
    if (schedule.blocks <= workers.slots) break;
  }
  // The last wave may have room for one more segment in each strip of a set. Then all segments of the set get shorter.
  std::array<int, max_sets> steps;
  for (int i = 0; i < sets; ++i) steps[i] = best.sets[i].steps;
  const int waves = divide_up(best.blocks, workers.slots);
  for (int i = 0; i < sets && sets > 1; ++i) {
    const int all = work[i].steps(), before = steps[i];
    if (all == 0 || before == 1) continue;
    steps[i] = divide_up(all, divide_up(all, before) + 1);
    const Schedule schedule = cut(work, sets, workers, steps);
    if (divide_up(schedule.blocks, workers.slots) > waves)
      steps[i] = before;
    else
      best = schedule;
  }
  return best;
}

}  // namespace cudavision::gaussian
