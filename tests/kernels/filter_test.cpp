// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests what all filters share: borders, regions, plans and streams.
#include <limits>
#include <thread>

#include "kernels/core/backend.hpp"
#include "kernels/cpu/threads.hpp"
#include "tests/kernels/filters.hpp"
#include "tests/kernels/harness.hpp"
#include "tests/kernels/opencv.hpp"

namespace cudavision::test {
namespace {

#if CUDAVISION_CPU
TEST(Threads, AreAsManyAsTheEnvironmentSays) {
  const int threads = cv::getNumThreads();
  const auto use = [](const char* text) {
    cv::setNumThreads(2);
    setenv("OPENCV_FOR_THREADS_NUM", text, 1);
    cpu::use_threads_of_environment();
    return cv::getNumThreads();
  };
  EXPECT_EQ(use("1"), 1);
  EXPECT_EQ(use("3"), 3);
  for (const char* wrong : {"", "0", "-1", "two", "1x", "99999999999"}) EXPECT_EQ(use(wrong), 2) << wrong;
  unsetenv("OPENCV_FOR_THREADS_NUM");
  cv::setNumThreads(threads);
}

TEST(Threads, AreAsManyAsTheWorkIsWorth) {
  const int threads = cv::getNumThreads();
  cv::setNumThreads(8);
  cpu::split_all_loops(false);
  constexpr int rows = 100;
#ifndef __SANITIZE_THREAD__
  EXPECT_EQ(cpu::parts_of(cpu::picture_work(640 * 480, 0.3), rows), 1);
  EXPECT_EQ(cpu::parts_of(cpu::picture_work(1920 * 1080, 0.15), rows), 3);
  EXPECT_EQ(cpu::parts_of(cpu::picture_work(7680 * 4320, 0.3), rows), 8);
  EXPECT_EQ(cpu::parts_of(cpu::analysis_work(384 * 288, 9), rows), 1);
  EXPECT_EQ(cpu::parts_of(cpu::analysis_work(384 * 288, 27), rows), 2);
  EXPECT_EQ(cpu::parts_of(cpu::analysis_work(1920 * 1080, 9), rows), 8);
  EXPECT_EQ(cpu::parts_of(cpu::analysis_work(0, 9), rows), 1);
#endif
  EXPECT_EQ(cpu::parts_of(cpu::analysis_work(1920 * 1080, 9), 3), 3);  // at most one part per row
  EXPECT_EQ(cpu::parts_of(cpu::analysis_work(1920 * 1080, 9), 0), 1);
  cv::setNumThreads(1);
  EXPECT_EQ(cpu::parts_of(cpu::analysis_work(1920 * 1080, 9), rows), 1);

  cv::setNumThreads(8);
  for (const double work : {0.0, 1e7}) {  // each row is processed once; a small loop runs in this thread
    std::vector<int> seen(rows);
    std::vector<std::thread::id> where(rows);
    cpu::for_ranges(rows, {work, 1e6}, [&](int begin, int end) {
      for (int y = begin; y < end; ++y) ++seen[std::size_t(y)], where[std::size_t(y)] = std::this_thread::get_id();
    });
    EXPECT_EQ(seen, std::vector<int>(rows, 1)) << work;
#ifndef __SANITIZE_THREAD__
    EXPECT_TRUE(work > 0 || where == std::vector<std::thread::id>(rows, std::this_thread::get_id()));
#endif
  }
  cpu::for_ranges(0, {1e7, 1e6}, [](int, int) { FAIL() << "there are no rows"; });
  cpu::split_all_loops(true);
  EXPECT_EQ(cpu::parts_of(cpu::analysis_work(0, 9), rows), 8);
  cv::setNumThreads(threads);
}
#endif

TEST(Border, IndexEqualsOpenCV) {
  std::vector<std::pair<Border, int>> modes = opencv_borders;
  modes.emplace_back(Border::wrap, cv::BORDER_WRAP);
  for (const auto& [border, mode] : modes)
    for (int n = 1; n <= 20; ++n)
      for (int i = -300; i <= 300; ++i) {
        const int expected = cv::borderInterpolate(i, n, mode);
        ASSERT_EQ(border_index(i, n, border), expected) << borders[std::size_t(border)].nick << " " << i << " of " << n;
        ASSERT_EQ(reference::extrapolate(i, n, border), expected) << "the reference";
      }
  for (Border border : {Border::fill, Border::copy}) EXPECT_EQ(border_index(-1, 5, border), -1);
}

TEST(Border, TableIsInTheOrderOfTheEnum) {
  const char* nicks[] = {"constant", "replicate", "reflect", "wrap", "reflect-101", "fill", "copy"};
  ASSERT_EQ(std::size(nicks), borders.size());
  for (std::size_t i = 0; i < borders.size(); ++i) {
    EXPECT_EQ(int(borders[i].value), int(i));
    EXPECT_STREQ(borders[i].nick, nicks[i]);
  }
}

TEST(Region, SetRectsCoverTheSamplesOfTheirPixels) {
  Random random(5);
  for (Format format : all_formats())
    for (int round = 0; round < 300; ++round) {
      const Geometry geometry{format, random.between(1, 12), random.between(1, 12)};
      const Rect pixels{random.between(-6, 14), random.between(-6, 14), random.between(-2, 14), random.between(-2, 14)};
      for (Coverage coverage : {Coverage::inner, Coverage::outer}) {
        const Region::Mode mode = coverage == Coverage::inner ? Region::Mode::inside : Region::Mode::outside;
        const SetRects rects = set_rects(geometry, pixels, coverage);
        for (int s = 0; s < info(format).set_count; ++s) {
          const ChannelSet& set = info(format).sets[s];
          const Rect grid = geometry.grid(set), &rect = rects[s];
          for (const auto& [x, y] : positions(grid)) {
            const bool in = reference::in_region({mode, {pixels}}, geometry, set, x, y);
            ASSERT_EQ(contains(rect, x, y), coverage == Coverage::inner ? in : !in)
                << describe(geometry, {}, {}, {mode, {pixels}}, {}) << " set " << s << " (" << x << ", " << y << ")";
          }
          ASSERT_TRUE(rect.empty() || (rect.x >= 0 && rect.y >= 0 && rect.x + rect.width <= grid.width &&
                                       rect.y + rect.height <= grid.height));
        }
      }
    }
}

/// Coordinates up to the limits of int must not overflow.
TEST(Region, AnyRectanglesIntersect) {
  constexpr int most = std::numeric_limits<int>::max(), least = std::numeric_limits<int>::min();
  const auto expect = [](const Rect& a, const Rect& b, const Rect& common) {
    for (const Rect& rect : {intersection(a, b), intersection(b, a)}) {
      EXPECT_EQ(rect.empty(), common.empty());
      EXPECT_TRUE(rect.empty() || rect == common) << rect;
    }
  };
  const Rect frame{0, 0, 100, 80};
  expect({10, 20, most, most}, frame, {10, 20, 90, 60});
  expect({least, least, most, most}, frame, {});
  expect({most, 0, most, 5}, frame, {});
  expect({-5, -5, most, 10}, frame, {0, 0, 100, 5});
  EXPECT_EQ(subsampled(most, 1), most / 2 + 1);
  EXPECT_EQ(subsampled(most - 1, 1), most / 2);
}

const gaussian::Params wide_gaussian{31, 9};

convolve::Params some_convolve() {
  convolve::Params params;
  params.weights.assign(49, 0.02);
  params.weights[3] = -0.4;
  return params;
}

class Plans : public OnBackend {};

/// Two plans of each operation with different parameters run at the same time on two threads, and on two streams with
/// CUDA.
TEST_P(Plans, DoNotDisturbEachOther) {
  const Geometry geometry{Format::RGBA, 1280, 720};
  gaussian::Params blur = wide_gaussian, little_blur;
  convolve::Params convolve = some_convolve(), sharpen;
  sharpen.preset = convolve::Preset::sharpen;
  std::vector<std::unique_ptr<Filter>> filters;
  std::vector<Picture> expected;
  const Picture src = make_picture(geometry, 4);
  const auto add = [&](const auto& params) {
    auto filter = make(params, geometry, backend);
    ASSERT_TRUE(filter.ok()) << filter.error().message();
    filters.push_back(std::move(filter.value()));
    expected.push_back(run_filter(*filters.back(), backend, src));
  };
  add(blur), add(convolve), add(little_blur), add(sharpen);
  ASSERT_EQ(filters.size(), 4u);
  in_threads(2, [&](int t) {
    for (int round = 0; round < 10; ++round) {
      std::vector<std::unique_ptr<Job>> jobs;
      for (int i = 2 * t; i < 2 * t + 2; ++i) {
        jobs.push_back(std::make_unique<Job>(backend, src, src.inverted()));
        EXPECT_TRUE(jobs.back()->submit(*filters[i]).ok());
      }
      for (int i = 0; i < 2; ++i)
        EXPECT_TRUE(jobs[i]->finish().bytes() == expected[2 * t + i].bytes()) << "plan " << 2 * t + i;
    }
  });
}

TEST_P(Plans, LongestSides) {
  for (const Geometry& geometry : longest_frames) {
    const Case c{geometry, {}, {}, {}, Data::random};
    expect_reference(backend, wide_gaussian, c, 1);
    expect_reference(backend, some_convolve(), c, 1);
  }
}

TEST_P(Plans, CopyFilterIgnoresTheRegion) {
  for (Region::Mode mode : {Region::Mode::frame, Region::Mode::inside, Region::Mode::outside})
    for (Format format : all_formats()) {
      const Picture src = make_picture({format, 37, 21}, 6, Data::random, {1, 3, 1});
      auto copy = make_copy(src.geometry(), backend);
      ASSERT_TRUE(copy.ok()) << copy.error().message();
      Job job(backend, src, src.inverted());
      EXPECT_TRUE(job.submit(*copy.value(), {mode, {{3, 2, 11, 9}, {8, 5, 40, 7}}}).ok());
      EXPECT_EQ(src.difference(job.finish(), 0), "") << info(format).name;
    }
}

INSTANTIATE_FOR_BACKENDS(Plans);

/// Tests the harness itself: it must detect one changed byte between rows, around planes, or in a sample.
TEST(Harness, SeesEveryStrayByte) {
  for (Format format : {Format::GRAY8, Format::NV12, Format::RGBA, Format::YUY2, Format::P010_10LE}) {
    const Picture expected = make_picture({format, 5, 4}, 1, Data::random, {1, 2, 1});
    Picture good = expected.inverted();
    for (const Component& c : expected.format().components) good.write(c, expected.read(c));
    good.fill_padding();
    EXPECT_EQ(expected.difference(good, 0), "");
    int unseen = 0;
    for (std::uint8_t& byte : good.bytes()) {
      byte ^= 1;
      unseen += expected.difference(good, 0).empty();
      byte ^= 1;
    }
    EXPECT_EQ(unseen, 0) << info(format).name;
  }
}

TEST(BackendNotBuiltIn, IsASettingsError) {
  for (Backend backend : {Backend::cpu, Backend::cuda}) {
    if (built_with(backend)) continue;
    const auto made = gaussian::make({}, {Format::NV12, 64, 48}, backend);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().code(), Status::Code::settings);
  }
}

}  // namespace
}  // namespace cudavision::test
