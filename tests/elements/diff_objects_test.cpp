// SPDX-License-Identifier: LGPL-2.1-or-later
// The objects of cudadiff: ids, zones and lines, and messages about objects. Scenes are bright squares on a dark
// background.
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/elements/analytics.hpp"

using namespace cudavision::test;

namespace {

constexpr GstClockTime frame_time = 40 * GST_MSECOND;
/// The adaptive background, which the tracker steers.
const std::string automatic = "reference=background preset=indoor";

using Box = cv::Rect;

struct Roi : Told {
  explicit Roi(GstVideoRegionOfInterestMeta* roi)
      : Told(gst_video_region_of_interest_meta_get_param(roi, "motion")), box(box_of(roi)), meta_id(roi->id) {
    EXPECT(number("score") > 0 && count("area") > 0);
  }
  bool tracked() const { return has("id"); }

  Box box;
  int meta_id;
};

std::vector<Roi> rois(GstBuffer* buffer) {
  std::vector<Roi> all;
  for (GstVideoRegionOfInterestMeta* roi : rois_of(buffer)) all.emplace_back(roi);
  return all;
}

struct Said : Told {
  explicit Said(const Told& message) : Told(message) {
    EXPECT_EQ(name(), "cudadiff");
    for (const char* field : {"timestamp", "stream-time", "running-time", "duration"}) time(field);
    EXPECT_EQ(has("since"), kind() == "stopped" || kind() == "moving");
  }
  std::string kind() const { return text("event"); }
  guint id() const { return count("id"); }
  /// for example "enter 1 door"
  std::string story() const {
    std::string all = kind() + " " + std::to_string(id());
    for (const char* field : {"zone", "line", "direction"})
      if (has(field)) all += " " + text(field);
    return all;
  }
};

/// The element between two pads, at 25 frames per second. Frames are compared with the first one.
struct Player : Rig {
  explicit Player(const Run& run, const std::string& settings = "", Size frame = {320, 240})
      : Rig(run, "reference=first attach-roi=true output=passthrough gap=0.2 " + settings) {
    resize(frame);
  }

  void resize(Size frame) { caps_alone(caps_text("GRAY8", frame)); }

  Buffer play(const std::vector<Box>& squares, bool discont = false) { return push(scene(squares, discont)); }
  Buffer scene(const std::vector<Box>& squares, bool discont = false) {
    Buffer frame = timed(flat(video(), {60}), now);
    for (const Box& box : squares) paint(video(), frame, box, 200);
    now += frame_time;
    if (discont) GST_BUFFER_FLAG_SET(frame.get(), GST_BUFFER_FLAG_DISCONT);
    return frame;
  }
  std::vector<Roi> look(const std::vector<Box>& squares) { return rois(play(squares).get()); }

  /// Takes the messages since the last call. Returns those about objects; `all` gets the events of all, separated by
  /// spaces.
  std::vector<Said> events(std::string* all = nullptr) {
    std::vector<Said> result;
    for (const Told& message : messages_of(element())) {
      if (message.has("id")) result.emplace_back(message);
      if (all) *all += (all->empty() ? "" : " ") + message.text("event");
    }
    return result;
  }
  /// The crossings as text: "enter 1 door; leave 1 door".
  std::string stories() {
    std::string text;
    for (const Said& e : events()) text += (text.empty() ? "" : "; ") + e.story();
    return text;
  }

  GstClockTime now = 0;
};

}  // namespace

// Events --------------------------------------------------------------------------------------------------------------

TEST(boxes_surround_the_changed_pixels, Each::run) {
  for (const char* settings : {"", "track=false", "track=false post-messages=false", "cell-size=40",
                               "analysis-scale=4 cell-size=20 open-radius=0"}) {
    at(settings);
    Player player(run, settings);
    player.play({});
    for (int i = 0; i < 6; ++i) {
      const Box square{36 + 8 * i, 60 + 4 * i, 52, 48};
      const std::vector<Roi> found = player.look({square});
      EXPECT_EQ(found.size(), 1u);
      EXPECT_EQ(found[0].box, square);
    }
  }
}

/// Pushes a segment whose running time begins at `base`.
void push_segment(const Player& player, double rate, GstClockTime start, GstClockTime stop, GstClockTime base) {
  EXPECT(gst_harness_push_event(player.harness(), new_segment([&](GstSegment& segment) {
                                  segment.rate = rate;
                                  segment.start = segment.time = start, segment.stop = stop, segment.base = base;
                                  segment.position = rate > 0 ? start : stop;
                                })));
}

