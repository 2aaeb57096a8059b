// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares cudagaussian with cv::GaussianBlur.
#include <opencv2/imgproc.hpp>

#include "tests/elements/harness.hpp"

using namespace cudavision::test;

namespace {

const Size size{61, 43};

struct Kernel {
  int width = 5, height = 5;
  double sigma_x = 0, sigma_y = 0;
};

cv::Mat blurred(const cv::Mat& samples, const Kernel& kernel, int border = cv::BORDER_REFLECT_101) {
  cv::Mat bytes, result;
  samples.convertTo(bytes, CV_8U);
  cv::GaussianBlur(bytes, result, {kernel.width, kernel.height}, kernel.sigma_x, kernel.sigma_y, border);
  result.convertTo(result, CV_16U);
  return result;
}

/// cv::GaussianBlur lacks the borders wrap and fill, so this extends the frame first.
cv::Mat blurred_beyond(const cv::Mat& samples, const Kernel& kernel, int border, int value = 0) {
  const int x = kernel.width / 2, y = kernel.height / 2;
  cv::Mat extended;
  cv::copyMakeBorder(samples, extended, y, y, x, x, border, cv::Scalar(value));
  return blurred(extended, kernel)(cv::Rect(x, y, samples.cols, samples.rows)).clone();
}

template <typename F>
Picture each(const Picture& input, F&& f) {
  Picture result;
  for (const cv::Mat& component : input) result.push_back(f(component));
  return result;
}

}  // namespace

TEST(equals_opencv, Each::run) {
  struct Case {
    const char* settings;
    Kernel kernel;
  };
  for (const Case& c :
       {Case{"", {}}, Case{"kernel-size=1", {1, 1}}, Case{"kernel-size=9", {9, 9}}, Case{"kernel-size=31", {31, 31}},
        Case{"kernel-size=5 sigma=2.5", {5, 5, 2.5, 2.5}}, Case{"kernel-size=0 sigma=1.7", {0, 0, 1.7, 1.7}},
        Case{"kernel-width=3 kernel-height=11", {3, 11}}, Case{"kernel-width=7", {7, 5}},
        Case{"kernel-height=7", {5, 7}}, Case{"kernel-size=9 sigma-x=0.8 sigma-y=3", {9, 9, 0.8, 3}},
        Case{"kernel-size=9 sigma=2 sigma-y=0.6", {9, 9, 2, 0.6}}})
    for (const char* format : {"GRAY8", "RGB", "BGRx", "NV12", "YUY2", "GBR"}) {
      at(format + std::string(" ") + c.settings);
      const GstVideoInfo video = video_info(format, size);
      const Buffer frame = noise(video);
      Picture actual = filtered(run, c.settings, video, frame), input = picture(frame.get(), video);
      // Subsampled chroma has its own test; padding is copied.
      const std::size_t count = GST_VIDEO_INFO_IS_YUV(&video) ? 1 : GST_VIDEO_INFO_N_COMPONENTS(&video);
      actual.resize(count), input.resize(count);
      EXPECT_SAME(actual, each(input, [&](const cv::Mat& m) { return blurred(m, c.kernel); }));
    }
}

TEST(follows_sigma_where_no_size_is_set, Each::run) {
  // As OpenCV with a size of 0, and for each direction; a size that is set stays, whatever comes first.
  struct Case {
    const char* settings;
    Kernel kernel;
  };
  for (const Case& c : {Case{"sigma=5", {0, 0, 5, 5}}, Case{"sigma=0.4", {0, 0, 0.4, 0.4}},

                        Case{"sigma=3 sigma-y=1", {0, 0, 3, 1}}, Case{"sigma=2 kernel-width=9", {9, 0, 2, 2}},
                        Case{"kernel-height=9 sigma=2", {0, 9, 2, 2}}, Case{"sigma=2 kernel-size=9", {9, 9, 2, 2}},
                        Case{"kernel-size=9 sigma=2", {9, 9, 2, 2}}, Case{"sigma=2 kernel-size=5", {5, 5, 2, 2}},
                        Case{"kernel-size=0 sigma-x=2", {0, 1, 2, 0}}}) {
    at(c.settings);
    const GstVideoInfo video = video_info("GRAY8", size);
    const Buffer frame = noise(video);
    EXPECT_SAME(filtered(run, c.settings, video, frame),
                each(picture(frame.get(), video), [&](const cv::Mat& m) { return blurred(m, c.kernel); }));
  }
  at("a direction without a sigma keeps 5 taps");
  const GstVideoInfo video = video_info("GRAY8", size);
  const Buffer frame = noise(video);
  EXPECT_SAME(filtered(run, "sigma-x=3", video, frame),
              filtered(run, "sigma-x=3 kernel-width=19 kernel-height=5", video, frame));
  EXPECT_SAME(filtered(run, "sigma-y=3", video, frame),
              filtered(run, "sigma-y=3 kernel-width=5 kernel-height=19", video, frame));
}

