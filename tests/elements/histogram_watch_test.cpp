// SPDX-License-Identifier: LGPL-2.1-or-later
// cudahistogram with watch=true: reports when a camera becomes covered, blinded, unfocused or frozen, and when this
// ends; also the sharpness.
#include <algorithm>
#include <cmath>
#include <functional>
#include <opencv2/imgproc.hpp>

#include "gst/meta/histogram_meta.h"
#include "kernels/histogram/sharpness.hpp"
#include "tests/elements/plans.hpp"

using namespace cudavision::test;

namespace {

const Size size{160, 121};
constexpr GstClockTime step = 200 * GST_MSECOND;

// Scenes: the luma as a CV_32F picture of 8-bit steps -----------------------------------------------------------------

/// A textured picture, like an ordinary room.
cv::Mat room() {
  cv::Mat texture(size.height, size.width, CV_32F), wide;
  cv::RNG random(7);
  random.fill(texture, cv::RNG::NORMAL, 0, 1);
  cv::GaussianBlur(texture, wide, {}, 8);
  cv::GaussianBlur(texture, texture, {}, 1);
  return 110 + 90 * texture + 700 * wide;
}
/// The picture with sensor noise.
cv::Mat noisy(const cv::Mat& scene, unsigned seed, double sigma = 1.5) {
  cv::Mat noise(scene.size(), CV_32F);
  cv::RNG(seed + 100).fill(noise, cv::RNG::NORMAL, 0, sigma);
  return scene + noise;
}
cv::Mat blurred(const cv::Mat& scene) {
  cv::Mat soft;
  cv::GaussianBlur(scene, soft, {}, 4);
  return soft;
}
cv::Mat plain(double value) { return cv::Mat(size.height, size.width, CV_32F, cv::Scalar(value)); }

/// A frame with this luma and without colour, in an 8-bit format.
Buffer frame_of(const GstVideoInfo& video, const cv::Mat& luma) {
  Buffer frame = black(video);
  paint(video, frame, {0, 0, luma.cols, luma.rows},
        [&](int x, int y) { return int(cv::saturate_cast<guint8>(luma.at<float>(y, x))); });
  return frame;
}

// Playing -------------------------------------------------------------------------------------------------------------

/// An element that receives scenes at five frames per second.
class Camera {
 public:
  explicit Camera(const Run& run, const std::string& settings = "", const std::string& format = "NV12")
      : rig(with_shared_context(make_element(run, "equalize=false post-messages=false watch=true " + settings), run)) {
    rig.caps(caps_text(format, size, ",framerate=5/1"));
  }

  using Scene = std::function<cv::Mat(unsigned)>;

  /// Plays a scene for this many seconds. `change` changes each frame.
  void play(const Scene& scene, double seconds, const std::function<void(GstBuffer*)>& change = {}) {
    play_frames([&](unsigned number) { return frame_of(rig.video(), scene(number)); }, seconds, change);
  }
  void play_frames(const std::function<Buffer(unsigned)>& draw, double seconds,
                   const std::function<void(GstBuffer*)>& change = {}) {
    for (int i = 0; i < int(std::lround(seconds * 5)); ++i) {
      Buffer frame = timed(draw(number_++), time_, step);
      time_ += step;
      if (change) change(frame.get());
      rig.push(std::move(frame));
    }
  }
  /// The messages since the last call, such as "12.0: dark begin since 11.0". Times are running times in seconds. Call
  /// it after an event, because the element reports all frames before an event.
  std::string told() {
    std::string all;
    for (const Told& message : messages_of(rig.element())) {
      EXPECT_EQ(message.name(), "cudahistogram-watch");
      EXPECT_EQ(message.size(), 9);
      value = message.number("value"), limit = message.number("limit");
      g_autofree gchar* text = g_strdup_printf(
          "%s%.1f: %s %s since %.1f", all.empty() ? "" : "; ", double(message.time("running-time")) / GST_SECOND,
          message.text("condition").c_str(), message.text("event").c_str(), double(message.time("since")) / GST_SECOND);
      all += text;
    }
    return all;
  }

  /// Ends the stream. Returns the messages since the last call of told().
  std::string end() {
    EXPECT(gst_harness_push_event(rig.harness(), gst_event_new_eos()));
    return told();
  }

  Rig rig;
  double value = 0, limit = 0;  ///< of the last message

