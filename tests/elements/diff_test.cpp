// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares cudadiff with its plan, and tests its messages, references and settings.
#include "kernels/diff/diff.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "kernels/diff/size_limit.hpp"
#include "tests/elements/plans.hpp"

using namespace cudavision;
using namespace cudavision::test;

namespace {

const Size size{96, 64};
constexpr GstClockTime frame_time = 40 * GST_MSECOND;
/// Resets the settings that the profile needs for the shared tests. Disables light-change-ratio, because these tests
/// change most of a frame.
const std::string defaults = "reference=previous attach-roi=true light-change-ratio=0 ";
constexpr const char* references[] = {"previous", "first", "background", "mog2", "median"};

/// A region: its box, its area in cells, and its score.
struct Found {
  cv::Rect box;
  guint area = 0;
  double score = 0;

  bool operator==(const Found& o) const { return box == o.box && area == o.area && score == o.score; }
};
std::ostream& operator<<(std::ostream& out, const std::vector<Found>& all) {
  out << all.size() << " regions";
  for (const Found& one : all) out << "; " << one.box << " of " << one.area << " cells, score " << one.score;
  return out;
}

struct Said : Told {
  explicit Said(const Told& message) : Told(message) {
    EXPECT_EQ(name(), "cudadiff");
    EXPECT_EQ(size(), 9 + (event() == "end" ? 2 : event() == "moved" ? 3 : 0) + (sums_up() ? 4 : 0));
  }
  std::string event() const { return text("event"); }
  bool sums_up() const { return has("frames"); }
  std::vector<Found> regions() const {
    std::vector<Found> all;
    for (const Told& region : list("regions"))
      all.push_back({region.box(), region.count("area"), region.number("score")});
    return all;
  }
};

/// The messages about frames since the last call. diff_objects_test.cpp tests messages about objects.
std::vector<Said> said_by(const Rig& rig) {
  std::vector<Said> all;
  for (const Told& message : messages_of(rig.element()))
    if (!message.has("id")) all.emplace_back(message);
  return all;
}

std::string events_of(const std::vector<Said>& said) {
  std::string text;
  for (const Said& one : said) text += (text.empty() ? "" : " ") + one.event();
  return text;
}

std::vector<Found> rois(GstBuffer* buffer) {
  std::vector<Found> result;
  for (GstVideoRegionOfInterestMeta* roi : rois_of(buffer)) {
    EXPECT_EQ(std::string(g_quark_to_string(roi->roi_type)), "motion");
    const Told motion(gst_video_region_of_interest_meta_get_param(roi, "motion"));
    result.push_back({box_of(roi), motion.count("area"), motion.number("score")});
  }
  return result;
}

/// A frame of `background` with rectangles of `value` in its first component.
Buffer squares(const GstVideoInfo& video, const std::vector<cv::Rect>& rects, int value = 200, int background = 60) {
  Buffer frame = flat(video, {background, 100, 140, 255});
  for (const cv::Rect& rect : rects) paint(video, frame, rect, value);
  return frame;
}
Buffer square(const GstVideoInfo& video, const cv::Rect& rect = {}, int value = 200, int background = 60) {
  return squares(video, {rect}, value, background);
}

/// The element between two pads. Timestamps match a clip with 25 frames per second.
struct Player : Rig {
  explicit Player(const Run& run, const std::string& settings = "", const std::string& format = "GRAY8")
      : Rig(run, defaults + settings) {
    caps_alone(caps_text(format, size));
  }

  Buffer play(Buffer frame, GstClockTime time) {
    now = time + frame_time;
    return push(timed(std::move(frame), time));
  }
  Buffer play(Buffer frame) { return play(std::move(frame), now); }
  /// Plays five frames without motion, then one in which motion begins.
  void begin_motion() {
    for (int i = 0; i < 5; ++i) play(square(video()));
    play(square(video(), {32, 16, 32, 32}));
    EXPECT_EQ(events(), "none none none none none begin");
    EXPECT(motion());
  }
  Picture show(Buffer frame) { return picture(play(std::move(frame)).get(), video()); }

  std::vector<Said> said() { return said_by(*this); }
  Said last() { return said().back(); }
  std::string events() { return events_of(said()); }
  bool motion() { return get<gboolean>(element(), "motion"); }
  double changed_ratio() { return get<double>(element(), "changed-ratio"); }

  GstClockTime now = 0;
};

int sample(const cv::Mat& m, int x, int y) { return m.at<guint16>(y, x); }

/// The plan of the element, which gets the same frames.
class Beside {
 public:
  Beside(diff::Params params, const diff::RegionRules& rules, const GstVideoInfo& video)
      : overlay_(params.output == diff::Output::overlay), rules_(rules), video_(video) {
    params.looks = diff::Looks::extents;
    params.cell_threshold = rules.cell_threshold;
    plan_ = made(diff::make(params, geometry_of(video), Backend::cpu));
  }
  /// Compares a frame. Returns the output with the boxes of regions.
  Picture show(const Buffer& frame) {
    const Buffer out = copied(frame);
    {
      const Mapped from(frame, video_), to(out, video_, GST_MAP_READWRITE);
      expect_ok(plan_->submit(from.image(), to.image(), {}));
      const bool limited = rules_.max_area < std::numeric_limits<int>::max();
      const std::vector<diff::MotionRegion> kept =
          diff::find_regions(result().cells, rules_, limited ? &limit_ : nullptr).kept;
      if (overlay_) expect_ok(plan_->draw_boxes(to.image(), kept, {}));
      regions.clear();
      for (const diff::MotionRegion& one : kept)
        regions.push_back({cv::Rect(one.box.x, one.box.y, one.box.width, one.box.height), guint(one.area), one.score});
    }
    return picture(out.get(), video_);
  }
  const diff::FrameResult& result() { return plan_->result(); }

  std::vector<Found> regions;  ///< of the last frame

 private:
  const bool overlay_;
  const diff::RegionRules rules_;
  diff::SizeLimit limit_{12};  // half a second
  const GstVideoInfo video_;
  std::unique_ptr<diff::Diff> plan_;
};

Picture all_of(const GstVideoInfo& video, const std::vector<int>& values) {
  return picture(flat(video, values).get(), video);
}

}  // namespace

// Output --------------------------------------------------------------------------------------------------------------

