// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares the matching of regions and objects with a slow method that goes cell by cell and tries all assignments.
#include "kernels/track/matching.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "kernels/track/assignment.hpp"
#include "kernels/track/parts.hpp"
#include "tests/kernels/motion_grids.hpp"

namespace cudavision::test {
namespace {

using namespace diff;
using namespace track;

/// Returns the least sum of costs, and the column of each row in `best`. `alone`: the cost of each row without a
/// column. `cost`: the cost of a row with a column; below 0: impossible.
double least_sum(std::size_t columns, const std::vector<double>& alone,
                 const std::function<double(std::size_t, std::size_t)>& cost, std::vector<int>& best,
                 std::size_t row = 0, std::vector<bool> used = {}) {
  if (row == alone.size()) return 0;
  used.resize(columns);
  std::vector<int> rest = best;
  double least = alone[row] + least_sum(columns, alone, cost, rest, row + 1, used);
  rest[row] = -1;
  best = rest;
  for (std::size_t column = 0; column < columns; ++column) {
    if (used[column] || cost(row, column) < 0) continue;
    used[column] = true;
    if (const double sum = cost(row, column) + least_sum(columns, alone, cost, rest, row + 1, used); sum < least) {
      least = sum, rest[row] = int(column);
      best = rest;
    }
    used[column] = false;
  }
  return least;
}

TEST(Assignment, HasTheLeastCostOfAll) {
  std::mt19937 random(1);
  const auto below = [&](int n) { return int(random() % unsigned(n)); };
  int assigned = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::size_t rows = std::size_t(below(7)), columns = std::size_t(below(7));
    std::vector<std::vector<double>> costs(rows, std::vector<double>(columns, -1));
    std::vector<double> alone;
    std::vector<PossiblePair> pairs;
    for (std::size_t i = 0; i < rows; ++i) {
      alone.push_back(below(10) * 0.7);
      for (std::size_t j = 0; j < columns; ++j) {
        if (below(3) == 0) continue;
        costs[i][j] = round % 2 ? below(5) : below(1000) * 0.01;  // with and without equal sums
        pairs.push_back({std::uint32_t(i), std::uint32_t(j), costs[i][j]});
      }
    }
    const auto result = assign(columns, pairs, alone);
    ASSERT_EQ(result.size(), rows);
    double sum = 0;
    std::set<std::uint32_t> used;
    for (std::size_t i = 0; i < rows; ++i) {
      if (result[i] == unassigned) {
        sum += alone[i];
        continue;
      }
      ASSERT_TRUE(used.insert(result[i]).second);
      ASSERT_GE(costs[i][result[i]], 0);
      sum += costs[i][result[i]], ++assigned;
    }
    std::vector<int> best(rows);
    ASSERT_NEAR(sum,
                least_sum(
                    columns, alone, [&](std::size_t i, std::size_t j) { return costs[i][j]; }, best),
                1e-9);
    EXPECT_EQ(assign(columns, pairs, alone), result);
  }
  EXPECT_GT(assigned, 2000);
}

// Matching
// ---------------------------------------------------------------------------------------------------------------------

struct Slow {
  const std::vector<Expected>& objects;
  const CellGrid& grid;
  const std::vector<Part> parts;
  std::vector<std::vector<ObjectLooks>> looks;
  std::vector<std::map<std::size_t, std::vector<const PartCell*>>> got;  // the cells that each object got, by part
  std::vector<Rect> boxes;
  std::vector<bool> dropped, taken, shared;

  Slow(const std::vector<Expected>& objects, const MotionRegions& found, const CellGrid& grid)
      : objects(objects),
        grid(grid),
        parts(find_parts(found, grid, found.kept.size(), {})),
        got(objects.size()),
        boxes(objects.size()),
        dropped(objects.size()),
        taken(parts.size()) {
    share();
  }

  double across(const PartCell& cell) const { return (cell.x + 0.5) * grid.cell_size; }
  double down(const PartCell& cell) const { return (cell.y + 0.5) * grid.cell_size; }
  static double area(const Expected& o) { return (o.right - o.left) * (o.bottom - o.top); }
  double cells(int count) const { return double(count) * grid.cell_size * grid.cell_size; }

