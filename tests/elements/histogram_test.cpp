// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares the messages, metas and pictures of cudahistogram with the results of its plans.
#include "kernels/histogram/histogram.hpp"

#include <optional>

#include "gst/meta/histogram_meta.h"
#include "tests/elements/plans.hpp"

using namespace cudavision;
using namespace cudavision::test;
using histogram::Statistics;

namespace {

const Size size{61, 43};

// Messages ------------------------------------------------------------------------------------------------------------

struct Channel {
  std::string name;
  std::vector<guint64> counts;
  Statistics statistics;
};
constexpr std::pair<const char*, double Statistics::*> figures[] = {{"min", &Statistics::min},
                                                                    {"max", &Statistics::max},
                                                                    {"mean", &Statistics::mean},
                                                                    {"deviation", &Statistics::deviation},
                                                                    {"median", &Statistics::median},
                                                                    {"p01", &Statistics::p01},
                                                                    {"p99", &Statistics::p99},
                                                                    {"entropy", &Statistics::entropy},
                                                                    {"saturated", &Statistics::saturated}};
using Channels = std::vector<Channel>;

struct Posted {
  guint64 timestamp, stream_time, running_time, duration, frames;
  guint bins, depth;
  Channels channels;
};

/// Pops the element's next message, if one arrives within `wait`.
std::optional<Posted> next(const Rig& rig, GstClockTime wait = 0) {
  const std::optional<Told> told = next_message(rig.element(), wait);
  if (!told) return {};
  EXPECT_EQ(told->name(), "cudahistogram");
  EXPECT_EQ(told->size(), 8);
  Channels channels;
  for (const Told& fields : told->list("channels")) {
    EXPECT_EQ(fields.size(), 12);
    Channel channel{fields.text("name"), fields.counts("counts"), {}};
    channel.statistics.count = fields.time("count");
    for (const auto& [name, member] : figures) channel.statistics.*member = fields.number(name);
    channels.push_back(channel);
  }
  return Posted{told->time("timestamp"), told->time("stream-time"), told->time("running-time"), told->time("duration"),
                told->time("frames"),    told->count("bins"),       told->count("depth"),       channels};
}

/// Pops the element's next message, which may follow its frame. The test fails if there is none.
Posted told(const Rig& rig) {
  const std::optional<Posted> posted = next(rig, 5 * GST_SECOND);
  EXPECT(posted);
  return *posted;
}

Channels of_meta(GstBuffer* buffer, guint bins, guint depth) {
  const GstCudaVisionHistogramMeta* meta = gst_buffer_get_cuda_vision_histogram_meta(buffer);
  EXPECT(meta);
  EXPECT_EQ(meta->bins, bins);
  EXPECT_EQ(meta->depth, depth);
  Channels channels;
  for (guint c = 0; c < meta->n_channels; ++c) {
    const GstCudaVisionHistogramChannel& m = meta->channels[c];
    channels.push_back({m.name,
                        {m.counts, m.counts + bins},
                        {m.count, m.min, m.max, m.mean, m.deviation, m.median, m.p01, m.p99, m.entropy, m.saturated}});
  }
  return channels;
}

// Expected ------------------------------------------------------------------------------------------------------------

using histogram::Params;
constexpr auto components = histogram::Channels::components, all = histogram::Channels::all;

/// The settings of the element for these parameters of its plan.
std::string text(const Params& params) {
  constexpr const char* channels[] = {"luma", "components", "all"};
  constexpr const char* matrices[] = {"bt601", "bt709", "bt2020", "smpte240m"};
  return "bins=" + std::to_string(params.bins) + " channels=" + channels[int(params.channels)] +
         " luma=" + matrices[int(params.luma)];
}

int depth_of(const GstVideoInfo& video) { return GST_VIDEO_INFO_COMP_DEPTH(&video, 0); }

/// What the plan counts in all these frames together.
Channels counted(const GstVideoInfo& video, const std::vector<Buffer>& frames, const Params& params,
                 const Region& region = {}) {
  const auto plan = made(histogram::make(params, geometry_of(video), Backend::cpu));
  histogram::Counts counts;
  for (const Buffer& frame : frames) {
    expect_ok(plan->submit(Mapped(frame, video).image(), region, {}));
    plan->add_result(counts);
  }
  Channels channels;
  for (const histogram::ChannelCounts& one : counts)
    channels.push_back(
        {one.name, {one.counts.begin(), one.counts.end()}, histogram::statistics(one.counts, depth_of(video))});
  return channels;
}
Channels expected(const GstVideoInfo& video, Buffer&& frame, const Params& params = {}, const Region& region = {}) {
  std::vector<Buffer> one;
  one.push_back(std::move(frame));
  return counted(video, one, params, region);
}
/// Counts the frames of noise with these seeds.
Channels expected(const GstVideoInfo& video, const std::vector<unsigned>& seeds, const Params& params = {}) {
  std::vector<Buffer> frames;
  for (unsigned seed : seeds) frames.push_back(noise(video, seed));
  return counted(video, frames, params);
}

void expect_same(const Channels& actual, const Channels& wanted) {
  EXPECT_EQ(actual.size(), wanted.size());
  for (std::size_t c = 0; c < actual.size(); ++c) {
    EXPECT_EQ(actual[c].name, wanted[c].name);
    EXPECT(actual[c].counts == wanted[c].counts);
    EXPECT_EQ(actual[c].statistics.count, wanted[c].statistics.count);
    for (const auto& [name, member] : figures) {
      const double a = actual[c].statistics.*member, w = wanted[c].statistics.*member;
      FAIL_UNLESS(a == w, "%s: %s of %s is %.17g and not %.17g", where().c_str(), name, wanted[c].name.c_str(), a, w);
    }
  }
}

// Frames --------------------------------------------------------------------------------------------------------------

/// Pushes frames of noise with these seeds, 40 ms each.
void push(Rig& rig, const std::vector<unsigned>& seeds) {
  for (unsigned seed : seeds) rig.push(timed(noise(rig.video(), seed), seed * 40 * GST_MSECOND));
}

Region inside(const std::vector<Rect>& rects) { return {Region::Mode::inside, rects}; }

}  // namespace

