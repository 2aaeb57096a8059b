// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares cudablend with its plan, and tests its formats, crops, backgrounds, layouts and memories.
#include "kernels/blend/blend.hpp"

#include <dlfcn.h>

#include <tuple>

#include "tests/elements/mixer.hpp"
#include "tests/elements/plans.hpp"

using namespace cudavision;
using namespace cudavision::test;

// Plan ----------------------------------------------------------------------------------------------------------------

namespace {

/// The division that compositor uses: ORC rounds to nearest before 0.4.39, and down from 0.4.39 on.
blend::Division division() {
  using Version = const char* (*)();
  const auto version = reinterpret_cast<Version>(dlsym(RTLD_DEFAULT, "orc_version_string"));
  int major = 0, minor = 0, micro = 0;
  const bool down = version && std::sscanf(version(), "%d.%d.%d", &major, &minor, &micro) == 3 &&
                    std::tuple(major, minor, micro) >= std::tuple(0, 4, 39);
  return down ? blend::Division::down : blend::Division::nearest;
}

GstVideoInfo video_of(const std::string& text) {
  GstVideoInfo video;
  const Caps caps(gst_caps_from_string(text.c_str()));
  EXPECT(caps && gst_video_info_from_caps(&video, caps.get()));
  return video;
}

blend::Color color_of(const GstVideoInfo& video) {
  const GstVideoColorMatrix matrix = video.colorimetry.matrix;
  return {matrix == GST_VIDEO_COLOR_MATRIX_BT709       ? LumaMatrix::bt709
          : matrix == GST_VIDEO_COLOR_MATRIX_BT2020    ? LumaMatrix::bt2020
          : matrix == GST_VIDEO_COLOR_MATRIX_SMPTE240M ? LumaMatrix::smpte240m
                                                       : LumaMatrix::bt601,
          video.colorimetry.range == GST_VIDEO_COLOR_RANGE_16_235};
}

/// The picture that the plan makes from the first frames of layers, whose parameters are `pads`.
Picture composed_by_plan(const std::string& out, const blend::Background& background, const std::vector<Layer>& layers,
                         std::vector<blend::Pad> pads) {
  const GstVideoInfo output = video_of(out);
  const Buffer result = black(output);
  std::vector<Buffer> frames;
  std::vector<std::unique_ptr<Mapped>> mapped;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const GstVideoInfo video = video_of(layers[i].caps);
    frames.push_back(frame_of(layers[i], video, unsigned(i + 1), 0));
    mapped.push_back(std::make_unique<Mapped>(frames[i], video));
    pads[i].src = mapped[i]->image();
    pads[i].color = color_of(video);
  }
  const auto plan = made(blend::make(geometry_of(output), color_of(output), Backend::cpu, division()));
  {
    const Mapped to(result, output, GST_MAP_WRITE);
    expect_ok(plan->submit(to.image(), background, pads, {}));
  }
  return picture(result.get(), output);
}

/// Plays a picture over a wall that is smaller than the output, and compares it with the result of the plan.
struct Compared {
  std::string settings, pad;
  std::function<void(blend::Pad&)> change = [](blend::Pad&) {};
  blend::Background background = {};

  void expect(const Run& run, const std::string& below, const std::string& above, const std::string& out) const {
    at(below + ", " + above + " to " + out + " " + settings + " " + pad);
    const std::vector<Layer> layers{{caps_text(below, {61, 43}), "operator=source"},
                                    {caps_text(above, {37, 29}), "xpos=9 ypos=5 " + pad}};
    std::vector<blend::Pad> pads(2);
    pads[0].place = {0, 0, 61, 43};
    pads[0].op = blend::Operator::source;
    pads[1].place = {9, 5, 37, 29};
    change(pads[1]);
    pads[0].interpolation = pads[1].interpolation;
    const std::string caps = caps_text(out, {70, 50});
    EXPECT_WITHIN(composed(run, settings, caps, layers), composed_by_plan(caps, background, layers, pads),
                  run.backend == "cuda" ? 1 : 0);
  }
};

}  // namespace