TEST(shows_and_finds_what_its_plan_does, Each::run) {
  using diff::Params, diff::Reference, diff::Output;
  struct Case {
    const char* settings;
    std::function<void(Params&)> change = [](Params&) {};
    diff::RegionRules rules = {};
  };
  const std::vector<Case> cases{
      {""},
      {"gain=2.5", [](Params& p) { p.gain = 2.5; }},
      {"mode=signed gain=0.5", [](Params& p) { p.mode = diff::Mode::signed_, p.gain = 0.5; }},
      {"mode=squared", [](Params& p) { p.mode = diff::Mode::squared; }},
      {"output=mask open-radius=0", [](Params& p) { p.output = Output::mask, p.open_radius = 0; }},
      {"output=mask open-radius=4", [](Params& p) { p.output = Output::mask, p.open_radius = 4; }},
      {"output=mask threshold=20", [](Params& p) { p.output = Output::mask, p.threshold = 20; }},
      {"output=mask threshold=0", [](Params& p) { p.output = Output::mask, p.threshold = 0; }},
      {"output=mask analysis-scale=4", [](Params& p) { p.output = Output::mask, p.analysis_scale = 4; }},
      {"output=overlay", [](Params& p) { p.output = Output::overlay; }},
      {"output=passthrough", [](Params& p) { p.output = Output::none; }},
      {"luma-only=true", [](Params& p) { p.luma_only = true; }},
      {"mask-regions=0,0,24,64;90,60,1000,1000",
       [](Params& p) {
         p.mask_regions = {{0, 0, 24, 64}, {90, 60, 1000, 1000}};
       }},
      {"light-change-ratio=0.5", [](Params& p) { p.light_change_ratio = 0.5; }},
      {"interval=2", [](Params& p) { p.interval = 2; }},
      {"reference=first", [](Params& p) { p.reference = Reference::first; }},
      {"reference=background", [](Params& p) { p.reference = Reference::background; }},
      {"reference=background learning-rate=0.5",
       [](Params& p) { p.reference = Reference::background, p.learning_rate = 0.5; }},
      {"track=false reference=background threshold=0",
       [](Params& p) { p.reference = Reference::background, p.threshold = 0; }},
      {"track=false reference=background threshold=0 light-compensation=false noise-limit=3",
       [](Params& p) {
         p.reference = Reference::background, p.threshold = 0, p.light_compensation = false, p.noise_limit = 3;
       }},
      {"reference=background shadows=drop shadow-threshold=0.3",
       [](Params& p) { p.reference = Reference::background, p.drop_shadows = true, p.shadow_threshold = 0.3; }},
      {"reference=median shadows=drop", [](Params& p) { p.reference = Reference::median, p.drop_shadows = true; }},
      {"reference=median learning-rate=1", [](Params& p) { p.reference = Reference::median, p.learning_rate = 1; }},
      {"reference=mog2 learning-rate=0.3", [](Params& p) { p.reference = Reference::mog2, p.learning_rate = 0.3; }},
      {"reference=mog2 history=2 variance-threshold=400",
       [](Params& p) { p.reference = Reference::mog2, p.history = 2, p.variance_threshold = 400; }},
      {"cell-size=20", [](Params& p) { p.cell_size = 20; }},
      {"cell-threshold=0.6", {[](Params&) {}}, {0.6}},
      {"cell-threshold=0 min-area=4", {[](Params&) {}}, {0, 1, 4}},
      {"cell-size=8 max-area=8", [](Params& p) { p.cell_size = 8; }, {0.2, 1, 1, 8}},
      {"cell-size=8 region-distance=3", [](Params& p) { p.cell_size = 8; }, {0.2, 3}}};
  for (const char* format : {"GRAY8", "NV12", "YUY2", "RGB", "BGRA", "Y444"})
    for (const Case& c : cases) {
      at(format + std::string(" ") + c.settings);
      Player player(run, c.settings, format);
      const GstVideoInfo& video = player.video();
      Params params;
      params.light_change_ratio = 0;  // as in `defaults`
      c.change(params);
      Beside plan(params, c.rules, video);
      const std::vector<int> shadow = GST_VIDEO_INFO_IS_YUV(&video) && GST_VIDEO_INFO_N_COMPONENTS(&video) > 1
                                          ? std::vector<int>{42, 111, 135}
                                          : std::vector<int>{24, 40, 56};
      std::vector<Buffer> frames;
      for (const cv::Rect& place : {cv::Rect(), {20, 12, 30, 21}, {33, 17, 24, 24}, {70, 5, 16, 9}})
        frames.push_back(square(video, place));
      frames.push_back(square(video, {33, 17, 60, 40}, 100));
      frames.push_back(flat(video, shadow));
      frames.push_back(flat(video, {60, 180, 90, 255}));
      for (unsigned seed : {1u, 2u}) frames.push_back(noise(video, seed));
      for (std::size_t i = 0; i < frames.size(); ++i) {
        at(format + std::string(" ") + c.settings + " frame " + std::to_string(i));
        const Picture expected = plan.show(frames[i]);
        EXPECT_SAME(player.show(copied(frames[i])), expected);
        const Said said = player.last();
        EXPECT_EQ(said.number("changed-ratio"), plan.result().changed_ratio);
        EXPECT_EQ(said.number("mean-difference"), plan.result().mean_difference);
        EXPECT_EQ(said.regions(), plan.regions);
        EXPECT_EQ(player.changed_ratio(), plan.result().changed_ratio);
      }
    }
}

TEST(passes_frames_untouched, Each::run) {
  for (bool attach : {true, false})
    for (bool shared : {true, false}) {
      at(std::string(attach ? "attach-roi" : "") + (shared ? " shared" : ""));
      Player player(run, "output=passthrough attach-roi=" + std::string(attach ? "true" : "false"));
      player.play(square(player.video()));
      Buffer frame = square(player.video(), {32, 16, 32, 32});
      GST_BUFFER_PTS(frame.get()) = frame_time;
      GstBuffer* in = frame.get();
      const Buffer held(shared ? gst_buffer_ref(in) : nullptr);
      GstMemory* memory = gst_buffer_peek_memory(in, 0);
      const Buffer out = player.push(std::move(frame));
      EXPECT(gst_buffer_peek_memory(out.get(), 0) == memory);
      EXPECT_EQ(out.get() == in, !(attach && shared));  // a shared frame is copied, not changed
      EXPECT_EQ(rois(out.get()).size(), attach ? 1u : 0u);
      if (shared) EXPECT(rois(in).empty());
      EXPECT_SAME(picture(out.get(), player.video()),
                  picture(square(player.video(), {32, 16, 32, 32}).get(), player.video()));
    }
}

