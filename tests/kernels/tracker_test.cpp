// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares matching and visits with slow formulations cell by cell and frame by frame, and follows objects of known paths.
#include "kernels/diff/tracker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

namespace cudavision::test {
namespace {

using namespace diff;
using Cell = std::pair<int, int>;  // x, y
constexpr std::uint64_t second = 1'000'000'000;

/// A grid in which the cells change that are mostly covered by rectangles, which are in pixels.
CellGrid grid_of(int width, int height, int cell, const std::vector<Rect>& rects) {
  CellGrid grid(width, height, cell);
  for (int y = 0; y < grid.height; ++y)
    for (int x = 0; x < grid.width; ++x) {
      const Rect box = grid.box(x, y);
      for (const Rect& rect : rects) {
        const Rect both = intersection(rect, box);
        if (2 * both.width * both.height >= box.width * box.height)
          grid.changed[std::size_t(y) * grid.width + x] = std::uint32_t(box.width * box.height);
      }
    }
  return grid;
}

CellGrid noise(std::mt19937& random, int width, int height, int cell, int rects) {
  std::vector<Rect> list;
  for (int i = 0; i < rects; ++i)
    list.push_back(
        {int(random() % unsigned(width)), int(random() % unsigned(height)), 1 + int(random() % 100), 1 + int(random() % 100)});
  return grid_of(width, height, cell, list);
}

bool equal(const Rect& a, const Rect& b) { return a.x == b.x && a.y == b.y && a.width == b.width && a.height == b.height; }

// Matching ---------------------------------------------------------------------------------------------------------------------

/// The rules of match() for sets of cells.
struct Slow {
  const std::vector<Expected>& objects;
  const MotionRegions& found;
  const CellGrid& grid;
  std::vector<std::vector<Cell>> cells;                         // of each region
  std::vector<std::map<std::uint32_t, std::vector<Cell>>> got;  // of each object, by region
  std::vector<bool> dropped, taken;

  Slow(const std::vector<Expected>& objects, const MotionRegions& found, const CellGrid& grid)
      : objects(objects),
        found(found),
        grid(grid),
        cells(found.kept.size()),
        got(objects.size()),
        dropped(objects.size()),
        taken(found.kept.size()) {
    for (const CellRun& run : found.runs)
      for (int x = run.first; x <= run.last; ++x) cells[run.region].push_back({x, run.y});
    share();
    pair();
  }

  double across(const Cell& cell) const { return (cell.first + 0.5) * grid.cell_size; }
  double down(const Cell& cell) const { return (cell.second + 0.5) * grid.cell_size; }

  int inside(const Expected& o, std::uint32_t region) const {
    const double more = grid.cell_size * 0.5;
    return int(std::count_if(cells[region].begin(), cells[region].end(), [&](const Cell& cell) {
      return across(cell) >= o.left - more && across(cell) <= o.right + more && down(cell) >= o.top - more &&
             down(cell) <= o.bottom + more;
    }));
  }
  double overlap(const Expected& o, std::uint32_t region) const {
    const Rect& b = found.kept[region].box;
    const double w = std::max(0.0, std::min<double>(o.right, b.x + b.width) - std::max<double>(o.left, b.x));
    const double h = std::max(0.0, std::min<double>(o.bottom, b.y + b.height) - std::max<double>(o.top, b.y));
    return inside(o, region) > 0 ? w * h / ((o.right - o.left) * (o.bottom - o.top) + double(b.width) * b.height - w * h) : 0;
  }

