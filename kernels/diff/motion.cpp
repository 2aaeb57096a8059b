// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/motion.hpp"

#include <algorithm>
#include <numeric>

namespace cudavision::diff {

CellGrid::CellGrid(int frame_width, int frame_height, int cell_size)
    : frame_width(frame_width), frame_height(frame_height), cell_size(cell_size) {
  width = (frame_width + cell_size - 1) / cell_size;
  height = (frame_height + cell_size - 1) / cell_size;
  changed.resize(std::size_t(width) * height);
  counted.reserve(changed.size());
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) counted.push_back(std::uint32_t(box(x, y).width) * box(x, y).height);
}

Rect CellGrid::box(int x, int y) const {
  const int left = x * cell_size, top = y * cell_size;
  return {left, top, std::min(cell_size, frame_width - left), std::min(cell_size, frame_height - top)};
}

namespace {

/// Keeps the largest regions. `regions` are in the order of their first cells.
MotionRegions largest(const std::vector<MotionRegion>& regions, std::size_t most) {
  std::vector<std::uint32_t> order(regions.size());
  std::iota(order.begin(), order.end(), 0u);
  if (order.size() > most) {
    std::nth_element(order.begin(), order.begin() + std::ptrdiff_t(most), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const MotionRegion &one = regions[a], &other = regions[b];
      if (one.area != other.area) return one.area > other.area;
      if (one.score != other.score) return one.score > other.score;
      return a < b;
    });
    order.resize(most);
  }
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return regions[a].area != regions[b].area ? regions[a].area > regions[b].area : a < b;
  });
  MotionRegions result;
  result.left_out = regions.size() - order.size();
  result.kept.reserve(order.size());
  for (std::uint32_t index : order) result.kept.push_back(regions[index]);
  return result;
}

}  // namespace

MotionRegions find_regions(const CellGrid& grid, double cell_threshold, int min_area, std::size_t most) {
  std::vector<bool> waiting(grid.changed.size());  // cells that move and are in no region yet
  for (std::size_t i = 0; i < waiting.size(); ++i)
    waiting[i] = grid.changed[i] > 0 && grid.changed[i] >= cell_threshold * grid.counted[i];

  std::vector<MotionRegion> regions;
  std::vector<std::pair<int, int>> open;  // cells whose neighbours are not examined yet
  const auto take = [&](int x, int y) {
    if (x < 0 || y < 0 || x >= grid.width || y >= grid.height) return;
    const std::size_t at = std::size_t(y) * grid.width + x;
    if (!waiting[at]) return;
    waiting[at] = false;
    open.emplace_back(x, y);
  };
  for (int first_y = 0; first_y < grid.height; ++first_y) {
    for (int first_x = 0; first_x < grid.width; ++first_x) {
      take(first_x, first_y);
      if (open.empty()) continue;
      int area = 0, left = first_x, right = first_x, bottom = first_y;
      std::uint64_t changed = 0, counted = 0;
      while (!open.empty()) {
        const auto [x, y] = open.back();
        open.pop_back();
        const std::size_t at = std::size_t(y) * grid.width + x;
        ++area;
        changed += grid.changed[at];
        counted += grid.counted[at];
        left = std::min(left, x);
        right = std::max(right, x);
        bottom = std::max(bottom, y);
        for (int dy = -1; dy <= 1; ++dy)
          for (int dx = -1; dx <= 1; ++dx) take(x + dx, y + dy);
      }
      if (area < min_area) continue;
      const Rect from = grid.box(left, first_y), to = grid.box(right, bottom);
      regions.push_back(
          {{from.x, from.y, to.x + to.width - from.x, to.y + to.height - from.y}, area, double(changed) / double(counted)});
    }
  }
  return largest(regions, most);
}

}  // namespace cudavision::diff