TEST(changes_output_while_playing, Each::run) {
  Player player(run, "output=passthrough");
  const Buffer a = noise(player.video(), 1), b = noise(player.video(), 2);
  const Picture pa = picture(a.get(), player.video()), pb = picture(b.get(), player.video());
  EXPECT_SAME(player.show(copied(a)), pa);
  set(player.element(), "output=difference");
  cv::Mat expected;
  cv::absdiff(pa[0], pb[0], expected);
  EXPECT_SAME(player.show(copied(b)), Picture({expected}));  // compared with the previous frame, which passed through
  set(player.element(), "output=passthrough");
  EXPECT_SAME(player.show(copied(a)), pa);
}

// References ----------------------------------------------------------------------------------------------------------

TEST(keeps_its_reference_when_settings_change, Each::run) {
  for (const char* reference : references) {
    at(reference);
    Player player(run, "output=mask reference=" + std::string(reference));
    player.begin_motion();
    set(player.element(), "threshold=20 cell-size=8 min-area=2 mask-regions=0,0,16,16");
    player.play(square(player.video(), {40, 16, 32, 32}));
    EXPECT_EQ(player.events(), "motion");
    EXPECT(player.changed_ratio() > 0);
  }
}

/// A queue that drops frames marks the next one as a discontinuity, and so does a source that lost packets. The scene
/// does not change.
TEST(goes_on_where_frames_are_missing, Each::run) {
  for (const char* reference : references)
    for (const char* output : {"mask", "overlay", "passthrough"})
      for (guint missing : {0u, 3u, 59u * 25}) {
        at(reference + std::string(" ") + output + " " + std::to_string(missing));
        Player player(run, "gap=100 output=" + std::string(output) + " reference=" + reference);
        player.begin_motion();
        player.now += missing * frame_time;
        Buffer next = square(player.video(), {0, 0, 50, 50});
        GST_BUFFER_FLAG_SET(next.get(), GST_BUFFER_FLAG_DISCONT);
        player.play(std::move(next));
        const Said said = player.last();
        EXPECT_EQ(said.event(), "motion");
        EXPECT(said.number("changed-ratio") > 0);
        EXPECT(player.motion());
      }
}

TEST(restarts_when_the_stream_was_away, Each::run) {
  for (const auto& [settings, away, expected] : {std::tuple{"", 59 * GST_SECOND, "motion"},
                                                 {"", 61 * GST_SECOND, "end none"},
                                                 {"message-interval=1000000000000", 61 * GST_SECOND, "end none"},
                                                 {"forget-after=2", 3 * GST_SECOND, "end none"},
                                                 {"forget-after=2", 1 * GST_SECOND, "motion"},
                                                 {"forget-after=0", 100000 * GST_SECOND, "motion"}})
    for (const char* output : {"mask", "overlay", "passthrough"}) {
      at(std::string(settings) + " " + output + " " + std::to_string(away / GST_SECOND));
      Player player(run, "gap=1000000 reference=first output=" + std::string(output) + " " + settings);
      for (int x : {0, 40}) player.play(square(player.video(), {x, 0, 24, 24}));
      const Said begin = player.last();
      EXPECT_EQ(begin.event(), "begin");
      player.now += away;
      player.play(square(player.video(), {80, 0, 24, 24}));
      const std::vector<Said> said = player.said();
      EXPECT_EQ(events_of(said), expected);
      if (said[0].event() != "end") continue;
      EXPECT_EQ(said[0].time("timestamp"),
                begin.time("timestamp"));  // `end` has the times and results of the last frame
      EXPECT_EQ(said[0].number("changed-ratio"), begin.number("changed-ratio"));
      EXPECT_EQ(said[0].regions(), begin.regions());
      EXPECT_EQ(said[1].number("changed-ratio"), 0.0);
    }
}

/// In a time-lapse, frames are missing only if the distance exceeds its own interval.
TEST(compares_the_pictures_of_a_time_lapse, Each::run) {
  for (const char* rate : {"0/1", "1/120", "1/3600", "25/1"})  // framerates in the caps, which may be wrong
    for (const GstClockTime interval : {120 * GST_SECOND, 3600 * GST_SECOND})
      for (const char* output : {"mask", "overlay", "passthrough"}) {
        at(std::string(rate) + " " + output + " " + std::to_string(interval / GST_SECOND));
        Player player(run, "gap=1000000 reference=first output=" + std::string(output));
        player.caps_alone(caps_text("GRAY8", size, ",framerate=" + std::string(rate)));
        GstClockTime now = 0;
        const auto after = [&](GstClockTime step, Buffer frame) {
          now += step;
          player.play(std::move(frame), now);
          return player.events();
        };
        for (int i = 0; i < 6; ++i)  // pictures are slightly early or late
          EXPECT_EQ(after(interval + (i % 3) * 10 * GST_SECOND, square(player.video())), "none");
        EXPECT_EQ(after(interval, square(player.video(), {0, 0, 24, 24})), "begin");
        EXPECT_EQ(after(2 * interval, square(player.video(), {40, 0, 24, 24})), "motion");  // one frame is missing
        EXPECT_EQ(after(5 * GST_SECOND, square(player.video(), {40, 0, 24, 24})), "motion");
        EXPECT_EQ(after(interval, square(player.video(), {40, 0, 24, 24})), "motion");
        EXPECT_EQ(after(4 * interval, square(player.video(), {40, 0, 24, 24})), "end none");
      }
}

TEST(compares_the_second_picture_of_a_time_lapse, Each::run) {
  for (const auto& [rate, expected] :
       {std::pair{"0/1", "none begin"}, {"1/120", "none begin"}, {"25/1", "none none"}}) {
    at(rate);
    Player player(run, "reference=previous");
    player.caps_alone(caps_text("GRAY8", size, ",framerate=" + std::string(rate)));
    player.play(square(player.video()), 0);
    player.play(square(player.video(), {0, 0, 24, 24}), 120 * GST_SECOND);
    EXPECT_EQ(player.events(), expected);
  }
}

TEST(restarts_at_interruptions, Each::run) {
  for (const char* reference : references)
    for (const char* why : {"flush", "away", "caps", "stop"}) {
      at(reference + std::string(" ") + why);
      Player player(run, "output=mask reference=" + std::string(reference));
      player.begin_motion();

      Size other = size;
      Buffer next = square(player.video(), {0, 0, 50, 50});
      if (why == std::string("flush")) {
        flush(player);
      } else if (why == std::string("away")) {
        player.now += 61 * GST_SECOND;
      } else if (why == std::string("caps")) {
        other = {64, 64};
        player.caps_alone(caps_text("GRAY8", other));
        next = square(player.video(), {0, 0, 50, 50});
      } else {
        gst_element_set_state(player.element(), GST_STATE_READY);
        EXPECT_EQ(player.events(), "end");
        EXPECT(!player.motion());
        continue;
      }
      EXPECT_SAME(player.show(std::move(next)), all_of(video_info("GRAY8", other), {0}));
      EXPECT(!player.motion());
      const std::vector<Said> said = player.said();
      EXPECT_EQ(said.size(), 2u);
      EXPECT_EQ(said[0].event(), "end");
      EXPECT_EQ(said[0].time("timestamp"), 5 * frame_time);
      EXPECT_EQ(said[1].event(), "none");
      EXPECT_EQ(said[1].number("changed-ratio"), 0.0);
    }
}

