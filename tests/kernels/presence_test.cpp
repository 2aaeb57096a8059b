// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests objects that stop, move on, become background, or never existed (kernels/track/presence.hpp,
// Tracker::learning()).
#include "kernels/track/presence.hpp"

#include <gtest/gtest.h>

#include <set>

#include "kernels/track/tracker.hpp"
#include "tests/kernels/positions.hpp"

namespace cudavision::test {
namespace {

using namespace diff;
using namespace track;
using Change = Presence::Change;
using Kind = ObjectEvent::Kind;

constexpr std::uint64_t second = 1'000'000'000, step = second / 10;
constexpr Structure object{40, 5, 3, 30}, ghost{5, 40, 3, 30}, unclear{3, 3, 0, 0};

/// Changes with their times in tenths of a second.
using Changes = std::vector<std::pair<Change, int>>;

/// Returns the changes of a box that stands at (x, y) for `seconds`.
class Watched {
 public:
  explicit Watched(PresenceRules rules = {10 * second, 0}) : rules_(rules) {}
  Changes stand(int x, int y, const Structure& structure, double seconds) {
    Changes changes;
    for (const std::uint64_t end = now_ + std::uint64_t(seconds * 10 + 0.5) * step; now_ < end; now_ += step)
      if (const Change change = presence.update({{x, y, 40, 100}, structure, 8}, rules_, {now_, now_ + 7});
          change != Change::none)
        changes.emplace_back(change, int(now_ / step));
    return changes;
  }
  /// Moves to x = 200 in small steps.
  Watched& walk(const Structure& structure) {
    for (int x = 10; x < 200; x += 25) stand(x, 10, structure, 0.1);
    return *this;
  }
  /// The first change, if any.
  std::pair<Change, int> first(int x, int y, const Structure& structure, double seconds) {
    const Changes changes = stand(x, y, structure, seconds);
    return changes.empty() ? std::pair(Change::none, 0) : changes.front();
  }

  Presence presence;