  void share() {
    std::vector<int> best(objects.size(), -1);
    for (std::size_t i = 0; i < objects.size(); ++i)
      for (std::uint32_t r = 0; r < cells.size(); ++r)
        if (overlap(objects[i], r) > (best[i] < 0 ? 0 : overlap(objects[i], std::uint32_t(best[i])))) best[i] = int(r);
    std::vector<std::vector<std::size_t>> owners(cells.size());
    for (std::uint32_t r = 0; r < cells.size(); ++r) {
      auto& list = owners[r];
      for (std::size_t i = 0; i < objects.size(); ++i)
        if (best[i] == int(r) || (overlap(objects[i], r) > 0 && 2 * inside(objects[i], r) >= int(cells[r].size())))
          list.push_back(i);
      const auto keep = [&](const std::vector<std::size_t>& kept, bool drop) {
        for (std::size_t i : list)
          if (drop && best[i] == int(r) && std::find(kept.begin(), kept.end(), i) == kept.end()) dropped[i] = true;
        list = kept;
      };
      if (list.size() < 2) continue;
      std::vector<std::size_t> confirmed, seen;
      for (std::size_t i : list)
        if (objects[i].confirmed) confirmed.push_back(i);
      if (confirmed.empty())
        confirmed = {
            *std::max_element(list.begin(), list.end(), [&](auto a, auto b) { return objects[a].frames < objects[b].frames; })};
      keep(confirmed, true);
      for (std::size_t i : list)
        if (objects[i].was_seen) seen.push_back(i);
      if (!seen.empty()) keep(seen, false);
    }
    for (std::uint32_t r = 0; r < cells.size(); ++r) {
      auto& list = owners[r];
      list.erase(std::remove_if(list.begin(), list.end(), [&](std::size_t i) { return dropped[i]; }), list.end());
      taken[r] = !list.empty();
      for (bool again = taken[r]; again;) {
        std::map<std::size_t, std::vector<Cell>> shares;
        for (const Cell& cell : cells[r]) {
          const auto distance = [&](std::size_t i) {
            const Expected& o = objects[i];
            return std::max(std::abs(2 * across(cell) - o.left - o.right) / (o.right - o.left),
                            std::abs(2 * down(cell) - o.top - o.bottom) / (o.bottom - o.top));
          };
          shares[*std::min_element(list.begin(), list.end(), [&](auto a, auto b) { return distance(a) < distance(b); })].push_back(
              cell);
        }
        const auto part = [&](std::size_t i) {
          const Expected& o = objects[i];
          return double(shares[i].size()) * grid.cell_size * grid.cell_size / ((o.right - o.left) * (o.bottom - o.top));
        };
        const auto least = std::min_element(list.begin(), list.end(), [&](auto a, auto b) { return part(a) < part(b); });
        again = list.size() > 1 && part(*least) < 0.15;
        if (again)
          list.erase(least);
        else
          for (std::size_t i : list) got[i][r] = shares[i];
      }
    }
  }