 private:
  unsigned number_ = 0;
  GstClockTime time_ = 0;
};

const cv::Mat scene = room();
cv::Mat live(unsigned i) { return noisy(scene, i); }
cv::Mat dark(unsigned i) { return noisy(plain(14), i); }
cv::Mat bright(unsigned i) { return noisy(plain(244), i); }
cv::Mat covered(unsigned i) { return noisy(plain(70), i); }
cv::Mat defocused(unsigned i) { return noisy(blurred(scene), i, 0.5); }
cv::Mat frozen(unsigned) { return noisy(scene, 1); }

double planned_sharpness(const GstVideoInfo& video, const Buffer& frame) {
  const auto plan = made(cudavision::histogram::make_sharpness({}, geometry_of(video), cudavision::Backend::cpu));
  expect_ok(plan->submit(Mapped(frame, video).image(), {}, {}));
  return sharpness_of(plan->result(), GST_VIDEO_INFO_COMP_DEPTH(&video, 0));
}

/// The sharpness in the next cudahistogram message; −1 if it has none.
double told_sharpness(const Rig& rig) {
  const std::optional<Told> told = next_message(rig.element(), 5 * GST_SECOND);
  EXPECT(told && told->name() == "cudahistogram");
  return told->has("sharpness") ? told->number("sharpness") : -1;
}

void expect_near(double actual, double expected) {
  FAIL_UNLESS(std::abs(actual - expected) <= 1e-9 * std::max(1.0, std::abs(expected)), "%s: %.17g is not %.17g",
              where().c_str(), actual, expected);
}

}  // namespace

// Sharpness -----------------------------------------------------------------------------------------------------------

TEST(measures_sharpness, Each::run) {
  for (const char* format : {"GRAY8", "GRAY16_LE", "NV12", "P010_10LE", "I420", "YUY2", "UYVY", "Y444", "RGB", "GBR"})
    for (const Size& size : {Size{61, 43}, {1, 1}, {1, 7}, {640, 3}})
      for (const char* settings :
           {"sharpness=true", "watch=true", "sharpness=true watch=true overlay=true add-meta=true"}) {
        at(format + std::string(" ") + settings + " width " + show(size.width));
        Rig rig(run, "equalize=false " + std::string(settings), caps_text(format, size));
        for (unsigned seed : {1u, 2u}) {
          Buffer frame = noise(rig.video(), seed);
          const double expected = planned_sharpness(rig.video(), frame);
          const Buffer out = rig.push(std::move(frame));
          expect_near(told_sharpness(rig), expected);
          if (const auto* meta = gst_buffer_get_cuda_vision_histogram_meta(out.get()))
            expect_near(meta->sharpness, expected);
        }
      }
}

TEST(measures_sharpness_only_if_asked, Each::run) {
  Rig rig(run, "equalize=false add-meta=true", caps_text("NV12", size));
  const auto sharpness = [&] {
    const Buffer out = rig.push(noise(rig.video()));
    const double told = told_sharpness(rig), in_meta = gst_buffer_get_cuda_vision_histogram_meta(out.get())->sharpness;
    expect_near(told, in_meta);
    return told;
  };
  EXPECT_EQ(sharpness(), -1.0);
  set(rig.element(), "sharpness=true");
  EXPECT(sharpness() > 50);
  set(rig.element(), "sharpness=false");
  EXPECT_EQ(sharpness(), -1.0);
  set(rig.element(), "watch=true");
  EXPECT(sharpness() > 50);
}

TEST(measures_sharpness_of_regions_and_intervals, Each::run) {
  Rig rig(run, "equalize=false sharpness=true region=roi interval=10000000000", caps_text("GRAY8", {40, 30}));
  // Stripes of 10 steps on the left and 30 on the right. The region covers the left, then the right, then nothing.
  cv::Mat luma(30, 40, CV_32F);
  for (int y = 0; y < 30; ++y)
    for (int x = 0; x < 40; ++x) luma.at<float>(y, x) = x % 2 ? 100 + (x < 20 ? 10 : 30) : 100;
  for (int x : {0, 20, 50}) {
    Buffer frame = frame_of(rig.video(), luma);
    gst_buffer_add_video_region_of_interest_meta(frame.get(), "part", guint(x), 0, 20, 30);
    rig.push(std::move(frame));
  }
  gst_harness_push_event(rig.harness(), gst_event_new_eos());
  // 20·30 differences of 10 (the last one to the neighbour at x = 20), 19·30 differences of 30, and twice 20·29
  // differences of 0 between rows.
  expect_near(told_sharpness(rig), (20 * 30 * 10.0 + 19 * 30 * 30) / (20 * 30 + 19 * 30 + 2 * 20 * 29));
}

// Conditions ----------------------------------------------------------------------------------------------------------