// Motion --------------------------------------------------------------------------------------------------------------

TEST(posts_the_times_of_frames, Each::run) {
  Player player(run);
  const GstClockTime start = 3 * GST_SECOND;
  gst_harness_push_event(player.harness(), new_segment([](GstSegment& segment) {
                           segment.start = 2 * GST_SECOND, segment.time = 10 * GST_SECOND;
                           segment.base = 100 * GST_SECOND;
                         }));
  player.play(square(player.video()), start);
  player.play(square(player.video(), {37, 11, 30, 47}));
  const Said said = player.last();
  EXPECT_EQ(said.event(), "begin");
  EXPECT_EQ(said.time("timestamp"), start + frame_time);
  EXPECT_EQ(said.time("stream-time"), start + frame_time + 8 * GST_SECOND);
  EXPECT_EQ(said.time("running-time"), start + frame_time + 98 * GST_SECOND);
  EXPECT_EQ(said.time("duration"), frame_time);
}

TEST(keeps_the_largest_regions, Each::run) {
  // With cells of 16 pixels, there are four regions of one cell, two of them half full, and one region of two cells.
  const std::vector<cv::Rect> rects{{0, 0, 16, 8}, {32, 0, 16, 16}, {64, 0, 16, 8}, {0, 32, 32, 16}, {64, 32, 16, 16}};
  const Found half{rects[0], 1, 0.5}, full{rects[1], 1, 1}, other_half{rects[2], 1, 0.5}, two{rects[3], 2, 1},
      other_full{rects[4], 1, 1};
  const std::vector<std::vector<Found>> kept{{two},
                                             {two, full},
                                             // Of equal regions the first is kept. The order does not change.
                                             {two, full, other_full},
                                             {two, half, full, other_full},
                                             {two, half, full, other_half, other_full}};
  for (const char* output : {"overlay", "passthrough"})
    for (std::size_t most = 1; most <= kept.size(); ++most) {
      at(output + std::string(" max-regions=") + std::to_string(most));
      Player player(run, "open-radius=0 output=" + std::string(output) + " max-regions=" + std::to_string(most));
      player.play(square(player.video()));
      const Buffer out = player.play(squares(player.video(), rects));
      const Said said = player.last();
      EXPECT_EQ(said.regions(), kept[most - 1]);
      EXPECT_EQ(said.count("regions-left-out"), rects.size() - most);
      EXPECT_EQ(rois(out.get()), said.regions());
      // The boxes belong to the same regions.
      if (output == std::string("overlay"))
        EXPECT_EQ(sample(picture(out.get(), player.video())[0], 64, 7) == 255, most == kept.size());
    }
}

TEST(warns_of_masked_regions_outside_the_frame, Each::run) {
  for (const auto& [mask, off] : {std::pair{"0,0,8,8;96,0,10,10", "96,0,10,10"},
                                  {"-10,0,10,64", "-10,0,10,64"},
                                  {"0,-2147483648,96,2147483647", "0,-2147483648,96,2147483647"},
                                  {"2147483647,0,2147483647,1", "2147483647,0,2147483647,1"},
                                  {"-9,-9,10,10;95,63,2147483647,2147483647", ""}}) {
    at(mask);
    Player player(run, "mask-regions=" + std::string(mask));
    player.play(square(player.video()));
    const Message warning = player.warning();
    if (!*off) {
      EXPECT_EQ(warning.text, "");
      continue;
    }
    EXPECT_EQ(warning.domain, GST_STREAM_ERROR);
    EXPECT_CONTAINS(warning.text, std::string("mask-regions has ") + off);
    EXPECT_CONTAINS(warning.text, "96×64");
    player.play(square(player.video()));
    EXPECT_EQ(player.warning().text, "");
  }
}

guint number(gpointer object, const char* property) { return get<guint>(object, property); }

/// The frame becomes smaller than places given in pixels. They have no effect until they fit again, and a warning names
/// them. Other settings can change meanwhile. A place that never fitted is refused.
TEST(survives_a_change_of_size_with_places_in_pixels, Each::run) {
  const std::string large = caps_text("NV12", {320, 240}), little = caps_text("NV12", {160, 120});
  const std::string end =
      ", outside the frame of 160×120: it has no effect until it fits; coordinates as shares of the frame, such as "
      "0.5, fit every size";
  for (const auto& [settings, text] : std::vector<std::pair<const char*, std::string>>{
           {"zones=\"door: 200,0 320,0 320,240; all: 0.0,0.0 1.0,0.0 1.0,1.0\"",
            "zones has door (200,0 320,0 320,240)" + end},
           {"lines=\"gate: 10,200 300,200; near: 1,1 100,100\"", "lines has gate (10,200 300,200)" + end},
           {"zones=\"door: 200,0 320,0 320,240\" lines=\"gate: 10,200 300,200\"",
            "zones has door (200,0 320,0 320,240), lines has gate (10,200 300,200)" + end},
           {"mask-regions=\"0,0 320,0 320,240; 8,8,16,16\"", "mask-regions has 0,0 320,0 320,240" + end},
           {"mask-regions=200,150,50,50", "mask-regions has 200,150,50,50" + end},
           {"zones=\"door: 1,1 160,1 160,120\" mask-regions=100,100,100,100", ""}}) {
    at(settings);
    Rig rig(run, std::string("reference=previous ") + settings, large);
    rig.push(noise(rig.video()));
    EXPECT_EQ(rig.warning().text, "");
    rig.caps(little);
    rig.push(noise(rig.video()));
    EXPECT_EQ(rig.warning().text, text);
    EXPECT_EQ(rig.warning().text, "");

    set(rig.element(), "min-motion-frames=3");
    rig.push(noise(rig.video()));
    EXPECT_EQ(rig.warning().text, "");
    EXPECT_EQ(number(rig.element(), "min-motion-frames"), 3u);
    set(rig.element(), "lines=\"new: 0,0 161,0\"");
    rig.push(noise(rig.video()));
    EXPECT_CONTAINS(rig.warning().text, "lines has new (0,0 161,0), which leaves the frame of 160×120 at 161,0");

    rig.caps(large);
    rig.push(noise(rig.video()));
    EXPECT_EQ(rig.warning().text, "");
    EXPECT_EQ(rig.error().text, "");
  }
}