// Counts --------------------------------------------------------------------------------------------------------------

TEST(counts_like_its_plan, Each::run) {
  for (const std::string& format : formats(run))
    for (const Params& params : {Params{}, {2, components}, {1000, all}}) {
      at(format + " " + text(params));
      Rig rig(run, "equalize=false " + text(params), caps_text(format, size));
      Buffer frame = noise(rig.video());
      GstBuffer* const in = frame.get();
      const Buffer out = rig.push(std::move(frame));
      EXPECT(out.get() == in && !gst_buffer_get_cuda_vision_histogram_meta(in));
      EXPECT_SAME(picture(in, rig.video()), picture(noise(rig.video()).get(), rig.video()));
      const Posted posted = told(rig);
      EXPECT_EQ(posted.bins, params.bins);
      EXPECT_EQ(posted.depth, depth_of(rig.video()));
      EXPECT_EQ(posted.frames, 1);
      expect_same(posted.channels, expected(rig.video(), noise(rig.video()), params));
      EXPECT(!next(rig));
    }
}

TEST(computes_luma_with_the_matrix, Each::run) {
  struct Case {
    const char *more, *setting;
    LumaMatrix matrix;
  };
  const LumaMatrix bt601 = LumaMatrix::bt601, bt709 = LumaMatrix::bt709, bt2020 = LumaMatrix::bt2020,
                   smpte240m = LumaMatrix::smpte240m;
  for (const Case& c : {Case{"", "luma=auto", bt601},
                        {"", "luma=bt601", bt601},
                        {"", "luma=bt709", bt709},
                        {"", "luma=bt2020", bt2020},
                        {"", "luma=smpte240m", smpte240m},
                        {",colorimetry=sRGB", "luma=auto", bt601},
                        {",colorimetry=bt601", "luma=auto", bt601},
                        // as videoconvert describes converted bt709
                        {",colorimetry=bt709", "luma=auto", bt709},
                        {",colorimetry=1:1:5:1", "luma=auto", bt709},
                        {",colorimetry=bt2020", "luma=auto", bt2020},
                        {",colorimetry=smpte240m", "luma=auto", smpte240m},
                        {",colorimetry=bt709", "luma=bt601", bt601}}) {
    at(std::string(c.more) + " " + c.setting);
    Rig rig(run, std::string("equalize=false ") + c.setting, caps_text("xBGR", size, c.more));
    push(rig, {1});
    expect_same(told(rig).channels, expected(rig.video(), {1}, {256, {}, c.matrix}));
  }
}

