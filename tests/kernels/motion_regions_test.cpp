// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares regions of moving cells (kernels/diff/motion.hpp) with a slow method, which equalises the labels of
// neighbours until nothing changes.
#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "tests/kernels/harness.hpp"
#include "tests/kernels/motion_grids.hpp"

namespace cudavision::test {
namespace {

/// The lowest index of a cell in the region of each cell; −1 for cells that do not move.
std::vector<int> labels_of(const diff::CellGrid& grid, const diff::RegionRules& rules) {
  std::vector<int> label(grid.changed.size());
  for (std::size_t i = 0; i < label.size(); ++i)
    label[i] =
        grid.changed[i] > 0 && double(grid.changed[i]) >= rules.cell_threshold * double(grid.unmasked[i]) ? int(i) : -1;
  for (bool again = true; again;) {
    again = false;
    for (const auto& [x, y] : positions(grid))
      for (int ny = std::max(0, y - rules.distance); ny <= std::min(grid.height - 1, y + rules.distance); ++ny)
        for (int nx = std::max(0, x - rules.distance); nx <= std::min(grid.width - 1, x + rules.distance); ++nx) {
          int &mine = label[grid.at(x, y)], other = label[grid.at(nx, ny)];
          if (mine >= 0 && other >= 0 && other < mine) mine = other, again = true;
        }
  }
  return label;
}

/// The box of a moving cell, extended by the changed pixels of neighbouring cells that do not move, where they touch
/// it.
Rect box_of(const diff::CellGrid& grid, const std::vector<int>& label, int x, int y) {
  if (grid.looks.empty()) return grid.box(x, y);
  const auto tight = [&](int cell_x, int cell_y) {
    return grid.box(cell_x, cell_y, grid.looks[grid.at(cell_x, cell_y)]);
  };
  const Rect here = tight(x, y);
  Rect box = here;
  for (int cell_y = std::max(0, y - 1); cell_y <= std::min(grid.height - 1, y + 1); ++cell_y)
    for (int cell_x = std::max(0, x - 1); cell_x <= std::min(grid.width - 1, x + 1); ++cell_x) {
      if (label[grid.at(cell_x, cell_y)] >= 0 || grid.changed[grid.at(cell_x, cell_y)] == 0) continue;
      const Rect b = tight(cell_x, cell_y);
      if (b.x <= here.x + here.width && here.x <= b.x + b.width && b.y <= here.y + here.height &&
          here.y <= b.y + b.height)
        box = diff::around(box, b);
    }
  return box;
}

struct Expected : diff::MotionRegion {
  int label;
};

/// The largest region comes first.
std::vector<Expected> regions_of(const diff::CellGrid& grid, const std::vector<int>& label,
                                 const diff::RegionRules& rules) {
  std::map<int, Expected> regions;
  std::map<int, std::pair<double, double>> pixels;  // changed and counted pixels
  for (const auto& [x, y] : positions(grid)) {
    const std::size_t at = grid.at(x, y);
    if (label[at] < 0) continue;
    const Rect box = box_of(grid, label, x, y);
    const auto [region, is_new] = regions.try_emplace(label[at], Expected{{box, 0, 0}, label[at]});
    if (!is_new) region->second.box = diff::around(region->second.box, box);
    ++region->second.area;
    pixels[label[at]].first += grid.changed[at], pixels[label[at]].second += grid.unmasked[at];
  }
  std::vector<Expected> expected;
  for (auto& [l, region] : regions) {
    region.score = pixels[l].first / pixels[l].second;
    if (region.area >= rules.min_area && region.area <= rules.max_area) expected.push_back(region);
  }
  std::stable_sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) { return a.area > b.area; });
  return expected;
}

/// Cells that change at random. Their looks, if any, lie anywhere in the cell. The pixels of a look may extend beyond
/// the cell by less than the scale.
diff::CellGrid random_grid(Random& random) {
  const int cell = random.between(4, 40), width = random.between(1, 500), height = random.between(1, 300);
  diff::CellGrid grid(width, height, cell);
  EXPECT_EQ(grid.width, (width + cell - 1) / cell);
  EXPECT_EQ(grid.height, (height + cell - 1) / cell);
  EXPECT_EQ(std::accumulate(grid.unmasked.begin(), grid.unmasked.end(), std::uint64_t(0)),
            std::uint64_t(width) * height);
  const int sparse = random.pick<int>({1, 2, 3, 4, 30});
  for (std::size_t i = 0; i < grid.changed.size(); ++i) {
    if (random.below(10) == 0) grid.unmasked[i] = 0;
    if (random.below(sparse) == 0) grid.changed[i] = std::uint32_t(random.between(0, int(grid.unmasked[i])));
  }
  const int scale = grid.analysis_scale = random.pick<int>({1, 2, 4});
  if (random.below(3) == 0) return grid;
  for (const auto& [x, y] : positions(grid)) {
    const Rect box = grid.box(x, y);
    const int left = random.between(box.x, box.x + box.width - 1), top = random.between(box.y, box.y + box.height - 1);
    const int right = random.between(left, box.x + box.width - 1), bottom = random.between(top, box.y + box.height - 1);
    grid.looks.push_back({std::uint16_t(left / scale), std::uint16_t(top / scale), std::uint16_t(right / scale),
                          std::uint16_t(bottom / scale), 1, std::uint32_t(random.below(256)), 0, 0, 0, 0});
    const Rect tight = grid.box(x, y, grid.looks.back());
    EXPECT_EQ(tight.x, std::max(box.x, left / scale * scale));
    EXPECT_EQ(tight.y, std::max(box.y, top / scale * scale));
    EXPECT_EQ(tight.x + tight.width, std::min(box.x + box.width, (right / scale + 1) * scale));
    EXPECT_EQ(tight.y + tight.height, std::min(box.y + box.height, (bottom / scale + 1) * scale));
  }
  return grid;
}

