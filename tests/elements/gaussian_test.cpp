// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/gaussian/gaussian.hpp"

#include <tuple>

#include "tests/elements/plans.hpp"

using namespace cudavision;
using namespace cudavision::test;

namespace {

const Size size{61, 43};

gaussian::Params kernel(int width, int height, double sigma_x = 0, double sigma_y = 0) {
  gaussian::Params params;
  params.kernel_width = width, params.kernel_height = height;
  params.sigma_x = sigma_x, params.sigma_y = sigma_y;
  return params;
}

}  // namespace

TEST(filters_like_its_plan, Each::run) {
  struct Case {
    const char* settings;
    gaussian::Params params;
  };
  for (const Case& c :
       {Case{"", {}}, Case{"kernel-size=1", kernel(1, 1)}, Case{"kernel-size=31", kernel(31, 31)},
        Case{"kernel-size=5 sigma=2.5", kernel(5, 5, 2.5, 2.5)}, Case{"kernel-width=3 kernel-height=11", kernel(3, 11)},
        Case{"kernel-width=7", kernel(7, 5)}, Case{"kernel-height=7", kernel(5, 7)},
        Case{"kernel-size=9 sigma-x=0.8 sigma-y=3", kernel(9, 9, 0.8, 3)},
        Case{"kernel-size=9 sigma=2 sigma-y=0.6", kernel(9, 9, 2, 0.6)},
        // An unset size follows sigma in each direction. A direction without a sigma keeps 5 taps.
        Case{"kernel-size=0 sigma=1.7", kernel(0, 0, 1.7, 1.7)}, Case{"sigma=5", kernel(0, 0, 5, 5)},
        Case{"sigma=0.4", kernel(0, 0, 0.4, 0.4)}, Case{"sigma=3 sigma-y=1", kernel(0, 0, 3, 1)},
        Case{"sigma-x=3", kernel(0, 5, 3, 0)}, Case{"sigma-y=3", kernel(5, 0, 0, 3)},
        Case{"kernel-size=0", kernel(1, 1)}, Case{"kernel-size=0 kernel-width=0 sigma=0", kernel(1, 1)},
        Case{"kernel-size=0 sigma-x=2", kernel(0, 1, 2, 0)}, Case{"kernel-size=0 sigma-y=1.7", kernel(1, 0, 0, 1.7)},
        // A size that is set stays, in any order of settings.
        Case{"sigma=2 kernel-width=9", kernel(9, 0, 2, 2)}, Case{"kernel-height=9 sigma=2", kernel(0, 9, 2, 2)},
        Case{"sigma=2 kernel-size=9", kernel(9, 9, 2, 2)}, Case{"kernel-size=9 sigma=2", kernel(9, 9, 2, 2)},
        Case{"sigma=2 kernel-size=5", kernel(5, 5, 2, 2)}})
    expect_plan(run, c.settings, c.params, {"GRAY8", "BGRx", "NV12", "YUY2", "Y42B", "RGBA64_LE"});
}

TEST(kernel_size_says_what_it_follows, Each::run) {
  Rig rig(run, "");
  const auto kernel_size = [&rig] { return get<guint>(rig.element(), "kernel-size"); };
  EXPECT_EQ(kernel_size(), 5);
  set(rig.element(), "sigma=3");
  EXPECT_EQ(kernel_size(), 0);
  set(rig.element(), "sigma=0");
  EXPECT_EQ(kernel_size(), 5);
  set(rig.element(), "sigma-y=1");
  EXPECT_EQ(kernel_size(), 0);
  set(rig.element(), "kernel-size=7");
  set(rig.element(), "sigma=9");
  EXPECT_EQ(kernel_size(), 7);
}

TEST(warns_of_kernels_that_cut_sigma_short, Each::run) {
  Rig deep(run, "kernel-size=5 sigma=15");  // properties_test.cpp tests 8 bits
  deep.caps(caps_text("GRAY16_LE", {320, 320}));
  EXPECT_EQ(deep.warning().text, "kernel-size=5 holds 13 % of the weight of sigma=15: 121 taps hold 100 %");
  at("a change");
  Rig rig(run, "sigma=2", caps_text("GRAY8", {320, 320}));
  rig.filter(noise(rig.video()));
  EXPECT_EQ(rig.warning().text, "");
  for (const char* value : {"70", "80"}) {  // as a controller may set it
    set(rig.element(), std::string("sigma=") + value);
    rig.filter(noise(rig.video()));
    EXPECT_EQ(rig.warning().text.empty(), std::string(value) == "80");
  }
}