TEST(composes_every_format_like_its_plan, Each::run) {
  const Compared average{"", "operator=average alpha=0.65",
                         [](blend::Pad& pad) { pad.op = blend::Operator::average, pad.alpha = 0.65; }};
  for (const std::string& format : formats(run)) {
    average.expect(run, format, format, format);
    average.expect(run, format, "RGBA", "NV12");
    average.expect(run, "RGB", format, "RGBA");
    average.expect(run, "I420", "RGB", format);
  }
}

TEST(composes_like_its_plan, Each::run) {
  using blend::Pad, blend::Key, blend::Interpolation;
  using Kind = blend::Background::Kind;
  std::vector<Compared> cases;
  const char* const operators[] = {"source", "over",       "add", "subtract", "multiply",
                                   "screen", "difference", "min", "max",      "average"};
  for (int i = 0; i < 10; ++i)
    for (const auto& [text, alpha] : {std::pair{"", 1.0}, {" alpha=0.65", 0.65}})
      cases.push_back({"background=transparent",
                       std::string("operator=") + operators[i] + text,
                       [i, alpha = alpha](Pad& pad) { pad.op = blend::Operator(i), pad.alpha = alpha; },
                       {Kind::transparent}});
  const std::vector<Compared> others{
      {"background=black", "alpha=0", [](Pad& pad) { pad.alpha = 0; }, {Kind::black}},
      {"background=white", "alpha=0.1", [](Pad& pad) { pad.alpha = 0.1; }, {Kind::white}},
      {"background=color background-color=0x80cc6633", "", [](Pad&) {}, {Kind::color, 0x80cc6633}},
      {"", "key=first-pixel key-tolerance=60",
       [](Pad& pad) { pad.key.mode = Key::Mode::first_pixel, pad.key.tolerance = 60; }},
      {"", "key=color key-color=0x3366cc key-tolerance=90 key-softness=40",
       [](Pad& pad) {
         pad.key = {Key::Mode::color, {0.2, 0.4, 0.8}, 90, 40};
       }},
      {"", "width=50 height=31", [](Pad& pad) { pad.place.width = 50, pad.place.height = 31; }},
      {"interpolation=nearest", "width=50 height=12",
       [](Pad& pad) { pad.place.width = 50, pad.place.height = 12, pad.interpolation = Interpolation::nearest; }},
      {"interpolation=area", "width=20 height=40",
       [](Pad& pad) { pad.place.width = 20, pad.place.height = 40, pad.interpolation = Interpolation::area; }}};
  cases.insert(cases.end(), others.begin(), others.end());
  for (const Compared& one : cases)
    for (const auto& [below, above, out] : {std::tuple{"RGB", "RGB", "RGB"},
                                            {"BGRx", "RGBA", "BGR"},
                                            {"RGBA", "ARGB", "BGRA"},
                                            {"NV12", "I420", "NV12"},
                                            {"GRAY8", "Y444", "I420_10LE"}})
      one.expect(run, below, above, out);
}

// Formats -------------------------------------------------------------------------------------------------------------

TEST(honours_colorimetry, Each::run) {
  const std::string rgb = caps_text("RGB", {8, 8});
  std::vector<blend::Pad> pads(1);
  pads[0].place = {0, 0, 8, 8};
  for (const char* colorimetry : {"bt601", "bt709", "bt2020", "smpte240m", "1:4:0:0", "1:3:0:0", "1:5:0:0"})
    for (const char* format : {"Y444", "NV12"}) {
      const std::string caps = caps_text(format, {8, 8}, ",colorimetry=(string)" + std::string(colorimetry));
      for (const auto& [from, to] : {std::pair{caps, rgb}, {rgb, caps}}) {
        at(from + " to " + to);
        EXPECT_WITHIN(composed(run, "", to, {{from}}), composed_by_plan(to, {}, {{from}}, pads),
                      run.backend == "cuda" ? 1 : 0);
      }
    }
}