/// All times in the messages and metas of an object are stream times, at any playback rate.
TEST(tells_stream_times_at_every_rate, Each::run) {
  for (const double rate : {1.0, 0.5, 2.0, 8.0, -1.0, -2.0, -0.5}) {
    at(std::to_string(rate));
    Player player(run, "track-hold=0.2");
    const GstClockTime stop = 20 * GST_SECOND;
    push_segment(player, rate, 0, stop, 0);
    int number = 0;
    const auto time_of = [&](int frame) {
      return rate > 0 ? GstClockTime(frame) * frame_time : stop - GstClockTime(frame + 1) * frame_time;
    };
    const auto play = [&](const std::vector<Box>& squares) {
      player.now = time_of(number++);
      return player.look(squares);
    };
    play({});
    for (int i = 0; i < 10; ++i) {
      const std::vector<Roi> seen = play({{8 * i, 64, 48, 48}});
      EXPECT_EQ(seen.size(), 1u);
      EXPECT(std::abs(seen[0].number("age") - 0.04 * i) < 1e-9);
    }
    for (int i = 0; i < 60; ++i) play({});
    const std::vector<Said> events = player.events();
    EXPECT_EQ(events.size(), 2u);
    EXPECT_EQ(events[0].story(), "enter 1");
    EXPECT_EQ(events[0].time("stream-time"), time_of(3));  // confirmed with the third frame
    EXPECT_EQ(events[0].time("entered"), time_of(1));
    EXPECT_EQ(events[0].box(), (Box{16, 64, 48, 48}));
    EXPECT_EQ(events[1].story(), "leave 1");
    EXPECT(std::abs(events[1].number("path-length") - 72) < 16);
    EXPECT_EQ(events[1].time("entered"), time_of(1));
    EXPECT_EQ(events[1].time("left"), time_of(10));
    EXPECT(std::abs(events[1].number("seconds") - 0.36) < 1e-9);
  }
}

/// Timestamps jump when the clock of a camera is set, and when a clip is looped.
TEST(tells_how_long_a_visit_was_where_timestamps_step, Each::run) {
  struct Case {
    const char* what;
    double step;  ///< seconds of stream time from the fifth to the sixth frame of the visit
    bool segment;
    double seconds;
  };
  for (const Case& c : {Case{"a little back", -0.1, false, 0.26}, Case{"back to before the visit", -0.22, false, 0.14},
                        Case{"an hour back", -3600, false, 0.36}, Case{"forward", 0.1, false, 0.46},
                        Case{"a loop", -3600, true, 0.36}, Case{"a loop of a short clip", -1, true, 0.36}}) {
    at(c.what);
    Player player(run, "track-hold=0.2 forget-after=0");
    const GstClockTime begin = 4000 * GST_SECOND;
    player.now = begin;
    push_segment(player, 1, 0, GST_CLOCK_TIME_NONE, 0);
    player.play({});
    for (int i = 0; i < 10; ++i) {
      if (i == 5) {
        const GstClockTime running = player.now;
        player.now = GstClockTime(gint64(player.now) + gint64(c.step * GST_SECOND));
        if (c.segment) push_segment(player, 1, player.now, GST_CLOCK_TIME_NONE, running);
      }
      player.play({{32 + 8 * i, 64, 48, 48}});
    }
    const GstClockTime last = player.now - frame_time;
    for (int i = 0; i < 8; ++i) player.play({});
    const std::vector<Said> events = player.events();
    EXPECT_EQ(events.size(), 2u);
    EXPECT_EQ(events[1].story(), "leave 1");
    EXPECT_EQ(events[1].time("entered"), begin + frame_time);
    EXPECT_EQ(events[1].time("left"), last);
    EXPECT(std::abs(events[1].number("seconds") - c.seconds) < 1e-9);
  }
}

