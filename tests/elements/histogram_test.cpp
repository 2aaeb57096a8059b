// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares cudahistogram with slow loops over the samples and with cv::equalizeHist.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <opencv2/imgproc.hpp>
#include <optional>

#include "gst/meta/histogram_meta.h"
#include "tests/elements/harness.hpp"

using namespace cudavision::test;

namespace {

const Size size{61, 43};

// Messages
// ---------------------------------------------------------------------------------------------------------------------

struct Channel {
  std::string name;
  std::vector<guint64> counts;
  guint64 count = 0;
  double min = 0, max = 0, mean = 0, deviation = 0, median = 0, p01 = 0, p99 = 0, entropy = 0, saturated = 0;
};
constexpr std::pair<const char*, double Channel::*> figures[] = {{"min", &Channel::min},
                                                                 {"max", &Channel::max},
                                                                 {"mean", &Channel::mean},
                                                                 {"deviation", &Channel::deviation},
                                                                 {"median", &Channel::median},
                                                                 {"p01", &Channel::p01},
                                                                 {"p99", &Channel::p99},
                                                                 {"entropy", &Channel::entropy},
                                                                 {"saturated", &Channel::saturated}};
using Channels = std::vector<Channel>;

struct Posted {
  guint64 timestamp = 0, stream_time = 0, running_time = 0, duration = 0, frames = 0;
  guint bins = 0, depth = 0;
  Channels channels;
};

/// Pops the element's next message, if one comes within `wait`.
std::optional<Posted> next(const Rig& rig, GstClockTime wait = 0) {
  GstBus* bus = gst_element_get_bus(rig.element());
  GstMessage* message = gst_bus_timed_pop_filtered(bus, wait, GST_MESSAGE_ELEMENT);
  gst_object_unref(bus);
  if (!message) return {};
  EXPECT(GST_MESSAGE_SRC(message) == GST_OBJECT(rig.element()));
  const GstStructure* s = gst_message_get_structure(message);
  EXPECT_EQ(std::string(gst_structure_get_name(s)), "cudahistogram");
  Posted posted;
  EXPECT(gst_structure_get(s, "timestamp", G_TYPE_UINT64, &posted.timestamp, "stream-time", G_TYPE_UINT64,
                           &posted.stream_time, "running-time", G_TYPE_UINT64, &posted.running_time, "duration",
                           G_TYPE_UINT64, &posted.duration, "frames", G_TYPE_UINT64, &posted.frames, "bins",
                           G_TYPE_UINT, &posted.bins, "depth", G_TYPE_UINT, &posted.depth, nullptr));
  const GValue* channels = gst_structure_get_value(s, "channels");
  EXPECT(GST_VALUE_HOLDS_ARRAY(channels));
  for (guint c = 0; c < gst_value_array_get_size(channels); ++c) {
    const GstStructure* fields = gst_value_get_structure(gst_value_array_get_value(channels, c));
    Channel channel;
    channel.name = gst_structure_get_string(fields, "name");
    EXPECT(gst_structure_get_uint64(fields, "count", &channel.count));
    for (const auto& [name, member] : figures) EXPECT(gst_structure_get_double(fields, name, &(channel.*member)));
    const GValue* counts = gst_structure_get_value(fields, "counts");
    for (guint bin = 0; bin < gst_value_array_get_size(counts); ++bin)
      channel.counts.push_back(g_value_get_uint64(gst_value_array_get_value(counts, bin)));
    EXPECT_EQ(gst_structure_n_fields(fields), 12);
    posted.channels.push_back(channel);
  }
  EXPECT_EQ(gst_structure_n_fields(s), 8);
  gst_message_unref(message);
  return posted;
}

/// Pops the element's next message, which may follow its frame. Fails the test if there is none.
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
                        m.count,
                        m.min,
                        m.max,
                        m.mean,
                        m.deviation,
                        m.median,
                        m.p01,
                        m.p99,
                        m.entropy,
                        m.saturated});
  }
  return channels;
}

// Reference
// ---------------------------------------------------------------------------------------------------------------------

struct Asked {
  int bins = 256;
  std::string channels = "luma", luma = "bt601";

  std::string text() const { return "bins=" + std::to_string(bins) + " channels=" + channels + " luma=" + luma; }
};

int depth_of(const GstVideoInfo& video) { return GST_VIDEO_INFO_COMP_DEPTH(&video, 0); }