 private:
  const PresenceRules rules_;
  std::uint64_t now_ = 0;
};

TEST(Presence, StopsAndGoesOn) {
  Watched watched({5 * second, 0});
  EXPECT_EQ(watched.stand(10, 10, object, 4.9), Changes());
  EXPECT_EQ(watched.stand(25, 10, object, 1), Changes({{Change::stopped, 50}}))
      << "less than half of its width is no movement";
  EXPECT_TRUE(watched.presence.stopped());
  EXPECT_EQ(watched.presence.rested().stamp, 7u);
  EXPECT_EQ(watched.stand(60, 10, object, 1), Changes({{Change::moves, 59}}));
  EXPECT_FALSE(watched.presence.stopped());
  EXPECT_EQ(watched.stand(60, 10, object, 5), Changes({{Change::stopped, 109}}));
  EXPECT_EQ(watched.presence.rested().stamp, 5 * second + 9 * step + 7);
}

TEST(Presence, BecomesBackgroundAfterLong) {
  EXPECT_EQ(Watched({2 * second, 6 * second}).stand(10, 10, object, 6.1),
            Changes({{Change::stopped, 20}, {Change::absorbed, 60}}));
  EXPECT_EQ(Watched({2 * second, 0}).stand(10, 10, object, 900), Changes({{Change::stopped, 20}})) << "0: never";
}

TEST(Presence, KnowsGhosts) {
  Watched left;
  const auto [change, time] = left.first(10, 10, ghost, 2);
  EXPECT_EQ(change, Change::ghost);
  EXPECT_LE(time, 10);
  EXPECT_FALSE(left.presence.certain());

  Watched moving;  // in front of a pattern, the votes of moving objects say little
  for (int x = 10; x < 400; x += 25) EXPECT_EQ(moving.stand(x, 10, ghost, 0.1), Changes());
  Watched unknown;
  EXPECT_EQ(unknown.stand(10, 10, unclear, 9), Changes()) << "too few votes";
  EXPECT_FALSE(unknown.presence.certain());
  Watched flickering({100 * second, 0});
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(flickering.stand(10, 10, ghost, 0.2), Changes());
    EXPECT_EQ(flickering.stand(10, 10, object, 0.2), Changes());
  }
}

/// A person in plain clothes in front of a pattern hides more edges than the person has.
TEST(Presence, HoldsWhoCameHereInPlainClothes) {
  constexpr Structure plain{20, 38, 3, 300};
  EXPECT_EQ(Watched().walk(object).stand(200, 10, plain, 9), Changes());
  EXPECT_EQ(Watched().first(200, 10, plain, 3).first, Change::ghost);
}

TEST(Presence, KnowsLight) {
  constexpr Structure light{7, 0, 6, 1}, little{7, 0, 3, 0}, covered{7, 0, 6, 4};
  const auto [change, time] = Watched().first(10, 10, light, 3);
  EXPECT_EQ(change, Change::light);
  EXPECT_GE(time, 10) << "not before a second has passed";
  for (const Structure& structure : {little, covered}) EXPECT_EQ(Watched().stand(10, 10, structure, 9), Changes());
  EXPECT_EQ(Watched().walk(light).stand(200, 10, light, 9), Changes()) << "light does not walk";
}

/// A region without any edge is not an object, unless it came from elsewhere.
TEST(Presence, KnowsSmoothLight) {
  const PresenceRules structured{10 * second, 0, true};
  constexpr Structure smooth{1, 0, 1, 1};
  EXPECT_EQ(Watched(structured).first(10, 10, smooth, 3), std::pair(Change::light, 10));
  EXPECT_EQ(Watched().stand(10, 10, {}, 9), Changes()) << "the structure is not known";
  EXPECT_EQ(Watched(structured).stand(10, 10, {1, 0, 1, 2}, 9), Changes()) << "a few edges";
  EXPECT_EQ(Watched(structured).walk(smooth).stand(200, 10, smooth, 9), Changes()) << "light does not walk";
}

TEST(Presence, IsCertainByEdgesOrByItsWay) {
  Watched still;
  still.stand(10, 10, object, 1);
  EXPECT_TRUE(still.presence.certain());
  EXPECT_FALSE(still.presence.travelled());
  Watched far;
  far.stand(10, 10, {}, 1);
  EXPECT_FALSE(far.presence.certain());
  far.stand(100, 10, {}, 1);
  EXPECT_FALSE(far.presence.travelled()) << "not by its own length yet";
  far.stand(111, 10, {}, 1);
  EXPECT_TRUE(far.presence.certain());
}

// In a tracker
// ------------------------------------------------------------------------------------------------------------------

/// A frame in which a box of cells with this structure changed.
CellGrid grid_with(const Rect& box, const Structure& structure) {
  CellGrid grid(320, 240, 16);
  grid.looks.resize(grid.changed.size());
  for (const auto& [x, y] : positions(grid)) {
    const Rect cell = grid.box(x, y), both = intersection(cell, box);
    if (both.empty()) continue;
    CellLooks& looks = grid.looks[grid.at(x, y)];
    grid.changed[grid.at(x, y)] = looks.pixels = std::uint32_t(both.width * both.height);
    looks.left = std::uint16_t(both.x), looks.right = std::uint16_t(both.x + both.width - 1);
    looks.top = std::uint16_t(both.y), looks.bottom = std::uint16_t(both.y + both.height - 1);
    looks.structure = structure;
  }
  return grid;
}

struct Followed {
  explicit Followed(PresenceRules rules) : tracker(TrackRules{3, second, {}, rules}) {}
  /// Continues for `seconds` with a box, which may be empty. Returns the kinds of events.
  std::vector<Kind> go(const Rect& box, const Structure& structure, double seconds) {
    std::vector<Kind> kinds;
    for (const std::uint64_t end = now + std::uint64_t(seconds * 10 + 0.5) * step; now < end; now += step) {
      grid = grid_with(box, structure);
      tracker.advance(find_regions(grid, {0, 1, 1}), grid, {now, now});
      for (const ObjectEvent& event : tracker.take_events()) kinds.push_back(event.kind), events.push_back(event);
    }
    return kinds;
  }
  /// The cells with this decision.
  std::set<std::pair<int, int>> cells(Learning decision) const {
    std::set<std::pair<int, int>> result;
    const auto map = tracker.learning(grid);
    for (std::size_t i = 0; i < map.size(); ++i)
      if (applies(decision, map[i])) result.emplace(int(i) % grid.width, int(i) / grid.width);
    return result;
  }