// Messages ------------------------------------------------------------------------------------------------------------

TEST(posts_only_if_asked, Each::run) {
  Rig rig(run, "equalize=false post-messages=false", caps_text("NV12", size));
  push(rig, {0, 1});
  EXPECT(!next(rig));
  set(rig.element(), "post-messages=true");
  push(rig, {2});
  expect_same(told(rig).channels, expected(rig.video(), {2}));
  set(rig.element(), "post-messages=false interval=1000000000");
  push(rig, {3});
  set(rig.element(), "post-messages=true");
  push(rig, {4});
  set(rig.element(), "post-messages=false");  // drops the sums so far
  push(rig, {5});
  gst_harness_push_event(rig.harness(), gst_event_new_eos());
  EXPECT(!next(rig));
}

TEST(sums_up_intervals, Each::run) {
  Rig rig(run, "equalize=false channels=all bins=64 interval=100000000", caps_text("NV12", size));
  const Params params{64, all};
  // Intervals begin at 0, 100, 200 ms …; a frame arrives every 40 ms.
  const std::vector<unsigned> parts[] = {{0, 1, 2}, {3, 4}, {5, 6, 7}, {8, 9}};
  for (const std::vector<unsigned>& seeds : parts) {
    push(rig, seeds);  // posted with the last frame, before the next one
    at("from frame " + std::to_string(seeds[0]));
    const Posted posted = told(rig);
    EXPECT_EQ(posted.frames, seeds.size());
    EXPECT_EQ(posted.timestamp, guint64(seeds[0]) * 40 * GST_MSECOND);
    EXPECT_EQ(posted.running_time, posted.timestamp);
    EXPECT_EQ(posted.duration, seeds.size() * 40 * GST_MSECOND);
    expect_same(posted.channels, expected(rig.video(), seeds, params));
    EXPECT(!next(rig));
  }
  at("a gap, which leaves an interval out");
  push(rig, {10, 20});
  Posted posted = told(rig);
  EXPECT_EQ(posted.frames, 1);
  expect_same(posted.channels, expected(rig.video(), {10}, params));
  EXPECT(!next(rig));
  at("the rest, at EOS");
  gst_harness_push_event(rig.harness(), gst_event_new_eos());
  posted = told(rig);
  EXPECT_EQ(posted.timestamp, 800 * GST_MSECOND);
  expect_same(posted.channels, expected(rig.video(), {20}, params));
}

TEST(sums_up_intervals_at_any_rate, Each::run) {
  // Intervals of 100 ms of running time, and frames of 40 ms.
  for (const auto& [rate, frames] : {std::pair{2.0, 5}, {0.5, 1}, {-2.0, 5}}) {
    at("rate " + std::to_string(rate));
    Rig rig(run, "equalize=false interval=100000000", caps_text("GRAY8", size));
    gst_harness_push_event(rig.harness(), new_segment([rate = rate](GstSegment& segment) {
                             segment.rate = rate, segment.stop = 1000 * GST_MSECOND;
                           }));
    std::vector<guint64> sums;
    for (guint64 i = 0; i < 25; ++i) {
      rig.push(timed(noise(rig.video(), unsigned(i)), (rate > 0 ? i : 24 - i) * 40 * GST_MSECOND));
      while (const auto posted = next(rig)) {
        sums.push_back(posted->frames);
        EXPECT_EQ(posted->duration, posted->frames * 40 * GST_MSECOND);
      }
    }
    for (std::size_t i = 0; i + 1 < sums.size(); ++i)
      EXPECT(sums[i] == guint64(frames) || (rate == 0.5 && sums[i] == 2));
    EXPECT(sums.size() >= 4);
  }
}