/// The channel's counts and statistics for these samples.
Channel described(const std::string& name, const std::vector<int>& samples, int bins, int depth) {
  Channel channel;
  channel.name = name;
  channel.counts.resize(std::size_t(bins));
  channel.count = samples.size();
  if (samples.empty()) return channel;
  const int values = 1 << depth;
  const auto bin_of = [&](int value) { return std::size_t(gint64(value) * bins / values); };
  std::vector<int> first(std::size_t(bins), -1), last(std::size_t(bins), -1);
  for (int value = 0; value < values; ++value) {
    if (first[bin_of(value)] < 0) first[bin_of(value)] = value;
    last[bin_of(value)] = value;
  }
  std::vector<double> sorted;
  double ends = 0;
  for (int sample : samples) {
    const std::size_t bin = bin_of(sample);
    ++channel.counts[bin];
    sorted.push_back((first[bin] + last[bin]) / 2.0);
    ends += bin == bin_of(0) || bin == bin_of(values - 1);
  }
  std::sort(sorted.begin(), sorted.end());
  const double n = double(sorted.size());
  channel.min = sorted.front();
  channel.max = sorted.back();
  for (double value : sorted) channel.mean += value / n;
  double variance = 0;
  for (double value : sorted) variance += (value - channel.mean) * (value - channel.mean) / n;
  channel.deviation = std::sqrt(variance);
  const auto quantile = [&](int percent) { return sorted[(sorted.size() * std::size_t(percent) + 99) / 100 - 1]; };
  channel.median = quantile(50);
  channel.p01 = quantile(1);
  channel.p99 = quantile(99);
  for (guint64 count : channel.counts)
    if (count) channel.entropy -= double(count) / n * std::log2(double(count) / n);
  channel.saturated = ends / n;
  return channel;
}

/// Luma by its definition: float32, with each product and each sum rounded.
int luma(const std::string& matrix, int r, int g, int b) {
  static const std::map<std::string, std::array<float, 3>> weights{{"bt601", {0.299f, 0.587f, 0.114f}},
                                                                   {"bt709", {0.2126f, 0.7152f, 0.0722f}},
                                                                   {"bt2020", {0.2627f, 0.678f, 0.0593f}},
                                                                   {"smpte240m", {0.212f, 0.701f, 0.087f}}};
  const auto [wr, wg, wb] = weights.at(matrix);
  volatile float red = wr * float(r), green = wg * float(g), blue = wb * float(b), sum = red + green;
  sum = sum + blue;
  return int(std::floor(sum));
}

/// The expected channels for all pictures together. Only samples for which `counted(component, x, y)` is true count.
template <typename F>
Channels expected(const std::vector<Picture>& pictures, const GstVideoInfo& video, const Asked& asked, F&& counted) {
  const bool rgb = GST_VIDEO_INFO_IS_RGB(&video);
  const std::size_t components = rgb ? 3 : GST_VIDEO_INFO_N_COMPONENTS(&video);
  const char* const names[] = {"R", "G", "B", "Y", "Cb", "Cr"};
  Channels channels;
  const auto add = [&](const char* name, std::size_t c, auto&& value) {
    std::vector<int> samples;
    for (const Picture& picture : pictures)
      for (int y = 0; y < picture[c].rows; ++y)
        for (int x = 0; x < picture[c].cols; ++x)
          if (counted(int(c), x, y)) samples.push_back(value(picture, x, y));
    channels.push_back(described(name, samples, asked.bins, depth_of(video)));
  };
  const auto component = [](std::size_t c) {
    return [c](const Picture& p, int x, int y) { return int(p[c].at<guint16>(y, x)); };
  };
  if (asked.channels != "components") {
    if (rgb)
      add("luma", 0, [&](const Picture& p, int x, int y) {
        return std::min(luma(asked.luma, p[0].at<guint16>(y, x), p[1].at<guint16>(y, x), p[2].at<guint16>(y, x)),
                        (1 << depth_of(video)) - 1);
      });
    else
      add("luma", 0, component(0));
  }
  if (asked.channels != "luma")
    for (std::size_t c = 0; c < components; ++c) add(names[rgb ? c : 3 + c], c, component(c));
  return channels;
}

Channels expected(const std::vector<Picture>& pictures, const GstVideoInfo& video, const Asked& asked = {}) {
  return expected(pictures, video, asked, [](int, int, int) { return true; });
}
Channels expected(GstBuffer* frame, const GstVideoInfo& video, const Asked& asked = {}) {
  return expected({picture(frame, video)}, video, asked);
}

void expect_same(const Channels& actual, const Channels& wanted, double tolerance = 1e-9) {
  EXPECT_EQ(actual.size(), wanted.size());
  for (std::size_t c = 0; c < actual.size(); ++c) {
    EXPECT_EQ(actual[c].name, wanted[c].name);
    EXPECT(actual[c].counts == wanted[c].counts);
    EXPECT_EQ(actual[c].count, wanted[c].count);
    guint64 sum = 0;
    for (guint64 count : actual[c].counts) sum += count;
    EXPECT_EQ(sum, actual[c].count);
    for (const auto& [name, member] : figures) {
      const double a = actual[c].*member, w = wanted[c].*member;
      FAIL_UNLESS(std::abs(a - w) <= tolerance * std::max(1.0, std::abs(w)), "%s: %s of %s is %.17g and not %.17g",
                  where().c_str(), name, wanted[c].name.c_str(), a, w);
    }
  }
}

// Frames
// ---------------------------------------------------------------------------------------------------------------------