  int inside(const Expected& o, std::size_t p) const {
    const double more = grid.cell_size * 0.5;
    return int(std::count_if(parts[p].cells.begin(), parts[p].cells.end(), [&](const PartCell& cell) {
      return across(cell) >= o.left - more && across(cell) <= o.right + more && down(cell) >= o.top - more &&
             down(cell) <= o.bottom + more;
    }));
  }
  double overlap(const Expected& o, std::size_t p) const {
    const Rect& b = parts[p].box;
    const double w = std::max(0.0, std::min<double>(o.right, b.x + b.width) - std::max<double>(o.left, b.x));
    const double h = std::max(0.0, std::min<double>(o.bottom, b.y + b.height) - std::max<double>(o.top, b.y));
    return inside(o, p) > 0 ? w * h / (area(o) + double(b.width) * b.height - w * h) : 0;
  }
  double unlikeness(const Expected& o, std::size_t p, bool& known) const {
    ObjectLooksSums sums(parts[p].box);
    for (const PartCell& cell : parts[p].cells)
      if (cell.looks) sums.add(*cell.looks, grid.box(cell.x, cell.y, *cell.looks));
    const ObjectLooks seen = sums.result();
    known = o.portrait && o.portrait->known() && seen.known;
    return known ? o.portrait->unlikeness(seen) : 0;
  }
  double cost_of_looks(const Expected& o, std::size_t p) const {
    bool known = false;
    return unlikeness(o, p, known) * (!o.was_seen || o.apart <= 0.5 ? 0.3 : 0.1);
  }
  /// Below 0: impossible.
  double cost(const Expected& o, std::size_t p) const {
    const Rect& b = parts[p].box;
    bool known = false;
    const double unlike = unlikeness(o, p, known), of_looks = cost_of_looks(o, p);
    if (overlap(o, p) > 0) return 1 - overlap(o, p) + of_looks;
    if (o.leaves) return -1;
    const double w = o.right - o.left, h = o.bottom - o.top;
    const double x = b.x + b.width / 2.0 - (o.left + o.right) / 2, y = b.y + b.height / 2.0 - (o.top + o.bottom) / 2;
    const double ratio = w * h / (double(b.width) * b.height),
                 side = std::max({w, h, double(b.width), double(b.height)});
    const double reach =
        side * (1.5 + (o.frames < 2 ? 1 : 0) + (known && unlike < 2 ? 2 * o.unseen : 0)) + grid.cell_size;
    if (std::hypot(x, y) > reach || ratio > 5 || ratio < 0.2) return -1;
    return 1 + std::hypot(x, y) / reach + of_looks;
  }

  void share() {
    std::vector<int> best(objects.size(), -1), assigned(objects.size());
    std::vector<double> alone;
    for (const Expected& o : objects) {
      double least = 3;
      for (std::size_t p = 0; p < parts.size(); ++p)
        if (overlap(o, p) > 0)
          least = std::min(least, 3 - 2 * std::min(1.0, cells(inside(o, p)) / area(o)) + cost_of_looks(o, p));
      alone.push_back(least);
    }
    least_sum(
        parts.size(), alone, [&](std::size_t i, std::size_t p) { return cost(objects[i], p); }, assigned);
    for (std::size_t i = 0; i < objects.size(); ++i) {
      for (std::size_t p = 0; p < parts.size(); ++p)
        if (overlap(objects[i], p) > (best[i] < 0 ? 0 : overlap(objects[i], std::size_t(best[i])))) best[i] = int(p);
      if (assigned[i] >= 0) best[i] = assigned[i];
    }
    std::vector<std::vector<std::size_t>> owners(parts.size());
    for (std::size_t p = 0; p < parts.size(); ++p) {
      auto& list = owners[p];
      const auto holder = std::find(assigned.begin(), assigned.end(), int(p));
      for (std::size_t i = 0; i < objects.size(); ++i) {
        bool fragment = overlap(objects[i], p) > 0 && 2 * inside(objects[i], p) >= int(parts[p].cells.size());
        if (best[i] >= 0 && beside(parts[std::size_t(best[i])].box, parts[p].box)) fragment = false;
        if (holder != assigned.end()) {
          const Expected &mine = objects[i], &other = objects[std::size_t(holder - assigned.begin())];
          fragment = fragment && !other.confirmed && (mine.confirmed || mine.frames > other.frames);
        }
        if (best[i] == int(p) || fragment) list.push_back(i);
      }
      if (list.size() < 2) continue;
      std::vector<std::size_t> kept;
      for (std::size_t i : list)
        if (objects[i].confirmed) kept.push_back(i);
      if (kept.empty())
        kept = {*std::max_element(list.begin(), list.end(),
                                  [&](auto a, auto b) { return objects[a].frames < objects[b].frames; })};
      for (std::size_t i : list)
        if (best[i] == int(p) && std::find(kept.begin(), kept.end(), i) == kept.end()) dropped[i] = true;
      list = kept;
    }
    for (std::size_t p = 0; p < parts.size(); ++p) {
      auto& list = owners[p];
      list.erase(std::remove_if(list.begin(), list.end(), [&](std::size_t i) { return dropped[i]; }), list.end());
      taken[p] = !list.empty();
      shared.push_back(list.size() > 1);
      while (!list.empty()) {
        std::map<std::size_t, std::vector<const PartCell*>> shares;
        for (const PartCell& cell : parts[p].cells) shares[nearest(cell, list)].push_back(&cell);
        const auto part = [&](std::size_t i) {
          return cells(int(shares[i].size())) / area(objects[i]) / (objects[i].was_seen ? 0.15 : 0.3);
        };
        const auto least =
            std::min_element(list.begin(), list.end(), [&](auto a, auto b) { return part(a) < part(b); });
        if (list.size() > 1 && part(*least) < 1) {
          list.erase(least);
          continue;
        }
        for (std::size_t i : list) got[i][p] = shares[i];
        add_boxes(p, list);
        break;
      }
    }
  }