/// The runs must be the cells of the regions, each once, row by row.
void check_runs(const diff::CellGrid& grid, const std::vector<int>& label, const std::vector<Expected>& expected,
                const diff::MotionRegions& found) {
  std::map<int, std::uint32_t> regions_of_labels;
  for (std::uint32_t i = 0; i < expected.size(); ++i) regions_of_labels[expected[i].label] = i;
  std::vector<int> cells(expected.size());
  std::pair<int, int> end{-1, -1};
  std::size_t cell_of_run = 0;
  for (const diff::CellRun& run : found.runs) {
    ASSERT_EQ(run.cells, cell_of_run);
    ASSERT_TRUE(std::pair(run.y, run.first) > end && run.first <= run.last && run.region < expected.size());
    end = {run.y, run.last};
    for (int x = run.first; x <= run.last; ++x, ++cells[run.region]) {
      const int mine = label[grid.at(x, run.y)];
      ASSERT_GE(mine, 0);
      ASSERT_EQ(regions_of_labels.at(mine), run.region);
      ASSERT_EQ(found.boxes[cell_of_run], box_of(grid, label, x, run.y));
      ASSERT_TRUE(grid.looks.empty() || found.looks[cell_of_run].luma == grid.looks[grid.at(x, run.y)].luma);
      ++cell_of_run;
    }
  }
  EXPECT_EQ(found.boxes.size(), cell_of_run);
  EXPECT_EQ(found.looks.size(), grid.looks.empty() ? 0 : cell_of_run);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(cells[i], expected[i].area);
}

/// With rules.most, the largest regions are kept, ties are decided by the higher score, and the order does not change.
void check_most(const diff::CellGrid& grid, diff::RegionRules rules, const std::vector<diff::MotionRegion>& regions) {
  for (std::size_t most : {std::size_t(0), std::size_t(1), regions.size() / 2, regions.size()}) {
    std::vector<std::size_t> chosen(regions.size());
    std::iota(chosen.begin(), chosen.end(), std::size_t(0));
    std::stable_sort(chosen.begin(), chosen.end(), [&](std::size_t a, std::size_t b) {
      return regions[a].area != regions[b].area ? regions[a].area > regions[b].area
                                                : regions[a].score > regions[b].score;
    });
    chosen.resize(std::min(most, chosen.size()));
    std::sort(chosen.begin(), chosen.end());
    rules.most = most;
    const auto largest = diff::find_regions(grid, rules);
    ASSERT_EQ(largest.kept.size(), chosen.size());
    EXPECT_EQ(largest.left_out, regions.size() - chosen.size());
    for (std::size_t i = 0; i < chosen.size(); ++i) EXPECT_EQ(largest.kept[i].box, regions[chosen[i]].box);
  }
}

TEST(Motion, RegionsAreCellsNearEachOther) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const diff::CellGrid grid = random_grid(random);
    diff::RegionRules rules;
    rules.cell_threshold = random.pick<double>({0, 0.2, 0.5, 1});
    rules.min_area = random.pick<int>({1, 1, 2, 5});
    rules.max_area = random.pick<int>({rules.max_area, rules.max_area, 5, 20});
    rules.distance = random.pick<int>({1, 1, 2, 3, 7, diff::max_region_distance});
    const std::vector<int> label = labels_of(grid, rules);
    const std::vector<Expected> expected = regions_of(grid, label, rules);
    const diff::MotionRegions found = diff::find_regions(grid, rules);
    ASSERT_EQ(found.kept.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(found.kept[i].box, expected[i].box);
      EXPECT_EQ(found.kept[i].area, expected[i].area);
      EXPECT_DOUBLE_EQ(found.kept[i].score, expected[i].score);
    }
    check_runs(grid, label, expected, found);
    check_most(grid, rules, found.kept);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace cudavision::test