TEST(presets_leave_what_is_set_by_hand, Each::run) {
  for (const char* settings :
       {"threshold=20 preset=outdoor", "preset=outdoor threshold=20", "preset=low-light threshold=20 preset=outdoor"}) {
    at(settings);
    Rig rig(run, settings);  // the profile sets reference=first explicitly
    gpointer element = rig.element();
    EXPECT_EQ(get_enum(element, "preset"), "outdoor");
    EXPECT_EQ(get_enum(element, "reference"), "first");
    EXPECT_EQ(number(element, "threshold"), 20u);
    EXPECT_EQ(get_enum(element, "shadows"), "drop");
    EXPECT_EQ(number(element, "min-area"), 3u);
    EXPECT_EQ(number(element, "min-motion-frames"), 2u);
    EXPECT_EQ(number(element, "cell-size"), 0u);
    set(element, "preset=low-light");
    EXPECT_EQ(number(element, "threshold"), 20u);
    EXPECT_EQ(number(element, "min-motion-frames"), 1u);
    set(element, "preset=custom");
    EXPECT_EQ(get_enum(element, "shadows"), "keep");
    EXPECT_EQ(number(element, "threshold"), 20u);
    EXPECT_EQ(number(element, "min-area"), 1u);
    EXPECT_EQ(number(element, "cell-size"), 16u);
  }
  Rig rig(run, "min-area=1 preset=indoor");  // the default value, but set explicitly
  EXPECT_EQ(number(rig.element(), "min-area"), 1u);
}

TEST(presets_notify_what_they_change, Each::run) {
  Rig rig(run, "threshold=20");
  static std::vector<std::string> notified;
  notified.clear();
  g_signal_connect(rig.element(), "notify",
                   G_CALLBACK(+[](GObject*, GParamSpec* spec, gpointer) { notified.push_back(spec->name); }), nullptr);
  set(rig.element(), "preset=indoor");
  const auto count = [](const char* name) { return std::count(notified.begin(), notified.end(), name); };
  EXPECT_EQ(count("preset"), 1);
  EXPECT_EQ(count("min-area"), 1);
  EXPECT_EQ(count("threshold"), 0);  // set explicitly
  EXPECT_EQ(count("gain"), 0);       // unchanged
}

TEST(a_refused_setting_is_not_set_by_hand, Each::run) {
  Player player(run);
  player.play(square(player.video()));
  set(player.element(), "cell-threshold=0.9 analysis-scale=9");
  player.play(square(player.video()));
  EXPECT_CONTAINS(player.warning().text, "analysis-scale is 9: it must be 0 to 8");
  set(player.element(), "preset=outdoor");
  player.play(square(player.video()));
  EXPECT_EQ(number(player.element(), "analysis-scale"), 0u);
  EXPECT_EQ(get<double>(player.element(), "cell-threshold"), 0.5);
}

TEST(follows_the_size_of_the_frame, Each::run) {
  struct Case {
    Size size;
    const char* scale;
    const char* cell;
  };
  for (const Case& c : {Case{{96, 64}, "1", "4"}, Case{{384, 96}, "2", "8"}, Case{{640, 96}, "2", "14"},
                        Case{{1280, 96}, "4", "28"}, Case{{1920, 96}, "4", "40"}, Case{{3840, 64}, "8", "80"}}) {
    at(std::to_string(c.size.width));
    std::vector<Found> regions[2];
    for (bool automatic : {false, true}) {
      const std::string scale = automatic ? "0" : c.scale, cell = automatic ? "0" : c.cell;
      Rig rig(run, defaults + "output=mask open-radius=0 threshold=0 cell-threshold=0 analysis-scale=" + scale +
                       " cell-size=" + cell);
      rig.caps_alone(caps_text("GRAY8", c.size));
      rig.push(square(rig.video()));
      rig.push(square(rig.video(), {37, 21, 13, 9}));
      regions[automatic] = said_by(rig).back().regions();
    }
    EXPECT(!regions[0].empty());
    EXPECT_EQ(regions[1], regions[0]);
  }
}

TEST(presets_find_motion_of_any_size, Each::run) {
  Rig any(run);
  GParamSpec* const spec = g_object_class_find_property(G_OBJECT_GET_CLASS(any.element()), "preset");
  const GEnumClass* const presets = G_PARAM_SPEC_ENUM(spec)->enum_class;
  EXPECT_EQ(std::string(presets->values[0].value_nick), "custom");  // has the defaults of all properties
  EXPECT(presets->n_values > 1);
  for (guint i = 1; i < presets->n_values; ++i)
    for (int width : {96, 640}) {
      const std::string preset = presets->values[i].value_nick;
      at(preset + " " + std::to_string(width));
      Rig rig(run, defaults + "reference=background gap=0 preset=" + preset);
      rig.caps_alone(caps_text("GRAY8", {width, width * 2 / 3}));
      for (int frame = 0; frame < 64; ++frame)  // the model learns for 50 frames
        rig.push(square(rig.video(), frame < 60 ? cv::Rect{} : cv::Rect(width / 4, width / 4, width / 6, width / 6)));
      EXPECT(get<gboolean>(rig.element(), "motion"));
    }
}

