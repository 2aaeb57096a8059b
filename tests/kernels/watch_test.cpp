// SPDX-License-Identifier: LGPL-2.1-or-later
// Feeds figures of frames to the watch over a camera (kernels/histogram/watch.hpp).
#include "kernels/histogram/watch.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>

namespace cudavision::test {
namespace {

using histogram::Change;
using histogram::Look;
using histogram::Watch;
using histogram::WatchParams;

const Look ordinary{0, 0, 0.5, 45, 5, 2.0};

Look with(Look look, double brightness, double deviation, double sharpness, std::optional<double> difference) {
  look.brightness = brightness, look.deviation = deviation, look.sharpness = sharpness, look.difference = difference;
  return look;
}
const Look black = with({}, 0.01, 1, 0.5, 0.6), white = with({}, 0.97, 5, 0.5, 0.5), flat = with({}, 0.4, 2, 1, 1.1),
           soft = with({}, 0.5, 40, 1.5, 1.5), same = with({}, 0.5, 45, 5, 0.0);

/// A watch over frames, by default 25 per second. Times are in milliseconds.
struct Feed {
  Watch watch;
  WatchParams params;
  std::uint64_t step;      ///< from frame to frame
  std::uint64_t time = 0;  ///< of the next frame
  bool first = true;
  std::vector<Change> changes{};

  /// `begin`: how long the picture is ordinary at first.
  explicit Feed(std::uint64_t begin = 0, std::uint64_t step = 40) : step(step) { frames(ordinary, begin); }

