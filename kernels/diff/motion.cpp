// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/motion.hpp"

#include <algorithm>

#include "kernels/diff/size_limit.hpp"

namespace cudavision::diff {

CellGrid::CellGrid(int frame_width, int frame_height, int cell_size) : Cells{frame_width, frame_height, cell_size} {
  width = (frame_width + cell_size - 1) / cell_size;
  height = (frame_height + cell_size - 1) / cell_size;
  changed.resize(std::size_t(width) * height);
  unmasked.reserve(changed.size());
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) unmasked.push_back(std::uint32_t(box(x, y).width) * box(x, y).height);
}

Rect Cells::box(int x, int y) const {
  const int left = x * cell_size, top = y * cell_size;
  return {left, top, std::min(cell_size, frame_width - left), std::min(cell_size, frame_height - top)};
}

Rect Cells::box(int x, int y, const CellLooks& looks) const {
  const int left = looks.left * analysis_scale, top = looks.top * analysis_scale;
  return intersection(
      box(x, y), {left, top, (looks.right + 1) * analysis_scale - left, (looks.bottom + 1) * analysis_scale - top});
}

Rect around(const Rect& a, const Rect& b) {
  if (a.empty() || b.empty()) return a.empty() ? b : a;
  const int x = std::min(a.x, b.x), y = std::min(a.y, b.y);
  return {x, y, std::max(a.x + a.width, b.x + b.width) - x, std::max(a.y + a.height, b.y + b.height) - y};
}

namespace {

bool moves(std::uint32_t changed, std::uint32_t unmasked, const RegionRules& rules) {
  return cell_moves(changed, unmasked, rules.cell_threshold);
}

/// A run in a tree of linked runs. The root is the earliest run, and has the sums over all cells of the tree.
struct LinkedRun {
  std::uint32_t parent;
  int area;
  std::uint64_t changed, unmasked;
  Structure structure;
};

/// The runs of moving cells, row by row, and their links.
class LinkedRuns {
 public:
  explicit LinkedRuns(const CellGrid& grid) : grid_(grid), begins_(std::size_t(grid.height)), nexts_(begins_.size()) {}

  /// Adds a run, and links it with the earlier runs that are close enough: at most `distance` rows above, or to the
  /// left.
  void add(int y, int first, int last, int distance) {
    const auto index = std::uint32_t(runs_.size());
    LinkedRun link{index, last - first + 1, 0, 0, {}};
    for (std::size_t at = grid_.at(first, y), end = at + link.area; at < end; ++at) {
      link.changed += grid_.changed[at];
      link.unmasked += grid_.unmasked[at];
      if (!grid_.looks.empty()) link.structure.add(grid_.looks[at].structure);
    }
    links_.push_back(link);
    for (std::size_t row = std::size_t(std::max(0, y - distance)); row <= std::size_t(y); ++row) {
      const std::uint32_t end = row < std::size_t(y) ? begins_[row + 1] : index;
      std::uint32_t& next = nexts_[row];
      while (next < end && runs_[next].last < first - distance) ++next;
      for (std::uint32_t other = next; other < end && runs_[other].first <= last + distance; ++other)
        join(index, other);
    }
    runs_.push_back({y, first, last, 0});
  }

  void begin_row(int y, int distance) {
    begins_[std::size_t(y)] = std::uint32_t(runs_.size());
    const auto top = std::max(0, y - distance);
    std::copy(begins_.begin() + top, begins_.begin() + y + 1, nexts_.begin() + top);
  }

  /// The regions that count. No more runs may be added afterwards.
  MotionRegions regions(const RegionRules& rules, SizeLimit* limit) {
    const std::vector<bool> fits = fitting(rules, limit);
    std::vector<std::uint32_t> roots;  // in the order of their first cells
    MotionRegions result;
    std::vector<std::uint32_t> places(links_.size(), none);  // in the lists of the result
    for (std::uint32_t i = 0; i < links_.size(); ++i) {
      const LinkedRun& link = links_[i];
      if (link.parent != i) continue;
      if (fits[i] && !is_light(link.structure))
        roots.push_back(i);
      else if (is_clearly_light(link.structure))
        places[i] = std::uint32_t(result.light.size()), result.light.emplace_back();
    }
    for (std::uint32_t i = 0; i < runs_.size(); ++i)
      if (const std::uint32_t place = places[root(i)]; place != none) {
        Rect& box = result.light[place];
        box = around(box, around(grid_.box(runs_[i].first, runs_[i].y), grid_.box(runs_[i].last, runs_[i].y)));
      }
    std::fill(places.begin(), places.end(), none);
    result.left_out = roots.size() - std::min(roots.size(), rules.most);
    keep_largest(roots, rules.most);
    for (std::uint32_t root : roots) result.kept.push_back(region(links_[root]));

    for (std::uint32_t place = 0; place < roots.size(); ++place) places[roots[place]] = place;
    for (std::uint32_t i = 0; i < runs_.size(); ++i) {
      CellRun& run = runs_[i];
      run.region = places[root(i)];
      if (run.region == none) continue;
      run.cells = result.boxes.size();
      result.runs.push_back(run);
      Rect& box = result.kept[run.region].box;
      for (int x = run.first; x <= run.last; ++x) {
        result.boxes.push_back(box_of_cell(x, run.y, rules));
        box = around(box, result.boxes.back());
        if (!grid_.looks.empty()) result.looks.push_back(grid_.looks[grid_.at(x, run.y)]);
      }
    }
    return result;
  }

 private:
  static constexpr std::uint32_t none = ~0u;