  std::size_t nearest(const PartCell& cell, const std::vector<std::size_t>& list) const {
    const auto distance = [&](std::size_t i) {
      const Expected& o = objects[i];
      return std::max(std::abs(2 * across(cell) - o.left - o.right) / (o.right - o.left),
                      std::abs(2 * down(cell) - o.top - o.bottom) / (o.bottom - o.top));
    };
    return *std::min_element(list.begin(), list.end(), [&](auto a, auto b) { return distance(a) < distance(b); });
  }

  void add_boxes(std::size_t p, const std::vector<std::size_t>& list) {
    if (list.size() == 1) {
      boxes[list[0]] = around(boxes[list[0]], parts[p].box);
      return;
    }
    std::map<std::size_t, Rect> of_part;
    for (const PartCell& cell : parts[p].cells) {
      Rect covered;
      for (std::size_t i : list) {
        const Expected& o = objects[i];
        const int left = int(std::floor(o.left)), top = int(std::floor(o.top));
        const Rect seen =
            intersection(cell.box, {left, top, int(std::ceil(o.right)) - left, int(std::ceil(o.bottom)) - top});
        of_part[i] = around(of_part[i], seen), covered = around(covered, seen);
      }
      Rect& owner = of_part[nearest(cell, list)];
      if (!(covered == cell.box) || owner.empty()) owner = around(owner, cell.box);
    }
    for (std::size_t i : list) boxes[i] = around(boxes[i], of_part[i]);
  }
};

int below(std::mt19937& random, int n) { return int(random() % unsigned(n)); }

/// Noise without looks, noise with looks, and figures, in turn.
CellGrid any_grid(std::mt19937& random, int round, int cell) {
  if (round % 3 < 2) {
    CellGrid grid = noise(random, 300, 200, cell, below(random, 8));
    if (round % 3 == 1) add_looks(random, grid);
    return grid;
  }
  std::vector<Figure> figures;
  for (int i = below(random, 6); i > 0; --i) {
    const Rect box{below(random, 260), below(random, 150), 10 + below(random, 40), 20 + below(random, 80)};
    figures.push_back({box, {below(random, 2) ? 42 : 182, below(random, 12), 0}});
  }
  return painted(300, 200, cell, figures);
}

/// Up to six objects, some outside the frame, each with one of the portraits or none.
std::vector<Expected> any_objects(std::mt19937& random, const std::array<Portrait, 2>& portraits) {
  std::vector<Expected> objects;
  for (int i = below(random, 7); i > 0; --i) {
    const double left = below(random, 330) - 30 + 0.25 + i * 0.01, top = below(random, 230) - 30 + 0.25 + i * 0.003;
    const double right = left + 1 + below(random, 120), bottom = top + 1 + below(random, 120);
    const int frames = 1 + below(random, 5), portrait = below(random, 3);
    const bool confirmed = below(random, 2) == 0, was_seen = below(random, 2) == 0;
    const double unseen = below(random, 10) * 0.1, apart = below(random, 10) * 0.1;
    objects.push_back({left, top, right, bottom, frames, confirmed, was_seen, unseen, apart,
                       portrait < 2 ? &portraits[std::size_t(portrait)] : nullptr, below(random, 4) == 0});
  }
  return objects;
}

/// Whether an unconfirmed object lies above, below or on a confirmed one.
bool is_fragment(const std::vector<Expected>& objects, const Slow& slow, std::size_t i, int cell) {
  if (objects[i].confirmed) return false;
  for (std::size_t k = 0; k < objects.size(); ++k) {
    if (!objects[k].confirmed || slow.got[k].empty()) continue;
    const Rect &a = slow.boxes[i], &b = slow.boxes[k];
    const Rect taller{b.x, b.y - cell, b.width, b.height + 2 * cell};
    const bool near = a.y <= taller.y + taller.height && taller.y <= a.y + a.height;
    if (near && 2 * (std::min(a.x + a.width, b.x + b.width) - std::max(a.x, b.x)) >= std::min(a.width, b.width))
      return true;
  }
  return false;
}

/// How often each rule applied: the rounds must test all of them.
struct Counts {
  int shared = 0, dropped = 0, paired = 0, fragments = 0;
};

void expect_equal(const Match& match, const std::vector<Expected>& objects, const Slow& slow, std::size_t i, int cell,
                  Counts& counts) {
  ASSERT_EQ(match.dropped, bool(slow.dropped[i]));
  int area = 0;
  bool scored = false, shares = false, alone = true;
  for (const auto& [part, cells] : slow.got[i]) {
    area += int(cells.size());
    scored |= match.score == slow.parts[part].score;
    for (std::size_t k = 0; k < objects.size(); ++k) shares |= k != i && slow.got[k].count(part);
    alone = alone && !slow.shared[part];
  }
  ASSERT_EQ(match.found, area > 0);
  counts.dropped += match.dropped;
  if (!match.found) return;
  counts.shared += shares;
  EXPECT_EQ(match.area, area);
  EXPECT_EQ(match.shared, !alone);
  EXPECT_TRUE(scored);
  ASSERT_EQ(match.box, slow.boxes[i]);
  EXPECT_EQ(match.fragment, is_fragment(objects, slow, i, cell));
  counts.fragments += match.fragment;
}

void expect_unmatched(const Matches& matches, const Slow& slow) {
  std::size_t unmatched = 0;
  for (std::size_t p = 0; p < slow.parts.size(); ++p) {
    if (slow.taken[p]) continue;
    ASSERT_LT(unmatched, matches.unmatched.size());
    EXPECT_EQ(matches.unmatched[unmatched++].box, slow.parts[p].box);
  }
  EXPECT_EQ(unmatched, matches.unmatched.size());
}

TEST(Matching, GivesRegionsToObjectsAsTheRulesSay) {
  std::mt19937 random(1);
  std::array<Portrait, 2> portraits;  // of something dark, and of something bright
  const Rect some{100, 100, 40, 80};
  for (int i = 0; i < 5; ++i) {
    portraits[0].learn(looks_of_object(painted(300, 200, 10, {{some, {40 + i, 0, 0}}}), some));
    portraits[1].learn(looks_of_object(painted(300, 200, 10, {{some, {180 + i, 10, 0}}}), some));
  }
  Counts counts;
  for (int round = 0; round < 3000; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const int cell = 4 + below(random, 20);
    const CellGrid grid = any_grid(random, round, cell);
    RegionRules rules;
    rules.distance = 1 + below(random, 2);
    const MotionRegions found = find_regions(grid, rules);
    const std::vector<Expected> objects = any_objects(random, portraits);
    const Matches matches = match(objects, found, grid, found.kept.size(), {});
    const Slow slow(objects, found, grid);
    ASSERT_EQ(matches.objects.size(), objects.size());
    for (std::size_t i = 0; i < objects.size(); ++i) {
      SCOPED_TRACE("object " + std::to_string(i));
      ASSERT_NO_FATAL_FAILURE(expect_equal(matches.objects[i], objects, slow, i, cell, counts));
    }
    ASSERT_NO_FATAL_FAILURE(expect_unmatched(matches, slow));
    counts.paired += int(slow.parts.size() - matches.unmatched.size());
  }
  EXPECT_GT(counts.shared, 100);
  EXPECT_GT(counts.dropped, 100);
  EXPECT_GT(counts.paired, 1000);
  EXPECT_GT(counts.fragments, 10);
}

}  // namespace
}  // namespace cudavision::test