/// A GAP event says that no frame comes. An object that was missing in the last frame then leaves when its time is
/// over, not with the next frame. An object that was visible stays.
TEST(tells_who_leaves_in_a_gap, Each::run) {
  for (const std::string& zones : {std::string(), std::string(" zones=\"left: 0.0,0.0 0.5,0.0 0.5,1.0 0.0,1.0\"")}) {
    at(zones);
    Player player(run, "track-hold=0.2" + zones);
    const auto gap = [&](GstClockTime length) {
      gst_harness_push_event(player.harness(), gst_event_new_gap(player.now, length));
      return player.stories();
    };
    const std::string where = zones.empty() ? "" : " left";
    player.play({});
    for (int i = 0; i < 10; ++i) player.play({{32 + 4 * i, 64, 48, 48}});
    EXPECT_EQ(player.stories(), "enter 1" + where);
    EXPECT_EQ(gap(10 * GST_SECOND), "");
    for (int i = 10; i < 15; ++i) player.play({{32 + 4 * i, 64, 48, 48}});
    EXPECT_EQ(player.stories(), "");  // the next frame came soon, so it is the same object
    player.play({});
    EXPECT_EQ(gap(100 * GST_MSECOND), "");
    EXPECT_EQ(gap(300 * GST_MSECOND), "leave 1" + where);
    EXPECT_EQ(gap(GST_SECOND), "");
    player.now += GST_SECOND;
    for (int i = 0; i < 5; ++i) player.play({{4 * i, 64, 48, 48}});
    EXPECT_EQ(player.stories(), "enter 2" + where);
  }
  // An object that walked out of the zone, but is still visible, leaves the zone.
  Player player(run, "track-hold=0.2 zones=\"left: 0.0,0.0 0.5,0.0 0.5,1.0 0.0,1.0\"");
  player.play({});
  for (int i = 0; i < 10; ++i) player.play({{80 + 8 * i, 64, 48, 48}});
  EXPECT_EQ(player.stories(), "enter 1 left");
  gst_harness_push_event(player.harness(), gst_event_new_gap(player.now, 300 * GST_MSECOND));
  EXPECT_EQ(player.stories(), "leave 1 left");
}

TEST(tells_who_stops_and_goes_on, Each::run) {
  for (const std::string& settings : {std::string(), automatic, automatic + " output=overlay"}) {
    at(settings);
    Player player(run, "track-hold=0.2 still-time=1 " + settings);
    const auto walk = [&](int from, int to) {
      for (int x = from; x < to; x += 8) player.play({{x, 64, 48, 48}});
    };
    for (int i = 0; i < 50; ++i) player.play({});
    walk(0, 136);
    const GstClockTime stands = player.now;
    for (int i = 0; i < 40; ++i) player.play({{136, 64, 48, 48}});
    EXPECT_EQ(player.stories(), "enter 1; stopped 1");
    EXPECT(player.look({{136, 64, 48, 48}})[0].flag("stopped"));
    walk(144, 264);
    const std::vector<Said> moving = player.events();
    EXPECT_EQ(moving.size(), 1u);
    EXPECT_EQ(moving[0].story(), "moving 1");
    // It turned less than half of its side away from there.
    EXPECT(moving[0].time("since") >= stands - 4 * frame_time && moving[0].time("since") <= stands);
    EXPECT(!player.look({{264, 64, 48, 48}})[0].flag("stopped"));
    for (int i = 0; i < 40; ++i) player.play({});
    const std::vector<Said> left = player.events();
    EXPECT_EQ(left.size(), 1u);
    EXPECT_EQ(left[0].story(), "leave 1");
    EXPECT(left[0].time("best-time") >= left[0].time("entered") && left[0].time("best-time") <= left[0].time("left"));
    EXPECT_EQ(left[0].box("best-").width, 48);
    EXPECT_EQ(left[0].box("best-").height, 48);
  }
}

TEST(absorbs_what_stands_for_long, Each::run) {
  for (const auto& [settings, absorbed] : {std::pair{"absorb-time=2", true}, {"absorb-time=0", false}}) {
    at(settings);
    Player player(run, automatic + " track-hold=0.2 still-time=1 " + settings);
    for (int i = 0; i < 50; ++i) player.play({});
    for (int x = 0; x < 136; x += 8) player.play({{x, 64, 48, 48}});
    for (int i = 0; i < 100; ++i) player.play({{136, 64, 48, 48}});
    EXPECT_EQ(player.stories(), absorbed ? "enter 1; stopped 1; leave 1" : "enter 1; stopped 1");
    EXPECT_EQ(player.look({{136, 64, 48, 48}}).size(), absorbed ? 0u : 1u);
  }
}