namespace {

Buffer cropped_noise(const GstVideoInfo& whole, const GstVideoRectangle& part) {
  Buffer frame = noise(whole, 3);
  add_crop(frame.get(), whole, part);
  return frame;
}
Buffer too_small_frame() { return Buffer(gst_buffer_new_allocate(nullptr, 100, nullptr)); }

}  // namespace

/// The metas of a pad's frame do not apply to the composed frame.
TEST(scales_the_cropped_part, Each::run) {
  for (const char* format : {"RGB", "NV12"})
    for (const char* pad : {"width=50 height=31", "width=50 height=50 sizing-policy=keep-aspect-ratio",
                            "width=20 height=40 sizing-policy=fill", "xpos=-10 ypos=30"}) {
      at(format + std::string(" ") + pad);
      const Size small{32, 20};
      const GstVideoInfo whole = video_info(format, {64, 48});
      // a different part of each frame
      const auto part = [](int n) { return GstVideoRectangle{4 * n, 2 * n, 32, 20}; };
      Layer cropped(caps_text(format, small), pad, 5), cut_out = cropped;
      cropped.draw = [&](const GstVideoInfo&, int n) {
        Buffer frame = cropped_noise(whole, part(n));
        gst_buffer_add_video_region_of_interest_meta(frame.get(), "inside", 16, 10, 8, 6);
        return frame;
      };
      cut_out.draw = [&](const GstVideoInfo&, int n) {
        const Buffer frame = noise(whole, 3);
        return cut(whole, frame.get(), part(n));
      };
      const std::string out = caps_text(format, {64, 60});
      const std::vector<Output> all = play(run, "background=white", out, {cropped});
      EXPECT_EQ(all.size(), 5u);
      expect_same(all, play(run, "background=white", out, {cut_out}), 0);
      EXPECT(!gst_buffer_get_video_crop_meta(all[0].buffer.get()) && rois_of(all[0].buffer.get()).empty());
    }
}

/// A repeated frame counts once, however long it is shown.
TEST(ends_a_stream_of_frames_that_do_not_fit, Each::run) {
  const std::string caps = caps_text("RGB", {32, 20});
  Mixer mixer(run, "background=black", caps, {caps, caps});
  mixer.play();
  for (int n = 0; n < 29; ++n) {
    mixer.push(0, flat(mixer.video(0), {90}));
    mixer.push(1, too_small_frame());
    mixer.pull();
  }
  EXPECT_EQ(mixer.error(0).text, "");
  mixer.push(0, flat(mixer.video(0), {90}));
  mixer.push(1, too_small_frame());
  EXPECT_CONTAINS(mixer.error(5 * GST_SECOND).text, "sink_1: 30 frames in a row do not fit their caps: ");
}

/// Such frames are dropped, as in compositor, with one warning for consecutive ones.
TEST(drops_frames_that_do_not_fit_their_caps, Each::run) {
  const Size size{32, 20};
  const GstVideoInfo whole = video_info("RGB", {64, 48});
  // '+' is a good frame, 'c' a crop outside the frame, and 's' a frame that is too small.
  const std::string shown = "+cs++s+ss+c";
  Mixer mixer(run, "background=black", caps_text("RGB", size), {caps_text("RGB", size), caps_text("RGB", size)});
  mixer.play();
  for (std::size_t n = 0; n < shown.size(); ++n) {
    at("frame " + std::to_string(n));
    const bool good = shown[n] == '+';
    mixer.push(0, flat(mixer.video(0), {100}));
    mixer.push(1, good              ? flat(mixer.video(1), {200})
                  : shown[n] == 'c' ? cropped_noise(whole, {40, 4, 32, 20})
                                    : too_small_frame());
    EXPECT_SAME(mixer.next().shown(), plain(video_info("RGB", size), {good ? 200 : 100}));
    const bool first = !good && shown[n - 1] == '+';
    const Message message = mixer.warning(0);
    if (first) EXPECT_CONTAINS(message.text, "sink_1");
    EXPECT_EQ(message.text.empty(), !first);
  }
  for (int i = 0; i < 2; ++i) mixer.end(i);
  EXPECT(!mixer.pull());
  EXPECT(mixer.error(0).text.empty());
}