TEST(sums_up_frames_without_durations_or_times, Each::run) {
  Rig rig(run, "equalize=false interval=100000000", caps_text("GRAY8", size));
  for (guint64 i = 0; i < 5; ++i)
    rig.push(timed(noise(rig.video(), unsigned(i)), i * 30 * GST_MSECOND, GST_CLOCK_TIME_NONE));
  Posted posted = told(rig);  // posted by the frame at 120 ms
  EXPECT_EQ(posted.frames, 4);
  EXPECT_EQ(posted.duration, 90 * GST_MSECOND);
  for (int i = 0; i < 10; ++i) rig.push(timed(noise(rig.video()), GST_CLOCK_TIME_NONE, GST_CLOCK_TIME_NONE));
  EXPECT(!next(rig));
  gst_harness_push_event(rig.harness(), gst_event_new_eos());
  EXPECT_EQ(told(rig).frames, 11);
}

TEST(ends_intervals_at_interruptions, Each::run) {
  Rig rig(run, "equalize=false interval=10000000000", caps_text("GRAY8", size));
  push(rig, {0, 1, 2});
  at("discont");
  Buffer frame = timed(noise(rig.video(), 9), GST_SECOND);
  GST_BUFFER_FLAG_SET(frame.get(), GST_BUFFER_FLAG_DISCONT);
  rig.push(std::move(frame));
  expect_same(told(rig).channels, expected(rig.video(), {0, 1, 2}));
  at("caps");
  const GstVideoInfo before = rig.video();
  rig.caps(caps_text("RGB", {20, 10}));
  push(rig, {30, 31});
  const Posted posted = told(rig);
  EXPECT_EQ(posted.timestamp, GST_SECOND);
  expect_same(posted.channels, expected(before, {9}));
  EXPECT(!next(rig));
  at("flush");
  flush(rig);
  EXPECT(!next(rig));
  push(rig, {3});
  EXPECT(!next(rig));
  gst_harness_push_event(rig.harness(), gst_event_new_eos());
  expect_same(told(rig).channels, expected(rig.video(), {3}));
  EXPECT(!next(rig));
  at("stop");
  Rig stopped(run, "equalize=false interval=10000000000", caps_text("GRAY8", size));
  push(stopped, {4, 5});
  gst_element_set_state(stopped.element(), GST_STATE_READY);
  expect_same(told(stopped).channels, expected(stopped.video(), {4, 5}));
  EXPECT(!next(stopped));
}

TEST(keeps_sums_when_properties_change, Each::run) {
  Rig rig(run, "equalize=false interval=10000000000", caps_text("RGB", size));
  std::vector<unsigned> seeds;  // of the frames that are counted together
  unsigned newest = 0;
  const auto more = [&] {
    seeds.push_back(newest++);
    push(rig, {seeds.back()});
  };
  more(), more();
  for (const char* change :
       {"add-meta=true", "overlay=true", "equalize=true", "overlay-log=true overlay-opacity=0.5", "luma=bt601",
        "interval=5000000000", "overlay=false equalize=false", "region=roi", "region=frame"}) {
    set(rig.element(), change);
    if (std::string(change) != "region=roi") more();
    EXPECT(!next(rig));
  }
  newest = 20;
  Params params;
  const auto expect_posted = [&] {
    const Posted posted = told(rig);
    EXPECT_EQ(posted.frames, seeds.size());
    expect_same(posted.channels, expected(rig.video(), seeds, params));
    EXPECT(!next(rig));
  };
  for (const Params& changed : {Params{64}, {64, all}, {64, all, LumaMatrix::bt2020}}) {
    at(text(changed));
    set(rig.element(), text(changed));
    EXPECT(!next(rig));
    push(rig, {newest});
    expect_posted();  // the counts with the earlier settings
    seeds = {newest++};
    params = changed;
  }
  set(rig.element(), "interval=0");
  more();
  expect_posted();

  at("ended by a change, and then the stream ends");
  set(rig.element(), "interval=10000000000");
  seeds.clear();
  more();
  set(rig.element(), "bins=2");
  gst_harness_push_event(rig.harness(), gst_event_new_eos());
  expect_posted();
}