  void pair() {
    for (;;) {
      double nearest = 1e30;
      std::size_t object = 0;
      std::uint32_t region = 0;
      for (std::size_t i = 0; i < objects.size(); ++i)
        for (std::uint32_t r = 0; r < cells.size(); ++r) {
          if (!got[i].empty() || dropped[i] || taken[r]) continue;
          const Expected& o = objects[i];
          const Rect& b = found.kept[r].box;
          const double w = o.right - o.left, h = o.bottom - o.top;
          const double x = b.x + b.width / 2.0 - (o.left + o.right) / 2, y = b.y + b.height / 2.0 - (o.top + o.bottom) / 2;
          const double far = std::sqrt(x * x + y * y), ratio = w * h / (double(b.width) * b.height);
          const double side = std::max({w, h, double(b.width), double(b.height)});
          if (far > side * (o.frames < 2 ? 2.5 : 1.5) + grid.cell_size || ratio > 5 || ratio < 0.2 || far >= nearest) continue;
          nearest = far, object = i, region = r;
        }
      if (nearest == 1e30) return;
      taken[region] = true;
      got[object][region] = cells[region];
    }
  }
};

TEST(Matching, GivesRegionsToObjectsAsTheRulesSay) {
  std::mt19937 random(1);
  int shared = 0, dropped = 0, paired = 0;
  for (int round = 0; round < 1500; ++round) {
    const int cell = 4 + int(random() % 20);
    const CellGrid grid = noise(random, 300, 200, cell, int(random() % 8));
    RegionRules rules;
    rules.distance = 1 + int(random() % 2);
    const MotionRegions found = find_regions(grid, rules);
    std::vector<Expected> objects;
    for (int i = int(random() % 12); i > 0; --i) {
      const double left = int(random() % 330) - 30 + 0.25, top = int(random() % 230) - 30 + 0.25;
      objects.push_back({left, top, left + 1 + random() % 120, top + 1 + random() % 120, 1 + int(random() % 5), random() % 2 == 0,
                         random() % 2 == 0});
    }
    const Matches matches = match(objects, found, grid, found.kept.size());
    const Slow slow(objects, found, grid);
    ASSERT_EQ(matches.objects.size(), objects.size());
    for (std::size_t i = 0; i < objects.size(); ++i) {
      const Match& mine = matches.objects[i];
      ASSERT_EQ(mine.dropped, bool(slow.dropped[i])) << "object " << i << " of round " << round;
      int left = 1000, top = 1000, right = 0, bottom = 0, area = 0;
      bool scored = false;
      for (const auto& [region, cells] : slow.got[i]) {
        for (const Cell& at : cells) {
          const Rect box = grid.box(at.first, at.second);
          left = std::min(left, box.x), top = std::min(top, box.y);
          right = std::max(right, box.x + box.width), bottom = std::max(bottom, box.y + box.height);
        }
        area += int(cells.size());
        scored |= mine.score == found.kept[region].score;
        for (std::size_t k = 0; k < objects.size(); ++k) shared += k != i && slow.got[k].count(region);
      }
      ASSERT_EQ(mine.found, area > 0) << "object " << i << " of round " << round;
      dropped += mine.dropped;
      if (!mine.found) continue;
      EXPECT_EQ(mine.area, area);
      EXPECT_TRUE(scored);
      ASSERT_TRUE(equal(mine.box, {left, top, right - left, bottom - top})) << "object " << i << " of round " << round;
    }
    std::vector<std::uint32_t> unmatched;
    for (std::uint32_t r = 0; r < found.kept.size(); ++r)
      if (!slow.taken[r]) unmatched.push_back(r);
    EXPECT_EQ(matches.unmatched, unmatched);
    paired += int(found.kept.size() - unmatched.size());
  }
  EXPECT_GT(shared, 100);
  EXPECT_GT(dropped, 100);
  EXPECT_GT(paired, 1000);
}

// Visits -----------------------------------------------------------------------------------------------------------------------

std::string text_of(const std::vector<ObjectEvent>& events) {
  std::string text;
  for (const ObjectEvent& e : events) {
    const char* kinds[] = {"enter", "leave", "cross"};
    text += std::string(kinds[int(e.kind)]) + " " + std::to_string(e.place);
    if (e.kind != ObjectEvent::Kind::cross) text += " from " + std::to_string(e.entered.stamp);
    if (e.kind == ObjectEvent::Kind::leave)
      text += " to " + std::to_string(e.left.stamp) + " path " + std::to_string(std::lround(e.path));
    if (e.kind == ObjectEvent::Kind::cross) text += e.to_right ? " right" : " left";
    text += "; ";
  }
  return text;
}

TEST(Visits, BeginAndEndAsTheTimesInTheZoneSay) {
  std::mt19937 random(5);
  const Places places{{{{0, 0}, {50, 0}, {50, 100}, {0, 100}}, {{30, 0}, {100, 0}, {100, 60}}}, {}};
  int ended = 0;
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t hold = random() % 4 * second / 4;
    const int frames = 1 + int(random() % 60), confirmed = int(random() % 5);
    struct Frame {
      bool seen;
      Rect box;
    };
    std::vector<Frame> walk;
    int x = int(random() % 100), y = int(random() % 100);
    for (int i = 0; i < frames; ++i) {
      x = std::clamp(x + int(random() % 41) - 20, 0, 95), y = std::clamp(y + int(random() % 41) - 20, 1, 100);
      walk.push_back({i < confirmed || random() % 5 > 0, {x, y - 1, 4, 1}});
    }
    // Frame i is at i/10 s. The visits of each zone: frames in it, joined over gaps shorter than `hold`.
    std::set<std::string> expected;
    for (int zone = 0; zone < 2; ++zone) {
      int from = -1, last = -1;
      const auto done = [&](int now) {
        if (from < 0 || (now < frames && std::uint64_t(now - last) * second / 10 < hold)) return;
        if (now > confirmed && last >= 0) {
          bool told = false;  // in the zone, or held there, when a frame with the confirmed object came
          for (int i = std::max(from, confirmed); i < now && i < frames; ++i) told |= walk[std::size_t(i)].seen;
          if (told)
            expected.insert("leave " + std::to_string(zone) + " from " + std::to_string(from) + " to " + std::to_string(last));
        }
        from = -1;
      };
      for (int i = 0; i <= frames; ++i) {
        const bool in = i < frames && walk[std::size_t(i)].seen &&
                        contains(places.zones[std::size_t(zone)], walk[std::size_t(i)].box.x + 2, walk[std::size_t(i)].box.y);
        if (in) {
          if (from < 0) from = i;
          last = i;
        } else if (from >= 0 && i > last) {
          done(i);
        }
      }
    }
    Visits visits;
    std::vector<ObjectEvent> events;
    for (int i = 0; i < frames; ++i) {
      const Visitor visitor{std::uint64_t(i >= confirmed ? 1 : 0), walk[std::size_t(i)].box, 0};
      const Moment moment{std::uint64_t(i) * second / 10, std::uint64_t(i)};
      walk[std::size_t(i)].seen ? visits.seen(visitor, {places, hold, 0}, moment, events)
                                : visits.unseen(visitor, {places, hold, 0}, moment, events);
    }
    visits.end({1, {}, 0}, events);
    std::set<std::string> left;
    std::multiset<std::string> open;
    for (const ObjectEvent& e : events) {
      const std::string visit = std::to_string(e.place) + " from " + std::to_string(e.entered.stamp);
      if (e.kind == ObjectEvent::Kind::enter) {
        open.insert(visit);
        continue;
      }
      ASSERT_EQ(open.erase(visit), 1u) << "a leave without its enter in round " << round;
      left.insert("leave " + visit + " to " + std::to_string(e.left.stamp));
    }
    EXPECT_TRUE(open.empty()) << "an enter without its leave in round " << round;
    ASSERT_EQ(left, expected) << "round " << round << ", " << text_of(events);
    ended += int(left.size());
  }
  EXPECT_GT(ended, 300);
}

TEST(Visits, CountCrossingsOfLines) {
  // A line from the left to the right at y = 50, from x = 20 to x = 80. Its right side is below.
  const Places places{{}, {{{20, 50}, {80, 50}}}};
  const auto crossings = [&](const std::vector<Cell>& feet, double slack, int confirmed = 0) {
    Visits visits;
    std::vector<ObjectEvent> events, crosses;
    for (int i = 0; i < int(feet.size()); ++i)
      visits.seen({std::uint64_t(i >= confirmed), {feet[std::size_t(i)].first - 2, feet[std::size_t(i)].second - 9, 4, 10}, 0},
                  {places, 0, slack}, {std::uint64_t(i), 0}, events);
    for (const ObjectEvent& e : events)
      if (e.kind == ObjectEvent::Kind::cross) crosses.push_back(e);
    return text_of(crosses);
  };
  EXPECT_EQ(crossings({{50, 40}, {50, 60}}, 0), "cross 0 right; ");
  EXPECT_EQ(crossings({{50, 60}, {50, 40}}, 0), "cross 0 left; ");
  EXPECT_EQ(crossings({{50, 49}, {50, 50}, {50, 49}}, 0), "cross 0 right; cross 0 left; ");
  EXPECT_EQ(crossings({{50, 30}, {50, 49}, {50, 55}, {50, 45}, {50, 55}, {50, 30}}, 8), "");  // within the slack
  EXPECT_EQ(crossings({{50, 30}, {50, 55}, {50, 45}, {50, 60}, {50, 45}}, 8), "cross 0 right; ");
  EXPECT_EQ(crossings({{10, 40}, {10, 60}, {90, 60}, {90, 40}}, 0), "");  // around its ends
  EXPECT_EQ(crossings({{10, 40}, {10, 60}, {50, 60}, {50, 40}}, 0), "cross 0 left; ");
  EXPECT_EQ(crossings({{50, 30}, {50, 60}, {50, 90}}, 0, 2), "cross 0 right; ");  // told when the object is confirmed
  EXPECT_EQ(crossings({{50, 30}, {50, 60}, {50, 30}}, 0, 2), "");
}

// Tracker ----------------------------------------------------------------------------------------------------------------------

/// A clip of 640×480 pixels, 25 frames a second, cells of 16 pixels.
struct Clip {
  explicit Clip(TrackRules rules = {}) : tracker(rules) {}

