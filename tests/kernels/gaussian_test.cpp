// SPDX-License-Identifier: LGPL-2.1-or-later
#include <cmath>
#include <limits>
#include <opencv2/imgproc.hpp>

#include "tests/kernels/harness.hpp"

namespace cudavision::test {
namespace {

const std::vector<int> taps = {1, 3, 5, 7, 9, 11, 15, 31, 33, 63, 129, 255};
const std::vector<double> sigmas = {0, 0.1, 0.5, 1, 1.7, 3.3, 10, 60, 1000};

TEST(GaussianWeights, ReferenceIsTheImpulseResponseOfOpenCV) {
  for (int n = 1; n <= 255; n += 2) {
    for (double sigma : sigmas) {
      for (int type : {CV_8U, CV_16U}) {
        const int bits = type == CV_8U ? 8 : 16;
        cv::Mat impulse = cv::Mat::zeros(n, n, type);  // a square: OpenCV drops taps along an axis of one sample
        impulse.row(n / 2).setTo((1 << bits) - 1);
        impulse.colRange(0, n / 2) = 0;
        impulse.colRange(n / 2 + 1, n) = 0;
        cv::Mat blurred;
        cv::GaussianBlur(impulse, blurred, {n, 1}, sigma, 1, cv::BORDER_CONSTANT);
        const auto weights = reference::gaussian_weights(n, sigma, bits);
        for (int i = 0; i < n; ++i) {
          const std::int64_t one = std::int64_t(1) << bits;
          const std::int64_t expected = (weights[i] * (one - 1) + one / 2) >> bits;
          const int got = type == CV_8U ? blurred.at<std::uint8_t>(n / 2, i) : blurred.at<std::uint16_t>(n / 2, i);
          ASSERT_EQ(expected, got) << n << " taps, sigma " << sigma << ", " << bits << " bits, weight " << i;
        }
      }
    }
  }
}

TEST(GaussianWeights, PlanHasThoseOfTheReference) {
  for (int n = 1; n <= 255; n += 2) {
    for (double sigma : sigmas) {
      for (int bits : {8, 16}) {
        const auto expected = reference::gaussian_weights(n, sigma, bits);
        const detail::GaussianAxis axis = detail::gaussian_axis(n, sigma, bits);
        ASSERT_TRUE(axis.weights.size() % 2 == 1 && int(axis.weights.size()) <= n);
        for (int i = 0; i < n; ++i) {
          const int trimmed = i - (n - int(axis.weights.size())) / 2;
          const bool held = trimmed >= 0 && trimmed < int(axis.weights.size());
          ASSERT_EQ(expected[i], held ? axis.weights[trimmed] : 0) << n << " taps, sigma " << sigma << ", weight " << i;
        }
      }
    }
  }
}

class GaussianOpenCV : public testing::TestWithParam<Runner> {};

TEST_P(GaussianOpenCV, IsEqual) {
  const Runner& runner = GetParam();
  if (runner.backend) SKIP_UNLESS_AVAILABLE(*runner.backend);
  const std::vector<std::pair<Format, int>> types = {{Format::GRAY8, CV_8UC1},
                                                     {Format::RGB, CV_8UC3},
                                                     {Format::RGBA, CV_8UC4},
                                                     {Format::GRAY16_LE, CV_16UC1},
                                                     {Format::RGBA64_LE, CV_16UC4}};
  const std::vector<std::pair<Border, int>> modes = {{Border::constant, cv::BORDER_CONSTANT},
                                                     {Border::replicate, cv::BORDER_REPLICATE},
                                                     {Border::reflect, cv::BORDER_REFLECT},
                                                     {Border::reflect_101, cv::BORDER_REFLECT_101}};
  Random random(1);
  for (const auto& [format, type] : types) {
    for (int n = 1; n <= 31; n += 2) {
      for (double sigma : sigmas) {
        for (const auto& [border, mode] : modes) {
          const Geometry geometry{format, n % 3 ? 67 : 9, n % 5 ? 41 : 6};
          const Picture src = make_picture(geometry, unsigned(n));
          Picture expected(geometry);
          GaussianParams params;
          params.kernel_width = n;
          params.kernel_height = random.between(0, 15) * 2 + 1;
          params.sigma_x = sigma;
          params.sigma_y = std::min(sigma * 1.25, 1000.0);
          params.border = border;
          params.filter_alpha = true;
          const auto mat = [&](const Picture& picture) {
            const Plane plane = picture.at(const_cast<std::uint8_t*>(picture.bytes().data())).planes[0];
            return cv::Mat(geometry.height, geometry.width, type, plane.data, std::size_t(plane.pitch));
          };
          cv::Mat blurred = mat(expected);
          cv::GaussianBlur(mat(src), blurred, {params.kernel_width, params.kernel_height}, params.sigma_x, params.sigma_y, mode);
          ASSERT_EQ(runner.check(params, src, expected), "") << describe(geometry, {}, {}, {}, Data::random) << "\n"
                                                             << describe(params);
        }
      }
    }
  }
}
INSTANTIATE_FOR_RUNNERS(GaussianOpenCV);

class GaussianSweep : public testing::TestWithParam<BackendAnd<Format>> {};

/// Every format with every size, every number of taps along each axis, every border.
TEST_P(GaussianSweep, EqualsReference) {
  const auto [backend, format] = GetParam();
  SKIP_UNLESS_AVAILABLE(backend);
  const int f = int(format);
  Random random(unsigned(f) + 100);
  for (int i = 0; i < rounds() * int(sizes.size()); ++i) {
    GaussianParams params;
    params.kernel_width = taps[(i * 5 + i / 12 + f) % taps.size()];
    params.kernel_height = taps[(i * 7 + 3 * f + 1) % taps.size()];
    params.sigma_x = random.pick(sigmas);
    params.sigma_y = random.pick(sigmas);
    params.border = Border((i + f) % extrapolating_borders);
    params.border_value = random_border_value(random, format);
    params.filter_alpha = random.below(2);
    expect_reference(backend, params, random_case(random, format, sizes[i % sizes.size()]), unsigned(i));
  }
}

/// Taps that follow from sigma; sums at the very top of the range.
TEST_P(GaussianSweep, TapsFromSigmaAndExtremes) {
  const auto [backend, format] = GetParam();
  SKIP_UNLESS_AVAILABLE(backend);
  Random random(unsigned(format) + 200);
  for (Data data : {Data::random, Data::max, Data::checkerboard}) {
    for (double sigma : {0.3, 1.0, 2.2, 5.0, 20.0}) {
      GaussianParams params;
      params.kernel_width = params.kernel_height = 0;
      params.sigma_x = sigma;
      params.sigma_y = random.between(1, 40) * 0.25;
      params.border = Border(random.below(extrapolating_borders));
      params.border_value.fill(std::uint16_t(info(format).max_value()));
      expect_reference(backend, params, {{format, 45, 38}, {}, {}, {}, data}, 7);
    }
  }
}
INSTANTIATE_FOR_FORMATS(GaussianSweep, all_formats());

class GaussianLarge : public testing::TestWithParam<BackendAnd<Format>> {};

TEST_P(GaussianLarge, EqualsReference) {
  const auto [backend, format] = GetParam();
  SKIP_UNLESS_AVAILABLE(backend);
  GaussianParams params;
  params.kernel_width = 15;
  params.kernel_height = 7;
  expect_reference(backend, params, {{format, 1920, 1080}, {}, {0, 0, 256}, {}, Data::random}, 3);
}
const std::vector<Format> main_formats = {Format::NV12, Format::RGBA, Format::GRAY8, Format::P010_10LE};
INSTANTIATE_FOR_FORMATS(GaussianLarge, main_formats);

TEST(GaussianErrors, NameThePropertyAndItsRange) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const auto expect = [](const char* property, void (*spoil)(GaussianParams&, double), double value) {
    GaussianParams params;
    spoil(params, value);
    const Status status = validate(params);
    EXPECT_EQ(status.code(), Status::Code::settings) << property << " = " << value;
    EXPECT_NE(status.message().find(property), std::string::npos) << property << " = " << value << ": " << status.message();
    for (Backend backend : {Backend::cpu, Backend::cuda}) {
      const auto made = make_gaussian(params, {Format::NV12, 64, 48}, backend);
      ASSERT_FALSE(made.ok());
      EXPECT_EQ(made.error().code(), Status::Code::settings);
    }
  };
  for (double size : {2, 4, 254, 256, 257, -1, -3}) {
    expect(
        "kernel-width", [](GaussianParams& p, double v) { p.kernel_width = int(v); }, size);
    expect(
        "kernel-height", [](GaussianParams& p, double v) { p.kernel_height = int(v); }, size);
  }
  for (double sigma : {-1.0, -1e-9, nan, infinity, -infinity}) {
    expect(
        "sigma-x", [](GaussianParams& p, double v) { p.sigma_x = v; }, sigma);
    expect(
        "sigma-y", [](GaussianParams& p, double v) { p.sigma_y = v; }, sigma);
  }
  for (Border border : {Border::fill, Border::copy})
    expect(
        "border", [](GaussianParams& p, double v) { p.border = Border(int(v)); }, double(border));
  expect(
      "sigma", [](GaussianParams& p, double v) { p.kernel_width = p.kernel_height = int(v); }, 0);
}

/// How many taps a sigma asks for depends on the format, so that only a plan can say that they are too many.
TEST(GaussianErrors, SigmaThatAsksForTooManyTaps) {
  GaussianParams params;
  params.kernel_width = params.kernel_height = 0;
  params.sigma_x = params.sigma_y = gaussian_max_sigma;
  for (Backend backend : {Backend::cpu, Backend::cuda}) {
    const auto made = make_gaussian(params, {Format::NV12, 64, 48}, backend);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code(), Status::Code::settings);
    EXPECT_NE(made.error().message().find("sigma"), std::string::npos) << made.error().message();
  }
}

}  // namespace
}  // namespace cudavision::test