TEST(keeps_counts_until_they_are_posted, Each::run) {
  Rig rig(run, "equalize=false interval=10000000000");
  // Caps with an additional field make a new plan without a frame.
  const auto change = [&](const std::string& bins) {
    set(rig.element(), "bins=" + bins);
    rig.caps(caps_text("GRAY8", size, ",more=for-" + bins));
    EXPECT(!next(rig));
  };
  rig.caps(caps_text("GRAY8", size));
  push(rig, {0, 1});
  for (const char* bins : {"2", "4", "8"}) change(bins);
  at("a frame");
  push(rig, {2});
  expect_same(told(rig).channels, expected(rig.video(), {0, 1}));
  EXPECT(!next(rig));
  at("flush");
  change("16");
  flush(rig);
  push(rig, {3});
  EXPECT(!next(rig));
  at("EOS");
  change("32");
  gst_harness_push_event(rig.harness(), gst_event_new_eos());
  expect_same(told(rig).channels, expected(rig.video(), {3}, {16}));
  EXPECT(!next(rig));
}

TEST(keeps_intervals_when_properties_change, Each::run) {
  Rig rig(run, "equalize=false interval=100000000", caps_text("GRAY8", size));
  push(rig, {0, 1});
  set(rig.element(), "overlay=true");
  push(rig, {2});
  EXPECT_EQ(told(rig).frames, 3);
  at("and a discont restarts them");
  push(rig, {3});
  Buffer frame = timed(noise(rig.video()), 160 * GST_MSECOND);
  GST_BUFFER_FLAG_SET(frame.get(), GST_BUFFER_FLAG_DISCONT);
  rig.push(std::move(frame));
  EXPECT_EQ(told(rig).frames, 1);
  push(rig, {5});
  EXPECT(!next(rig));
  push(rig, {6});
  EXPECT_EQ(told(rig).frames, 3);
}

// Passthrough ---------------------------------------------------------------------------------------------------------

TEST(adds_metas, Each::run) {
  for (const char* settings : {"", "equalize=true", "overlay=true", "post-messages=false", "interval=1000000000"}) {
    at(settings);
    Rig rig(run, std::string("equalize=false add-meta=true channels=all bins=200 ") + settings,
            caps_text("P010_10LE", size));
    for (unsigned seed : {1u, 2u}) {
      Buffer frame = noise(rig.video(), seed);
      GstMemory* memory = gst_buffer_peek_memory(frame.get(), 0);
      GstBuffer* in = frame.get();
      const bool shared = seed == 2;  // other owners of the frame must then not see the meta
      const Buffer other(shared ? gst_buffer_ref(in) : gst_buffer_new());
      const Buffer out = rig.push(std::move(frame));
      const Channels in_meta = of_meta(out.get(), 200, 10);
      expect_same(in_meta, expected(rig.video(), {seed}, {200, all}));
      EXPECT_EQ(gst_buffer_get_n_meta(out.get(), GST_CUDA_VISION_HISTOGRAM_META_API_TYPE), 1);
      if (shared) EXPECT(!gst_buffer_get_cuda_vision_histogram_meta(in));
      const bool passing = !strstr(settings, "equalize") && !strstr(settings, "overlay");
      EXPECT_EQ(out.get() == in, passing && !shared);
      if (passing) EXPECT(gst_buffer_peek_memory(out.get(), 0) == memory);
      if (!strstr(settings, "=false") && !strstr(settings, "interval")) expect_same(told(rig).channels, in_meta);
      EXPECT(!next(rig));
    }
  }
}

// Pictures ------------------------------------------------------------------------------------------------------------