  const std::vector<TrackedObject>& play(const std::vector<Rect>& rects) {
    const CellGrid grid = grid_of(640, 480, 16, rects);
    tracker.advance(find_regions(grid, {}), grid, {begin + frame * second / 25, frame});
    ++frame;
    for (const ObjectEvent& e : tracker.take_events()) events.push_back(e);
    return tracker.objects();
  }
  int count(ObjectEvent::Kind kind) const {
    return int(std::count_if(events.begin(), events.end(), [kind](const ObjectEvent& e) { return e.kind == kind; }));
  }

  Tracker tracker;
  std::uint64_t begin = 0, frame = 0;
  std::vector<ObjectEvent> events;
};

TEST(Tracker, FollowsAnObjectAndConfirmsIt) {
  Clip clip;
  for (int i = 0; i < 60; ++i) {
    const Rect square{10 + 7 * i, 100, 40, 40};
    const auto& objects = clip.play({square});
    ASSERT_EQ(objects.size(), 1u);
    EXPECT_EQ(objects[0].id, i < 2 ? 0u : 1u);
    EXPECT_FALSE(objects[0].held);
    EXPECT_NEAR(objects[0].age, i / 25.0, 1e-9);
    EXPECT_LT(std::abs(objects[0].box.x - square.x), 16);
  }
  ASSERT_EQ(clip.events.size(), 1u);
  EXPECT_EQ(clip.events[0].kind, ObjectEvent::Kind::enter);
  EXPECT_EQ(clip.events[0].entered.stamp, 0u);
  clip.tracker.finish();
  const auto events = clip.tracker.take_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, ObjectEvent::Kind::leave);
  EXPECT_EQ(events[0].place, -1);
  EXPECT_EQ(events[0].left.stamp, 59u);
  EXPECT_NEAR(events[0].path, 59 * 7, 40);
}