TEST(says_what_was_taken_away, Each::run) {
  Player player(run, automatic + " track-hold=0.2");
  for (int i = 0; i < 50; ++i) player.play({{136, 64, 48, 48}});
  EXPECT_EQ(player.stories(), "");
  for (int i = 0; i < 40; ++i) player.play({});
  const std::vector<Said> events = player.events();
  EXPECT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].kind() + " " + events[1].kind() + " " + events[2].kind(), "enter removed leave");
  EXPECT_EQ(events[1].box(), (Box{136, 64, 48, 48}));
  EXPECT_EQ(player.look({}).size(), 0u);  // the place is background now
}

/// At every frame rate a ghost disappears within a few frames: decisions must not be delayed by a number of frames
/// alone.
TEST(forgets_ghosts_at_low_rates_too, Each::run) {
  for (const GstClockTime step : {40 * GST_MSECOND, 500 * GST_MSECOND, GST_SECOND}) {
    at(show(step));
    Player player(run, automatic + " track-hold=0.2 output=mask");
    player.caps_alone(
        caps_text("GRAY8", {320, 240},
                  ",framerate=" + show(GST_SECOND / (20 * GST_MSECOND)) + "/" + show(step / (20 * GST_MSECOND))));
    const auto shows = [&](const std::vector<Box>& squares) {
      const Buffer mask = player.play(squares);
      player.now += step - frame_time;
      return picture(mask.get(), player.video())[0].at<guint16>(88, 160) > 0;
    };
    for (int i = 0; i < 50; ++i) shows({{136, 64, 48, 48}});
    GstClockTime lasted = 0;
    while (shows({}) && lasted < 30 * GST_SECOND) lasted += step;
    EXPECT(lasted > 0 && lasted <= std::max<GstClockTime>(GST_SECOND, 5 * step));
  }
}

/// After a flush, earlier decisions about what the background may learn have no effect.
TEST(says_the_same_again_after_a_flush, Each::run) {
  Player player(run, automatic + " track-hold=0.2 output=mask");
  const auto story = [&] {
    std::string text;
    for (int i = 0; i < 110; ++i) {
      std::vector<Box> squares{{136, 64, 48, 48}};
      if (i < 4) squares.push_back({80, 160, 40, 52});  // the position of the object at the end of the previous round
      if (i > 50) squares = {{std::min(4 * (i - 50), 80), 160, 40, 52}};
      for (const Roi& roi : player.look(squares)) text += show(roi.box) + (roi.flag("held") ? " held\n" : "\n");
    }
    for (const Said& e : player.events()) text += e.kind() + " " + show(e.box()) + "\n";
    return text;
  };
  const std::string first = story();
  EXPECT_CONTAINS(first, "removed");
  for (int round = 0; round < 3; ++round) {
    flush(player);
    player.events();
    player.now = 0;
    EXPECT_EQ(story(), first);
  }
}

TEST(says_in_which_zones_an_object_stopped, Each::run) {
  Player player(run,
                "still-time=0.4 zones=\"door: 0,0 320,0 320,240 0,240; yard: 0,0 160,0 160,240 0,240; street: 200,0 "
                "320,0 320,240\"");
  player.play({});
  for (int x = 0; x < 100; x += 10) player.play({{x, 64, 48, 48}});
  for (int i = 0; i < 20; ++i) player.play({{100, 64, 48, 48}});
  std::string stopped;
  for (const Said& e : player.events())
    if (e.kind() == "stopped") stopped += e.story() + " in " + e.texts("zones");
  EXPECT_EQ(stopped, "stopped 1 in door,yard");
}

TEST(posts_events_of_objects_at_once, Each::run) {
  Player player(run, "track-hold=0.1 message-interval=1000000000000");
  player.play({});
  for (int i = 0; i < 10; ++i) player.play({{32 + 8 * i, 64, 48, 48}});
  for (int i = 0; i < 10; ++i) player.play({});
  std::string all;
  player.events(&all);
  EXPECT_EQ(all, "none begin enter leave end");
}