TEST(reports_each_condition, Each::run) {
  const std::pair<const char*, Camera::Scene> conditions[] = {
      {"dark", dark}, {"bright", bright}, {"covered", covered}, {"defocused", defocused}};
  for (const char* format : {"NV12", "GRAY8", "YUY2"})
    for (const auto& [name, scene] : conditions) {
      at(name + std::string(" ") + format);
      Camera camera(run, "", format);
      camera.play(live, 10);
      camera.play(scene, 4);
      camera.play(live, 4);
      EXPECT_EQ(camera.end(), std::string("11.0: ") + name + " begin since 10.0; 15.0: " + name + " end since 10.0");
    }
  Camera camera(run);
  camera.play(live, 10);
  camera.play(frozen, 4);
  camera.play(live, 4);
  EXPECT_EQ(camera.end(), "12.0: frozen begin since 10.0; 15.0: frozen end since 10.0");
}

TEST(tells_value_and_limit, Each::run) {
  // Black is 16 in limited-range luma.
  for (const auto& [format, level, brightness] :
       {std::tuple("GRAY8", 5, 5 / 255.0), {"NV12", 20, (20 - 16) / 219.0}, {"P010_10LE", 80, (20 - 16) / 219.0}}) {
    at(format);
    Camera camera(run, "", format);
    camera.play_frames([&, level = level](unsigned) { return flat(camera.rig.video(), {level, 128, 128}); }, 2);
    EXPECT_EQ(camera.end(), "1.0: dark begin since 0.0; 1.8: dark end since 0.0");
    expect_near(camera.value, brightness);
    expect_near(camera.limit, 0.09);
  }
}

TEST(follows_watch_time, Each::run) {
  for (const auto& [setting, begin] :
       {std::pair{"watch-time=0", "1.0"}, {"watch-time=0.5", "1.4"}, {"watch-time=3", "3.8"}}) {
    at(setting);
    Camera camera(run, setting);
    camera.play(live, 1);
    camera.play([](unsigned) { return live(4); }, 4);  // repeats the last of the earlier frames
    EXPECT_EQ(camera.end(), std::string(begin) + ": frozen begin since 0.8; 4.8: frozen end since 0.8");
  }
}

/// Motion, noise and changing light are not reported.
TEST(keeps_quiet_about_live_scenes, Each::run) {
  const cv::Mat wide = room();
  for (const char* format : {"NV12", "GRAY8"}) {
    const std::pair<const char*, Camera::Scene> scenes[] = {
        {"pan",
         [&](unsigned i) {
           cv::Mat moved;
           cv::hconcat(wide.colRange(int(i * 7 % 150) + 1, wide.cols), wide.colRange(0, int(i * 7 % 150) + 1), moved);
           return noisy(moved, i);
         }},
        {"noise", [](unsigned i) { return noisy(scene, i, 8); }},
        {"faint noise", [](unsigned i) { return noisy(scene, i, 0.4); }},
        {"dusk and noise", [](unsigned i) { return noisy(scene * (0.5 + 0.3 * std::sin(i * 0.02)), i, 4); }},
        {"a lamp is switched", [](unsigned i) { return noisy(i / 60 % 2 ? scene : cv::Mat(scene * 0.4), i, 0.6); }},
        {"each frame twice", [](unsigned i) { return noisy(scene, i / 2); }}};
    for (const auto& [name, scene] : scenes) {
      at(name);
      Camera camera(run, "", format);
      camera.play(scene, 40);
      EXPECT_EQ(camera.end(), "");
    }
  }
}

/// A clock in the picture runs while the rest is frozen. The region excludes the clock.
TEST(watches_a_region, Each::run) {
  const auto clock = [](unsigned i) {
    cv::Mat frame = frozen(0);
    frame(cv::Rect(100, 4, 40, 12)).setTo(i % 2 ? 30 : 200);
    return frame;
  };
  const auto mark = [](GstBuffer* frame) {
    gst_buffer_add_video_region_of_interest_meta(frame, "clock", 96, 0, 50, 20);
  };
  for (bool left_out : {false, true}) {
    Camera camera(run, left_out ? "region=outside-roi" : "");
    camera.play(clock, 4, mark);
    EXPECT_EQ(camera.end(), left_out ? "2.0: frozen begin since 0.0; 3.8: frozen end since 0.0" : "");
  }
  Camera camera(run, "region=roi roi-type=face");  // no pixels: nothing is known
  camera.play(dark, 4, mark);
  EXPECT_EQ(camera.end(), "");
}

TEST(counts_time_without_timestamps, Each::run) {
  Camera camera(run);
  camera.play(dark, 2,
              [](GstBuffer* frame) { GST_BUFFER_PTS(frame) = GST_BUFFER_DURATION(frame) = GST_CLOCK_TIME_NONE; });
  const std::string told = camera.end();
  EXPECT_CONTAINS(told, "dark begin");
  EXPECT_CONTAINS(told, "dark end");
}