TEST(accepts_opencvs_border_names, Each::run) {
  for (const auto& [settings, border, value] : {std::tuple{"constant", Border::constant, 0},
                                                {"constant border-value=140", Border::constant, 140},
                                                {"replicate", Border::replicate, 0},
                                                {"reflect", Border::reflect, 0},
                                                {"wrap", Border::wrap, 0},
                                                {"reflect-101", Border::reflect_101, 0}}) {
    gaussian::Params params = kernel(13, 13);
    params.border = border;
    params.border_value.fill(std::uint16_t(value));
    expect_plan(run, std::string("kernel-size=13 border=") + settings, params, {"GRAY8", "RGB"});
  }
}

TEST(converts_the_border_colour, Each::run) {
  // A flat frame of the border colour does not change.
  struct Case {
    const char *format, *more, *settings;
    std::vector<int> values;
  };
  for (const Case& c :
       {Case{"NV12", "", "", {16, 128, 128}},
        {"NV12", ",colorimetry=bt601", "border-value=0xff000000", {16, 128, 128}},
        {"NV12", ",colorimetry=bt601", "border-value=0xffff0000", {81, 90, 240}},
        {"NV21", ",colorimetry=bt601", "border-value=0xffff0000", {81, 90, 240}},
        {"YUY2", ",colorimetry=bt709", "border-value=0xffff0000", {63, 102, 240}},
        {"YUY2", ",colorimetry=smpte240m", "border-value=0xff0000ff", {35, 240, 116}},
        {"I420", ",colorimetry=bt601", "border-value=255", {235, 128, 128}},
        {"P010_10LE", "", "", {64, 512, 512}},
        {"GRAY8", "", "border-value=140", {140}},
        {"GRAY16_LE", "", "border-value=255", {65535}},
        {"RGB", "", "border-value=0x44112233", {0x11, 0x22, 0x33}},
        {"BGR", "", "border-value=0x44112233", {0x11, 0x22, 0x33}},
        {"RGBA", "", "border-value=0x44112233 filter-alpha=true", {0x11, 0x22, 0x33, 0x44}},
        {"BGRA", "", "border-value=0x44112233 filter-alpha=true", {0x11, 0x22, 0x33, 0x44}},
        {"ARGB", "", "border-value=0x44112233 filter-alpha=true", {0x11, 0x22, 0x33, 0x44}},
        {"ABGR", "", "border-value=0x44112233 filter-alpha=true", {0x11, 0x22, 0x33, 0x44}},
        {"GBR", "", "border-value=0x44112233", {0x11, 0x22, 0x33}},
        {"RGBA64_LE", "", "border-value=0x44112233 filter-alpha=true", {0x1111, 0x2222, 0x3333, 0x4444}}}) {
    at(c.format + std::string(" ") + c.more + " " + c.settings);
    Rig rig(run, "kernel-size=9 border=constant " + std::string(c.settings), caps_text(c.format, size, c.more));
    const Buffer frame = flat(rig.video(), c.values);
    EXPECT_SAME(rig.filter(frame), picture(frame.get(), rig.video()));
  }
}

TEST(warns_of_kernels_larger_than_the_frame, Each::run) {
  Rig rig(run, "kernel-size=31", caps_text("GRAY8", {16, 8}));
  const Buffer frame = noise(rig.video());
  EXPECT_SAME(rig.filter(frame), planned(kernel(31, 31), rig.video(), frame));
  const Message warning = rig.warning();
  EXPECT_CONTAINS(warning.text, "31×31");
  EXPECT_CONTAINS(warning.text, "16×8");
  rig.filter(frame);
  EXPECT_EQ(rig.warning().text, "");
}

TEST(filters_alpha_only_if_asked, Each::run) {
  const std::vector<const char*> formats{"RGBA", "BGRA", "ARGB", "ABGR", "RGBx", "BGRx", "xRGB", "xBGR"};
  gaussian::Params params;
  expect_plan(run, "", params, formats);
  params.filter_alpha = true;
  expect_plan(run, "filter-alpha=true", params, formats);
}

int main() { return run_tests("gaussian", "cudagaussian"); }