TEST(posts_the_begin_and_end_of_motion, Each::run) {
  struct Case {
    const char *settings, *clip, *events;  ///< clip: 'm' is a frame with motion, '.' one without, and '/' EOS
    guint began = 0, last = 0;             ///< frame numbers in the message `end`
  };
  for (const Case& c :
       {Case{"gap=0.1", "..m......", "none none begin motion motion end none none none", 2, 2},
        Case{"gap=0.1", "..m.m....", "none none begin motion motion motion motion end none", 2, 4},
        Case{"gap=0.08 min-motion-frames=3", ".m...mmmm..",
             "none none none none none none none begin motion motion end", 5, 8},
        Case{"", "..mmm../", "none none begin motion motion motion motion end", 2, 4},
        Case{"gap=0", ".mm..", "none begin motion end none"},
        Case{"gap=0.08", ".mm...m", "none begin motion motion end none begin"},
        Case{"gap=0.08 min-motion-frames=3", ".mm.mmmm..", "none none none none none none begin motion motion end"},
        Case{"", ".m....", "none begin motion motion motion motion"},
        Case{"motion-threshold=0.2", ".m.", "none none none"},
        Case{"motion-threshold=0 gap=0", "..m..", "none none begin end none"}})
    for (bool timed : {true, false}) {
      at(c.settings + std::string(" ") + c.clip + (timed ? "" : " without times"));
      Player player(run, c.settings);
      int place = 0;
      for (const char* frame = c.clip; *frame; ++frame) {
        if (*frame == 'm') place = 40 - place;
        if (*frame == '/')
          gst_harness_push_event(player.harness(), gst_event_new_eos());
        else
          player.play(square(player.video(), {place, 8, 24, 24}), timed ? player.now : GST_CLOCK_TIME_NONE);
        if (!timed) player.now = 0;
      }
      const std::vector<Said> said = player.said();
      EXPECT_EQ(events_of(said), c.events);
      if (c.last == 0 || !timed) continue;
      const Said& end = *std::find_if(said.begin(), said.end(), [](const Said& one) { return one.event() == "end"; });
      EXPECT_EQ(end.time("began"), c.began * frame_time);
      EXPECT_EQ(end.time("last-motion"), c.last * frame_time);
    }
}

/// A wall without a repeating pattern, seen by a camera that moved by (x, y). With `other`, it is a different wall.
Buffer wall(const GstVideoInfo& video, int x, int y, bool other = false, bool infrared = false) {
  const auto corner = [&](int u, int v) {
    const unsigned hash = (unsigned(u + 50) * 374761393u + unsigned(v + 50) * 668265263u + 99u * other) * 1274126177u;
    return int((hash ^ hash >> 15) & 127);
  };
  const int side = other ? 4 : 7;
  Buffer frame = square(video);
  paint(video, frame, {0, 0, size.width, size.height}, [&](int column, int row) {
    const int at_x = column - x + 700, at_y = row - y + 700, u = at_x / side, v = at_y / side, a = at_x % side,
              b = at_y % side;
    int value = (side - b) * ((side - a) * corner(u, v) + a * corner(u + 1, v)) +
                b * ((side - a) * corner(u, v + 1) + a * corner(u + 1, v + 1));
    value = 40 + value / (side * side);
    return infrared ? 16 + value * value / 160 : value;
  });
  return frame;
}

TEST(tells_a_camera_that_moves_from_motion, Each::run) {
  Player player(run, "reference=background threshold=0 light-change-ratio=0.6 message-interval=1000000000000");
  const auto play = [&](int frames, int x, int y, bool other = false, bool infrared = false) {
    for (int i = 0; i < frames; ++i) player.play(wall(player.video(), x, y, other, infrared));
  };
  play(8, 0, 0);
  EXPECT_EQ(player.events(), "none");
  play(1, 4, 2);
  EXPECT_EQ(player.events(), "moves");
  play(2, 6, 2);
  play(5, 6, 2);
  std::vector<Said> said = player.said();
  EXPECT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].event(), "moved");
  EXPECT_EQ(said[0].time("began"), 8 * frame_time);
  EXPECT_EQ(said[0].time("timestamp"), 15 * frame_time);
  EXPECT_EQ(said[0].integer("x"), 6);
  EXPECT_EQ(said[0].integer("y"), 2);
  play(4, 6, 2);
  play(5, 6, 2, false, true);
  EXPECT_EQ(player.events(), "light");
  play(4, 6, 2);  // so soon, this still counts as the same change
  EXPECT_EQ(player.events(), "");
  play(4, 6, 2, true);
  EXPECT_EQ(player.events(), "scene");
  play(1, 3, 2, true);
  EXPECT_EQ(player.events(), "moves");
  EXPECT(!player.motion());
  gst_harness_push_event(player.harness(), gst_event_new_eos());
  said = player.said();
  EXPECT(!said.empty());
  EXPECT_EQ(said[0].event(), "moved");
  EXPECT_EQ(said[0].integer("x"), -3);
}

TEST(reports_a_switch_of_the_light, Each::run) {
  for (const char* reference : references)
    for (const char* output : {"mask", "overlay", "passthrough"}) {
      at(reference + std::string(" output=") + output);
      Player player(run, "gap=0.1 light-change-ratio=0.6 message-interval=1000000000000 output=" + std::string(output) +
                             " reference=" + reference);
      const auto bright = [&](const cv::Rect& rect) { return square(player.video(), rect, 20, 150); };
      const bool mask = output == std::string("mask");
      for (int i = 0; i < 3; ++i) player.play(square(player.video()));
      player.play(square(player.video(), {0, 0, 24, 24}));
      EXPECT_EQ(player.events(), "none begin");
      const Buffer out = player.play(bright({}));
      const std::vector<Said> said = player.said();
      EXPECT_EQ(said.size(), 1u);
      EXPECT_EQ(said[0].event(), "light");
      EXPECT_EQ(said[0].time("timestamp"), 4 * frame_time);
      EXPECT_EQ(said[0].number("changed-ratio"), 0.0);
      EXPECT(said[0].number("mean-difference") > 50);
      EXPECT_EQ(said[0].regions().size(), 0u);
      EXPECT(rois(out.get()).empty());
      EXPECT(player.motion());  // of earlier frames
      EXPECT_EQ(player.changed_ratio(), 0.0);
      EXPECT_SAME(picture(out.get(), player.video()), all_of(player.video(), {mask ? 0 : 150}));
      for (int i = 0; i < 3; ++i) player.play(bright({}));
      EXPECT_EQ(player.events(), "end");
      const Buffer moved = player.play(bright({32, 16, 32, 32}));
      EXPECT_EQ(player.events(), "begin");
      EXPECT_EQ(rois(moved.get()), (std::vector<Found>{{{32, 16, 32, 32}, 4, 1}}));
    }
}

TEST(light_may_change_many_pixels_if_allowed, Each::run) {
  // 3840 of 6144 pixels change: 62.5 %.
  for (const auto& [settings, light] : {std::pair{"light-change-ratio=0.6", true},
                                        {"light-change-ratio=0.63", false},
                                        {"light-change-ratio=0", false},
                                        {"light-change-ratio=1", false}}) {
    at(settings);
    Player player(run, settings);
    player.play(square(player.video()));
    player.play(square(player.video(), {0, 0, 60, 64}));
    EXPECT_EQ(player.events(), light ? "none light none" : "none begin");
    EXPECT_EQ(player.changed_ratio(), light ? 0.0 : 0.625);
  }
}

