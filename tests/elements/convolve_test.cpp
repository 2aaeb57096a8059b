// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/convolve/convolve.hpp"

#include "tests/elements/plans.hpp"

using namespace cudavision;
using namespace cudavision::test;
using convolve::Params;
using convolve::Preset;

namespace {

const Size size{61, 43};
const std::vector<double> lopsided{1, 2, 3, 4, -5, 6, 7, 8, -9};  // all different, sum 17
const std::string lopsided_text = "weights=<1,2,3,4,-5,6,7,8,-9> ";

/// The parameters of the plan. `change` sets those that differ from the defaults.
Params params_of(
    Preset preset, void (*change)(Params&) = [](Params&) {}) {
  Params params;
  params.preset = preset;
  change(params);
  return params;
}
Params params_of(
    const std::vector<double>& weights, void (*change)(Params&) = [](Params&) {}) {
  Params params = params_of(Preset::custom, change);
  params.weights = weights;
  return params;
}

void expect_plan(const Run& run, const std::string& settings, const Params& params,
                 const std::vector<const char*>& formats = {"GRAY8", "RGB", "GBR", "NV12", "YUY2"}) {
  cudavision::test::expect_plan(run, settings, params, formats, run.backend == "cuda" ? 1 : 0);
}

/// Sets weights from a GstValueArray of numbers of type T.
template <typename T>
void set_weights(GstElement* element, GType type, const std::vector<double>& weights, void (*put)(GValue*, T)) {
  g_auto(GValue) array = G_VALUE_INIT;
  g_value_init(&array, GST_TYPE_ARRAY);
  for (double weight : weights) {
    GValue item = G_VALUE_INIT;
    g_value_init(&item, type);
    put(&item, T(weight));
    gst_value_array_append_and_take_value(&array, &item);
  }
  g_object_set_property(G_OBJECT(element), "weights", &array);
}

}  // namespace

/// The example of weights in gst-inspect must be valid.
TEST(accepts_the_weights_of_its_description, Each::run) {
  Rig rig(run);
  const std::string text =
      g_param_spec_get_blurb(g_object_class_find_property(G_OBJECT_GET_CLASS(rig.element()), "weights"));
  const std::size_t begin = text.find('<'), end = text.find('>');
  EXPECT(end != std::string::npos);
  set(rig.element(), "weights=" + text.substr(begin, end + 1 - begin));
  rig.caps(caps_text("GRAY8", size));
  const Buffer frame = noise(rig.video());
  EXPECT_SAME(rig.filter(frame), planned(params_of({0, -1, 0, -1, 5, -1, 0, -1, 0}), rig.video(), frame));
}

TEST(accepts_weights_in_every_form, Each::run) {
  const GstVideoInfo video = video_info("GRAY8", size);
  const Buffer frame = noise(video);
  const Picture expected = planned(params_of(lopsided), video, frame);
  const std::pair<const char*, void (*)(GstElement*)> forms[] = {
      {"text", [](GstElement* e) { gst_util_set_object_arg(G_OBJECT(e), "weights", "<1,2,3,4,-5,6,7,8,-9>"); }},
      {"text with points",
       [](GstElement* e) {
         gst_util_set_object_arg(G_OBJECT(e), "weights", "<1.0, 2.0, 3.0, 4.0, -5.0, 6.0, 7.0, 8.0, -9.0>");
       }},
      {"double", [](GstElement* e) { set_weights<double>(e, G_TYPE_DOUBLE, lopsided, g_value_set_double); }},
      {"int", [](GstElement* e) { set_weights<int>(e, G_TYPE_INT, lopsided, g_value_set_int); }},
      {"float", [](GstElement* e) { set_weights<float>(e, G_TYPE_FLOAT, lopsided, g_value_set_float); }}};
  for (const auto& [form, set_form] : forms) {
    at(form);
    Rig rig(run, "preset=box");
    GObject* element = G_OBJECT(rig.element());
    int notified = 0;
    g_signal_connect(element, "notify::preset", G_CALLBACK(+[](GObject*, GParamSpec*, int* count) { ++*count; }),
                     &notified);
    set_form(rig.element());
    EXPECT_EQ(notified, 1);
    EXPECT_EQ(get_enum(element, "preset"), "custom");
    rig.caps(caps_text("GRAY8", size));
    EXPECT_SAME(rig.filter(frame), expected);

    g_auto(GValue) array = G_VALUE_INIT;
    g_value_init(&array, GST_TYPE_ARRAY);
    g_object_get_property(element, "weights", &array);
    EXPECT_EQ(gst_value_array_get_size(&array), 9u);
    for (guint i = 0; i < 9; ++i) EXPECT_EQ(g_value_get_double(gst_value_array_get_value(&array, i)), lopsided[i]);
  }
}

