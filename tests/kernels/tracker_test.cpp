// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares visits with a slow method that goes frame by frame, and follows objects on known paths.
#include "kernels/track/tracker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "tests/kernels/motion_grids.hpp"

namespace cudavision::test {
namespace {

using namespace diff;
using namespace track;
using Cell = std::pair<int, int>;  // x, y
constexpr std::uint64_t second = 1'000'000'000;

// Visits
// ---------------------------------------------------------------------------------------------------------------------

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
    // Frame i is at i/10 s. A visit of a zone consists of the frames in it, joined over gaps shorter than `hold`.
    std::set<std::string> expected;
    for (int zone = 0; zone < 2; ++zone) {
      int from = -1, last = -1;
      const auto done = [&](int now) {
        if (from < 0 || (now < frames && std::uint64_t(now - last) * second / 10 < hold)) return;
        if (now > confirmed && last >= 0) {
          bool told = false;  // whether a frame shows the confirmed object in the zone, or held there
          for (int i = std::max(from, confirmed); i < now && i < frames; ++i) told |= walk[std::size_t(i)].seen;
          if (told)
            expected.insert("leave " + std::to_string(zone) + " from " + std::to_string(from) + " to " +
                            std::to_string(last));
        }
        from = -1;
      };
      for (int i = 0; i <= frames; ++i) {
        const bool in =
            i < frames && walk[std::size_t(i)].seen &&
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
  // A line from left to right at y = 50, from x = 20 to x = 80. Its right side is below it.
  const Places places{{}, {{{20, 50}, {80, 50}}}};
  const auto crossings = [&](const std::vector<Cell>& feet, double slack, int confirmed = 0) {
    Visits visits;
    std::vector<ObjectEvent> events, crosses;
    for (int i = 0; i < int(feet.size()); ++i)
      visits.seen(
          {std::uint64_t(i >= confirmed), {feet[std::size_t(i)].first - 2, feet[std::size_t(i)].second - 9, 4, 10}, 0},
          {places, 0, slack}, {std::uint64_t(i), 0}, events);
    for (const ObjectEvent& e : events)
      if (e.kind == ObjectEvent::Kind::cross) crosses.push_back(e);
    return text_of(crosses);
  };
  EXPECT_EQ(crossings({{50, 40}, {50, 60}}, 0), "cross 0 right; ");
  EXPECT_EQ(crossings({{50, 60}, {50, 40}}, 0), "cross 0 left; ");
  EXPECT_EQ(crossings({{50, 49}, {50, 50}, {50, 49}}, 0), "cross 0 right; ");  // not yet back
  EXPECT_EQ(crossings({{50, 49}, {50, 50}, {50, 49}, {50, 48}, {50, 47}}, 0), "cross 0 right; cross 0 left; ");
  EXPECT_EQ(crossings({{50, 49}, {50, 50}, {50, 49}, {50, 60}, {50, 40}}, 0), "cross 0 right; cross 0 left; ");
  EXPECT_EQ(crossings({{50, 30}, {50, 49}, {50, 55}, {50, 45}, {50, 55}, {50, 30}}, 8), "");  // within the slack
  EXPECT_EQ(crossings({{50, 30}, {50, 55}, {50, 45}, {50, 60}, {50, 45}}, 8), "cross 0 right; ");
  EXPECT_EQ(crossings({{10, 40}, {10, 60}, {90, 60}, {90, 40}}, 0), "");  // around its ends
  EXPECT_EQ(crossings({{10, 40}, {10, 60}, {50, 60}, {50, 40}}, 0), "cross 0 left; ");
  EXPECT_EQ(crossings({{50, 30}, {50, 60}, {50, 90}}, 0, 2), "cross 0 right; ");  // reported at confirmation
  EXPECT_EQ(crossings({{50, 30}, {50, 60}, {50, 30}}, 0, 2), "");
}

/// Cars in a queue move to the right across a vertical line. A box grows over the cars behind it, or jumps to one of
/// them for one frame, or loses one. Nobody crosses back.
TEST(Visits, CrossOnlyByMoving) {
  const Places places{{}, {{{160, 100}, {160, 200}}}};
  struct Step {
    int left, width;
    double speed;
    bool jumped = false;
  };
  const auto crossings = [&](const std::vector<Step>& steps, int flip) {  // flip −1: mirrored
    Visits visits;
    std::vector<ObjectEvent> events;
    for (const Step& step : steps) {
      const int left = flip > 0 ? step.left : 320 - step.left - step.width;
      visits.seen({1, {left, 114, step.width, 38}, 0, {}, flip * step.speed, 0, step.jumped}, {places, 0, 4}, {},
                  events);
    }
    std::string text;
    for (const ObjectEvent& event : events)
      if (event.kind == ObjectEvent::Kind::cross) text += (flip > 0) == event.to_right ? "back " : "forth ";
    return text;
  };
  for (const int flip : {1, -1}) {
    EXPECT_EQ(crossings({{110, 76, 73}, {128, 76, 60}, {114, 104, 43}, {36, 186, -9}, {158, 76, 31}}, flip), "forth ")
        << "over the cars behind it";
    EXPECT_EQ(crossings({{130, 18, 80}, {156, 18, 81}, {122, 18, 66}, {160, 20, 60}}, flip), "forth ")
        << "to one of them";
    EXPECT_EQ(crossings({{130, 18, 80}, {158, 18, 80}, {158, 18, 0}, {140, 18, -60}, {120, 18, -70}}, flip),
              "forth back ");
    EXPECT_EQ(crossings({{130, 18, 80}, {158, 18, 80}, {140, 18, -60}, {120, 18, -70}, {165, 18, 80}}, flip),
              "forth back forth ");
    EXPECT_EQ(crossings({{130, 78, 12}, {132, 20, 12}, {134, 20, 12}}, flip), "") << "loses the car in front";
    EXPECT_EQ(crossings({{130, 20, 12}, {132, 78, -9}, {134, 78, -2}}, flip), "") << "grows over the car in front";
    EXPECT_EQ(crossings({{130, 40, 25}, {135, 60, 25}, {128, 80, 25}, {160, 40, 25}}, flip), "forth ")
        << "swings an arm to the rear";
    EXPECT_EQ(crossings({{130, 40, 25}, {125, 70, 25}, {170, 40, 25}}, flip), "forth ") << "half a width later";
  }
}

/// The same across a horizontal and an oblique line, for objects that move down or up: the foot is at one end of the
/// box.
TEST(Visits, CrossLinesOfAnyDirection) {
  for (const int right : {160, 180}) {
    const Places places{{}, {{{100, 160}, {220, right}}}};
    const auto crossings = [&](const std::vector<std::array<int, 3>>& steps) {  // top, height, speed
      Visits visits;
      std::vector<ObjectEvent> events, crosses;
      for (const auto& [top, height, speed] : steps)
        visits.seen({1, {110, top, 30, height}, 0, {}, 0, double(speed)}, {places, 0, 4}, {}, events);
      for (const ObjectEvent& event : events)
        if (event.kind == ObjectEvent::Kind::cross) crosses.push_back(event);
      return text_of(crosses);
    };
    EXPECT_EQ(crossings({{100, 40, 20}, {130, 40, 20}}), "cross 0 right; ");
    EXPECT_EQ(crossings({{150, 40, -20}, {100, 40, -20}}), "cross 0 left; ");
    EXPECT_EQ(crossings({{100, 40, -20}, {130, 40, -20}}), "") << "it moves up";
    EXPECT_EQ(crossings({{100, 40, 20}, {95, 77, 20}}), "") << "its upper end moves up";
    EXPECT_EQ(crossings({{100, 40, 20}, {95, 77, 20}, {150, 40, 20}}), "cross 0 right; ");
  }
}

/// When an id passes to another object, the side of a line on which the earlier object was no longer counts.
TEST(Visits, CrossNoLineByAJump) {
  const Places places{{}, {{{160, 100}, {160, 200}}}};
  const auto crossings = [&](const std::vector<std::pair<int, bool>>& steps) {  // x of the foot, whether it jumped
    Visits visits;
    std::vector<ObjectEvent> events, crosses;
    for (const auto& [x, jumped] : steps)
      visits.seen({1, {x - 10, 114, 20, 38}, 0, {}, 40, 0, jumped}, {places, 0, 4}, {}, events);
    for (const ObjectEvent& event : events)
      if (event.kind == ObjectEvent::Kind::cross) crosses.push_back(event);
    return text_of(crosses);
  };
  EXPECT_EQ(crossings({{100, false}, {200, false}}), "cross 0 left; ");
  EXPECT_EQ(crossings({{100, false}, {200, true}}), "");
  EXPECT_EQ(crossings({{100, false}, {162, true}, {200, false}}), "") << "onto the line";
  EXPECT_EQ(crossings({{200, false}, {100, true}, {200, false}}), "cross 0 left; ");
  EXPECT_EQ(crossings({{100, false}, {200, false}, {100, true}, {165, false}}), "cross 0 left; cross 0 left; ")
      << "another one crosses, who need not come back";
}

// Tracker
// ---------------------------------------------------------------------------------------------------------------------

/// A clip of 640×480 pixels at 25 frames per second, with cells of 16 pixels.
struct Clip {
  explicit Clip(TrackRules rules = {}) : tracker(rules) {}

  const std::vector<TrackedObject>& play(const std::vector<Rect>& rects) {
    return advance(grid_of(640, 480, 16, rects));
  }
  /// Like play(), with looks.
  const std::vector<TrackedObject>& paint(const std::vector<Figure>& figures) {
    return advance(painted(640, 480, 16, figures));
  }
  const std::vector<TrackedObject>& advance(const CellGrid& grid) {
    tracker.advance(find_regions(grid, {}), grid, {begin + frame * second / 25, frame}, frame == change);
    ++frame;
    for (const ObjectEvent& e : tracker.take_events()) events.push_back(e);
    return tracker.objects();
  }
  /// The id of the object whose box contains the centre of a rectangle, or 0.
  std::uint64_t id_at(const Rect& rect) const {
    const Rect middle{rect.x + rect.width / 2, rect.y + rect.height / 2, 1, 1};
    for (const TrackedObject& o : tracker.objects())
      if (!o.held && !intersection(o.box, middle).empty()) return o.id;
    return 0;
  }
  int count(ObjectEvent::Kind kind) const {
    return int(std::count_if(events.begin(), events.end(), [kind](const ObjectEvent& e) { return e.kind == kind; }));
  }

  Tracker tracker;
  std::uint64_t begin = 0, frame = 0;
  std::uint64_t change = ~0ull;  ///< the frame in which the light changes
  std::vector<ObjectEvent> events;
};

TEST(Tracker, FollowsAnObjectAndConfirmsIt) {
  Clip clip;
  for (int i = 0; i < 60; ++i) {
    const Rect square{7 * i, 100, 40, 40};
    const auto& objects = clip.play({square});
    ASSERT_EQ(objects.size(), 1u);
    EXPECT_EQ(objects[0].id, i < 2 ? 0u : 1u);
    EXPECT_FALSE(objects[0].held);
    EXPECT_EQ(objects[0].first.stamp, 0u);
    EXPECT_EQ(objects[0].last.stamp, unsigned(i));
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

/// Until a change of the light is found, parts of the picture look like objects.
TEST(Tracker, ConfirmsWhatAppearsInsideAndRestsLater) {
  struct Case {
    Rect first;
    int step, frames;  ///< pixels per frame to the right; the frame that confirms it
  };
  constexpr int at_once = 2, later = 13;
  for (const Case& c :
       {Case{{200, 200, 48, 64}, 0, later}, Case{{200, 200, 48, 64}, 28, at_once}, Case{{200, 200, 48, 64}, 1, later},
        Case{{0, 200, 48, 64}, 0, at_once}, Case{{592, 200, 48, 64}, 0, at_once}, Case{{200, 0, 48, 64}, 0, at_once},
        Case{{200, 416, 48, 64}, 0, at_once}}) {
    SCOPED_TRACE(std::to_string(c.first.x) + ", " + std::to_string(c.first.y) + " by " + std::to_string(c.step));
    Clip clip;
    for (int i = 0; i <= later + 1; ++i) {
      clip.play({{c.first.x + c.step * i, c.first.y, c.first.width, c.first.height}});
      EXPECT_EQ(clip.tracker.last_id(), i < c.frames ? 0u : 1u) << i;
    }
    ASSERT_EQ(clip.events.size(), 1u);
    EXPECT_EQ(clip.events[0].entered.stamp, 0u) << "it entered when it was first seen";
  }
  TrackRules rules;
  rules.min_frames = 1;
  Clip clip(rules);
  clip.play({{200, 200, 48, 64}});
  EXPECT_EQ(clip.tracker.last_id(), 1u) << "one frame is enough";
}

/// For 1.5 s after a change of the light or the camera, objects must be seen for a second before they are confirmed.
TEST(Tracker, ConfirmsObjectsLaterAfterAChange) {
  struct Case {
    unsigned change, first, confirmed;
  };
  for (const Case& c :
       {Case{10, 12, 12 + 25}, Case{10, 40, 48}, Case{10, 50, 52}, Case{10, 5, 7}, Case{10, 9, 9 + 25}}) {
    SCOPED_TRACE(std::to_string(c.change) + ", " + std::to_string(c.first));
    Clip clip;
    clip.change = c.change;
    for (unsigned i = 0; i < 60; ++i) {
      clip.play(i < c.first ? std::vector<Rect>{} : std::vector<Rect>{{int(6 * (i - c.first)), 200, 48, 64}});
      EXPECT_EQ(clip.tracker.last_id(), i < c.confirmed ? 0u : 1u) << i;
    }
    ASSERT_EQ(clip.events.size(), 1u);
    EXPECT_EQ(clip.events[0].entered.stamp, c.first);
  }
  Clip flickers;
  for (unsigned i = 0; i < 100; ++i) {
    if (i % 25 == 0) flickers.change = i;
    flickers.play({{4 * int(i), 200, 48, 64}});
    EXPECT_EQ(flickers.tracker.last_id(), i < 25 ? 0u : 1u) << i;
  }
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
    for (int i = 10; i < 25; ++i) clip.play({{4 * (i + away), 100, 48, 64}});
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
  EXPECT_LT(clip.tracker.objects()[1].box.x, 100);  // the second object went to the left
  EXPECT_EQ(clip.tracker.last_id(), 2u);
}

TEST(Tracker, KeepsFragmentsTogether) {
  Clip clip;
  for (int i = 0; i < 40; ++i) {
    const int x = 16 + 4 * i;
    const bool hidden = i % 3 == 2 && i > 5;  // 32 pixels of it
    clip.play(hidden ? std::vector<Rect>{{x, 96, 64, 48}, {x, 176, 64, 48}} : std::vector<Rect>{{x, 96, 64, 128}});
    ASSERT_EQ(clip.tracker.objects().size(), 1u) << i;
  }
  EXPECT_EQ(clip.tracker.last_id(), 1u);
}

constexpr PixelLooks dark{40, 0, 0}, bright{180, 8, -6};

/// Two people meet, stand together for a second, and walk back. Their speeds suggest that they walked on.
TEST(Tracker, KeepsIdsByLooksWhenPeopleTurnBack) {
  Clip clip;
  std::uint64_t left = 0, right = 0;
  Rect first, second;
  for (int i = 0; i < 80; ++i) {
    const int step = i < 30 ? i : i < 50 ? 30 : 80 - i;
    first = {100 + 6 * step, 100, 40, 100}, second = {500 - 6 * step, 104, 40, 100};
    clip.paint({{first, dark}, {second, bright}});
    if (i == 10) left = clip.id_at(first), right = clip.id_at(second);
  }
  EXPECT_TRUE(left > 0 && right > 0 && left != right);
  EXPECT_EQ(clip.id_at(first), left);
  EXPECT_EQ(clip.id_at(second), right);
  EXPECT_EQ(clip.tracker.last_id(), 2u);
}

/// Two people meet and stand apart; suddenly each looks like the other. Shortly after the meeting this means that they
/// were mixed up; later, it means that the light changed.
TEST(Tracker, TrustsPlacesAgainSomeTimeAfterPeopleMet) {
  for (const bool late : {false, true}) {
    Clip clip;
    std::uint64_t left = 0, right = 0;
    Rect first, second;
    const int apart = late ? 60 : 38;  // the last frame before they change their looks
    for (int i = 0; i <= apart + 5; ++i) {
      const int step = i < 30 ? i : std::max(60 - i, 25);
      first = {100 + 6 * step, 100, 40, 100}, second = {500 - 6 * step, 100, 40, 100};
      const bool swapped = i > apart;
      clip.paint({{first, swapped ? bright : dark}, {second, swapped ? dark : bright}});
      if (i == 10) left = clip.id_at(first), right = clip.id_at(second);
    }
    EXPECT_TRUE(left > 0 && right > 0 && left != right);
    EXPECT_EQ(clip.id_at(first), late ? left : right) << late;
    EXPECT_EQ(clip.id_at(second), late ? right : left) << late;
    EXPECT_EQ(clip.tracker.last_id(), 2u);
  }
}

/// A person is hidden for half a second and reappears elsewhere.
TEST(Tracker, KnowsAnObjectAgainByItsLooks) {
  for (const bool same : {true, false}) {
    Clip clip;
    for (int i = 0; i < 15; ++i) clip.paint({{{100 + 6 * i, 100, 40, 100}, dark}});
    for (int i = 0; i < 12; ++i) clip.paint({});
    // It would be at about (260, 100), and a stranger's reach is 150 pixels.
    for (int i = 0; i < 5; ++i) clip.paint({{{440 + 6 * i, 120, 40, 100}, same ? dark : bright}});
    EXPECT_EQ(clip.id_at({464, 120, 40, 100}), same ? 1u : 2u);
  }
}

TEST(Tracker, FollowsPeopleSideBySide) {
  Clip clip;
  for (int i = 0; i < 40; ++i) {
    const Rect one{100 + 5 * i, 100, 30, 80}, other{136 + 5 * i, 104, 28, 76};
    const auto& objects = clip.paint({{one, dark}, {other, bright}});
    ASSERT_EQ(objects.size(), 2u) << i;
    const int gap = other.x - one.x - one.width, height = around(one, other).height;
    for (const auto& [box, rect] : {std::pair(objects[0].box, one), std::pair(objects[1].box, other)}) {
      EXPECT_TRUE(box.x >= rect.x - gap / 2 && box.x <= rect.x) << i;
      EXPECT_TRUE(box.x + box.width >= rect.x + rect.width && box.x + box.width <= rect.x + rect.width + gap / 2) << i;
      EXPECT_TRUE(box.height >= rect.height && box.height <= height) << i;
    }
  }
  EXPECT_EQ(clip.tracker.last_id(), 2u);
}

/// A torso and legs are two regions for longer than it takes to confirm an object, and then one region. They become one
/// object if they move across in the same direction. Objects above each other remain separate if they move in opposite
/// directions, move down the picture, or come from different places.
TEST(Tracker, JoinsPiecesThatGoTheSameWayAcross) {
  struct Case {
    const char* name;
    int across, across_of_legs, down;  // pixels per frame
    int catches_up;                    // pixels per frame by which the torso is faster in the first frames
    std::size_t objects;
    unsigned ids;
  };
  for (const Case& c :
       {Case{"right", 6, 6, 0, 0, 1, 1}, Case{"left", -6, -6, 0, 0, 1, 1}, Case{"aslant", 5, 5, 3, 0, 1, 1},
        Case{"opposite ways", 1, -1, 0, 0, 2, 2}, Case{"down", 0, 0, 6, 0, 2, 2}, Case{"still", 0, 0, 0, 0, 2, 1},
        Case{"one follows", 0, 6, 0, 0, 2, 2}, Case{"from different places", 6, 6, 0, 10, 2, 2}})
    for (const bool torso_first : {false, true}) {  // of two new regions, the larger one becomes the older object
      SCOPED_TRACE(std::string(c.name) + (torso_first ? ", torso first" : ", legs first"));
      const int height = torso_first ? 80 : 64, width = torso_first ? 64 : 48, middle = 32 + height + 16;
      TrackRules rules;
      rules.places.lines = {{{0, middle}, {639, middle}}};  // between the torso and the legs
      Clip clip(rules);
      Rect torso, legs;
      for (int i = 0; i < 40; ++i) {
        torso = {300 + c.across * (i - 20) - c.catches_up * std::max(0, 20 - i), 32 + c.down * i, width, height};
        legs = {300 + c.across_of_legs * (i - 20), middle + 16 + c.down * i, 112 - width, 144 - height};
        clip.play({torso, legs});
      }
      const auto& objects = clip.tracker.objects();
      ASSERT_EQ(objects.size(), c.objects);
      EXPECT_EQ(clip.tracker.last_id(), c.ids);
      if (c.objects > 1) continue;
      EXPECT_EQ(clip.count(ObjectEvent::Kind::cross), 0);
      EXPECT_EQ(objects[0].id, 1u);
      EXPECT_NEAR(objects[0].box.y, torso.y, 16);
      EXPECT_NEAR(objects[0].box.y + objects[0].box.height, legs.y + legs.height, 16);
    }
}

/// Two upright objects, one above the other, are two people, one behind the other, unless one is clearly lower.
TEST(Tracker, JoinsUprightPiecesOfDifferentHeights) {
  for (const int lower : {48, 80})
    for (const bool swapped : {false, true}) {
      SCOPED_TRACE(std::to_string(lower) + (swapped ? ", above" : ", below"));
      const int upper = 96, first = swapped ? lower : upper, second = swapped ? upper : lower;
      Clip clip;
      for (int i = 0; i < 40; ++i) clip.play({{100 + 6 * i, 32, 32, first}, {100 + 6 * i, 48 + first, 32, second}});
      EXPECT_EQ(clip.tracker.objects().size(), lower == 48 ? 1u : 2u);
      EXPECT_EQ(clip.tracker.last_id(), lower == 48 ? 1u : 2u);
    }
}

/// Only the wheels of a car may differ from the road. Where whole cars were seen before, such pieces are one object.
TEST(Tracker, JoinsPiecesOfObjectsOfTheUsualSize) {
  for (const int gap : {32, 48, 96})
    for (const bool known : {true, false})
      for (const int step : {8, -8}) {
        SCOPED_TRACE(std::to_string(gap) + (known ? ", known " : ", unknown ") + std::to_string(step));
        Clip clip;
        const auto place = [&](int i, int width) { return step > 0 ? -width + step * i : 640 + step * i; };
        for (int car = 0; car < (known ? 5 : 0); ++car)
          for (int i = 0; i < 100; ++i) clip.play({{place(i, 112), 96, 112, 64}});
        const unsigned before = unsigned(clip.tracker.last_id());
        for (int i = 0; i < 40; ++i) clip.play({{place(i, 96), 128, 32, 32}, {place(i, 96) + 32 + gap, 128, 32, 32}});
        const bool joined = known && gap < 96;
        EXPECT_EQ(clip.tracker.objects().size(), joined ? 1u : 2u);
        EXPECT_EQ(clip.tracker.last_id(), before + (joined ? 1 : 2));
      }
}

/// Where cars are usual, two people side by side fit into the size of one.
TEST(Tracker, KeepsPeopleApartWhereCarsAreUsual) {
  Clip clip;
  for (int car = 0; car < 5; ++car)
    for (int i = 0; i < 100; ++i) clip.play({{8 * i - 112, 96, 112, 64}});
  const std::uint64_t before = clip.tracker.last_id();
  for (int i = 0; i < 60; ++i) clip.play({{4 * i - 112, 96, 32, 64}, {4 * i - 32, 96, 32, 64}});
  EXPECT_EQ(clip.tracker.last_id(), before + 2);
  EXPECT_EQ(clip.tracker.objects().size(), 2u);
}

/// An id does not pass from an object that leaves to another one that enters near it.
TEST(Tracker, EndsAtTheEdgeOfTheFrame) {
  for (const bool right : {true, false})
    for (const bool overlaps : {true, false}) {
      SCOPED_TRACE(std::string(right ? "right" : "left") + (overlaps ? ", in its way" : ", beside it"));
      Clip clip;
      const auto place = [&](int x) { return right ? x : 640 - 80 - x; };
      for (int i = 0; i < 32; ++i) clip.play({{place(240 + 12 * i), 160, 80, 48}});
      for (int i = 0; i < 10; ++i) clip.play({{place(600 - 12 * i), overlaps ? 160 : 224, 80, 48}});
      EXPECT_EQ(clip.tracker.last_id(), overlaps ? 1u : 2u);
    }
}

TEST(Tracker, GivesNoIdToAPieceOfAnObject) {
  Clip clip;
  const std::vector<Figure> whole{{{200, 100, 50, 204}, dark}},
      pieces{{{200, 100, 50, 96}, dark}, {{206, 244, 40, 60}, dark}};
  for (int i = 0; i < 60; ++i) clip.paint(i < 8 || i > 40 ? whole : pieces);
  EXPECT_EQ(clip.tracker.last_id(), 1u);
  EXPECT_EQ(clip.tracker.objects().size(), 1u);
}

TEST(Tracker, BoxesAreTightAlsoWhereObjectsMeet) {
  Clip clip;
  for (int i = 0; i < 70; ++i) {
    const Rect one{100 + 5 * i, 100, 40, 100}, other{480 - 5 * i, 110, 40, 100};
    for (const TrackedObject& o : clip.paint({{one, dark}, {other, bright}})) {
      if (o.held) continue;
      EXPECT_EQ(intersection(o.box, around(one, other)), o.box) << i;
      EXPECT_GE(o.box.height, 90) << i;
      EXPECT_LE(o.box.width, std::abs(one.x - other.x) >= 44 ? 56 : 84) << i;  // closer, one may be hidden
    }
  }
  EXPECT_EQ(clip.tracker.last_id(), 2u);
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
  const Places places{{{{0, 0}, {320, 0}, {320, 480}, {0, 480}}, {{200, 100}, {640, 100}, {640, 480}}},
                      {{{0, 240}, {640, 240}}}};
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
        walkers.push_back({double(random() % 640), double(random() % 480), int(random() % 21) - 10.0,
                           int(random() % 21) - 10.0, 8 + int(random() % 90), 8 + int(random() % 90)});
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
        EXPECT_TRUE(o.box == twin.objects()[i].box && o.id == twin.objects()[i].id);
        EXPECT_FALSE(o.box.empty());
        EXPECT_EQ(o.box, intersection(o.box, {0, 0, 640, 480}));
        if (o.id == 0) continue;
        EXPECT_TRUE(here.insert(o.id).second) << "an id twice in a frame";
        EXPECT_EQ(gone.count(o.id), 0u) << "an id is used again";
      }
      for (std::uint64_t id : here) known.insert(id);
      for (const CellRun& run : found.runs)
        for (int x = run.first; x <= run.last; ++x) {
          const Rect cell = grid.box(x, run.y);
          Rect covered;  // by the visible objects; corners may be missing where several meet
          for (const TrackedObject& o : objects)
            if (!o.held) covered = around(covered, intersection(o.box, cell));
          ASSERT_EQ(covered, cell) << "frame " << frame << " of round " << round;
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

/// At one frame every 68 years, or with a clock that started long ago, the sum of the times exceeds 2^63 ns, and then
/// 2^64.
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
        text += std::to_string(o.id) + (o.held ? " held " : " at ") + std::to_string(o.box.x) + "," +
                std::to_string(o.box.y) + " " + std::to_string(o.first.stamp) + " " + std::to_string(o.last.stamp) +
                "; ";
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
  for (std::uint64_t frame = 0; frame < 3; ++frame)
    tracker.advance(find_regions(grid, {}), grid, {frame * second / 25, 0});
  EXPECT_EQ(tracker.objects().size(), max_objects);
  EXPECT_EQ(tracker.last_id(), max_objects);
}

}  // namespace
}  // namespace cudavision::test