TEST(says_the_same_when_results_arrive_later, Each::run) {
  std::vector<std::string> stories;
  for (const char* settings :
       {"attach-roi=true", "attach-roi=true async-depth=3", "attach-roi=false", "attach-roi=false async-depth=8",
        "attach-roi=true output=overlay", "attach-roi=false output=mask async-depth=2"}) {
    at(settings);
    Player player(run, std::string("track-hold=0.2 ") + settings);
    std::string all;
    for (int i = 0; i < 40; ++i) {
      const bool here = i % 20 > 2 && i % 20 < 12;
      EXPECT_EQ(gst_harness_push(
                    player.harness(),
                    player.scene(here ? std::vector<Box>{{8 * i % 160, 64, 48, 48}} : std::vector<Box>{}).release()),
                GST_FLOW_OK);
    }
    gst_harness_push_event(player.harness(), gst_event_new_eos());
    for (const Said& e : player.events(&all))
      all += " " + e.story() + " " + show(e.box()) + " " + std::to_string(e.time("stream-time")) + " " +
             std::to_string(e.has("left") ? e.time("left") : 0);
    stories.push_back(all);
    EXPECT_CONTAINS(all, "enter 2");
    EXPECT(stories.back() == stories.front());
  }
}

TEST(ignores_large_objects_that_enter_and_leave, Each::run) {
  for (const char* settings : {"", "track=false", "output=overlay"})
    for (const auto& [x, y] : {std::pair(8, 0), {-8, 0}, {0, 8}, {0, -8}})
      for (bool large : {true, false}) {
        at(settings + std::string(large ? " large" : " small"));
        Player player(run, "max-area=20 " + std::string(settings));
        const int width = large ? 128 : 32, height = large ? 112 : 48;
        player.play({});
        std::vector<Roi> found;
        for (int i = -40; i <= 40; ++i)
          for (const Roi& roi : player.look({{(320 - width) / 2 + i * x, (240 - height) / 2 + i * y, width, height}}))
            found.push_back(roi);
        for (int i = 0; i < 40; ++i) player.play({});
        std::string all;
        player.events(&all);
        EXPECT_EQ(found.empty(), large);
        EXPECT_EQ(all.find("begin") == std::string::npos, large);
        EXPECT_EQ(all.find("enter") == std::string::npos, large || settings == std::string("track=false"));
      }
}

/// A yard at night: a beam of headlights sweeps over it, and a person walks through it later. Only `max-area` tells
/// them apart.
TEST(ignores_headlights_that_sweep_over_a_yard, Each::run) {
  for (bool limited : {true, false}) {
    at(limited ? "with max-area" : "");
    Player player(run,
                  "reference=background preset=low-light track-hold=0.2" + std::string(limited ? " max-area=60" : ""));
    unsigned seed = 1;
    const auto shows = [&](int beam, int person) {
      Buffer frame = timed(flat(player.video(), {0}), player.now);
      paint(player.video(), frame, {0, 0, 320, 240}, [&](int x, int y) {
        seed = seed * 1664525u + 1013904223u;
        const double off_x = (x - beam) / 60.0, off_y = (y - 130) / 45.0;
        const double light = 0.2 + 0.8 * std::exp(-off_x * off_x - off_y * off_y);
        const bool covered = x >= person && x < person + 16 && y >= 140 && y < 190;
        const unsigned block = unsigned(x / 4) * 73856093u ^ unsigned(y / 4) * 19349663u;
        const double surface = covered ? 220 : 50 + double(block / 64 % 120);
        return int(std::min(light * surface + double(seed >> 30), 255.0));
      });
      player.now += frame_time;
      player.push(std::move(frame));
    };
    constexpr int far_away = -10000;
    for (int i = 0; i < 100; ++i) shows(far_away, far_away);
    for (int i = 0; i < 100; ++i) shows(-180 + 7 * i, far_away);
    for (int i = 0; i < 50; ++i) shows(far_away, far_away);
    const auto entered = [&] {
      const std::vector<Said> events = player.events();
      return std::count_if(events.begin(), events.end(), [](const Said& e) { return e.kind() == "enter"; });
    };
    EXPECT_EQ(entered() == 0, limited);
    for (int i = 0; i < 100; ++i) shows(far_away, -20 + 2 * i);
    EXPECT_EQ(entered(), 1);
  }
}

/// The properties change while the remnant of a large object is still there; a flush begins another scene.
TEST(remembers_large_objects_while_the_scene_is_the_same, Each::run) {
  Player player(run, "max-area=20");
  const Box large{96, 64, 128, 112}, remnant{112, 80, 48, 48};
  player.play({});
  for (int i = 0; i < 5; ++i) EXPECT(player.look({large}).empty());
  set(player.element(), "gap=1");
  for (int i = 0; i < 5; ++i) EXPECT(player.look({remnant}).empty());
  flush(player);
  player.play({});
  EXPECT_EQ(player.look({remnant}).size(), 1u);
}