Buffer timed(Buffer frame, GstClockTime pts, GstClockTime duration = 40 * GST_MSECOND) {
  GST_BUFFER_PTS(frame.get()) = pts;
  GST_BUFFER_DURATION(frame.get()) = duration;
  return frame;
}

/// Pushes frames of noise with these seeds, 40 ms each, and returns the pictures.
std::vector<Picture> push(Rig& rig, const std::vector<int>& seeds) {
  std::vector<Picture> pictures;
  for (int seed : seeds) {
    Buffer frame = timed(noise(rig.video(), unsigned(seed)), guint64(seed) * 40 * GST_MSECOND);
    pictures.push_back(picture(frame.get(), rig.video()));
    rig.push(std::move(frame));
  }
  return pictures;
}

}  // namespace

// Counts
// ---------------------------------------------------------------------------------------------------------------------

TEST(counts_like_a_slow_loop, Each::run) {
  for (const char* format : {"GRAY8", "GRAY16_LE", "RGB", "BGRx", "ARGB", "GBR", "NV12", "NV21", "I420", "YUY2", "UYVY",
                             "Y444_10LE", "P010_10LE", "RGBA64_LE"})
    for (int bins : {256, 2, 100, 1000, 65536})
      for (const char* channels : {"luma", "components", "all"}) {
        const Asked asked{bins, channels, "bt601"};
        at(format + std::string(" ") + asked.text());
        Rig rig(run, "equalize=false " + asked.text());
        rig.caps(caps_text(format, size));
        Buffer frame = noise(rig.video());
        const Channels wanted = expected(frame.get(), rig.video(), asked);
        rig.push(std::move(frame));
        const Posted posted = told(rig);
        EXPECT_EQ(posted.bins, bins);
        EXPECT_EQ(posted.depth, depth_of(rig.video()));
        EXPECT_EQ(posted.frames, 1);
        expect_same(posted.channels, wanted);
        if (std::string(channels) != "components") EXPECT_EQ(posted.channels[0].count, 61 * 43);
        EXPECT(!next(rig));
      }
}

TEST(describes_flat_and_two_valued_frames, Each::run) {
  for (const auto& values : {std::vector<int>{0}, {255}, {77}, {0, 255, 255}, {16, 128, 240}}) {
    Rig rig(run, "equalize=false channels=components");
    rig.caps(caps_text("I420", size));
    Buffer frame = flat(rig.video(), values);
    const Channels wanted = expected(frame.get(), rig.video(), {256, "components", "bt601"});
    rig.push(std::move(frame));
    const Posted posted = told(rig);
    expect_same(posted.channels, wanted);
    EXPECT_EQ(posted.channels[0].saturated, values[0] % 255 == 0 ? 1.0 : 0.0);
    EXPECT_EQ(std::signbit(posted.channels[0].entropy), false);
  }
}

TEST(computes_luma_with_the_matrix, Each::run) {
  struct Case {
    const char *more, *setting, *matrix;
  };
  for (const char* format : {"RGB", "xBGR", "BGRP", "ARGB64_LE"})
    for (const Case& c : {Case{"", "luma=auto", "bt601"},
                          {"", "luma=bt601", "bt601"},
                          {"", "luma=bt709", "bt709"},
                          {"", "luma=bt2020", "bt2020"},
                          {"", "luma=smpte240m", "smpte240m"},
                          {",colorimetry=sRGB", "luma=auto", "bt601"},
                          {",colorimetry=bt601", "luma=auto", "bt601"},
                          // As videoconvert describes converted bt709.
                          {",colorimetry=bt709", "luma=auto", "bt709"},
                          {",colorimetry=1:1:5:1", "luma=auto", "bt709"},
                          {",colorimetry=bt2020", "luma=auto", "bt2020"},
                          {",colorimetry=smpte240m", "luma=auto", "smpte240m"},
                          {",colorimetry=bt709", "luma=bt601", "bt601"}}) {
      at(format + std::string(c.more) + " " + c.setting);
      Rig rig(run, std::string("equalize=false ") + c.setting);
      rig.caps(caps_text(format, size, c.more));
      Buffer frame = noise(rig.video());
      const Channels wanted = expected(frame.get(), rig.video(), {256, "luma", c.matrix});
      rig.push(std::move(frame));
      expect_same(told(rig).channels, wanted);
    }
}