TEST(Tracker, FollowsSmallObjectsThatMoveFurtherThanTheirSize) {
  Clip clip;
  for (int i = 0; i < 12; ++i) clip.play({{16 + 48 * i, 208, 16, 16}});
  EXPECT_EQ(clip.tracker.last_id(), 1u);
  EXPECT_EQ(clip.tracker.objects().size(), 1u);
}

TEST(Tracker, GivesNoIdToSpecks) {
  std::mt19937 random(3);
  Clip clip;
  for (int i = 0; i < 100; ++i) clip.play({{int(random() % 40) * 16, int(random() % 30) * 16, i % 2 ? 16 : 0, 16}});
  EXPECT_EQ(clip.tracker.last_id(), 0u);
  EXPECT_TRUE(clip.events.empty());
}

TEST(Tracker, HoldsAnObjectThatIsNotSeenAtItsPredictedPlace) {
  for (int away : {5, 20, 24, 25, 40}) {
    Clip clip;
    for (int i = 0; i < 10; ++i) clip.play({{4 * i, 100, 48, 64}});
    for (int i = 0; i < away; ++i) {
      const auto& objects = clip.play({});
      ASSERT_EQ(objects.size(), i < 24 ? 1u : 0u) << i;
      if (objects.empty()) continue;
      EXPECT_TRUE(objects[0].held);
      EXPECT_EQ(objects[0].id, 1u);
      EXPECT_NEAR(objects[0].box.x + objects[0].box.width / 2, 24 + 4 * (10 + i), 24);
    }
    clip.play({{4 * (10 + away), 100, 48, 64}});
    clip.play({{4 * (11 + away), 100, 48, 64}});
    clip.play({{4 * (12 + away), 100, 48, 64}});
    EXPECT_EQ(clip.tracker.objects().at(0).id, away < 25 ? 1u : 2u) << away;
    EXPECT_EQ(clip.count(ObjectEvent::Kind::leave), away < 25 ? 0 : 1);
  }
}

TEST(Tracker, KeepsIdsWhenObjectsPassEachOther) {
  Clip clip;
  std::vector<std::uint64_t> before, after;
  for (int i = 0; i < 60; ++i) {
    const auto& objects = clip.play({{20 + 9 * i, 96, 48, 112}, {560 - 9 * i, 112, 48, 112}});
    ASSERT_EQ(objects.size(), 2u) << i;
    if (i == 5)
      for (const auto& o : objects) before.push_back(o.id);
  }
  for (const auto& o : clip.tracker.objects()) after.push_back(o.id);
  EXPECT_EQ(before, after);
  EXPECT_LT(clip.tracker.objects()[1].box.x, 100);  // the second one went to the left
  EXPECT_EQ(clip.tracker.last_id(), 2u);
}