/// A hidden frame is not read, so the element does not warn if it does not fit its caps.
TEST(does_not_read_hidden_frames, Each::run) {
  struct Case {
    const char *format, *pad;
    bool hides;
  };
  for (const Case& above : {Case{"RGB", "", true},
                            {"RGB", "operator=add", true},
                            {"RGB", "operator=source", true},
                            {"RGB", "operator=average", true},
                            {"RGB", "width=40 height=30 xpos=-4 ypos=-6", true},
                            {"RGBA", "operator=source", true},
                            {"RGBA", "operator=average", true},
                            {"RGBA", "", false},
                            {"RGBA", "operator=add", false},
                            {"RGB", "alpha=0.9", false},
                            {"RGB", "operator=multiply", false},
                            {"RGB", "key=color", false},
                            {"RGB", "width=31", false},
                            {"RGB", "ypos=1", false}}) {
    at(above.format + std::string(" ") + above.pad);
    Mixer mixer(run, "background=black", caps_text("RGB", {32, 20}), {caps_text("RGB", {32, 20})});
    mixer.add(caps_text(above.format, {32, 20}), above.pad);
    mixer.play();
    mixer.push(0, too_small_frame());
    mixer.push(1, noise(mixer.video(1)));
    EXPECT_EQ(mixer.finish().size(), 1u);
    const std::string text = mixer.warning(0).text;
    if (!above.hides) EXPECT_CONTAINS(text, "sink_0");
    EXPECT_EQ(text.empty(), above.hides);
  }
}

// Layouts -------------------------------------------------------------------------------------------------------------

TEST(follows_each_sizing_policy, Each::run) {
  using blend::SizingPolicy;
  struct Case {
    const char* pad;
    Rect box;
    SizingPolicy policy;
  };
  for (const Case& c :
       {Case{"width=20 height=20 xpos=5 ypos=7", {5, 7, 20, 20}, SizingPolicy::none},
        {"width=20 height=20 xpos=5 ypos=7 sizing-policy=none", {5, 7, 20, 20}, SizingPolicy::none},
        {"width=20 height=20 xpos=5 ypos=7 sizing-policy=keep-aspect-ratio",
         {5, 7, 20, 20},
         SizingPolicy::keep_aspect_ratio},
        {"width=60 height=20 sizing-policy=keep-aspect-ratio", {0, 0, 60, 20}, SizingPolicy::keep_aspect_ratio},
        {"width=20 height=20 xpos=5 ypos=7 sizing-policy=fill", {5, 7, 20, 20}, SizingPolicy::fill},
        {"sizing-policy=fill", {0, 0, 40, 20}, SizingPolicy::fill}}) {
    at(c.pad);
    const std::vector<Layer> layers{{caps_text("RGB", {40, 20}), c.pad}};
    const blend::Fit fitted = blend::fit(c.box, 40, 20, 1, c.policy);
    std::vector<blend::Pad> pads(1);
    pads[0].place = fitted.place, pads[0].crop = fitted.crop;
    const std::string out = caps_text("RGB", {60, 60});
    EXPECT_WITHIN(composed(run, "", out, layers), composed_by_plan(out, {}, layers, pads),
                  run.backend == "cuda" ? 1 : 0);
  }
}