TEST(applies_divisor_bias_and_absolute, Each::run) {
  expect_plan(run, lopsided_text, params_of(lopsided));
  expect_plan(run, lopsided_text + "divisor=-3", params_of(lopsided, [](Params& p) { p.divisor = -3; }));
  expect_plan(run, lopsided_text + "divisor=32 bias=40.5",
              params_of(lopsided, [](Params& p) { p.divisor = 32, p.bias = 40.5; }));
  expect_plan(run, lopsided_text + "divisor=16 bias=-90 absolute=true",
              params_of(lopsided, [](Params& p) { p.divisor = 16, p.bias = -90, p.absolute = true; }));
  expect_plan(run, "preset=sobel-x", params_of(Preset::sobel_x));
  expect_plan(run, "preset=sobel-x divisor=4 bias=128",
              params_of(Preset::sobel_x, [](Params& p) { p.divisor = 4, p.bias = 128; }));
  expect_plan(run, "preset=laplacian absolute=true",
              params_of(Preset::laplacian, [](Params& p) { p.absolute = true; }));
  for (const convolve::PresetInfo& preset : convolve::presets())
    expect_plan(run, std::string("preset=") + preset.nick,
                params_of(preset.value == Preset::custom ? Preset::identity : preset.value));
  // Without weights the element copies.
  expect_plan(run, "weights=<>", params_of(Preset::identity));
  expect_plan(run, "preset=custom kernel-width=63 anchor-x=62", params_of(Preset::identity));
  expect_plan(run, "preset=custom divisor=2 bias=3",
              params_of(Preset::identity, [](Params& p) { p.divisor = 2, p.bias = 3; }));
}

TEST(follows_kernel_size_and_anchor, Each::run) {
  const std::vector<double> six{1, -2, 3, 4, 5, -6};
  const std::string text = "weights=<1,-2,3,4,5,-6> ";
  expect_plan(run, text + "kernel-width=3", params_of(six, [](Params& p) { p.kernel_width = 3; }));
  expect_plan(run, text + "kernel-height=3", params_of(six, [](Params& p) { p.kernel_height = 3; }));
  expect_plan(run, text + "kernel-width=6 kernel-height=1",
              params_of(six, [](Params& p) { p.kernel_width = 6, p.kernel_height = 1; }));
  expect_plan(run, lopsided_text + "anchor-x=0 anchor-y=2",
              params_of(lopsided, [](Params& p) { p.anchor_x = 0, p.anchor_y = 2; }));
  expect_plan(run, lopsided_text + "flip=true anchor-x=0",
              params_of(lopsided, [](Params& p) { p.flip = true, p.anchor_x = 0; }));
}

TEST(supports_every_border, Each::run) {
  struct Case {
    const char* border;
    Border value;
    std::uint16_t samples = 0;
  };
  for (const Case& c :
       {Case{"constant", Border::constant}, Case{"constant border-value=140", Border::constant, 140},
        Case{"replicate", Border::replicate}, Case{"reflect", Border::reflect}, Case{"wrap", Border::wrap},
        Case{"reflect-101", Border::reflect_101}, Case{"fill", Border::fill},
        Case{"fill border-value=140", Border::fill, 140}, Case{"copy", Border::copy}}) {
    Params params = params_of(Preset::sharpen_5);
    params.border = c.value;
    params.border_value.fill(c.samples);
    // The element converts the border value to YUV, which gaussian_test.cpp tests.
    expect_plan(run, "preset=sharpen-5 border=" + std::string(c.border), params, {"GRAY8", "RGB", "GBR"});
  }
}

TEST(warns_of_kernels_larger_than_the_frame, Each::run) {
  Rig rig(run, "preset=sharpen-5", caps_text("GRAY8", {4, 3}));
  const Buffer frame = noise(rig.video());
  EXPECT_SAME(rig.filter(frame), planned(params_of(Preset::sharpen_5), rig.video(), frame));
  const Message warning = rig.warning();
  EXPECT_CONTAINS(warning.text, "5×5");
  EXPECT_CONTAINS(warning.text, "4×3");
}

/// The description in gst-inspect must match the relief of a raised square, which is bright where it faces the light.
TEST(embosses_with_the_light_that_it_names, Each::run) {
  Rig rig(run, "preset=emboss");
  auto* spec = G_PARAM_SPEC_ENUM(g_object_class_find_property(G_OBJECT_GET_CLASS(rig.element()), "preset"));
  EXPECT_CONTAINS(g_enum_get_value_by_nick(spec->enum_class, "emboss")->value_name, "lit from the top left");
  rig.caps(caps_text("GRAY8", {32, 32}));
  Buffer frame = flat(rig.video(), {100});
  paint(rig.video(), frame, {8, 8, 16, 16}, 110);
  const cv::Mat relief = rig.filter(frame)[0];
  const auto at = [&](int x, int y) { return int(relief.at<guint16>(y, x)); };
  // the top and left edges
  for (int inside : {at(8, 8), at(15, 8), at(8, 15)}) EXPECT(inside > at(15, 15));
  for (int inside : {at(23, 23), at(15, 23), at(23, 15)}) EXPECT(inside < at(15, 15));  // the bottom and right edges
}

TEST(filters_alpha_only_if_asked, Each::run) {
  const std::vector<const char*> formats{"RGBA", "ABGR", "BGRx", "xRGB"};
  expect_plan(run, "preset=sharpen", params_of(Preset::sharpen), formats);
  expect_plan(run, "preset=sharpen filter-alpha=true",
              params_of(Preset::sharpen, [](Params& p) { p.filter_alpha = true; }), formats);
}

int main() { return run_tests("convolve", "cudaconvolve"); }