TEST(counts_frames_without_times_by_the_framerate, Each::run) {
  // Ten frames per second; 25 without a framerate in the caps.
  for (const auto& [rate, settings] : {std::pair{"10/1", "gap=0.2"}, {"0/1", "gap=0.08"}}) {
    at(rate);
    Player player(run, settings);
    player.caps_alone("video/x-raw,format=GRAY8,width=96,height=64,framerate=" + std::string(rate));
    for (int x : {0, 40, 40, 40, 40}) player.play(square(player.video(), {x, 0, 24, 24}), GST_CLOCK_TIME_NONE);
    EXPECT_EQ(player.events(), "none begin motion end none");
  }
}

/// Motion ends as if the missing frames had been there without motion. A GAP event says that no frame comes: `end` is
/// then posted when it is due, not with the next frame.
TEST(ends_motion_where_frames_are_missing, Each::run) {
  for (const auto& [x, away, now, then] : {std::tuple{40, 4 * GST_SECOND, "none begin motion", "motion"},
                                           {40, 6 * GST_SECOND, "none begin motion end", "begin"},
                                           // the last frame moved
                                           {0, 6 * GST_SECOND, "none begin motion", "motion"}})
    for (const char* settings : {"passthrough", "overlay", "passthrough message-interval=1000000000000"})
      for (bool gap : {false, true}) {
        at(std::to_string(x) + " " + std::to_string(away / GST_SECOND) + " " + settings + (gap ? " with gaps" : ""));
        Player player(run, std::string("output=") + settings);  // gap is 5 s by default
        for (int at : {0, 40, x}) player.play(square(player.video(), {at, 0, 24, 24}));
        const GstClockTime began = player.now;
        for (GstClockTime time = began; gap && time < began + away; time += GST_SECOND)
          gst_harness_push_event(player.harness(), gst_event_new_gap(began, time + GST_SECOND - began));
        if (gap)  // this gap ended long ago
          gst_harness_push_event(player.harness(), gst_event_new_gap(0, GST_CLOCK_TIME_NONE));
        std::vector<Said> said = player.said();
        const bool each = !strstr(settings, "interval"), ends = strstr(now, "end");
        if (gap) EXPECT_EQ(events_of(said), each ? now : ends ? "none begin end" : "none begin");
        player.now += away;
        player.play(square(player.video(), {70, 0, 24, 24}));
        EXPECT(player.motion());
        if (!each) continue;
        for (const Said& one : player.said()) said.push_back(one);
        EXPECT_EQ(events_of(said), now + std::string(" ") + then);
        if (!ends) continue;
        EXPECT_EQ(said[3].time("last-motion"), frame_time);
        EXPECT_EQ(said[3].time("timestamp"), said[2].time("timestamp"));  // of the last frame before the gap
        EXPECT_EQ(said[3].regions().size(), 0u);
        EXPECT(said[4].regions().size() > 0);
      }
}

TEST(follows_message_interval, Each::run) {
  const auto events = [&](const std::string& settings) {
    Player player(run, "gap=0.2 " + settings);
    for (int i = 0; i < 25; ++i) player.play(square(player.video(), {i >= 7 && i < 12 ? 4 * i : 0, 0, 24, 24}));
    return player.events();
  };
  // Frames 7 to 12 move, and motion ends with frame 17. With 100 ms, frames 0, 2, 4, 7, 9, 12 and so on are the last
  // ones of an interval.
  EXPECT_EQ(events("message-interval=100000000"), "none none none begin motion motion motion end none none none");
  EXPECT_EQ(events("message-interval=1000000000000"), "none begin end");
  EXPECT_EQ(events("post-messages=false"), "");
}

TEST(each_message_sums_up_frames_of_one_interval, Each::run) {
  // Frames have the times of 30 frames per second, as containers round them to milliseconds.
  for (GstClockTime first : {GstClockTime(0), GstClockTime(40 * GST_MSECOND)}) {
    at(std::to_string(first));
    Player player(run, "message-interval=200000000");
    const auto time = [&](guint64 i) { return first + i * 1000 / 30 * GST_MSECOND; };
    for (guint64 i = 0; i < 60; ++i)
      player.push(timed(square(player.video(), {0, 0, i % 2 ? 24 : 12, 24}), time(i), 33 * GST_MSECOND));
    gst_harness_push_event(player.harness(), gst_event_new_eos());
    guint64 told = 0;
    for (const Said& one : player.said()) {
      const GstClockTime begins = time(told);
      told += one.time("frames");
      if (one.time("frames") == 0) continue;  // `end` after the last frame
      EXPECT_EQ(one.time("timestamp"), time(told - 1));
      EXPECT_EQ(begins / (200 * GST_MSECOND), one.time("timestamp") / (200 * GST_MSECOND));
    }
    EXPECT_EQ(told, 60u);
  }
}

TEST(messages_sum_up_all_frames, Each::run) {
  for (const char* how : {"eos", "flush", "caps", "away", "missing", "stop", "each"})
    for (const char* settings : {"message-interval=130000000", "message-interval=1000000000000 output=overlay",
                                 "message-interval=1000000000 gap=0.1 min-motion-frames=2"}) {
      at(std::string(how) + " " + settings);
      const auto messages = [&](const std::string& all) {
        Player player(run, all);
        for (int i = 0; i < 21; ++i) {
          if (i == 15 && how == std::string("each")) set(player.element(), "message-interval=0");
          if (i == 15 && how == std::string("away")) player.now += 61 * GST_SECOND;
          if (i == 15 && how == std::string("missing")) player.now += 6 * GST_SECOND;
          // Motion ends and begins with frame 15.
          const bool moved = i == 20 || (i >= 15 && how == std::string("missing"));
          player.play(square(player.video(), {i >= 4 && i < 9 ? 4 * i : 0, 0, moved ? 40 : 24, 24}));
          if (i == 15 && how == std::string("caps")) player.caps_alone(caps_text("GRAY8", {64, 48}));
          if (i == 15 && how == std::string("caps")) player.caps_alone(caps_text("GRAY8", size));
          if (i == 15 && how == std::string("flush")) flush(player);
        }
        if (how == std::string("stop"))
          gst_element_set_state(player.element(), GST_STATE_READY);
        else
          gst_harness_push_event(player.harness(), gst_event_new_eos());
        return player.said();
      };
      guint64 frames = 0, motion_frames = 0, told = 0, told_motion = 0;
      double changed = 0, told_changed = 0, most = 0, told_most = 0;
      const std::string alone = settings;
      const std::size_t place = alone.find(' ');
      std::map<GstClockTime, Said> last;  // the last message of each frame; `end` may precede it or repeat it
      for (const Said& one : messages(place == std::string::npos ? "" : alone.substr(place))) {
        EXPECT(!one.sums_up());
        const auto [known, added] = last.emplace(one.time("timestamp"), one);
        if (!added && known->second.event() == "end") known->second = one;
      }
      for (const auto& [time, one] : last) {
        ++frames;
        motion_frames += one.event() == "begin" || one.event() == "motion";
        changed += one.number("changed-ratio");
        most = std::max(most, one.number("changed-ratio"));
      }
      const std::vector<Said> summed = messages(settings);
      for (const Said& one : summed) {
        const bool each = how == std::string("each") && one.time("timestamp") >= 15 * frame_time;
        EXPECT(one.sums_up() || each);
        if (!one.sums_up() && one.event() == "end" && one.time("timestamp") == 20 * frame_time) continue;
        told += one.sums_up() ? one.time("frames") : 1;
        told_motion += one.sums_up() ? one.time("motion-frames") : one.event() == "begin" || one.event() == "motion";
        told_changed +=
            one.sums_up() ? double(one.time("frames")) * one.number("changed-mean") : one.number("changed-ratio");
        told_most = std::max(told_most, one.number(one.sums_up() ? "changed-max" : "changed-ratio"));
      }
      EXPECT_EQ(frames, 21u);
      EXPECT(motion_frames > 0);
      EXPECT_EQ(told, frames);
      EXPECT_EQ(told_motion, motion_frames);
      EXPECT(std::abs(told_changed - changed) < 1e-9);
      EXPECT_EQ(told_most, most);
      EXPECT(summed.size() < frames);
    }
}

