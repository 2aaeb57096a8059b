// SPDX-License-Identifier: LGPL-2.1-or-later
#include <algorithm>
#include <opencv2/imgproc.hpp>

#include "kernels/gaussian/cuda_schedule.hpp"
#include "kernels/gaussian/plan.hpp"
#include "tests/kernels/filters.hpp"
#include "tests/kernels/harness.hpp"
#include "tests/kernels/opencv.hpp"

namespace cudavision::test {
namespace {

const std::vector<int> taps = {1, 3, 5, 7, 9, 11, 15, 31, 33, 63, 129, 255};
const std::vector<double> sigmas = {0, 0.1, 0.5, 1, 1.7, 3.3, 10, 60, 1000};

TEST(GaussianWeights, ReferenceIsTheImpulseResponseOfOpenCV) {
  for (int n = 1; n <= 255; n += 2)
    for (double sigma : sigmas)
      for (int type : {CV_8U, CV_16U}) {
        const int bits = type == CV_8U ? 8 : 16;
        // The picture is a square, because OpenCV ignores taps along an axis of length one.
        cv::Mat impulse = cv::Mat::zeros(n, n, type);
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

TEST(GaussianWeights, PlanEqualsReference) {
  for (int n = 1; n <= 255; n += 2)
    for (double sigma : sigmas)
      for (int bits : {8, 16}) {
        const auto expected = reference::gaussian_weights(n, sigma, bits);
        const gaussian::Axis axis = gaussian::make_axis(n, sigma, bits);
        ASSERT_TRUE(axis.weights.size() % 2 == 1 && int(axis.weights.size()) <= n);
        for (int i = 0; i < n; ++i) {
          const int trimmed = i - (n - int(axis.weights.size())) / 2;
          const bool held = trimmed >= 0 && trimmed < int(axis.weights.size());
          ASSERT_EQ(expected[i], held ? axis.weights[trimmed] : 0) << n << " taps, sigma " << sigma << ", weight " << i;
        }
      }
}

using gaussian::Schedule;
using gaussian::Segment;
using gaussian::SetSchedule;
using gaussian::SetWork;
using gaussian::Workers;

std::vector<std::pair<int, Segment>> segments_of(const Schedule& schedule, int set, int sets, const SetWork& work,
                                                 int warps) {
  const SetSchedule& from = schedule.sets[set];
  const int end = set + 1 < sets ? schedule.sets[set + 1].first_block : schedule.blocks;
  std::vector<std::pair<int, Segment>> segments;
  for (int block = from.first_block; block < end; ++block)
    for (int warp = 0; warp < warps; ++warp) {
      Segment segment(from, block, warp, warps);
      segment.set_position(work.origin(), work.y0, work.y1, work.width);
      if (segment.steps > 0) segments.push_back({block, segment});
    }
  return segments;
}

/// Every row of every strip must be in exactly one segment. Edge strips come first, and no segment is too long.
void expect_complete(const Schedule& schedule, int set, int sets, const SetWork& work, const Workers& workers) {
  std::vector<std::vector<int>> times(std::size_t(work.strips()), std::vector<int>(std::size_t(work.y1 - work.y0)));
  int last_edge = -1, first_inner = schedule.blocks;
  for (const auto& [block, segment] : segments_of(schedule, set, sets, work, workers.warps)) {
    const int strip = (segment.x - work.origin()) / work.width;
    ASSERT_EQ(work.origin() + strip * work.width, segment.x);
    ASSERT_TRUE(strip >= 0 && strip < work.strips()) << strip;
    ASSERT_LE(segment.steps, segment.edge ? schedule.sets[set].edge_steps : schedule.sets[set].steps);
    ASSERT_LE(segment.steps, workers.max_steps);
    const int begin = segment.x - work.lead;
    const bool leaves = begin < 0 || begin + workers.window > work.row_bytes;
    ASSERT_TRUE(segment.edge || !leaves) << "strip " << strip << " reads outside its row";
    ASSERT_TRUE(!segment.edge || leaves || work.all_edges) << "strip " << strip << " is slower than it must be";
    if (segment.edge)
      last_edge = std::max(last_edge, block);
    else
      first_inner = std::min(first_inner, block);
    for (int y = segment.y; y < std::min(segment.y + segment.steps * gaussian::step_rows, work.y1); ++y)
      ++times[strip][y - work.y0];
  }
  ASSERT_LT(last_edge, first_inner);
  for (const auto& strip : times)
    for (int count : strip) ASSERT_EQ(count, 1);
}

TEST(GaussianSchedule, CoversEveryRowOfEveryStripOnce) {
  Random random(11);
  for (int i = 0; i < 400; ++i) {
    const int sets = random.between(1, max_sets);
    std::array<SetWork, max_sets> work;
    for (int s = 0; s < sets; ++s) {
      SetWork& set = work[std::size_t(s)];
      set.row_bytes = random.below(4) ? random.between(1, 3000) : random.between(1, 70);
      const int height = random.below(4) ? random.between(1, 900) : random.between(1, 40);
      set.x0 = random.below(2) ? random.below(set.row_bytes) : 0;
      set.x1 = random.below(2) ? random.between(set.x0 + 1, set.row_bytes) : set.row_bytes;
      set.y0 = random.below(2) ? random.below(height) : 0;
      set.y1 = random.below(8) ? random.between(set.y0 + 1, height) : set.y0;  // some sets have nothing to compute
      set.lead = 8 * random.below(20);
      set.all_edges = random.below(4) == 0;
      set.width = gaussian::strip_bytes * (i % 2 ? 1 : 4);
    }
    Workers workers;
    workers.warps = random.between(1, 8);
    workers.window = 16 * random.between(4, 30);
    workers.window_groups_y = random.between(2, 9);
    workers.edge_percent = random.between(20, 100);
    workers.slots = random.between(1, 400);
    workers.max_steps = random.between(1, 64);
    const Schedule schedule = gaussian::make_schedule(work, sets, workers);
    EXPECT_EQ(schedule.sets[0].first_block, 0);
    for (int s = 0; s < sets; ++s) {
      SCOPED_TRACE("case " + std::to_string(i) + ", set " + std::to_string(s));
      expect_complete(schedule, s, sets, work[std::size_t(s)], workers);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(GaussianSchedule, HasNoBlocksForNothing) { EXPECT_EQ(gaussian::make_schedule({}, 3, Workers{}).blocks, 0); }

/// With more slots than short segments need, the schedule uses the shortest segments; with one slot, the longest.
TEST(GaussianSchedule, SpreadsOverTheDevice) {
  std::array<SetWork, max_sets> work;
  work[0] = {7680, 0, 7680, 0, 4320, 8, false};
  Workers workers{4, 96, 2, 20, 1 << 20, 64};
  EXPECT_EQ(gaussian::make_schedule(work, 1, workers).sets[0].steps, 1);
  workers.slots = 1;
  EXPECT_GT(gaussian::make_schedule(work, 1, workers).sets[0].steps, 32);
}

/// P010 at 8K takes two waves, which have room for a ninth segment per luma strip. These segments are therefore shorter
/// than rows of chroma.
TEST(GaussianSchedule, FillsTheLastWave) {
  std::array<SetWork, max_sets> work;
  work[0] = {15360, 0, 15360, 0, 4320, 16, false, 256};
  work[1] = {15360, 0, 15360, 0, 2160, 16, false, 256};
  const Workers workers{1, 288, 2, 72, 396, 64};
  const Schedule schedule = gaussian::make_schedule(work, 2, workers);
  EXPECT_EQ(schedule.sets[0].steps, 30);
  EXPECT_EQ(schedule.sets[1].steps, 34);
  EXPECT_LE(schedule.blocks, 2 * workers.slots);
}

/// Only 16-bit samples have longer segments at the sides; four-byte pixels do not.
TEST(GaussianSchedule, HasShortSegmentsAtTheSidesOfPixels) {
  EXPECT_EQ(gaussian::strip_edge_percent(gaussian::pixel_bytes), gaussian::tuning.strip_edge_percent);
  EXPECT_EQ(gaussian::strip_edge_percent(1), gaussian::tuning.strip_edge_percent);
  EXPECT_EQ(gaussian::strip_edge_percent(2), gaussian::tuning.strip_edge_percent_16);
}

/// Every window has a kernel that fits in the memory of a block: the first shape that is large enough, or the kernel
/// for large windows.
TEST(GaussianSchedule, FindsAKernelForEveryRadius) {
  const auto check = [](int sample_bytes, const auto& shapes) {
    for (int channels = 1; channels <= 4; ++channels)
      for (int rx = 0; rx <= gaussian::max_taps / 2; ++rx)
        for (int ry : {0, 1, 8, 9, 16, 17, 100, gaussian::max_taps / 2}) {
          const gaussian::Window window = gaussian::window_of(rx * channels * sample_bytes, ry, sample_bytes);
          ASSERT_TRUE(window.lead % 8 == 0 && window.lead >= window.reach &&
                      window.reach == rx * channels * sample_bytes);
          ASSERT_GE(16 * sample_bytes * window.window_groups_x, window.lead + 16 * sample_bytes + window.reach);
          ASSERT_GE(16 * window.window_groups_y, 2 * ry + 16);
          const int shape = gaussian::find_shape(sample_bytes, window.window_groups_x, window.window_groups_y);
          for (int i = 0; i < int(shapes.size()); ++i) {
            const bool holds = window.window_groups_x <= shapes[std::size_t(i)].window_groups_x &&
                               window.window_groups_y <= shapes[std::size_t(i)].window_groups_y;
            ASSERT_TRUE(i == shape ? holds : !holds || (shape >= 0 && i > shape)) << rx << " " << ry;
          }
          constexpr int limit = 227 << 10;
          const int warps = gaussian::large_warps(sample_bytes, window.window_groups_x, window.window_groups_y, limit);
          const auto bytes = [&](int of_warps) {
            return gaussian::large_bytes(sample_bytes, window.window_groups_x, window.window_groups_y, of_warps);
          };
          ASSERT_TRUE(warps >= 1 && warps <= gaussian::tuning.large_warps);
          ASSERT_LE(bytes(warps), limit);
          ASSERT_TRUE(warps == gaussian::tuning.large_warps || bytes(warps + 1) > limit);
        }
  };
  check(1, gaussian::byte_shapes);
  check(2, gaussian::word_shapes);
  for (int rx = 0; rx <= 16; ++rx) {
    const gaussian::Window window = gaussian::window_of(rx * 4, rx, gaussian::pixel_bytes);
    ASSERT_TRUE(window.lead % 16 == 0 && window.lead >= 4 * rx &&
                64 * window.window_groups_x >= window.lead + 64 + 4 * rx);
    ASSERT_EQ(gaussian::find_shape(gaussian::pixel_bytes, window.window_groups_x, window.window_groups_y),
              rx <= 8 ? 0 : 1)
        << rx;
  }
  EXPECT_EQ(gaussian::find_shape(gaussian::pixel_bytes, 4, 2), -1);
  EXPECT_EQ(gaussian::find_shape(1, 2, 2), 0);
  EXPECT_EQ(gaussian::find_shape(1, 11, 2), -1);
  EXPECT_EQ(gaussian::large_warps(2, 130, 17, 48 << 10), 0);
}

class GaussianOpenCV : public testing::TestWithParam<Runner> {};

TEST_P(GaussianOpenCV, IsEqual) {
  const Runner& runner = GetParam();
  if (runner.backend) SKIP_UNLESS_AVAILABLE(*runner.backend);
  Random random(1);
  for (const auto& [format, type] : opencv_types)
    for (int n = 1; n <= 31; n += 2)
      for (double sigma : sigmas)
        for (const auto& [border, mode] : opencv_borders) {
          const Geometry geometry{format, n % 3 ? 67 : 9, n % 5 ? 41 : 6};
          const Picture src = make_picture(geometry, unsigned(n));
          Picture expected(geometry);
          gaussian::Params params{n, random.between(0, 15) * 2 + 1, sigma, std::min(sigma * 1.25, 1000.0), border};
          params.filter_alpha = true;
          cv::Mat blurred = mat_of(expected, type);
          cv::GaussianBlur(mat_of(src, type), blurred, {params.kernel_width, params.kernel_height}, params.sigma_x,
                           params.sigma_y, mode);
          ASSERT_EQ(runner.check(params, src, expected), "") << describe(geometry, {}, {}, {}, Data::random) << "\n"
                                                             << describe(params);
        }
}
INSTANTIATE_FOR_RUNNERS(GaussianOpenCV);

class GaussianSweep : public OnBackendWithFormat {};

/// Every format with every size, border and number of taps along each axis.
TEST_P(GaussianSweep, EqualsReference) {
  const int f = int(format);
  Random random(unsigned(f) + 100);
  for (int i = 0; i < rounds() * int(sizes.size()); ++i) {
    gaussian::Params params{taps[(i * 5 + i / 12 + f) % taps.size()], taps[(i * 7 + 3 * f + 1) % taps.size()],
                            random.pick(sigmas), random.pick(sigmas)};
    params.border = borders[(i + i / 12 + f) % extrapolating_borders].value;
    params.border_value = random_border_value(random, format);
    params.filter_alpha = random.below(2);
    expect_reference(backend, params, random_case(random, format, sizes[i % sizes.size()]), unsigned(i));
  }
}

/// Taps derived from sigma, and sums at the upper end of the range.
TEST_P(GaussianSweep, TapsFromSigmaAndExtremes) {
  Random random(unsigned(format) + 200);
  for (Data data : {Data::random, Data::max, Data::checkerboard})
    for (double sigma :
         {0.3, 1.0, 2.2, 5.0, 20.0, 31.8, 42.4, gaussian::max_sigma}) {  // from the last three on, all taps are used
      gaussian::Params params{0, 0, sigma, random.between(1, 40) * 0.25};
      params.border = borders[random.below(extrapolating_borders)].value;
      params.border_value.fill(std::uint16_t(info(format).max_value()));
      expect_reference(backend, params, {{format, 45, 38}, {}, {}, {}, data}, 7);
    }
}
INSTANTIATE_FOR_FORMATS(GaussianSweep, all_formats());

class GaussianLarge : public OnBackendWithFormat {};

const std::vector<Format> main_formats = {Format::NV12, Format::RGBA, Format::GRAY8, Format::YUY2, Format::P010_10LE};

TEST_P(GaussianLarge, EqualsReference) {
  expect_reference(backend, gaussian::Params{15, 7}, {{format, 1920, 1080}, {}, {0, 0, 256}, {}, Data::random}, 3);
}

/// Segments of several steps. The last ones end below the frame by different numbers of rows. Each format has two
/// borders, chosen by its index, so that all formats together cover every border.
TEST_P(GaussianLarge, BordersEqualReference) {
  static_assert(extrapolating_borders <= 7, "five formats have the borders 0 to 4 and 2 to 6");
  const int place = int(std::find(main_formats.begin(), main_formats.end(), format) - main_formats.begin());
  for (int i : {0, 2}) {
    const int border = (place + i) % extrapolating_borders;
    gaussian::Params params{3, 7, 0, 0, borders[border].value};
    params.border_value.fill(77);
    expect_reference(backend, params, {{format, 1920, 1040 + 22 * border}, {0, 0, 256}, {0, 0, 256}, {}, Data::random},
                     3);
  }
}
INSTANTIATE_FOR_FORMATS(GaussianLarge, main_formats);

class GaussianPacked : public OnBackendWithFormat {};

/// Luma and chroma of packed 4:2:2 are computed together with different weights. Small sigmas leave one of them
/// unchanged.
TEST_P(GaussianPacked, EqualsReference) {
  Random random(unsigned(format) + 300);
  for (int width : {1, 2, 3, 5, 64, 129, 258, 515, 1023, 1280})
    for (double sigma : {0.0, 0.2, 0.35, 0.5, 1.5}) {
      gaussian::Params params{2 * random.between(0, 9) + 1, 2 * random.between(0, 20) + 1, sigma};
      params.border = borders[random.below(extrapolating_borders)].value;
      params.border_value = random_border_value(random, format);
      Case c = random_case(random, format, {width, random.between(1, 90)});
      if (random.below(2)) c.src = c.dst = {0, 0, 256};
      expect_reference(backend, params, c, unsigned(width));
    }
}
const std::vector<Format> packed_formats = {Format::YUY2, Format::UYVY};
INSTANTIATE_FOR_FORMATS(GaussianPacked, packed_formats);

TEST(GaussianErrors, NameThePropertyAndItsRange) {
  using Params = gaussian::Params;
  const std::vector<double> sizes{2, 4, 254, 256, 257, -1, -3};
  expect_refused(Params(), "kernel-width", sizes, &Params::kernel_width);
  expect_refused(Params(), "kernel-height", sizes, &Params::kernel_height);
  const std::vector<double> sigmas{-1, -1e-9, not_a_number, infinite, -infinite};
  expect_refused(Params(), "sigma-x", sigmas, &Params::sigma_x);
  expect_refused(Params(), "sigma-y", sigmas, &Params::sigma_y);
  for (Border border : {Border::fill, Border::copy})
    expect_refused(Params(), "border", {0}, [&](Params& params, double) { params.border = border; });
  expect_refused(Params(), "sigma", {0}, [](Params& params, int n) { params.kernel_width = params.kernel_height = n; });
}

}  // namespace
}  // namespace cudavision::test