TEST(says_nothing_of_objects_if_asked, Each::run) {
  for (const char* settings : {"track=false", "post-messages=false"}) {
    at(settings);
    Player player(run, settings);
    player.play({});
    for (int i = 0; i < 10; ++i) {
      const std::vector<Roi> all = player.look({{32 + 8 * i, 64, 48, 48}});
      EXPECT_EQ(all.size(), 1u);
      EXPECT_EQ(all[0].tracked(), settings == std::string("post-messages=false"));
      if (!all[0].tracked()) EXPECT_EQ(all[0].meta_id, 0);
    }
    gst_harness_push_event(player.harness(), gst_event_new_eos());
    EXPECT_EQ(player.stories(), "");
  }
}

// Regions of interest -------------------------------------------------------------------------------------------------

TEST(attaches_objects, Each::run) {
  Player player(run,
                "track-hold=0.2 zones=\"low: 0,120 320,120 320,240 0,240; right: 0.5,0.0 1.0,0.0 1.0,1.0 0.5,1.0\"");
  player.play({});
  for (int i = 0; i < 8; ++i) {
    const std::vector<Roi> all = player.look({{8, 16, 32, 32}, {208, 176 - 16 * i, 32, 32}});
    EXPECT_EQ(all.size(), 2u);
    for (const Roi& roi : all) {
      EXPECT(roi.tracked());
      EXPECT_EQ(roi.flag("confirmed"), i >= 2);
      EXPECT(!roi.flag("held"));
      EXPECT_EQ(int(roi.count("id")), roi.meta_id);
      EXPECT(std::abs(roi.number("age") - 0.04 * i) < 1e-9);
    }
    EXPECT_EQ(all[0].box, (Box{8, 16, 32, 32}));
    EXPECT_EQ(all[0].count("id"), i < 2 ? 0 : 1);
    EXPECT_EQ(all[0].texts("zones"), "");
    EXPECT_EQ(all[1].count("id"), i < 2 ? 0 : 2);
    EXPECT_EQ(all[1].texts("zones"), 176 - 16 * i + 31 >= 120 ? "low,right" : "right");
  }
  // The hidden object continues to move.
  int y = 64;
  for (int i = 0; i < 6; ++i) {
    const std::vector<Roi> all = player.look({{8, 16, 32, 32}});
    EXPECT_EQ(all.size(), i < 4 ? 2 : 1);
    EXPECT(!all[0].flag("held"));
    if (i >= 4) continue;
    EXPECT(all[1].flag("held") && all[1].flag("confirmed"));
    EXPECT_EQ(all[1].meta_id, 2);
    EXPECT_EQ(all[1].box.width, 32);
    EXPECT(all[1].box.y < y && std::abs(all[1].box.y - (48 - 16 * i)) < 8);
    EXPECT_EQ(all[1].texts("zones"), "right");
    y = all[1].box.y;
  }
}

#if CUDAVISION_HAVE_ANALYTICS
TEST(attaches_the_same_as_analytics, Each::run) {
  for (bool track : {true, false}) {
    Player player(run, track ? "" : "track=false");
    EXPECT_EQ(text_of(player.play({}).get()), "");
    for (int i = 0; i < 12; ++i) {
      std::vector<Box> squares{{8 * i, 64, 48, 48}, {208, 208 - 8 * i, 32, 32}};  // they come in from the edges
      if (i >= 8) squares.pop_back();
      const GstClockTime now = player.now;
      const Buffer frame = player.play(squares);
      const std::vector<Roi> same = rois(frame.get());
      EXPECT_EQ(same.size(), track ? 2 : squares.size());
      std::string expected, relations;
      int number = 0;  // number in the meta
      for (const Roi& roi : same) {
        expected += "motion " + show(roi.box.x) + "," + show(roi.box.y) + " " + show(roi.box.width) + "×" +
                    show(roi.box.height) + " turned 0 " + show(gfloat(roi.number("score"))) + "; ";
        ++number;
        if (!track || i < 2) continue;
        const bool held = roi.flag("held");
        expected += "track " + show(roi.meta_id) + " since " + show(frame_time) + " seen " +
                    show(held ? 8 * frame_time : now) + (held ? " lost; " : "; ");
        relations += show(number - 1) + "-" + show(int(GST_ANALYTICS_REL_TYPE_RELATE_TO)) + "-" + show(number) + " ";
        ++number;
      }
      EXPECT_EQ(text_of(frame.get()), expected + relations);
    }
  }
}
#endif