TEST(kernel_size_says_what_it_follows, Each::run) {
  Rig rig(run, "");
  const auto kernel_size = [&rig] {
    guint value = 0;
    g_object_get(rig.element(), "kernel-size", &value, nullptr);
    return int(value);
  };
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
  struct Case {
    const char *settings, *format;
    std::string warning;  ///< empty: none
  };
  for (const Case& c :
       {Case{"kernel-size=5 sigma=15", "GRAY8",
             "kernel-size=5 holds 13 % of the weight of sigma=15: 91 taps hold 99.8 %"},
        Case{"sigma=15 kernel-size=5", "NV12",
             "kernel-size=5 holds 13 % of the weight of sigma=15: 91 taps hold 99.8 %"},
        Case{"kernel-size=5 sigma=15", "GRAY16_LE",
             "kernel-size=5 holds 13 % of the weight of sigma=15: 121 taps hold 100 %"},
        Case{"kernel-size=5 sigma=1000", "GRAY8",
             "kernel-size=5 holds 0.2 % of the weight of sigma=1000: 255 taps, the most there are, hold 10 %"},
        Case{"kernel-size=255 sigma=1000", "GRAY8", "kernel-size=255 holds 10 % of the weight of sigma=1000"},
        Case{"sigma=1000", "GRAY8",
             "sigma is so great that even 255 taps, the most there are, hold less than 95 % of its weight"},
        Case{"kernel-size=0 sigma=66", "GRAY8",
             "sigma is so great that even 255 taps, the most there are, hold less than 95 % of its weight"},
        Case{"sigma-x=70 kernel-height=3", "GRAY8",
             "sigma-x is so great that even 255 taps, the most there are, hold less than 95 % of its weight"},
        Case{"sigma=3 kernel-width=3", "GRAY8",
             "kernel-width=3 holds 38 % of the weight of sigma=3: 19 taps hold 99.8 %"},
        Case{"kernel-size=9 sigma=1 sigma-y=5 kernel-width=1", "GRAY8",
             "kernel-width=1 holds 38 % of the weight of sigma=1: 7 taps hold 100 %; kernel-size=9 holds 63 % of the "
             "weight of sigma-y=5: 31 taps hold 99.8 %"},
        // Nothing is cut short.
        Case{"", "GRAY8", ""}, Case{"sigma=64", "GRAY8", ""}, Case{"sigma=5", "NV12", ""},
        Case{"kernel-size=9 sigma=2", "GRAY8", ""}, Case{"kernel-size=31", "GRAY8", ""},
        Case{"kernel-size=31 sigma=0.5", "I420", ""}}) {
    at(c.format + std::string(" ") + c.settings);
    Rig rig(run, c.settings);
    rig.caps(caps_text(c.format, {320, 320}));
    rig.filter(noise(rig.video()));
    EXPECT_EQ(rig.warning().text, c.warning);
    rig.filter(noise(rig.video()));
    EXPECT_EQ(rig.warning().text, "");  // posted only once
  }
  at("a change");
  Rig rig(run, "sigma=2");
  rig.caps(caps_text("GRAY8", {320, 320}));
  rig.filter(noise(rig.video()));
  EXPECT_EQ(rig.warning().text, "");
  for (const char* value : {"70", "80"}) {  // as a controller may drive it
    set(rig.element(), std::string("sigma=") + value);
    rig.filter(noise(rig.video()));
    EXPECT_EQ(rig.warning().text.empty(), std::string(value) == "80");
  }
}

TEST(copies_the_frame_at_sigma_0, Each::run) {
  for (const char* settings :
       {"kernel-size=0", "kernel-size=0 kernel-width=0 sigma=0", "kernel-size=0 sigma-x=0 sigma-y=0"})
    for (const char* format : {"GRAY8", "NV12", "RGBA64_LE"}) {
      at(format + std::string(" ") + settings);
      const GstVideoInfo video = video_info(format, size);
      const Buffer frame = noise(video);
      EXPECT_SAME(filtered(run, settings, video, frame), picture(frame.get(), video));
    }
  at("one axis");
  const GstVideoInfo video = video_info("GRAY8", size);
  const Buffer frame = noise(video);
  EXPECT_SAME(filtered(run, "kernel-size=0 sigma-y=1.7", video, frame),
              each(picture(frame.get(), video), [](const cv::Mat& m) {
                return blurred(m, {1, 0, 0, 1.7});
              }));
}