TEST(lays_out_a_grid, Each::run) {
  struct Case {
    int pads, columns, rows, gap;
  };
  for (const Case& c : {Case{36, 6, 6, 0}, {36, 0, 0, 0}, {5, 0, 0, 3}, {4, 4, 0, 2}, {4, 0, 4, 2}, {7, 3, 2, 1}}) {
    const std::string settings = "layout=grid columns=" + std::to_string(c.columns) +
                                 " rows=" + std::to_string(c.rows) + " gap=" + std::to_string(c.gap);
    at(std::to_string(c.pads) + " pads, " + settings);
    const std::vector<Rect> cells = blend::grid_layout(c.pads, c.columns, c.rows, c.gap, 211, 173);
    std::vector<Layer> layers;
    std::vector<blend::Pad> pads(cells.size());
    for (int i = 0; i < c.pads; ++i) {
      layers.push_back({caps_text("RGB", {31 + i, 17 + 3 * i})});
      pads[std::size_t(i)].place = cells[std::size_t(i)];
    }
    const std::string out = caps_text("RGB", {211, 173});
    EXPECT_WITHIN(composed(run, settings, out, layers), composed_by_plan(out, {}, layers, pads),
                  run.backend == "cuda" ? 1 : 0);
  }
}

TEST(honours_sizing_in_a_grid, Each::run) {
  const Picture result = composed(run, "layout=grid background=black", caps_text("RGB", {80, 40}),
                                  {{caps_text("RGB", {10, 5}), "sizing-policy=keep-aspect-ratio", {255, 0, 0}},
                                   {caps_text("RGB", {10, 5}), "xpos=3 ypos=2 width=5 height=5", {0, 255, 0}}});
  EXPECT_SAME(result, drawn(result, [](int x, int y) {
                return x >= 40 ? Color{0, 255, 0, 0} : y >= 10 && y < 30 ? Color{255, 0, 0, 0} : Color{0, 0, 0, 0};
              }));
}

TEST(frees_the_cells_of_hidden_pads, Each::run) {
  struct Case {
    const char *settings, *pad;
    bool frees;
  };
  for (const Case& c : {Case{"zero-size-is-unscaled=false ", "width=0", true},
                        {"zero-size-is-unscaled=false ", "height=0", true},
                        {"zero-size-is-unscaled=false ", "alpha=0", false},
                        {"", "width=0 alpha=0", false}}) {
    at(c.settings + std::string(c.pad));
    const std::string caps = caps_text("RGB", {10, 10});
    // The output has its natural size, so the cells are as large as the pads.
    const Picture result = composed(run, c.settings + std::string("layout=grid rows=1 background=black"), "video/x-raw",
                                    {{caps, "", {255, 0, 0}}, {caps, c.pad, {0, 0, 255}}, {caps, "", {0, 255, 0}}});
    EXPECT_SAME(
        result, drawn(result, [&](int x, int) {
          return x < 10 ? Color{255, 0, 0, 0} : x >= (c.frees ? 10 : 20) ? Color{0, 255, 0, 0} : Color{0, 0, 0, 0};
        }));
    EXPECT_EQ(result[0].cols, c.frees ? 20 : 30);
  }
}

// Memories ------------------------------------------------------------------------------------------------------------

TEST(accepts_system_and_cuda_memory, Each::run) {
  if (run.backend != "cuda") return;
  const Size size{64, 48};
  const std::vector<Layer> layers{{caps_text("NV12", size)},
                                  {caps_text("RGBA", {32, 24}), "xpos=10 ypos=6 alpha=0.5"},
                                  {caps_text("I420", {20, 20}), "xpos=40 operator=average alpha=0.65 key=first-pixel"}};
  for (const char* out : {"NV12", "RGBA"})
    for (int on_device = 0; on_device < 16; ++on_device) {
      at(out + std::string(" ") + std::to_string(on_device));
      Mixer mixer(run, "background=black", caps_text(out, size, "", on_device & 8 ? cuda_memory : nullptr));
      for (int i = 0; i < 3; ++i)
        mixer.add(layers[std::size_t(i)].caps, layers[std::size_t(i)].pad, on_device >> i & 1);
      mixer.play();
      feed(mixer, layers);
      const std::vector<Output> all = mixer.rest();
      EXPECT_EQ(all.size(), 1u);
      EXPECT_WITHIN(all[0].shown(), composed({run.element, "cpu"}, "background=black", caps_text(out, size), layers),
                    1);
    }
}

int main() { return run_tests("blend", "cudablend"); }
