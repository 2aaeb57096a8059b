// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares the CPU backend's update of many mixtures at once (kernels/diff/cpu_mog2.cpp) with the update of one pixel,
// which CUDA uses (kernels/diff/mog2.hpp): every mask and every mean must have the same bits.
#include "kernels/core/backend.hpp"
#include "tests/kernels/harness.hpp"
#include "tests/kernels/reference/diff.hpp"
#if CUDAVISION_CPU
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=off")  // as the kernels are built
#endif
#include "kernels/diff/cpu_stages.hpp"
#include "kernels/diff/plan.hpp"

namespace cudavision::test {
namespace {

struct Settings {
  double learning_rate = -1;
  int history = 500;
  double variance_threshold = 16;
  bool luma_only = false;
  double shadow_threshold = 0;  ///< 0: shadows are kept
  int most = 255;               ///< the largest sample, in 8-bit steps
};

/// Samples are close to one of three values of their position, or random. Some frames are dark.
Picture frame_of(const Geometry& geometry, int number, int most) {
  Random random(unsigned(number) + 1);
  Picture out = make_picture(geometry, unsigned(number));  // also fills the bytes between samples
  const int max = out.format().max_value(), step = std::max(1, max / 255);
  for (const Component& c : out.format().components) {
    int i = 0;
    out.change(c, [&](int, int, int) {
      const int kind = random.below(16), place = (i++ * 37 + 50) % 140;
      int value = kind == 0 ? random.below(256) : place + (kind < 3 ? 40 : kind < 5 ? 90 : 0) + random.between(-4, 4);
      if (number % 7 == 5) value = value * 7 / 10;
      if (most < 255) value = random.below(most + 1);
      return std::clamp(value * step + random.below(step), 0, max);
    });
  }
  return out;
}

/// Fills stack memory with garbage, so that a sanitizer notices a result computed from an uninitialised variable.
[[gnu::noinline]] void dirty_stack() {
  volatile unsigned char bytes[1 << 16];
  for (volatile unsigned char& byte : bytes) byte = 0x9d;
}

template <typename T, int C>
std::vector<bool> each_pixel(const diff::mog2::Job& job, const diff::mog2::Rates& rates) {
  std::vector<bool> foreground;
  for (const auto& [x, y] : positions(job)) foreground.push_back(diff::mog2::pixel<T, C>(job, rates, x, y));
  return foreground;
}

/// Compares both updates. Returns the share of foreground in all frames.
double compare(const Geometry& geometry, const Settings& settings, int frames) {
  diff::Params params = reference::without_light();
  params.reference = diff::Reference::mog2;
  params.learning_rate = settings.learning_rate;
  params.history = settings.history;
  params.variance_threshold = settings.variance_threshold;
  params.luma_only = settings.luma_only;
  params.drop_shadows = settings.shadow_threshold > 0;
  params.shadow_threshold = settings.shadow_threshold;
  const auto plan = diff::resolve(params, geometry);
  EXPECT_TRUE(plan.ok());
  const int channels = diff::compared_channels(plan.value());
  const bool bytes = info(geometry.format).sample_bytes() == 1;
  std::vector<unsigned char> state(diff::mog2::state_bytes(geometry.width, geometry.height, channels));
  std::vector<unsigned char> row_state(diff::mog2::row_state_bytes(geometry.width, geometry.height, channels));
  Picture shown = make_picture(geometry, 3), rows_shown = shown;
  std::uint64_t began = 0, found = 0;
  for (int i = 0; i < frames; ++i) {
    Picture src = frame_of(geometry, i, settings.most);
    const bool begin = i == 0 || i == frames / 2;
    if (begin) began = std::uint64_t(i);
    const auto job_on = [&](Picture& reference) {
      diff::Frame frame;
      frame.src = src.at(src.bytes().data());
      frame.reference = reference.at(reference.bytes().data());
      frame.compared = !begin;
      frame.number = std::uint64_t(i);
      return diff::mixture_job(plan.value(), frame);
    };
    diff::mog2::Job job = job_on(shown);
    const diff::mog2::Rates rates = diff::mog2::rates_of(job, began);
    diff::mog2::set_state(job, state.data(), channels);
    const auto foreground =
        bytes ? channels == 1 ? each_pixel<std::uint8_t, 1>(job, rates) : each_pixel<std::uint8_t, 3>(job, rates)
        : channels == 1 ? each_pixel<std::uint16_t, 1>(job, rates)
                        : each_pixel<std::uint16_t, 3>(job, rates);
    cv::Mat changed(geometry.height, geometry.width, CV_8U, cv::Scalar(7));
    const diff::mog2::Job rows_job = job_on(rows_shown);
    for (int y = 0; y < geometry.height; y += 5) {
      dirty_stack();
      diff::mog2::update_rows(rows_job, rates, bytes, channels, row_state.data(), y, std::min(y + 5, geometry.height),
                              changed);
    }
    for (std::size_t at = 0; at < foreground.size(); ++at) {
      const int x = int(at) % geometry.width, y = int(at) / geometry.width;
      found += foreground[at];
      if (changed.at<uchar>(y, x) == (foreground[at] ? 255 : 0)) continue;
      ADD_FAILURE() << "frame " << i << ", pixel " << x << ", " << y << ": " << int(changed.at<uchar>(y, x));
      return 0;
    }
    if (settings.most < 255) {
      const auto means = shown.read(shown.format().components[0]).values;
      const int limit = (settings.most + 4) * std::max(1, shown.format().max_value() / 255);
      EXPECT_LT(*std::max_element(means.begin(), means.end()), limit) << "frame " << i;
    }
    if (shown.bytes() != rows_shown.bytes()) {
      ADD_FAILURE() << "frame " << i << ": " << shown.sample_difference(rows_shown, 0);
      return 0;
    }
  }
  return double(found) / frames / geometry.width / geometry.height;
}

class MixtureRows : public testing::TestWithParam<Format> {};

TEST_P(MixtureRows, EqualPixels) {
  for (const auto& [width, height] : {std::pair{1, 1}, {7, 3}, {8, 2}, {257, 9}, {531, 6}})
    for (bool luma_only : {false, true}) {
      const Geometry geometry{GetParam(), width, height};
      const double share = compare(geometry, {-1, 500, 16, luma_only, width == 257 ? 0.5 : 0}, 40);
      SCOPED_TRACE(std::to_string(width) + "x" + std::to_string(height));
      EXPECT_TRUE(share > 0.01 || width <= 8) << share;
      EXPECT_LT(share, 0.9);
    }
}
INSTANTIATE_FOR_EACH_FORMAT(MixtureRows);

TEST(MixtureRowsSettings, EqualPixels) {
  for (Format format : {Format::GRAY8, Format::RGB, Format::NV12, Format::P010_10LE})
    for (const Settings& settings :
         {Settings{0}, Settings{0.001}, Settings{0.05}, Settings{0.3}, Settings{0.9}, Settings{1}, Settings{-1, 1},
          Settings{-1, 5}, Settings{-1, 100, 4, false, 0.3}, Settings{0.02, 500, 0},
          Settings{0.1, 500, 100000, false, 0.8}, Settings{0.6, 500, 9}}) {
      SCOPED_TRACE(std::to_string(settings.learning_rate) + " " + std::to_string(settings.history));
      compare({format, 67, 11}, settings, 150);
    }
}

/// At high rates a mean may overshoot the sample that it learns, and fall below 0.
TEST(MixtureRowsSettings, ShowMeansInTheRangeOfTheSamples) {
  for (Format format : {Format::GRAY8, Format::P010_10LE, Format::I420_10LE, Format::GRAY16_LE})
    for (double rate : {0.3, 1.0}) {
      SCOPED_TRACE(std::to_string(int(format)) + " " + std::to_string(rate));
      compare({format, 67, 11}, {rate, 500, 16, false, 0, 24}, 60);
    }
}

}  // namespace
}  // namespace cudavision::test
#endif