TEST(scales_sigma_and_size_to_subsampled_chroma, Each::run) {
  // Radius 2 becomes 1, radius 5 becomes 3, and sigma is halved.
  struct Case {
    const char* settings;
    int luma, chroma;
    double sigma;
  };
  for (const Case& c : {Case{"", 5, 3, (0.15 * 5 + 0.35) / 2}, Case{"kernel-size=11 sigma=3", 11, 7, 1.5}}) {
    at(c.settings);
    for (const char* format : {"I420", "NV21"}) {
      const GstVideoInfo video = video_info(format, size);
      const Buffer frame = noise(video);
      const Picture actual = filtered(run, c.settings, video, frame), input = picture(frame.get(), video);
      const Kernel chroma{c.chroma, c.chroma, c.sigma, c.sigma};
      EXPECT_SAME(Picture({actual[1], actual[2]}), Picture({blurred(input[1], chroma), blurred(input[2], chroma)}));
    }
  }
  at("Y42B, whose chroma is subsampled in one direction");
  const GstVideoInfo video = video_info("Y42B", size);
  const Buffer frame = noise(video);
  EXPECT_SAME(Picture({filtered(run, "kernel-size=11 sigma=3", video, frame)[1]}),
              Picture({blurred(picture(frame.get(), video)[1], {7, 11, 1.5, 3})}));
}

TEST(accepts_opencvs_border_names, Each::run) {
  struct Case {
    const char* settings;
    int border;
    int value = 0;
  };
  for (const Case& c : {Case{"border=constant", cv::BORDER_CONSTANT},
                        Case{"border=constant border-value=140", cv::BORDER_CONSTANT, 140},
                        Case{"border=replicate", cv::BORDER_REPLICATE}, Case{"border=reflect", cv::BORDER_REFLECT},
                        Case{"border=wrap", cv::BORDER_WRAP}, Case{"border=reflect-101", cv::BORDER_REFLECT_101}})
    for (const char* format : {"GRAY8", "RGB"}) {
      at(format + std::string(" ") + c.settings);
      const GstVideoInfo video = video_info(format, size);
      const Buffer frame = noise(video);
      EXPECT_SAME(filtered(run, c.settings + std::string(" kernel-size=13"), video, frame),
                  each(picture(frame.get(), video), [&](const cv::Mat& m) {
                    return blurred_beyond(m, {13, 13}, c.border, c.value);
                  }));
    }
}

TEST(converts_the_border_colour, Each::run) {
  // A flat frame of the border's colour does not change.
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
    Rig rig(run, "kernel-size=9 border=constant " + std::string(c.settings));
    rig.caps(caps_text(c.format, size, c.more));
    const Buffer frame = flat(rig.video(), c.values);
    EXPECT_SAME(rig.filter(frame), picture(frame.get(), rig.video()));
  }
}

TEST(warns_of_kernels_larger_than_the_frame, Each::run) {
  const Kernel kernel{31, 31};
  Rig rig(run, "kernel-size=31");
  rig.caps(caps_text("GRAY8", {16, 8}));
  const Buffer frame = noise(rig.video());
  EXPECT_SAME(rig.filter(frame),
              Picture({blurred_beyond(picture(frame.get(), rig.video())[0], kernel, cv::BORDER_REFLECT_101)}));
  const Message warning = rig.warning();
  EXPECT_CONTAINS(warning.text, "31×31");
  EXPECT_CONTAINS(warning.text, "16×8");
  rig.filter(frame);
  EXPECT_EQ(rig.warning().text, "");  // posted only once
}

TEST(filters_alpha_only_if_asked, Each::run) {
  for (const char* format : {"RGBA", "BGRA", "ARGB", "ABGR", "RGBx", "BGRx", "xRGB", "xBGR"}) {
    at(format);
    const GstVideoInfo video = video_info(format, size);
    const Buffer frame = noise(video);
    const Picture input = picture(frame.get(), video);
    EXPECT_EQ(input.size(), 4u);
    Picture expected = each(input, [](const cv::Mat& m) { return blurred(m, {}); });
    EXPECT_SAME(filtered(run, "filter-alpha=true", video, frame), expected);
    expected[3] = input[3];
    EXPECT_SAME(filtered(run, "", video, frame), expected);
  }
}

int main() { return run_tests("gaussian", "cudagaussian"); }