TEST(Tracker, KeepsFragmentsTogether) {
  Clip clip;
  for (int i = 0; i < 40; ++i) {
    const Rect whole{16 + 4 * i, 96, 64, 128};
    if (i % 3 != 2 || i < 6)
      clip.play({whole});
    else
      clip.play({{whole.x, 96, 64, 48}, {whole.x, 176, 64, 48}});  // 32 pixels of it are not seen
    ASSERT_EQ(clip.tracker.objects().size(), 1u) << i;
  }
  EXPECT_EQ(clip.tracker.last_id(), 1u);
}

TEST(Tracker, LosesAnObjectThatLeavesTheFrame) {
  Clip clip;
  for (int i = 0; i < 30; ++i) clip.play({{400 + 16 * i, 96, 64, 64}});
  for (int i = 0; i < 5; ++i) clip.play({});
  EXPECT_TRUE(clip.tracker.objects().empty());
  EXPECT_EQ(clip.count(ObjectEvent::Kind::leave), 1);
}

TEST(Tracker, CoversEveryRegionAndGivesEachEnterItsLeave) {
  std::mt19937 random(7);
  const Places places{{{{0, 0}, {320, 0}, {320, 480}, {0, 480}}, {{200, 100}, {640, 100}, {640, 480}}}, {{{0, 240}, {640, 240}}}};
  for (int round = 0; round < 30; ++round) {
    TrackRules rules;
    rules.min_frames = 1 + int(random() % 4);
    rules.hold = random() % 3 * second / 2;
    if (round % 2) rules.places = places;
    Tracker tracker(rules, 100), twin(rules, 100);
    struct Walker {
      double x, y, vx, vy;
      int width, height;
    };
    std::vector<Walker> walkers;
    std::map<std::pair<std::uint64_t, int>, int> open;
    std::set<std::uint64_t> gone, known;
    const auto hear = [&](const std::vector<ObjectEvent>& events) {
      for (const ObjectEvent& e : events) {
        EXPECT_GT(e.id, 100u);
        EXPECT_FALSE(e.box.empty());
        int& visits = open[std::pair(e.id, e.place)];
        visits += e.kind == ObjectEvent::Kind::enter ? 1 : e.kind == ObjectEvent::Kind::leave ? -1 : 0;
        EXPECT_TRUE(visits == 0 || visits == 1);
        EXPECT_EQ(gone.count(e.id), 0u);
      }
    };
    for (int frame = 0; frame < 150; ++frame) {
      if (random() % 8 == 0)
        walkers.push_back({double(random() % 640), double(random() % 480), int(random() % 21) - 10.0, int(random() % 21) - 10.0,
                           8 + int(random() % 90), 8 + int(random() % 90)});
      std::vector<Rect> rects;
      for (Walker& w : walkers) {
        w.x += w.vx, w.y += w.vy;
        if (random() % 10) rects.push_back({int(w.x), int(w.y), w.width, w.height});
      }
      const CellGrid grid = grid_of(640, 480, 16, rects);
      const MotionRegions found = find_regions(grid, {});
      const Moment moment{std::uint64_t(frame) * second / 25, std::uint64_t(frame)};
      tracker.advance(found, grid, moment);
      twin.advance(found, grid, moment);
      const auto& objects = tracker.objects();
      ASSERT_EQ(objects.size(), twin.objects().size());
      std::set<std::uint64_t> here;
      for (std::size_t i = 0; i < objects.size(); ++i) {
        const TrackedObject& o = objects[i];
        EXPECT_TRUE(equal(o.box, twin.objects()[i].box) && o.id == twin.objects()[i].id);
        EXPECT_FALSE(o.box.empty());
        EXPECT_TRUE(equal(o.box, intersection(o.box, {0, 0, 640, 480})));
        if (o.id == 0) continue;
        EXPECT_TRUE(here.insert(o.id).second) << "an id twice in a frame";
        EXPECT_EQ(gone.count(o.id), 0u) << "an id is used again";
      }
      for (std::uint64_t id : here) known.insert(id);
      for (const CellRun& run : found.runs)
        for (int x = run.first; x <= run.last; ++x) {
          const Rect cell = grid.box(x, run.y);
          ASSERT_TRUE(std::any_of(objects.begin(), objects.end(),
                                  [&](const TrackedObject& o) { return !o.held && equal(intersection(o.box, cell), cell); }))
              << "frame " << frame << " of round " << round;
        }
      const auto events = tracker.take_events();
      EXPECT_EQ(text_of(events), text_of(twin.take_events()));
      hear(events);
      for (std::uint64_t id : known)
        if (!here.count(id)) gone.insert(id);
    }
    tracker.finish();
    hear(tracker.take_events());
    for (const auto& [visit, count] : open) EXPECT_EQ(count, 0);
    EXPECT_TRUE(tracker.objects().empty());
    EXPECT_GT(tracker.last_id(), 100u);
  }
}