  Tracker tracker;
  CellGrid grid;
  std::vector<ObjectEvent> events;
  std::uint64_t now = 0;
};
using Kinds = std::vector<Kind>;

/// Cells 2–3 × 3–5, which a box of 20 × 40 pixels at (40, 50) touches, and one cell around them.
std::set<std::pair<int, int>> around() {
  std::set<std::pair<int, int>> cells;
  for (int y = 2; y <= 6; ++y)
    for (int x = 1; x <= 4; ++x) cells.emplace(x, y);
  return cells;
}

TEST(TrackerPresence, HoldsTheBackgroundBehindObjects) {
  Followed f({2 * second, 0});
  EXPECT_EQ(f.go({40, 50, 20, 40}, object, 0.2), Kinds());
  EXPECT_TRUE(f.tracker.learning(f.grid).empty()) << "nothing is certain yet";
  EXPECT_EQ(f.go({40, 50, 20, 40}, object, 1), Kinds({Kind::enter}));
  EXPECT_EQ(f.cells(Learning::hold), around());
  EXPECT_TRUE(f.cells(Learning::take).empty());
  EXPECT_EQ(f.go({40, 50, 20, 40}, object, 2), Kinds({Kind::stopped}));
  EXPECT_TRUE(f.tracker.objects().at(0).stopped);
  EXPECT_EQ(f.go({62, 50, 20, 40}, object, 0.5), Kinds({Kind::moving}));
  EXPECT_EQ(f.events.back().rested.stamp, 0u);
  EXPECT_EQ(f.events.back().id, 1u);
}

TEST(TrackerPresence, AbsorbsWhatStaysForLong) {
  Followed f({2 * second, 4 * second});
  EXPECT_EQ(f.go({40, 50, 20, 40}, object, 3.9), Kinds({Kind::enter, Kind::stopped}));
  EXPECT_EQ(f.go({40, 50, 20, 40}, object, 0.2), Kinds({Kind::leave}));
  EXPECT_FALSE(f.cells(Learning::take).empty());
  EXPECT_TRUE(f.cells(Learning::hold).empty());
  EXPECT_TRUE(f.tracker.objects().empty());
  EXPECT_EQ(f.go({40, 50, 20, 40}, object, 1), Kinds()) << "the mask has not forgotten it yet";
  EXPECT_EQ(f.go({}, {}, 1), Kinds());
  EXPECT_TRUE(f.tracker.learning(f.grid).empty());
}

TEST(TrackerPresence, RemovesWhatWasNeverAnObject) {
  Followed f({2 * second, 0});
  EXPECT_EQ(f.go({40, 50, 20, 40}, ghost, 1), Kinds({Kind::enter, Kind::removed, Kind::leave}));
  EXPECT_FALSE(f.cells(Learning::take).empty());
  // A person who walked here was an object, even if the region of the person merges with a ghost.
  Followed walked({2 * second, 0});
  for (int x = 10; x < 200; x += 10) walked.go({x, 50, 20, 40}, object, 0.1);
  EXPECT_EQ(walked.go({200, 50, 20, 40}, ghost, 2), Kinds({Kind::leave}));
}

TEST(TrackerPresence, TakesLightWithoutAWordOfThings) {
  Followed f({20 * second, 0});
  EXPECT_EQ(f.go({40, 50, 20, 40}, {2, 0, 1, 0}, 3), Kinds({Kind::enter, Kind::leave}));
  EXPECT_FALSE(f.cells(Learning::take).empty());
}

/// If most of the structure equals the background, there is no object, but the mask has to forget the light.
TEST(TrackerPresence, TakesLightThatStays) {
  constexpr Structure light{0, 0, 30, 2}, doubtful{0, 0, 30, 15};
  Followed f({20 * second, 0});
  EXPECT_EQ(f.go({40, 50, 20, 40}, light, 0.9), Kinds());
  EXPECT_TRUE(f.tracker.learning(f.grid).empty()) << "it may pass";
  EXPECT_EQ(f.go({40, 50, 20, 40}, light, 0.3), Kinds());
  EXPECT_EQ(f.cells(Learning::take), around());
  f.go({}, {}, 0.1);
  EXPECT_TRUE(f.tracker.learning(f.grid).empty());
  f.go({40, 50, 20, 40}, light, 0.1);
  EXPECT_EQ(f.cells(Learning::take), around()) << "it flickers";
  f.tracker.finish();
  f.go({40, 50, 20, 40}, light, 0.1);
  EXPECT_TRUE(f.tracker.learning(f.grid).empty()) << "the next run of frames has its own background";

  Followed passes({20 * second, 0});
  for (int x = 0; x < 280; x += 10) {
    passes.go({x, 50, 20, 40}, light, 0.1);
    EXPECT_TRUE(passes.tracker.learning(passes.grid).empty()) << "of lamps that pass, at " << x;
  }
  Followed unclear({20 * second, 0});
  unclear.go({40, 50, 20, 40}, doubtful, 5);
  EXPECT_TRUE(unclear.tracker.learning(unclear.grid).empty()) << "somebody in the colours of the wall";
}

TEST(TrackerPresence, GivesANewIdIfTheMaskDoesNotForget) {
  Followed f({2 * second, 0});
  f.go({40, 50, 20, 40}, ghost, 1);
  EXPECT_EQ(f.go({40, 50, 20, 40}, object, 3), Kinds({Kind::enter}));
  EXPECT_EQ(f.events.back().id, 2u);
}

TEST(TrackerPresence, KeepsVariancesSmallWhereObjectsCross) {
  Followed f({2 * second, 0});
  // The first box passes 8 cells of the middle row in 4 seconds. The second one stands and shakes.
  const auto cross = [&](int count) {
    for (int i = 0; i < count; ++i) {
      for (int x = 0; x < 300; x += 10) f.go({x, 112, 20, 16}, {}, 0.1);
      f.go({}, {}, 2);
    }
  };
  cross(1);
  EXPECT_TRUE(f.cells(Learning::steady).empty()) << "one object is no lane";
  cross(8);
  std::set<std::pair<int, int>> lane;
  for (const auto& [x, y] : f.cells(Learning::steady)) lane.emplace(x, y);
  for (int x = 4; x < 18; ++x) EXPECT_EQ(lane.count({x, 7}), 1u) << x;
  for (const auto& [x, y] : lane) EXPECT_TRUE(y >= 5 && y <= 9) << x << " " << y;
  // An object in the lane is held. When nothing else passes, the lane is forgotten.
  for (int x = 0; x < 150; x += 10) f.go({x, 112, 20, 16}, {}, 0.1);
  EXPECT_EQ(f.cells(Learning::hold).count({9, 7}), 1u);
  EXPECT_EQ(f.cells(Learning::steady).count({9, 7}), 1u) << "and it stays a lane";
  f.go({}, {}, 150);
  EXPECT_TRUE(f.tracker.learning(f.grid).empty());
  cross(8);
  EXPECT_FALSE(f.cells(Learning::steady).empty());
  f.tracker.finish();
  EXPECT_TRUE(f.tracker.learning(f.grid).empty()) << "the next run of frames has its own background";
}

TEST(TrackerPresence, MakesNoLaneOfWhatSways) {
  Followed f({10 * second, 0});
  for (int i = 0; i < 60; ++i)
    for (int x : {100, 106, 112, 118, 112, 106}) f.go({x, 112, 20, 16}, {}, 0.1);
  EXPECT_FALSE(f.tracker.objects().empty());
  EXPECT_TRUE(f.cells(Learning::steady).empty());
}

TEST(TrackerPresence, TellsTheBestView) {
  Followed f({2 * second, 0});
  f.go({0, 50, 60, 60}, object, 0.5);  // at the edge
  f.go({20, 50, 30, 40}, object, 0.5);
  const std::uint64_t best = f.now;
  f.go({40, 50, 32, 48}, object, 0.5);
  f.go({60, 50, 20, 40}, object, 0.5);
  EXPECT_EQ(f.go({}, {}, 2), Kinds({Kind::leave}));
  const View& view = f.events.back().best;
  EXPECT_EQ(view.at.stamp, best);
  EXPECT_EQ(view.box.x, 40);
  EXPECT_EQ(view.box.width, 32);
  EXPECT_EQ(view.box.height, 48);
}

TEST(Motion, RegionsOfLightAreNone) {
  const auto count = [](const Structure& structure) {
    return find_regions(grid_with({40, 50, 20, 40}, structure), {0, 1, 1}).kept.size();
  };
  EXPECT_EQ(count({0, 0, 20, 2}), 0u);
  EXPECT_EQ(count({0, 0, 20, 20}), 1u);
  EXPECT_EQ(count({0, 0, 1, 0}), 1u) << "6 pixels are too few";
  EXPECT_EQ(count({}), 1u);
}

}  // namespace
}  // namespace cudavision::test