// Zones and lines -----------------------------------------------------------------------------------------------------

TEST(tells_zones, Each::run) {
  // The path goes from left to right below the middle, through the door and then the hall, which share an edge.
  Player player(run,
                "track-hold=0.1 zones=\"door: 64,100 160,100 160,240 64,240; hall: 0.5,0.0 1.0,0.0 1.0,1.0 0.5,1.0\"");
  player.play({});
  for (int i = 0; i < 30; ++i) player.play({{8 * i, 112, 32, 32}});
  for (int i = 0; i < 10; ++i) player.play({});
  const std::vector<Said> events = player.events();
  std::vector<std::string> texts;
  for (const Said& e : events) texts.push_back(e.story());
  EXPECT(texts == (std::vector<std::string>{"enter 1 door", "enter 1 hall", "leave 1 door", "leave 1 hall"}));
  // The middle of its lower edge is at 16 + 8 i, with an error of up to half a cell.
  const auto frame_of = [](guint64 time) { return int(time / frame_time) - 1; };
  EXPECT(std::abs(16 + 8 * frame_of(events[0].time("entered")) - 64) <= 16);
  EXPECT(std::abs(16 + 8 * frame_of(events[1].time("entered")) - 160) <= 16);
  EXPECT_EQ(frame_of(events[2].time("left")), frame_of(events[1].time("entered")) - 1);
  EXPECT_EQ(events[2].time("entered"), events[0].time("entered"));
  EXPECT_EQ(events[3].time("left"), 30 * frame_time);
  EXPECT_EQ(events[0].time("stream-time"),
            events[0].time("entered"));  // posted with its frame, because the object was already confirmed
}

TEST(counts_who_crosses_a_line, Each::run) {
  Player player(run, "track-hold=0.1 lines=\"gate: 160,0 160,240; roof: 0.0,0.1 1.0,0.1\"");
  player.play({});
  const auto walk = [&](int from, int to) {
    for (int i = 0; i <= 20; ++i) player.play({{from + (to - from) * i / 20, 112, 32, 32}});
    for (int i = 0; i < 5; ++i) player.play({});
  };
  // The walk goes down the picture, so its right side is the left side of the picture.
  walk(16, 256);
  walk(256, 16);
  walk(16, 256);
  std::vector<Said> crossings;
  for (const Said& e : player.events())
    if (e.kind() == "cross") crossings.push_back(e);
  EXPECT_EQ(crossings.size(), 3u);
  EXPECT_EQ(crossings[0].story(), "cross 1 gate left");
  EXPECT_EQ(crossings[1].story(), "cross 2 gate right");
  EXPECT_EQ(crossings[2].story(), "cross 3 gate left");
  EXPECT(crossings[0].count("crossed-left") == 1 && crossings[0].count("crossed-right") == 0);
  EXPECT(crossings[2].count("crossed-left") == 2 && crossings[2].count("crossed-right") == 1);
}

// Runs ----------------------------------------------------------------------------------------------------------------