// Ends ----------------------------------------------------------------------------------------------------------------

TEST(ends_what_began, Each::run) {
  const std::pair<const char*, std::function<void(Camera&)>> ends[] = {
      {"eos", [](Camera& camera) { gst_harness_push_event(camera.rig.harness(), gst_event_new_eos()); }},
      {"flush", [](Camera& camera) { flush(camera.rig); }},
      {"caps",
       [](Camera& camera) {
         camera.rig.caps_alone(caps_text("NV12", {64, 48}));
       }},
      {"stop", [](Camera& camera) { gst_element_set_state(camera.rig.element(), GST_STATE_READY); }}};
  for (const auto& [name, end] : ends) {
    at(name);
    Camera camera(run);
    camera.play(frozen, 3);
    camera.play(dark, 2);
    end(camera);
    EXPECT_EQ(
        camera.told(),
        "2.0: frozen begin since 0.0; 4.0: dark begin since 3.0; 4.8: dark end since 3.0; 4.8: frozen end since 0.0");
    if (std::string(name) == "flush") {
      camera.play(dark, 2);
      EXPECT_EQ(camera.end(), "6.0: dark begin since 5.0; 6.8: dark end since 5.0");
    }
    gst_element_set_state(camera.rig.element(), GST_STATE_NULL);
    EXPECT_EQ(camera.told(), "");
  }
}

TEST(ends_what_began_when_the_watch_ends, Each::run) {
  for (const char* more : {"sharpness=false", "sharpness=true add-meta=true"}) {
    at(more);
    Camera camera(run, more);
    camera.play(dark, 2);
    set(camera.rig.element(), "watch=false");
    camera.play(dark, 1);
    EXPECT_EQ(camera.told(), "1.0: dark begin since 0.0; 1.8: dark end since 0.0");
    set(camera.rig.element(), "watch=true");
    camera.play(dark, 2);
    EXPECT_EQ(camera.end(), "4.0: dark begin since 3.0; 4.8: dark end since 3.0");
  }
}

/// Lost frames do not end a condition, but the next frame is not compared.
TEST(goes_on_after_lost_frames, Each::run) {
  Camera camera(run, "watch-time=1");
  const auto lost = [](GstBuffer* frame) { GST_BUFFER_FLAG_SET(frame, GST_BUFFER_FLAG_DISCONT); };
  camera.play(dark, 2);
  camera.play(dark, 0.2, lost);
  camera.play(dark, 1);
  camera.play(frozen, 2);
  camera.play(frozen, 0.2, lost);
  camera.play(frozen, 1);
  EXPECT_EQ(
      camera.end(),
      "1.0: dark begin since 0.0; 4.2: dark end since 0.0; 5.0: frozen begin since 4.0; 6.2: frozen end since 4.0");
}

TEST(keeps_watching_when_properties_change, Each::run) {
  Camera camera(run);
  const char* const changes[] = {"sharpness=true", "bins=64",       "overlay=true",    "equalize=true",
                                 "overlay=false",  "add-meta=true", "equalize=false",  "interval=1000000000",
                                 "add-meta=false", "bins=256",      "sharpness=false", "channels=all"};
  for (const char* change : changes) {
    set(camera.rig.element(), change);
    camera.play(frozen, 0.2);
  }
  camera.play(frozen, 0.4);
  EXPECT_EQ(camera.end(), "2.0: frozen begin since 0.0; 2.6: frozen end since 0.0");
}

TEST(watches_with_frames_that_wait, Each::run) {
  for (const char* settings : {"async-depth=3", "async-depth=3 equalize=true", "async-depth=2 add-meta=true"}) {
    at(settings);
    Camera camera(run, "");
    GstHarness* harness = camera.rig.harness();
    set(camera.rig.element(), settings);
    for (int i = 0; i < 30; ++i) {
      Buffer frame = frame_of(camera.rig.video(), i < 10 ? dark(unsigned(i)) : frozen(0));
      frame = timed(std::move(frame), guint64(i) * step, step);
      EXPECT_EQ(gst_harness_push(harness, frame.release()), GST_FLOW_OK);
    }
    const std::string told = camera.end();
    EXPECT_EQ(gst_harness_buffers_in_queue(harness), 30);
    EXPECT_EQ(
        told,
        "1.0: dark begin since 0.0; 3.0: dark end since 0.0; 4.8: frozen begin since 2.8; 5.8: frozen end since 2.8");
  }
}

int main() { return run_tests("histogram_watch", "cudahistogram"); }