  std::string of(const std::vector<Change>& list) {
    std::ostringstream text;
    for (const Change& change : list) {
      text << (text.tellp() > 0 ? "; " : "") << histogram::name_of(change.condition)
           << (change.begins ? " begins" : " ends") << " since " << change.since;
      changes.push_back(change);
    }
    return text.str();
  }
  std::string frame(Look look) {
    look.step = first ? 0 : step * 1'000'000;
    look.time = time;
    first = false;
    std::string text = of(watch.update(look, params));
    if (!text.empty()) text = std::to_string(time) + ": " + text;
    time += step;
    return text;
  }
  /// Feeds frames for `length` milliseconds. Returns the changes with their times.
  std::string frames(const Look& look, std::uint64_t length) {
    std::string all;
    for (const std::uint64_t end = time + length; time < end;) {
      const std::string text = frame(look);
      if (!text.empty()) all += (all.empty() ? "" : "; ") + text;
    }
    return all;
  }
};

TEST(Watch, SaysNothingOfAnOrdinaryPicture) {
  Feed feed;
  for (int i = 0; i < 3000; ++i)  // two minutes, with some variation
    EXPECT_EQ(feed.frame(with({}, 0.5 + 0.2 * std::sin(i * 0.01), 45 + 10 * std::sin(i * 0.02), 5 + std::sin(i * 0.03),
                              1 + 0.9 * std::sin(i * 0.5))),
              "");
  EXPECT_TRUE(feed.watch.end().empty());
}

TEST(Watch, ReportsEachCondition) {
  for (const auto& [name, look] :
       {std::pair<std::string, Look>{"dark", black}, {"bright", white}, {"covered", flat}, {"defocused", soft}}) {
    Feed feed;
    EXPECT_EQ(feed.frames(ordinary, 10000), "") << name;
    EXPECT_EQ(feed.frames(look, 5000), "11000: " + name + " begins since 10000") << name;
    EXPECT_EQ(feed.frames(ordinary, 5000), "16000: " + name + " ends since 10000") << name;
    EXPECT_TRUE(feed.watch.end().empty());
  }
  Feed feed;
  EXPECT_EQ(feed.frames(ordinary, 10000), "");
  EXPECT_EQ(feed.frames(same, 5000), "11960: frozen begins since 9960");  // the frame at 9960 ms is repeated
  EXPECT_EQ(feed.frames(ordinary, 5000), "16000: frozen ends since 9960");
}

TEST(Watch, TellsTheValueAndItsLimit) {
  Feed feed(10000);
  feed.frames(black, 2000);
  feed.frames(ordinary, 2000);
  feed.frames(soft, 2000);
  ASSERT_EQ(feed.changes.size(), 3u);
  EXPECT_EQ(feed.changes[0].value, 0.01);
  EXPECT_EQ(feed.changes[0].limit, 0.06);
  EXPECT_EQ(feed.changes[1].value, 0.5);
  EXPECT_EQ(feed.changes[1].limit, 0.09);
  // Less than half of the usual sharpness is left.
  EXPECT_NEAR(feed.changes[2].value, 1.5 / 40 / (5.0 / 45), 0.01);
  EXPECT_EQ(feed.changes[2].limit, 0.5);
}

/// The limits for begin and end differ, and short moments do not count.
TEST(Watch, HasHysteresis) {
  Feed feed;
  EXPECT_EQ(feed.frames(with(ordinary, 0.07, 30, 5, 2.0), 10000), "");  // between the limits: not dark before …
  EXPECT_EQ(feed.frames(black, 960), "");
  EXPECT_EQ(feed.frame(ordinary), "");  // one frame between them, and the time starts again
  EXPECT_EQ(feed.frames(black, 960), "");
  EXPECT_EQ(feed.frames(black, 80), "12000: dark begins since 11000");
  EXPECT_EQ(feed.frames(with(ordinary, 0.07, 30, 5, 2.0), 10000), "");  // … but still dark after
  EXPECT_EQ(feed.frames(ordinary, 960), "");
  EXPECT_EQ(feed.frames(black, 40), "");
  EXPECT_EQ(feed.frames(ordinary, 1040), "24040: dark ends since 11000");
}

/// Times count, not frames: 2 frames per second give the same result as 50.
TEST(Watch, CountsTimeAndNotFrames) {
  for (std::uint64_t step : {20, 500}) {
    Feed feed(10000, step);
    EXPECT_EQ(feed.frames(black, 4000), "11000: dark begins since 10000") << step;
    EXPECT_EQ(feed.frames(ordinary, 4000), "15000: dark ends since 10000") << step;
  }
  Feed slow(20000, 10000);  // a frame every ten seconds
  EXPECT_EQ(slow.frames(same, 10000), "20000: frozen begins since 10000");
}

/// A black picture has no detail, a picture without detail has no focus, and neither shows noise.
TEST(Watch, ReportsOnlyTheFirstCause) {
  for (const auto& [look, name] :
       {std::pair{with(black, 0.01, 0, 0, 0.0), "dark"}, {with(white, 0.99, 0, 0, 0.0), "bright"}}) {
    Feed feed(10000);
    EXPECT_EQ(feed.frames(look, 20000), std::string("11000: ") + name + " begins since 10000");
  }
  Feed feed(10000);
  EXPECT_EQ(feed.frames(flat, 20000), "11000: covered begins since 10000");
  EXPECT_EQ(feed.frames(black, 20000), "31000: dark begins since 30000");  // night falls, and the cover is still there
  EXPECT_EQ(feed.frames(flat, 20000), "51000: dark ends since 30000");
  EXPECT_EQ(feed.frames(ordinary, 20000), "71000: covered ends since 10000");
}

/// When the light goes off, the sharpness falls with the contrast; when a bright lamp comes into view, the contrast
/// rises and the detail stays. In both cases the lens is in focus.
TEST(Watch, TakesAnotherContrastForFocused) {
  for (const Look& look : {with(ordinary, 0.15, 45 * 0.3, 5 * 0.3, 2.0), with(ordinary, 0.5, 45 * 3, 5, 2.0)}) {
    Feed feed(10000);
    EXPECT_EQ(feed.frames(look, 30000), "");
    EXPECT_EQ(feed.frames(ordinary, 10000), "");
  }
}

/// At one frame every 68 years, the sum of the times exceeds 2^63 ns, and then 2^64.
TEST(Watch, GoesOnWhereTheTimesPassTheirLargestValue) {
  Feed feed(0, 2'147'483'647'000);
  const auto since = [&](const char* what, int i) {
    return std::to_string(feed.step * std::uint64_t(i)) + ": dark " + what + " since " +
           std::to_string(feed.step * std::uint64_t(i / 4 * 4));
  };
  for (int i = 0; i < 24; ++i)
    EXPECT_EQ(feed.frame(i % 4 < 2 ? black : ordinary), i % 4 == 1   ? since("begins", i)
                                                        : i % 4 == 3 ? since("ends", i)
                                                                     : "");
}

TEST(Watch, KnowsNoFocusAtFirst) {
  Feed feed(2000);
  EXPECT_EQ(feed.frames(soft, 60000), "");  // two seconds are too short for a usual picture
  Feed other(6000);
  EXPECT_EQ(other.frames(soft, 2000), "7000: defocused begins since 6000");
}

/// A camera is turned towards a softer scene, which becomes the usual picture after some minutes.
TEST(Watch, GetsUsedToASofterPicture) {
  Feed feed(300000, 1000);
  EXPECT_EQ(feed.frames(soft, 10000), "301000: defocused begins since 300000");
  EXPECT_EQ(feed.frames(soft, 240000), "");
  const std::string end = feed.frames(soft, 1500000);
  EXPECT_NE(end.find("defocused ends since 300000"), std::string::npos) << end;
  EXPECT_EQ(feed.frames(soft, 600000), "");
  EXPECT_EQ(feed.frames(ordinary, 60000), "");
}

TEST(Watch, TakesNoiseForLive) {
  for (double noise : {0.0005, 0.02, 0.6}) {
    Feed feed;
    EXPECT_EQ(feed.frames(with(ordinary, 0.5, 45, 5, noise), 20000), "") << noise;
  }
  Feed feed;  // frames of a slower camera, each twice
  for (int i = 0; i < 500; ++i) EXPECT_EQ(feed.frame(i % 2 ? same : ordinary), "");
  EXPECT_EQ(feed.frames(same, 3000), "21920: frozen begins since 19920");
  std::string changes;
  for (int i = 0; i < 50; ++i) changes += feed.frame(i % 2 ? same : ordinary);
  EXPECT_EQ(changes, "24040: frozen ends since 19920");
}

/// A frozen picture that is encoded again changes slightly at a key frame.
TEST(Watch, StaysFrozenAtAKeyFrame) {
  Feed feed(1000);
  EXPECT_EQ(feed.frames(same, 4000), "2960: frozen begins since 960");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(feed.frames(with(same, 0.5, 45, 5, 1.5), 200), "");
    EXPECT_EQ(feed.frames(same, 1000), "");
  }
}

TEST(Watch, UsesItsTimeForFrozen) {
  for (double seconds : {0.0, 0.5, 10.0}) {
    Feed feed;
    feed.params.frozen_time = seconds;
    feed.frames(ordinary, 1000);
    const std::uint64_t begin = std::max(std::uint64_t(960 + seconds * 1000 + 39) / 40 * 40, std::uint64_t(1000));
    EXPECT_EQ(feed.frames(same, 12000), std::to_string(begin) + ": frozen begins since 960");
  }
}

/// A frame that cannot be compared does not count as frozen, so the time starts again.
TEST(Watch, NeedsFramesThatCanBeCompared) {
  Feed feed(1000);
  EXPECT_EQ(feed.frames(same, 1960), "");
  EXPECT_EQ(feed.frame(with(same, 0.5, 45, 5, {})), "");
  EXPECT_EQ(feed.frames(same, 1960), "");
  EXPECT_EQ(feed.frames(same, 80), "4960: frozen begins since 2960");
}

TEST(Watch, EndsWhatIsOn) {
  Feed feed(10000);
  feed.frames(with(same, 0.5, 40, 1.5, 0.0), 5000);
  EXPECT_EQ(feed.of(feed.watch.end()), "defocused ends since 10000; frozen ends since 9960");
  EXPECT_TRUE(feed.watch.end().empty());
  EXPECT_EQ(feed.frames(soft, 20000), "");  // the usual picture is forgotten
}

}  // namespace
}  // namespace cudavision::test
