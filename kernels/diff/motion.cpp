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

/// Cells in a row that move and follow each other: first … last.
struct Run {
  int first, last;
  std::uint32_t part;
};

/// The cells of some runs that are linked. In the tree of parts that are linked, the root is the earliest and has the sums of all.
struct Part {
  std::uint32_t parent;
  int left, right, top, bottom;  // in cells
  int area;
  std::uint64_t changed, counted;
};

/// Finds regions row by row: a run joins the parts of the runs before it that are near enough.
class Parts {
 public:
  std::uint32_t add(const CellGrid& grid, int y, int first, int last) {
    const auto index = std::uint32_t(parts_.size());
    Part part{index, first, last, y, y, last - first + 1, 0, 0};
    for (std::size_t at = std::size_t(y) * grid.width + first, end = at + part.area; at < end; ++at) {
      part.changed += grid.changed[at];
      part.counted += grid.counted[at];
    }
    parts_.push_back(part);
    return index;
  }

  void join(std::uint32_t a, std::uint32_t b) {
    a = root(a), b = root(b);
    if (a == b) return;
    Part &to = parts_[std::min(a, b)], &from = parts_[std::max(a, b)];
    from.parent = to.parent;
    to.left = std::min(to.left, from.left);
    to.right = std::max(to.right, from.right);
    to.bottom = std::max(to.bottom, from.bottom);
    to.area += from.area;
    to.changed += from.changed;
    to.counted += from.counted;
  }

  /// The regions of a size that counts, in the order of their first cells.
  std::vector<MotionRegion> regions(const CellGrid& grid, const RegionRules& rules) const {
    std::vector<MotionRegion> found;
    for (std::uint32_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      if (part.parent != i || part.area < rules.min_area || part.area > rules.max_area) continue;
      const Rect from = grid.box(part.left, part.top), to = grid.box(part.right, part.bottom);
      found.push_back({{from.x, from.y, to.x + to.width - from.x, to.y + to.height - from.y},
                       part.area,
                       double(part.changed) / double(part.counted)});
    }
    return found;
  }

 private:
  std::uint32_t root(std::uint32_t part) {
    while (parts_[part].parent != part) part = parts_[part].parent = parts_[parts_[part].parent].parent;
    return part;
  }

  std::vector<Part> parts_;
};

}  // namespace

MotionRegions find_regions(const CellGrid& grid, const RegionRules& rules) {
  Parts parts;
  const int distance = rules.distance;
  std::vector<std::vector<Run>> rows(std::size_t(distance) + 1);  // the runs of the last rows; row y is at y mod their number
  std::vector<std::size_t> next(rows.size());                     // of each row, the first run that may be near enough
  for (int y = 0; y < grid.height; ++y) {
    const std::uint32_t* const changed = grid.changed.data() + std::size_t(y) * grid.width;
    const std::uint32_t* const counted = grid.counted.data() + std::size_t(y) * grid.width;
    const auto moves = [&](int x) { return changed[x] > 0 && changed[x] >= rules.cell_threshold * counted[x]; };
    std::vector<Run>& here = rows[std::size_t(y) % rows.size()];
    here.clear();
    std::fill(next.begin(), next.end(), 0);
    for (int x = 0; x < grid.width; ++x) {
      // Most cells of most frames did not change: eight of them at a time.
      while (x + 8 <= grid.width && std::all_of(changed + x, changed + x + 8, [](std::uint32_t count) { return count == 0; }))
        x += 8;
      if (x == grid.width) break;
      if (!moves(x)) continue;
      const int first = x;
      while (x + 1 < grid.width && moves(x + 1)) ++x;
      here.push_back({first, x, parts.add(grid, y, first, x)});
      for (std::size_t row = 0; row < rows.size(); ++row) {  // also the runs on the left in this row
        const std::vector<Run>& runs = rows[row];
        while (next[row] < runs.size() && runs[next[row]].last < first - distance) ++next[row];
        for (std::size_t i = next[row]; i < runs.size() && runs[i].first <= x + distance; ++i)
          parts.join(here.back().part, runs[i].part);
      }
    }
  }
  return largest(parts.regions(grid, rules), rules.most);
}

}  // namespace cudavision::diff