namespace {

/// A frame with few, unevenly distributed values.
Buffer dim(const GstVideoInfo& video) {
  Buffer frame = noise(video);
  GstMapInfo map;
  EXPECT(gst_buffer_map(frame.get(), &map, GST_MAP_READWRITE));
  for (gsize i = 0; i < map.size; ++i) map.data[i] = guint8(40 + map.data[i] * map.data[i] / 700);
  gst_buffer_unmap(frame.get(), &map);
  return frame;
}

using histogram::OverlayParams;

/// What the plans make of a frame: its luma is equalised with this matrix, and its histogram is drawn over it.
Picture expected_picture(const GstVideoInfo& video, const Buffer& frame, std::optional<LumaMatrix> matrix,
                         const std::optional<OverlayParams>& overlay, const Params& params = {},
                         const Region& region = {}) {
  const Geometry geometry = geometry_of(video);
  Buffer result = copied(frame);
  const Mapped from(frame, video);
  {
    const Mapped to(result, video, GST_MAP_READWRITE);
    if (matrix)
      expect_ok(made(histogram::make_equalize(*matrix, geometry, Backend::cpu))
                    ->submit(from.image(), to.image(), region, {}));
    if (overlay) {
      const auto counts = made(histogram::make(params, geometry, Backend::cpu));
      expect_ok(counts->submit(from.image(), region, {}));
      expect_ok(made(make_overlay(*overlay, *counts))->submit(to.image(), {}));
    }
  }
  return picture(result.get(), video);
}

}  // namespace

TEST(draws_and_equalizes_like_its_plans, Each::run) {
  struct Case {
    const char* settings;
    std::optional<LumaMatrix> matrix;
    std::optional<OverlayParams> overlay;
    Params params = {};
    Region region = {};
  };
  const LumaMatrix bt601 = LumaMatrix::bt601;
  for (const Case& c :
       {Case{"equalize=true", bt601, {}},
        {"equalize=true luma=bt2020", LumaMatrix::bt2020, {}, {256, {}, LumaMatrix::bt2020}},
        {"equalize=true region=roi", bt601, {}, {}, inside({{7, 9, 30, 21}})},
        {"equalize=false overlay=true", {}, OverlayParams{}},
        {"equalize=true overlay=true overlay-position=3,5,40,30", bt601, OverlayParams{{3, 5, 40, 30}}},
        {"equalize=false overlay=true overlay-position=-10,-7,50,30", {}, OverlayParams{{-10, -7, 50, 30}}},
        {"equalize=false overlay=true overlay-opacity=0.3", {}, OverlayParams{{16, 16, 256, 100}, 0.3}},
        {"equalize=false overlay=true overlay-log=true", {}, OverlayParams{{16, 16, 256, 100}, 0.75, true}},
        {"equalize=false overlay=true overlay-position=0,0,61,43 bins=10 channels=all",
         {},
         OverlayParams{{0, 0, 61, 43}},
         {10, all}},
        {"equalize=false overlay=true overlay-position=70,50,61,43", {}, OverlayParams{{70, 50, 61, 43}}}})
    for (const std::string& format : formats(run)) {
      at(format + " " + c.settings);
      Rig rig(run, c.settings, caps_text(format, size));
      const Buffer frame = noise(rig.video());
      gst_buffer_add_video_region_of_interest_meta(frame.get(), "face", 7, 9, 30, 21);
      EXPECT_SAME(rig.filter(frame), expected_picture(rig.video(), frame, c.matrix, c.overlay, c.params, c.region));
      // the input frame is counted
      expect_same(told(rig).channels, expected(rig.video(), noise(rig.video()), c.params, c.region));
    }
}

TEST(changes_output_while_playing, Each::run) {
  Rig rig(run, "equalize=false", caps_text("GRAY8", size));
  const Buffer frame = dim(rig.video());
  const OverlayParams usual, small{{1, 2, 30, 40}, 0.3};
  const auto expect = [&](const char* settings, std::optional<LumaMatrix> matrix,
                          const std::optional<OverlayParams>& overlay) {
    set(rig.element(), settings);
    EXPECT_SAME(rig.filter(frame), expected_picture(rig.video(), frame, matrix, overlay));
  };
  for (int round = 0; round < 2; ++round) {
    expect("", {}, {});
    expect("overlay=true", {}, usual);
    expect("overlay-opacity=0.3 overlay-position=1,2,30,40", {}, small);
    expect("equalize=true", LumaMatrix::bt601, small);
    expect("overlay=false", LumaMatrix::bt601, {});
    set(rig.element(), "equalize=false overlay-opacity=0.75 overlay-position=16,16,256,100");
    Buffer same = copied(frame);
    GstBuffer* in = same.get();
    EXPECT(rig.push(std::move(same)).get() == in);
  }
}

int main() { return run_tests("histogram", "cudahistogram"); }