TEST(counts_only_in_regions, Each::run) {
  const cv::Rect face(4, 6, 12, 8), car(10, 10, 100, 100);  // they overlap; the second extends beyond the frame
  struct Mode {
    const char* settings;
    bool inside;
    std::vector<cv::Rect> rects;
  };
  for (const char* format : {"GRAY8", "BGRA", "NV12", "YUY2", "I420_10LE"})
    for (const Mode& mode : {Mode{"region=roi", true, {face, car}},
                             {"region=outside-roi", false, {face, car}},
                             {"region=roi roi-type=face", true, {face}},
                             {"region=outside-roi roi-type=face", false, {face}},
                             {"region=roi roi-type=tree", true, {}}}) {
      at(format + std::string(" ") + mode.settings);
      Rig rig(run, "equalize=false channels=all " + std::string(mode.settings));
      rig.caps(caps_text(format, size));
      Buffer frame = noise(rig.video());
      const Channels wanted =
          expected({picture(frame.get(), rig.video())}, rig.video(), {256, "all", "bt601"}, [&](int c, int x, int y) {
            return mode.inside == std::any_of(mode.rects.begin(), mode.rects.end(), [&](const cv::Rect& rect) {
                     return scaled(rig.video(), c, rect & cv::Rect(0, 0, size.width, size.height)).contains({x, y});
                   });
          });
      for (const auto& [type, rect] : {std::pair{"face", face}, {"car", car}})
        gst_buffer_add_video_region_of_interest_meta(frame.get(), type, guint(rect.x), guint(rect.y), guint(rect.width),
                                                     guint(rect.height));
      GstBuffer* in = frame.get();
      EXPECT(rig.push(std::move(frame)).get() == in);
      expect_same(told(rig).channels, wanted);
    }
}

TEST(counts_only_the_cropped_part, Each::run) {
  const GstVideoInfo whole = video_info("NV12", {64, 48});
  Buffer frame = noise(whole);
  const GstVideoRectangle part{6, 4, 37, 29};
  const Buffer cropped = cut(whole, frame.get(), part);
  gst_buffer_add_video_meta(frame.get(), GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_NV12, 64, 48);
  add_crop(frame.get(), part);
  // In coordinates of the uncropped frame.
  gst_buffer_add_video_region_of_interest_meta(frame.get(), "face", 16, 10, 8, 6);
  const Buffer again(gst_buffer_copy_deep(frame.get()));

  Rig rig(run, "equalize=false channels=all");
  rig.caps(caps_text("NV12", {part.w, part.h}));
  GstBuffer* in = frame.get();
  const Buffer out = rig.push(std::move(frame));
  EXPECT(out.get() == in && gst_buffer_get_video_crop_meta(in));
  const Asked asked{256, "all", "bt601"};
  expect_same(told(rig).channels, expected(cropped.get(), rig.video(), asked));
  set(rig.element(), "region=roi");
  rig.push(Buffer(gst_buffer_ref(again.get())));
  expect_same(told(rig).channels,
              expected({picture(cropped.get(), rig.video())}, rig.video(), asked, [&](int c, int x, int y) {
                return scaled(rig.video(), c, {10, 6, 8, 6}).contains({x, y});
              }));
}

// Messages
// ---------------------------------------------------------------------------------------------------------------------

TEST(posts_times, Each::run) {
  Rig rig(run, "equalize=false");
  rig.caps(caps_text("GRAY8", size));
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  segment.start = GST_SECOND;
  segment.time = 5 * GST_SECOND;
  segment.base = 7 * GST_SECOND;
  gst_harness_push_event(rig.harness(), gst_event_new_segment(&segment));
  rig.push(timed(noise(rig.video()), 1500 * GST_MSECOND));
  Posted posted = told(rig);
  EXPECT_EQ(posted.timestamp, 1500 * GST_MSECOND);
  EXPECT_EQ(posted.stream_time, 5500 * GST_MSECOND);
  EXPECT_EQ(posted.running_time, 7500 * GST_MSECOND);
  EXPECT_EQ(posted.duration, 40 * GST_MSECOND);
  rig.push(timed(noise(rig.video()), GST_CLOCK_TIME_NONE, GST_CLOCK_TIME_NONE));
  posted = told(rig);
  EXPECT_EQ(posted.timestamp, GST_CLOCK_TIME_NONE);
  EXPECT_EQ(posted.duration, GST_CLOCK_TIME_NONE);
}

TEST(posts_only_if_asked, Each::run) {
  Rig rig(run, "equalize=false post-messages=false");
  rig.caps(caps_text("NV12", size));
  push(rig, {0, 1});
  EXPECT(!next(rig));
  set(rig.element(), "post-messages=true");
  const auto pictures = push(rig, {2});
  expect_same(told(rig).channels, expected(pictures, rig.video()));
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
  Rig rig(run, "equalize=false channels=all bins=64 interval=100000000");
  rig.caps(caps_text("NV12", size));
  const Asked asked{64, "all", "bt601"};
  // Intervals begin at 0, 100, 200 ms …; frames come every 40 ms.
  const std::vector<int> parts[] = {{0, 1, 2}, {3, 4}, {5, 6, 7}, {8, 9}};
  for (const std::vector<int>& seeds : parts) {
    const auto pictures = push(rig, seeds);  // posted with the last frame, before the next one
    at("from frame " + std::to_string(seeds[0]));
    const Posted posted = told(rig);
    EXPECT_EQ(posted.frames, seeds.size());
    EXPECT_EQ(posted.timestamp, guint64(seeds[0]) * 40 * GST_MSECOND);
    EXPECT_EQ(posted.running_time, posted.timestamp);
    EXPECT_EQ(posted.duration, seeds.size() * 40 * GST_MSECOND);
    expect_same(posted.channels, expected(pictures, rig.video(), asked));
    EXPECT(!next(rig));
  }
  at("a gap, which leaves an interval out");
  auto pictures = push(rig, {10});
  const auto later = push(rig, {20});
  Posted posted = told(rig);
  EXPECT_EQ(posted.frames, 1);
  expect_same(posted.channels, expected(pictures, rig.video(), asked));
  EXPECT(!next(rig));
  at("the rest, at EOS");
  gst_harness_push_event(rig.harness(), gst_event_new_eos());
  posted = told(rig);
  EXPECT_EQ(posted.timestamp, 800 * GST_MSECOND);
  expect_same(posted.channels, expected(later, rig.video(), asked));
}