TEST(gives_each_enter_its_leave, Each::run) {
  for (const char* why : {"eos", "flush", "away", "caps", "stop", "track", "zones", "lines"})
    for (const bool zoned : {false, true}) {
      at(why + std::string(zoned ? " with zones" : ""));
      Player player(run, zoned ? "zones=\"all: 0,0 320,0 320,240 0,240; left: 0,0 160,0 160,240 0,240\"" : "");
      const std::string is = why;
      player.play({});
      for (int i = 0; i < 5; ++i) player.play({{16 * i, 64, 48, 48}, {272, 120, 48, 48}});
      EXPECT_EQ(player.stories(), zoned ? "enter 1 all; enter 2 all; enter 2 left" : "enter 1; enter 2");
      const std::string left = zoned ? "leave 1 all; leave 2 all; leave 2 left" : "leave 1; leave 2";
      if (is == "eos") {
        gst_harness_push_event(player.harness(), gst_event_new_eos());
        EXPECT_EQ(player.stories(), left);
        continue;
      }
      if (is == "stop") {
        gst_element_set_state(player.element(), GST_STATE_READY);
        EXPECT_EQ(player.stories(), left);
        gst_element_set_state(player.element(), GST_STATE_PLAYING);
        player.resize({320, 240});
        player.play({});
        for (int i = 0; i < 5; ++i) player.play({{8 * i, 64, 48, 48}});
        EXPECT_EQ(player.stories(), zoned ? "enter 1 all; enter 1 left" : "enter 1");  // ids restart
        continue;
      }
      if (is == "flush") flush(player);
      if (is == "caps") player.resize({400, 300});
      if (is == "away") player.now += 61 * GST_SECOND;
      if (is == "track") set(player.element(), "track=false");
      if (is == "zones") set(player.element(), zoned ? "zones=" : "zones=\"new: 0,0 320,0 320,240 0,240\"");
      if (is == "lines") set(player.element(), "lines=\"gate: 0,0 9,9\"");
      const bool goes_on = is == "zones" || is == "lines";  // the objects stay, the visits restart
      for (int i = 0; i < 4; ++i)
        player.play(goes_on || is == "track" ? std::vector<Box>{{80, 64, 48, 48}}
                    : i > 0                  ? std::vector<Box>{{80, 0, 48, 48}}
                                             : std::vector<Box>{});
      const std::string entered = is == "track"            ? ""
                                  : is == "zones"          ? (zoned ? "; enter 2" : "; enter 2 new")
                                  : is == "lines" && zoned ? "; enter 2 all; enter 2 left"
                                  : is == "lines"          ? "; enter 2"
                                  : zoned                  ? "; enter 3 all; enter 3 left"
                                                           : "; enter 3";
      EXPECT_EQ(player.stories(), left + entered);
    }
}

/// Objects are predicted over the duration of missing frames.
TEST(follows_objects_where_frames_are_missing, Each::run) {
  for (const bool marked : {false, true})
    for (int missing : {1, 10}) {
      at(std::to_string(missing) + (marked ? " frames, marked" : " frames"));
      Player player(run);
      player.play({});
      int i = 0;
      for (; i < 10; ++i) player.play({{4 + 8 * i, 64, 48, 48}});
      EXPECT_EQ(player.stories(), "enter 1");
      i += missing;
      player.now += guint(missing) * frame_time;
      player.play({{4 + 8 * i, 64, 48, 48}}, marked);
      for (++i; i < 28; ++i) player.play({{4 + 8 * i, 64, 48, 48}});
      EXPECT_EQ(player.stories(), "");
      gst_harness_push_event(player.harness(), gst_event_new_eos());
      EXPECT_EQ(player.stories(), "leave 1");
    }
}

/// An object that is missing after a gap ends when its hold time is over.
TEST(ends_objects_that_go_where_frames_are_missing, Each::run) {
  Player player(run);
  player.play({});
  for (int i = 0; i < 6; ++i) player.play({{0, 64, 48, 48}});
  EXPECT_EQ(player.stories(), "enter 1");
  player.now += 2 * GST_SECOND;
  player.play({}, true);
  EXPECT_EQ(player.stories(), "leave 1");
}

TEST(forgets_ten_thousand_objects, Each::run) {
  Player player(run, "cell-size=4 open-radius=0 track-min-frames=1 track-hold=0 message-interval=1000000000000");
  std::vector<Box> squares;
  for (int y = 0; y < 240; y += 24)
    for (int x = 0; x < 320; x += 32) squares.push_back({x, y, 8, 8});
  std::set<guint> ids;
  std::map<guint, int> open;
  std::size_t used = 0;
  player.play({});
  for (int round = 0; ids.size() < 10000; ++round) {
    player.play(squares);
    player.play({});
    for (const Said& e : player.events()) {
      if (e.kind() == "enter") EXPECT(ids.insert(e.id()).second);
      open[e.id()] += e.kind() == "enter" ? 1 : -1;
      if (open[e.id()] == 0) open.erase(e.id());
    }
    EXPECT(open.empty());
    EXPECT_EQ(ids.size(), (round + 1) * squares.size());
    if (round == 20) used = mallinfo2().uordblks;
  }
  EXPECT_EQ(*ids.rbegin(), ids.size());
  const std::size_t of_ids = 200 * ids.size();  // used by this test itself
  EXPECT(mallinfo2().uordblks < used + of_ids + 200000);
}

int main() { return run_tests("diff_objects", "cudadiff"); }