  /// Whether only light changed: most of the structure matches the background.
  static bool is_light(const Structure& structure) {
    constexpr std::uint32_t least = 10;  // pixels
    return structure.same >= least && 2 * structure.same >= 3 * structure.other;
  }
  /// Like is_light(), but only if there is no doubt, so that fewer pixels are enough.
  static bool is_clearly_light(const Structure& structure) {
    constexpr std::uint32_t least = 4;  // pixels
    return structure.same >= least && structure.same >= 4 * structure.other;
  }
  /// For each root, whether the size of its region is allowed.
  std::vector<bool> fitting(const RegionRules& rules, SizeLimit* limit) {
    std::vector<bool> fits(links_.size());
    std::vector<SizeLimit::Region> regions;
    std::vector<std::uint32_t> places(links_.size(), none);  // in `regions`
    for (std::uint32_t i = 0; i < links_.size(); ++i) {
      const LinkedRun& link = links_[i];
      if (link.parent != i || link.area < rules.min_area) continue;
      fits[i] = link.area <= rules.max_area;
      if (fits[i] && is_light(link.structure)) continue;
      places[i] = std::uint32_t(regions.size()), regions.push_back({link.area});
    }
    if (!limit) return fits;
    std::vector<CellRun> runs;
    for (std::uint32_t i = 0; i < runs_.size(); ++i)
      if (const std::uint32_t place = places[root(i)]; place != none)
        runs.push_back({runs_[i].y, runs_[i].first, runs_[i].last, place});
    limit->advance(grid_, runs, rules.max_area, regions);
    for (std::uint32_t i = 0; i < links_.size(); ++i)
      if (places[i] != none) fits[i] = regions[places[i]].counts;
    return fits;
  }
  std::uint32_t root(std::uint32_t link) {
    while (links_[link].parent != link) link = links_[link].parent = links_[links_[link].parent].parent;
    return link;
  }

  void join(std::uint32_t a, std::uint32_t b) {
    a = root(a), b = root(b);
    if (a == b) return;
    LinkedRun &to = links_[std::min(a, b)], &from = links_[std::max(a, b)];
    from.parent = to.parent;
    to.area += from.area;
    to.changed += from.changed;
    to.unmasked += from.unmasked;
    to.structure.add(from.structure);
  }

  /// See MotionRegions::boxes.
  Rect box_of_cell(int x, int y, const RegionRules& rules) const {
    if (grid_.looks.empty()) return grid_.box(x, y);
    const Rect here = grid_.box(x, y, grid_.looks[grid_.at(x, y)]),
               near{here.x - 1, here.y - 1, here.width + 2, here.height + 2};
    Rect box = here;
    for (int ny = std::max(0, y - 1); ny <= std::min(grid_.height - 1, y + 1); ++ny)
      for (int nx = std::max(0, x - 1); nx <= std::min(grid_.width - 1, x + 1); ++nx) {
        const std::size_t at = grid_.at(nx, ny);
        if (grid_.changed[at] == 0 || moves(grid_.changed[at], grid_.unmasked[at], rules)) continue;
        const Rect other = grid_.box(nx, ny, grid_.looks[at]);
        if (!intersection(near, other).empty()) box = around(box, other);
      }
    return box;
  }

  /// Keeps the largest regions. `roots` are in the order of their first cells.
  void keep_largest(std::vector<std::uint32_t>& roots, std::size_t most) const {
    const auto score = [](const LinkedRun& link) { return double(link.changed) / double(link.unmasked); };
    if (roots.size() > most) {
      std::nth_element(roots.begin(), roots.begin() + std::ptrdiff_t(most), roots.end(),
                       [&](std::uint32_t a, std::uint32_t b) {
                         const LinkedRun &one = links_[a], &other = links_[b];
                         if (one.area != other.area) return one.area > other.area;
                         if (score(one) != score(other)) return score(one) > score(other);
                         return a < b;
                       });
      roots.resize(most);
    }
    std::sort(roots.begin(), roots.end(), [&](std::uint32_t a, std::uint32_t b) {
      return links_[a].area != links_[b].area ? links_[a].area > links_[b].area : a < b;
    });
  }

  static MotionRegion region(const LinkedRun& link) {
    return {{}, link.area, double(link.changed) / double(link.unmasked), link.structure};
  }

  const CellGrid& grid_;
  std::vector<CellRun> runs_;
  std::vector<LinkedRun> links_;       ///< one for each run
  std::vector<std::uint32_t> begins_;  ///< for each row, its first run
  std::vector<std::uint32_t> nexts_;   ///< for each row, the first run that may be near the next run
};

}  // namespace

MotionRegions find_regions(const CellGrid& grid, const RegionRules& rules, SizeLimit* limit) {
  LinkedRuns runs(grid);
  for (int y = 0; y < grid.height; ++y) {
    const std::uint32_t* const changed = grid.changed.data() + std::size_t(y) * grid.width;
    const std::uint32_t* const unmasked = grid.unmasked.data() + std::size_t(y) * grid.width;
    runs.begin_row(y, rules.distance);
    for (int x = 0; x < grid.width; ++x) {
      // Most cells of most frames are unchanged, so eight of them are tested at a time.
      while (x + 8 <= grid.width &&
             std::all_of(changed + x, changed + x + 8, [](std::uint32_t count) { return count == 0; }))
        x += 8;
      if (x == grid.width) break;
      if (!moves(changed[x], unmasked[x], rules)) continue;
      const int first = x;
      while (x + 1 < grid.width && moves(changed[x + 1], unmasked[x + 1], rules)) ++x;
      runs.add(y, first, x, rules.distance);
    }
  }
  return runs.regions(rules, limit);
}

}  // namespace cudavision::diff