TEST(sums_up_intervals_at_any_rate, Each::run) {
  // Intervals of 100 ms of running time, and frames of 40 ms.
  for (const auto& [rate, frames] : {std::pair{2.0, 5}, {0.5, 1}, {-2.0, 5}}) {
    at("rate " + std::to_string(rate));
    Rig rig(run, "equalize=false interval=100000000");
    rig.caps(caps_text("GRAY8", size));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    segment.rate = rate;
    segment.stop = 1000 * GST_MSECOND;
    gst_harness_push_event(rig.harness(), gst_event_new_segment(&segment));
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
  Rig rig(run, "equalize=false interval=100000000");
  rig.caps(caps_text("GRAY8", size));
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
  Rig rig(run, "equalize=false interval=10000000000");
  rig.caps(caps_text("GRAY8", size));
  auto pictures = push(rig, {0, 1, 2});
  at("discont");
  Buffer frame = timed(noise(rig.video(), 9), GST_SECOND);
  GST_BUFFER_FLAG_SET(frame.get(), GST_BUFFER_FLAG_DISCONT);
  const Picture after = picture(frame.get(), rig.video());
  rig.push(std::move(frame));
  expect_same(told(rig).channels, expected(pictures, rig.video()));
  at("caps");
  const GstVideoInfo before = rig.video();
  rig.caps(caps_text("RGB", {20, 10}));
  pictures = push(rig, {30, 31});
  const Posted posted = told(rig);
  EXPECT_EQ(posted.timestamp, GST_SECOND);
  expect_same(posted.channels, expected({after}, before));
  EXPECT(!next(rig));
  at("flush");
  flush(rig);
  EXPECT(!next(rig));
  pictures = push(rig, {3});
  EXPECT(!next(rig));
  gst_harness_push_event(rig.harness(), gst_event_new_eos());
  expect_same(told(rig).channels, expected(pictures, rig.video()));
  EXPECT(!next(rig));
  at("stop");
  Rig stopped(run, "equalize=false interval=10000000000");
  stopped.caps(caps_text("GRAY8", size));
  pictures = push(stopped, {4, 5});
  gst_element_set_state(stopped.element(), GST_STATE_READY);
  expect_same(told(stopped).channels, expected(pictures, stopped.video()));
  EXPECT(!next(stopped));
}

TEST(keeps_sums_when_properties_change, Each::run) {
  Rig rig(run, "equalize=false interval=10000000000");
  rig.caps(caps_text("RGB", size));
  auto pictures = push(rig, {0, 1});
  const auto more = [&](const std::vector<int>& seeds) {
    for (const Picture& picture : push(rig, seeds)) pictures.push_back(picture);
  };
  for (const char* change :
       {"add-meta=true", "overlay=true", "equalize=true", "overlay-log=true overlay-opacity=0.5", "luma=bt601",
        "interval=5000000000", "overlay=false equalize=false", "region=roi", "region=frame"}) {
    set(rig.element(), change);
    if (std::string(change) != "region=roi") more({int(pictures.size())});
    EXPECT(!next(rig));
  }
  int seed = 20;
  Asked asked;
  for (const Asked& changed : {Asked{64}, {64, "all"}, {64, "all", "bt2020"}}) {
    at(changed.text());
    set(rig.element(), changed.text());
    EXPECT(!next(rig));
    const auto later = push(rig, {seed++});
    const Posted posted = told(rig);  // the counts of the earlier settings
    EXPECT_EQ(posted.frames, pictures.size());
    expect_same(posted.channels, expected(pictures, rig.video(), asked));
    EXPECT(!next(rig));
    pictures = later;
    asked = changed;
  }
  set(rig.element(), "interval=0");
  more({seed++});
  expect_same(told(rig).channels, expected(pictures, rig.video(), asked));
  EXPECT(!next(rig));

  at("ended by a change, and then the stream ends");
  set(rig.element(), "interval=10000000000");
  pictures = push(rig, {seed++});
  set(rig.element(), "bins=2");
  gst_harness_push_event(rig.harness(), gst_event_new_eos());
  expect_same(told(rig).channels, expected(pictures, rig.video(), asked));
  EXPECT(!next(rig));
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
  auto pictures = push(rig, {0, 1});
  for (const char* bins : {"2", "4", "8"}) change(bins);
  at("a frame");
  push(rig, {2});
  expect_same(told(rig).channels, expected(pictures, rig.video()));
  EXPECT(!next(rig));
  at("flush");
  change("16");
  flush(rig);
  pictures = push(rig, {3});
  EXPECT(!next(rig));
  at("EOS");
  change("32");
  gst_harness_push_event(rig.harness(), gst_event_new_eos());
  expect_same(told(rig).channels, expected(pictures, rig.video(), {16}));
  EXPECT(!next(rig));
}

TEST(keeps_intervals_when_properties_change, Each::run) {
  Rig rig(run, "equalize=false interval=100000000");
  rig.caps(caps_text("GRAY8", size));
  push(rig, {0, 1});
  set(rig.element(), "overlay=true");
  push(rig, {2});
  EXPECT_EQ(told(rig).frames, 3);
  at("and a discont begins them anew");
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

TEST(follows_properties_with_the_next_frame, Each::run) {
  Rig rig(run, "equalize=false");
  rig.caps(caps_text("BGR", size));
  int seed = 0;
  for (const Asked& asked : {Asked{}, {16}, {16, "components"}, {300, "all", "bt709"}, {300, "all", "bt2020"}}) {
    at(asked.text());
    set(rig.element(), asked.text());
    const auto pictures = push(rig, {seed++});
    const Posted posted = told(rig);
    EXPECT_EQ(posted.bins, asked.bins);
    expect_same(posted.channels, expected(pictures, rig.video(), asked));
    EXPECT(!next(rig));
  }
}

// Passthrough
// ------------------------------------------------------------------------------------------------------------------

TEST(passes_frames_untouched, Each::run) {
  for (const std::string& format : formats(run)) {
    at(format);
    Rig rig(run, "equalize=false");
    rig.caps(caps_text(format, size));
    Buffer frame = noise(rig.video());
    GstBuffer* in = frame.get();
    const Picture input = picture(in, rig.video());
    const Channels wanted = expected(in, rig.video());
    const Buffer out = rig.push(std::move(frame));
    EXPECT(out.get() == in);
    EXPECT_SAME(picture(out.get(), rig.video()), input);
    EXPECT(!gst_buffer_get_cuda_vision_histogram_meta(out.get()));
    expect_same(told(rig).channels, wanted);
  }
}

TEST(returns_to_passthrough, Each::run) {
  for (const char* property : {"overlay", "equalize"}) {
    at(property);
    Rig rig(run, "equalize=false");
    rig.caps(caps_text("NV12", size));
    for (bool filters : {true, false}) {
      set(rig.element(), std::string(property) + (filters ? "=true" : "=false"));
      Buffer frame = noise(rig.video());
      GstBuffer* in = frame.get();
      EXPECT_EQ(rig.push(std::move(frame)).get() != in, filters);
    }
  }
}

TEST(adds_metas, Each::run) {
  for (const char* settings : {"", "equalize=true", "overlay=true", "post-messages=false", "interval=1000000000"}) {
    at(settings);
    Rig rig(run, std::string("equalize=false add-meta=true channels=all bins=200 ") + settings);
    rig.caps(caps_text("P010_10LE", size));
    for (unsigned seed : {1u, 2u}) {
      Buffer frame = noise(rig.video(), seed);
      const Channels wanted = expected(frame.get(), rig.video(), {200, "all", "bt601"});
      GstMemory* memory = gst_buffer_peek_memory(frame.get(), 0);
      GstBuffer* in = frame.get();
      const bool shared = seed == 2;  // then other owners of the frame must not see the meta
      const Buffer other(shared ? gst_buffer_ref(in) : gst_buffer_new());
      const Buffer out = rig.push(std::move(frame));
      const Channels in_meta = of_meta(out.get(), 200, 10);
      expect_same(in_meta, wanted);
      EXPECT_EQ(gst_buffer_get_n_meta(out.get(), GST_CUDA_VISION_HISTOGRAM_META_API_TYPE), 1);
      if (shared) EXPECT(!gst_buffer_get_cuda_vision_histogram_meta(in));
      const bool passing = !strstr(settings, "equalize") && !strstr(settings, "overlay");
      EXPECT_EQ(out.get() == in, passing && !shared);
      if (passing) EXPECT(gst_buffer_peek_memory(out.get(), 0) == memory);
      if (!strstr(settings, "=false") && !strstr(settings, "interval")) expect_same(told(rig).channels, in_meta, 0);
      EXPECT(!next(rig));
    }
  }
}

// Pictures
// ---------------------------------------------------------------------------------------------------------------------

namespace {

cv::Mat equalized(const cv::Mat& samples) {
  cv::Mat bytes, result;
  samples.convertTo(bytes, CV_8U);
  cv::equalizeHist(bytes, result);
  result.convertTo(result, CV_16U);
  return result;
}

/// A frame with few values, unevenly distributed.
Buffer dim(const GstVideoInfo& video) {
  Buffer frame = noise(video);
  GstMapInfo map;
  EXPECT(gst_buffer_map(frame.get(), &map, GST_MAP_READWRITE));
  for (gsize i = 0; i < map.size; ++i) map.data[i] = guint8(40 + map.data[i] * map.data[i] / 700);
  gst_buffer_unmap(frame.get(), &map);
  return frame;
}

struct Overlay {
  cv::Rect at{16, 16, 256, 100};
  double opacity = 0.75;
  bool log = false;
};

/// Draws the histogram of a picture over a gray picture, by the rules on the element's page.
cv::Mat drawn(cv::Mat picture, const Channel& histogram, const Overlay& overlay) {
  picture = picture.clone();
  const double largest = double(*std::max_element(histogram.counts.begin(), histogram.counts.end()));
  const int bins = int(histogram.counts.size()), opacity = int(std::lround(overlay.opacity * 256));
  const auto blend = [](int below, int above, int part) { return (below * (256 - part) + above * part + 128) / 256; };
  const auto height = [&](double count) {
    return int(std::floor(
        (overlay.log ? std::log2(count + 1) / std::log2(largest + 1) : count / largest) * overlay.at.height + 0.5));
  };
  for (int y = 0; y < picture.rows; ++y)
    for (int x = 0; x < picture.cols; ++x) {
      if (!overlay.at.contains({x, y})) continue;
      const int column = x - overlay.at.x, begin = column * bins / overlay.at.width,
                end = std::max(begin + 1, (column + 1) * bins / overlay.at.width);
      guint64 count = 0;
      for (int bin = begin; bin < end; ++bin) count = std::max(count, histogram.counts[std::size_t(bin)]);
      guint16& sample = picture.at<guint16>(y, x);
      sample = guint16(blend(sample, 0, opacity / 2));
      if (overlay.at.y + overlay.at.height - y <= height(double(count))) sample = guint16(blend(sample, 255, opacity));
    }
  return picture;
}

}  // namespace

TEST(equalizes_like_opencv, Each::run) {
  for (const char* format : {"GRAY8", "NV12", "YUY2", "Y444"}) {
    at(format);
    Rig rig(run, "equalize=true");
    rig.caps(caps_text(format, size));
    const Buffer frame = dim(rig.video());
    Picture wanted = picture(frame.get(), rig.video());
    const Channels incoming = expected(frame.get(), rig.video());
    wanted[0] = equalized(wanted[0]);  // chroma does not change
    EXPECT_SAME(rig.filter(frame), wanted);
    expect_same(told(rig).channels, incoming);
  }
}

TEST(equalizes_rgb_with_its_luma, Each::run) {
  for (const char* matrix : {"bt601", "bt709", "bt2020", "smpte240m"}) {
    at(matrix);
    Rig rig(run, "equalize=true luma=" + std::string(matrix));
    rig.caps(caps_text("RGB", size));
    const Buffer frame = dim(rig.video());
    Picture wanted = picture(frame.get(), rig.video());
    cv::Mat lumas(wanted[0].size(), CV_16U);
    for (int y = 0; y < lumas.rows; ++y)
      for (int x = 0; x < lumas.cols; ++x)
        lumas.at<guint16>(y, x) = guint16(
            luma(matrix, wanted[0].at<guint16>(y, x), wanted[1].at<guint16>(y, x), wanted[2].at<guint16>(y, x)));
    const cv::Mat after = equalized(lumas);
    for (cv::Mat& component : wanted)
      for (int y = 0; y < lumas.rows; ++y)
        for (int x = 0; x < lumas.cols; ++x) {
          guint16& sample = component.at<guint16>(y, x);
          sample = guint16(std::clamp(sample + after.at<guint16>(y, x) - lumas.at<guint16>(y, x), 0, 255));
        }
    EXPECT_SAME(rig.filter(frame), wanted);
  }
}

TEST(equalizes_only_the_region, Each::run) {
  Rig rig(run, "equalize=true region=roi");
  rig.caps(caps_text("GRAY8", size));
  Buffer frame = dim(rig.video());
  const cv::Rect rect(7, 9, 30, 21);
  Picture wanted = picture(frame.get(), rig.video());
  equalized(wanted[0](rect).clone()).copyTo(wanted[0](rect));
  gst_buffer_add_video_region_of_interest_meta(frame.get(), "face", 7, 9, 30, 21);
  EXPECT_SAME(picture(rig.push(std::move(frame)).get(), rig.video()), wanted);
  const Posted posted = told(rig);
  EXPECT_EQ(posted.channels[0].count, 30 * 21);
}

TEST(draws_the_histogram, Each::run) {
  struct Case {
    const char* settings;
    Overlay overlay;
    Asked asked;
  };
  for (const Case& c : {Case{"", {}, {}},
                        {"overlay-position=3,5,40,30", {{3, 5, 40, 30}}, {}},
                        {"overlay-position=-10,-7,50,30", {{-10, -7, 50, 30}}, {}},
                        {"overlay-position=3,5,50,30 overlay-opacity=1", {{3, 5, 50, 30}, 1}, {}},
                        {"overlay-position=3,5,50,30 overlay-opacity=0", {{3, 5, 50, 30}, 0}, {}},
                        {"overlay-position=0,0,61,43 overlay-log=true", {{0, 0, 61, 43}, 0.75, true}, {}},
                        {"overlay-position=0,0,61,43 bins=10", {{0, 0, 61, 43}}, {10}},
                        {"overlay-position=70,50,61,43", {{70, 50, 61, 43}}, {}}})
    for (bool equalize : {false, true}) {
      at(c.settings + std::string(equalize ? " equalize=true" : ""));
      Rig rig(run, "overlay=true " + std::string(equalize ? "" : "equalize=false ") + c.settings);
      rig.caps(caps_text("GRAY8", size));
      const Buffer frame = dim(rig.video());
      const Picture input = picture(frame.get(), rig.video());
      const Channels incoming = expected(frame.get(), rig.video(), c.asked);
      const Picture wanted{drawn(equalize ? equalized(input[0]) : input[0], incoming[0], c.overlay)};
      const Picture actual = rig.filter(frame);
      if (c.overlay.log) {  // heights use a piecewise linear logarithm, so one pixel of difference is allowed
        int differing = 0;
        for (int x = 0; x < 61; ++x) {
          const int in_column = cv::countNonZero(actual[0].col(x) != wanted[0].col(x));
          EXPECT(in_column <= 2);
          differing += in_column > 0;
        }
        EXPECT(differing < 40);
      } else {
        EXPECT_SAME(actual, wanted);
      }
      expect_same(told(rig).channels, incoming);
    }
}

TEST(draws_only_in_its_rectangle, Each::run) {
  const cv::Rect rect(10, 12, 30, 20);
  for (const std::string& format : formats(run)) {
    at(format);
    Rig rig(run, "equalize=false overlay=true channels=all overlay-position=10,12,30,20");
    rig.caps(caps_text(format, size));
    const Buffer frame = noise(rig.video());
    const Picture input = picture(frame.get(), rig.video()), actual = rig.filter(frame);
    for (std::size_t c = 0; c < input.size(); ++c) {
      const cv::Rect inside = scaled(rig.video(), int(c), rect);
      const bool alpha = c == 3;
      cv::Mat changed = actual[c] != input[c];
      EXPECT_EQ(cv::countNonZero(changed(inside)) > inside.area() / 2, !alpha);
      changed(inside).setTo(0);
      EXPECT_EQ(cv::countNonZero(changed), 0);
    }
  }
}

TEST(changes_output_while_playing, Each::run) {
  Rig rig(run, "equalize=false");
  rig.caps(caps_text("GRAY8", size));
  const Buffer frame = dim(rig.video());
  const Picture input = picture(frame.get(), rig.video());
  const Channel histogram = expected(frame.get(), rig.video())[0];
  for (int round = 0; round < 2; ++round) {
    EXPECT_SAME(rig.filter(frame), input);
    set(rig.element(), "overlay=true");
    EXPECT_SAME(rig.filter(frame), Picture{drawn(input[0], histogram, {})});
    set(rig.element(), "overlay-opacity=0.3 overlay-position=1,2,30,40");
    EXPECT_SAME(rig.filter(frame), (Picture{drawn(input[0], histogram, {{1, 2, 30, 40}, 0.3})}));
    set(rig.element(), "equalize=true");
    EXPECT_SAME(rig.filter(frame), (Picture{drawn(equalized(input[0]), histogram, {{1, 2, 30, 40}, 0.3})}));
    set(rig.element(), "overlay=false");
    EXPECT_SAME(rig.filter(frame), Picture{equalized(input[0])});
    set(rig.element(), "equalize=false overlay-opacity=0.75 overlay-position=16,16,256,100");
    Buffer same(gst_buffer_copy_deep(frame.get()));
    GstBuffer* in = same.get();
    EXPECT(rig.push(std::move(same)).get() == in);
  }
}

TEST(fades_with_a_control_source, Each::run) {
  Rig rig(run, "equalize=false overlay=true overlay-position=2,3,40,30 interval=10000000000");
  rig.caps(caps_text("GRAY8", size));
  control(rig.element(), "overlay-opacity", 0, 1, GST_SECOND, true);
  const Buffer frame = dim(rig.video());
  const Picture input = picture(frame.get(), rig.video());
  const Channel histogram = expected(frame.get(), rig.video())[0];
  for (int quarter = 0; quarter <= 4; ++quarter) {
    GST_BUFFER_PTS(frame.get()) = guint64(quarter) * GST_SECOND / 4;
    EXPECT_SAME(rig.filter(frame), (Picture{drawn(input[0], histogram, {{2, 3, 40, 30}, quarter / 4.0})}));
  }
  gst_harness_push_event(rig.harness(), gst_event_new_eos());
  EXPECT_EQ(told(rig).frames, 5);  // each frame made a new plan
}

int main() { return run_tests("histogram", "cudahistogram"); }