TEST(Tracker, GoesOnWithOtherRules) {
  TrackRules rules, zoned;
  zoned.places.zones = {{{0, 0}, {640, 0}, {640, 480}, {0, 480}}};
  Clip clip(rules);
  for (int i = 0; i < 10; ++i) clip.play({{4 * i, 100, 48, 64}});
  Clip same(rules), other(zoned);
  same.tracker.continue_from(clip.tracker);
  EXPECT_TRUE(clip.tracker.take_events().empty());
  other.tracker.continue_from(same.tracker);
  EXPECT_EQ(text_of(same.tracker.take_events()), "leave -1 from 0 to 9 path 35; ");
  other.frame = 10;
  EXPECT_EQ(other.play({{40, 100, 48, 64}}).at(0).id, 1u);
  EXPECT_EQ(text_of(other.events), "enter 0 from 10; ");
}

/// Caps of a frame every 68 years, or a clock that began long ago: the sum of the times passes 2^63 ns, and then 2^64.
TEST(Tracker, GoesOnWhereTheTimesPassTheirLargestValue) {
  TrackRules rules;
  rules.places = {{{{0, 0}, {100, 0}, {100, 480}, {0, 480}}}, {{{0, 240}, {640, 240}}}};
  const auto play = [&](std::uint64_t begin) {
    Clip clip(rules);
    clip.begin = begin;
    std::string text;
    for (int i = 0; i < 120; ++i) {  // through the zone and over the line, then hidden, then somewhere else
      for (const TrackedObject& o : clip.play(i < 50   ? std::vector<Rect>{{4 * i, 100 + 4 * i, 48, 64}}
                                              : i < 80 ? std::vector<Rect>{}
                                                       : std::vector<Rect>{{400, 300 - 4 * (i - 80), 48, 64}}))
        text += std::to_string(o.id) + (o.held ? " held " : " at ") + std::to_string(o.box.x) + "," + std::to_string(o.box.y) +
                " " + std::to_string(o.age) + " " + std::to_string(o.unseen) + "; ";
      text += text_of(clip.events) + "\n";
      clip.events.clear();
    }
    return text;
  };
  const std::string expected = play(0);
  EXPECT_NE(expected.find("held"), expected.npos);
  EXPECT_NE(expected.find("leave 0"), expected.npos);
  EXPECT_NE(expected.find("cross"), expected.npos);
  for (std::uint64_t end : {std::uint64_t(1) << 63, std::uint64_t(0)})
    for (std::uint64_t before : {10, 40, 60, 100}) {
      SCOPED_TRACE(std::to_string(end) + " after frame " + std::to_string(before));
      EXPECT_EQ(play(end - before * second / 25), expected);
    }
}

TEST(Tracker, KeepsToItsMostObjects) {
  Tracker tracker({1, second, {}});
  std::vector<Rect> rects;
  for (int y = 0; y < 1080; y += 16)
    for (int x = 0; x < 1920; x += 16) rects.push_back({x, y, 8, 8});
  CellGrid grid(1920, 1080, 8);
  for (int y = 0; y < grid.height; y += 2)
    for (int x = 0; x < grid.width; x += 2) grid.changed[std::size_t(y) * grid.width + x] = 64;
  for (std::uint64_t frame = 0; frame < 3; ++frame) tracker.advance(find_regions(grid, {}), grid, {frame * second / 25, 0});
  EXPECT_EQ(tracker.objects().size(), max_objects);
  EXPECT_EQ(tracker.last_id(), max_objects);
}

}  // namespace
}  // namespace cudavision::test