TEST(without_messages_nothing_is_summed_up, Each::run) {
  Player player(run, "message-interval=1000000000000 post-messages=false");
  for (int i = 0; i < 4; ++i) player.play(square(player.video()));
  set(player.element(), "post-messages=true");
  for (int i = 0; i < 2; ++i) player.play(square(player.video()));
  gst_harness_push_event(player.harness(), gst_event_new_eos());
  guint64 frames = 0;
  for (const Said& one : player.said()) frames += one.time("frames");
  EXPECT_EQ(frames, 2u);
}

TEST(ends_motion_with_the_last_frame, Each::run) {
  Player player(run);
  for (int x : {0, 40}) player.play(square(player.video(), {x, 0, 24, 24}));
  player.caps_alone(caps_text("GRAY8", size, ",note=same-video"));  // makes a new plan; motion continues
  const Said begin = player.last();
  gst_harness_push_event(player.harness(), gst_event_new_eos());
  const Said end = player.last();
  EXPECT_EQ(begin.event() + " " + end.event(), "begin end");
  EXPECT_EQ(end.time("timestamp"), frame_time);
  EXPECT_EQ(end.time("running-time"), frame_time);
  EXPECT_EQ(end.time("duration"), frame_time);
  EXPECT_EQ(end.number("changed-ratio"), begin.number("changed-ratio"));
  EXPECT_EQ(end.number("mean-difference"), begin.number("mean-difference"));
  EXPECT_EQ(end.regions(), begin.regions());
}

TEST(notifies_of_its_motion_property, Each::run) {
  Player player(run, "gap=0.08 post-messages=false");
  int notified = 0;
  g_signal_connect(player.element(), "notify::motion", G_CALLBACK(+[](GObject*, GParamSpec*, int* count) { ++*count; }),
                   &notified);
  const auto next = [&](int x) {
    player.play(square(player.video(), {x, 0, 24, 24}));
    return std::pair(player.motion(), notified);
  };
  EXPECT(next(0) == std::pair(false, 0));
  EXPECT(next(40) == std::pair(true, 1));
  EXPECT_EQ(player.changed_ratio(), 2 * 24 * 24 / double(size.width * size.height));
  EXPECT(next(40) == std::pair(true, 1));
  EXPECT_EQ(player.changed_ratio(), 0.0);
  EXPECT(next(40) == std::pair(false, 2));
  EXPECT(next(0) == std::pair(true, 3));
  gst_harness_push_event(player.harness(), gst_event_new_eos());
  EXPECT(!player.motion());
  EXPECT_EQ(notified, 4);
}

/// Any field of the caps that describes the picture can differ between a golden picture and a camera.
TEST(warns_if_a_change_of_caps_discards_the_first_frame, Each::run) {
  const char* const text = "the caps changed: reference=first discards its first frame, and compares with the next one";
  for (const char* reference : references)
    for (const std::string& other : {caps_text("GRAY8", size, ",framerate=25/1"), caps_text("RGB", size),
                                     caps_text("GRAY8", {64, 48}, ",framerate=30/1")}) {
      at(std::string(reference) + " " + other);
      Player player(run, std::string("gap=1000000 output=passthrough reference=") + reference);
      player.caps_alone(other);
      player.caps_alone(caps_text("GRAY8", size, ",framerate=30/1"));
      EXPECT_EQ(player.warning().text, "");  // no frame is lost
      player.play(square(player.video()));
      for (const char* same : {",note=same-video", ",multiview-mode=mono", ""}) {
        player.caps_alone(caps_text("GRAY8", size, std::string(",framerate=30/1") + same));
        player.play(square(player.video()));
      }
      EXPECT_EQ(player.warning().text, "");
      player.caps_alone(other);
      player.play(square(player.video()));
      EXPECT_EQ(player.warning().text, std::string(reference) == "first" ? text : "");
      EXPECT_EQ(player.warning().text, "");
    }
}

TEST(places_regions_in_cropped_frames, Each::run) {
  for (const char* output : {"passthrough", "difference"}) {
    at(output);
    Rig rig(run, defaults + "open-radius=0 output=" + output);
    rig.caps_alone(caps_text("GRAY8", {64, 48}));
    const GstVideoInfo whole = video_info("GRAY8", size);
    Buffer out;
    for (const cv::Rect& rect : {cv::Rect(), cv::Rect(16 + 32, 8 + 16, 16, 16)}) {
      Buffer frame = square(whole, rect);
      add_crop(frame.get(), whole, {16, 8, 64, 48});
      out = rig.push(std::move(frame));
    }
    const bool passed = output == std::string("passthrough");
    EXPECT_EQ(gst_buffer_get_video_crop_meta(out.get()) != nullptr, passed);
    EXPECT_EQ(rois(out.get()),
              (std::vector<Found>{{passed ? cv::Rect(48, 24, 16, 16) : cv::Rect(32, 16, 16, 16), 1, 1}}));
  }
}

int main() { return run_tests("diff", "cudadiff"); }
