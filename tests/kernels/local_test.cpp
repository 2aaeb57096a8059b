// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/local/local.hpp"

#include <cmath>
#include <opencv2/imgproc.hpp>
#include <sstream>

#include "kernels/local/cuda_lines_schedule.hpp"
#include "kernels/local/cuda_mosaic_schedule.hpp"
#include "kernels/local/cuda_nlm_schedule.hpp"
#include "kernels/local/cuda_schedule.hpp"
#include "tests/kernels/reference/local.hpp"

// The templates of harness.hpp call these functions.
namespace cudavision::test {

inline int tolerance(const local::Params& params, Format) { return reference::tolerance(params); }
inline std::string describe(const local::Params& p) {
  const char* operations[] = {"box-mean", "threshold", "deviation", "nlm", "pixelate"};
  std::ostringstream text;
  text << operations[int(p.operation)] << " radius " << p.radius << " sensitivity " << p.sensitivity
       << " search_radius " << p.search_radius << " strength " << p.strength;
  return text.str();
}

}  // namespace cudavision::test

#include "tests/kernels/harness.hpp"
#include "tests/kernels/opencv.hpp"

namespace cudavision::test {
namespace {

using local::Operation;

local::Params nlm(int radius, int search_radius, double strength = 10) {
  local::Params params{Operation::nlm, radius};
  params.search_radius = search_radius, params.strength = strength;
  return params;
}

class LocalSweep : public OnBackendWithFormat {};

/// Every format and size, with windows from one sample to the whole frame, and with random regions.
TEST_P(LocalSweep, EqualsReference) {
  Random random(unsigned(format) + 400);
  const std::vector<int> radii = {0, 1, 2, 3, 7, 15, 40, 300, 16384};
  for (int i = 0; i < rounds() * int(sizes.size()); ++i)
    for (Operation operation : {Operation::box_mean, Operation::threshold, Operation::deviation, Operation::pixelate}) {
      local::Params params{operation, random.pick(radii)};
      params.sensitivity = random.below(4) ? random.unit() * 0.4 : random.below(2);
      expect_reference(backend, params, random_case(random, format, sizes[i % sizes.size()]), unsigned(i));
    }
}

TEST_P(LocalSweep, NonLocalMeansEqualReference) {
  Random random(unsigned(format) + 500);
  for (const auto& size : {std::pair{1, 1}, {2, 1}, {1, 3}, {5, 7}, {17, 3}, {31, 33}, {67, 35}, {130, 9}}) {
    local::Params params{Operation::nlm, random.below(5)};
    params.search_radius = random.between(1, 4);
    params.strength = random.pick<double>({0.5, 4, 10, 60});
    expect_reference(backend, params, random_case(random, format, size), 1);
  }
}
INSTANTIATE_FOR_FORMATS(LocalSweep, all_formats());

class LocalPlans : public OnBackend {};

TEST_P(LocalPlans, LargestRadiiOfNonLocalMeans) {
  for (Format format : {Format::GRAY8, Format::GRAY16_LE})
    expect_reference(backend, nlm(local::nlm_max_radius, local::nlm_max_search_radius),
                     {{format, 70, 9}, {}, {}, {}, Data::random}, 2);
}

/// Each reach of the CUDA kernels, in frames large enough for tiles with all patches inside the frame.
TEST_P(LocalPlans, NonLocalMeansInsideTheFrame) {
  for (Format format : {Format::NV12, Format::P010_10LE, Format::GRAY16_LE})
    for (int radius : {0, 1, 4, 8, 9})
      expect_reference(backend, nlm(radius, radius > 8 ? 1 : 2, radius % 2 ? 10 : 80),
                       {{format, 90, 70}, {}, {}, {}, Data::random}, unsigned(radius));
}

/// A region gets the same bits as the whole frame, at any position.
TEST_P(LocalPlans, NonLocalMeansOfARegionEqualTheFrame) {
  for (int radius : {1, 3}) {
    const Geometry geometry{Format::RGB, 150, 90};
    const Picture src = make_picture(geometry, 6);
    auto filter = make(nlm(radius, 2, 60), geometry, backend);
    ASSERT_TRUE(filter.ok()) << filter.error().message();
    const Picture whole = run_filter(*filter.value(), backend, src);
    for (const Rect& rect : {Rect{0, 0, 40, 30}, {37, 21, 59, 43}, {141, 3, 9, 87}}) {
      const Picture part = run_filter(*filter.value(), backend, src, {Region::Mode::inside, {rect}});
      for (const Component& c : src.format().components) {
        const Grid expected = whole.read(c), actual = part.read(c);
        for (const auto& [x, y] : positions(rect)) ASSERT_EQ(actual.at(x, y), expected.at(x, y)) << x << ", " << y;
      }
    }
  }
}

/// Windows of 16-bit samples whose sums exceed 2^32, at the edges of the frame and inside it.
TEST_P(LocalPlans, LargeWindows) {
  for (int radius : {120, 200, 800})
    for (Data data : {Data::max, Data::random})
      for (Operation operation :
           {Operation::box_mean, Operation::threshold, Operation::deviation, Operation::pixelate}) {
        const local::Params params{operation, radius};
        expect_reference(backend, params, {{Format::GRAY16_LE, 700, 500}, {}, {}, {}, data}, 3);
        expect_reference(backend, params, {{Format::NV12, 1920, 1080}, {}, {}, {}, data}, 3);
      }
}

/// Tall windows in pictures large enough for stored column sums.
TEST_P(LocalPlans, HighWindowsOfLargePictures) {
  for (const auto& [format, operation, radius] : {std::tuple{Format::GRAY8, Operation::box_mean, 200},
                                                  {Format::NV12, Operation::box_mean, 150},
                                                  {Format::RGBA, Operation::box_mean, 40},
                                                  {Format::RGB, Operation::threshold, 30},
                                                  {Format::GRAY16_LE, Operation::threshold, 140},
                                                  {Format::YUY2, Operation::deviation, 33}}) {
    const Region region{Region::Mode::inside, {{101, 333, 2400, 1200}}};
    expect_reference(backend, local::Params{operation, radius}, {{format, 2567, 1660}, {}, {}, region, Data::random},
                     4);
  }
}

/// Sliding windows in several strips and blocks, whose ends have every position within eight samples, with sums below
/// and above 2^23.
TEST_P(LocalPlans, WindowsOfSeveralStrips) {
  for (int radius : {0, 1, 2, 3, 4, 5, 6, 7, 24, 60, 91, 128})
    for (Operation operation : {Operation::box_mean, Operation::threshold, Operation::deviation}) {
      const local::Params params{operation, radius};
      const Region region{Region::Mode::inside, {{37, 11, 2203, 131}}};
      expect_reference(backend, params, {{Format::GRAY8, 2307, 150}, {}, {}, {}, Data::random}, 5);
      expect_reference(backend, params, {{Format::NV12, 2306, 150}, {}, {}, region, Data::random}, 6);
      expect_reference(backend, params, {{Format::GRAY8, 1100, 80}, {}, {}, {}, Data::max}, 7);
    }
}

/// The table of a white picture of 20 Mpx wraps in 32 bits.
TEST_P(LocalPlans, TablesThatWrap) {
  const Picture white = make_picture({Format::GRAY8, 5000, 4000}, 0, Data::max);
  EXPECT_EQ(check(backend, local::Params(), white, white), "");
}

local::Plan plan_of(Operation operation, int radius, const Geometry& geometry) {
  return local::resolve({operation, radius}, geometry);
}

/// Windows slide where column sums fit in 16 bits, sums of squares fit in 32 bits, and strips have room for them.
TEST(LocalSchedule, WindowsSlideWhereTheirSumsFit) {
  const auto slides = [](Operation operation, int radius, const Geometry& geometry, int set = 0) {
    return local::can_slide(plan_of(operation, radius, geometry), set);
  };
  EXPECT_TRUE(slides(Operation::box_mean, 128, {Format::GRAY8, 7680, 4320}));
  EXPECT_FALSE(slides(Operation::box_mean, 129, {Format::GRAY8, 7680, 4320}));
  EXPECT_TRUE(slides(Operation::box_mean, 300, {Format::GRAY8, 7680, 257}));   // no column is taller
  EXPECT_FALSE(slides(Operation::box_mean, 500, {Format::GRAY8, 7680, 257}));  // too wide
  EXPECT_TRUE(slides(Operation::box_mean, 256, {Format::NV12, 7680, 4320}, 1));
  EXPECT_TRUE(slides(Operation::deviation, 128, {Format::GRAY8, 7680, 4320}));
  EXPECT_TRUE(slides(Operation::deviation, 7, {Format::GRAY8, 8193, 4320}));
  EXPECT_TRUE(slides(Operation::box_mean, 7, {Format::GRAY8, 16384, 16384}));
  for (Format format : {Format::RGB, Format::RGBA, Format::YUY2, Format::GRAY16_LE})
    EXPECT_FALSE(slides(Operation::box_mean, 7, {format, 640, 480})) << info(format).name;
  EXPECT_FALSE(slides(Operation::threshold, 7, {Format::GBR, 640, 480}));  // luma computed from three planes
  EXPECT_TRUE(slides(Operation::deviation, 7, {Format::GBR, 640, 480}));
  EXPECT_FALSE(slides(Operation::pixelate, 7, {Format::GRAY8, 640, 480}));
}

/// Strips and blocks cover the rectangle, stored sums cover all windows, and shared memory is sufficient, for small and
/// large rectangles.
TEST(LocalSchedule, CoversTheRectangles) {
  for (const Rect& grid : {Rect{0, 0, 1, 1}, Rect{0, 0, 333, 77}, Rect{0, 0, 1920, 1080}, Rect{0, 0, 8192, 4320}})
    for (int radius : {0, 3, 24, 128})
      for (Operation operation : {Operation::box_mean, Operation::deviation})
        for (const Rect& rect : {grid, Rect{grid.width / 3, grid.height / 4, 1, 1},
                                 Rect{grid.width / 2, 0, grid.width - grid.width / 2, grid.height}}) {
          std::vector<local::WindowSet> sets = {
              {grid, 1, rect, std::min(radius, grid.width), std::min(radius, grid.height)}};
          if (operation == Operation::box_mean)  // chroma of NV12
            sets.push_back({{0, 0, divide_up(grid.width, 2), divide_up(grid.height, 2)},
                            2,
                            {rect.x / 2, rect.y / 2, divide_up(rect.width, 2), divide_up(rect.height, 2)},
                            std::min(divide_up(radius, 2), divide_up(grid.width, 2)),
                            std::min(divide_up(radius, 2), divide_up(grid.height, 2))});
          const local::WindowLaunch launch = local::schedule_windows(operation, sets, 132);
          EXPECT_LE((launch.shared_bytes + 1024) * local::window_blocks(operation, launch.batch), 228 * 1024);
          EXPECT_TRUE(launch.batch == 8 || (launch.batch == 16 && operation == Operation::box_mean));
          EXPECT_EQ(launch.rows % launch.batch, 0);
          EXPECT_EQ(launch.wide, radius == 128 && grid.height > 257);
          EXPECT_TRUE(!launch.wide || operation != Operation::box_mean || launch.batch == 16);
          const int groups = local::window_threads / launch.batch;
          int blocks = 0;
          for (std::size_t i = 0; i < sets.size(); ++i) {
            const local::WindowSet& set = sets[i];
            const local::WindowSchedule& s = launch.sets[i];
            const int begin = set.rect.x * set.channels, end = (set.rect.x + set.rect.width) * set.channels;
            blocks += s.blocks;
            EXPECT_EQ(s.blocks, s.strips * divide_up(set.rect.height, launch.rows));
            EXPECT_EQ(s.left % local::window_tile, 0);
            EXPECT_LE(s.left, begin);
            EXPECT_TRUE(just_cover(s.strips, s.tiles * local::window_tile, end - s.left));
            EXPECT_GE(s.per_group * groups, s.tiles);
            EXPECT_LE(s.per_group, s.tiles);
            EXPECT_LE(s.tiles * local::window_tile + set.channels * (2 * set.radius_x + 1) + 7,
                      local::window_threads * 8);
            if (s.interval == 0) {
              EXPECT_LE(2 * set.radius_y + 1, local::tuning.most_added_rows);
              continue;
            }
            EXPECT_LE(s.interval, 257);
            EXPECT_LE(s.table_y, std::max(set.rect.y - set.radius_y, 0));
            EXPECT_GE(s.table_y + s.intervals * s.interval,
                      std::min(set.rect.y + set.rect.height + set.radius_y, set.grid.height));
            EXPECT_LE(s.stored_first * 8, std::max(set.rect.x - set.radius_x, 0) * set.channels);
            EXPECT_GE((s.stored_first + s.stored_chunks) * 8,
                      std::min(set.rect.x + set.rect.width + set.radius_x, set.grid.width) * set.channels);
            EXPECT_LE(std::size_t(s.intervals) * s.stored_chunks * (operation == Operation::deviation ? 48 : 16),
                      local::stored_bytes(operation, set.grid, set.channels, set.radius_y));
          }
          EXPECT_EQ(blocks, launch.blocks);
        }
}

/// Strips cover all pixels of the rectangle, and a block has all columns that their windows need.
TEST(LocalSchedule, LinesCoverTheRectangles) {
  constexpr int shared_limit = 227 * 1024;
  for (const local::LineShape& shape :
       {local::LineShape{}, local::LineShape{Operation::box_mean, 1, 4, 7},
        local::LineShape{Operation::box_mean, 1, 3, 7}, local::LineShape{Operation::deviation, 1, 4, 7},
        local::LineShape{Operation::box_mean, 2, 1, 1}})
    for (const Rect& grid : {Rect{0, 0, 1, 1}, Rect{0, 0, 333, 77}, Rect{0, 0, 1920, 1080}, Rect{0, 0, 7680, 4320}})
      for (int radius : {0, 3, 63, 500})
        for (const Rect& rect : {grid, Rect{grid.width / 3, grid.height / 4, 1, 1},
                                 Rect{grid.width / 2, 0, grid.width - grid.width / 2, grid.height}}) {
          const local::LineSchedule s = local::schedule_lines(shape, grid, rect, radius, radius, 132, shared_limit);
          ASSERT_GT(s.strips, 0);
          EXPECT_LE(s.threads, shape.most_threads());
          EXPECT_LE(s.shared_bytes, shared_limit);
          EXPECT_GE(s.batch, 1);
          EXPECT_GE(s.segment, 1);
          EXPECT_TRUE(just_cover(s.blocks_y, s.rows, rect.height));
          EXPECT_EQ(s.left % local::line_results, 0);
          EXPECT_LE(s.left, rect.x);
          EXPECT_EQ(s.strip % local::line_results, 0);
          EXPECT_GE(s.left + s.strips * s.strip, rect.x + rect.width);
          for (int strip = 0; strip < s.strips; ++strip) {
            const int x0 = s.left + strip * s.strip;
            const int first = std::max(x0 - divide_up(radius, local::line_results) * local::line_results, 0);
            const int end = std::min({x0 + s.strip + radius, rect.x + rect.width + radius, grid.width});
            EXPECT_GE(first + s.threads * shape.chunk(), end);
          }
          if (s.stored_entries == 0) continue;
          EXPECT_LE(s.stored_first, std::max(s.left - radius, 0));
          EXPECT_GE(s.stored_first + s.stored_chunks * shape.chunk(),
                    std::min(rect.x + rect.width + radius, grid.width));
          EXPECT_LE(std::size_t(s.stored_chunks) * shape.chunk() * shape.lines() * s.stored_entries * 4,
                    local::stored_line_bytes(shape, grid, radius));
        }
}

/// Every cell of a mosaic belongs to a block that has room for its rows of samples.
TEST(LocalSchedule, MosaicsHaveAllCells) {
  for (Format format : all_formats()) {
    const Geometry geometry{format, 1000, 700};
    for (const Rect& box : {Rect{0, 0, 1000, 700}, Rect{-37, 11, 500, 300}, Rect{990, 690, 40, 40}})
      for (int side : {3, 15, 101, 255, 601, 2001}) {
        const SetRects rects = set_rects(geometry, box, Coverage::inner);
        const local::MosaicPart part = local::schedule_mosaic(geometry, box, rects, side, 132, 1);
        for (int i = 0; i < info(format).color_sets(); ++i) {
          const ChannelSet& set = info(format).sets[i];
          const local::MosaicGrid& grid = part.sets[i];
          const int bytes = std::min(subsampled(side, set.shift_x), geometry.grid(set).width) * set.channels *
                            info(format).sample_bytes();
          EXPECT_GE(local::mosaic_blocks(geometry, part, i) * grid.span, local::mosaic_cells(geometry, part, i));
          if (local::is_apart(part)) {
            EXPECT_EQ(grid.span, 1);
            EXPECT_LE(local::mosaic_cells(geometry, part, i) * set.channels * sizeof(std::uint64_t),
                      local::mosaic_sums(geometry));
          } else {
            EXPECT_LE(grid.span * bytes, local::mosaic_piece);
          }
        }
      }
  }
}

/// Overlapping boxes are processed in order, others together.
TEST(LocalSchedule, MosaicsThatOverlapComeInOrder) {
  std::vector<int> layers;
  EXPECT_EQ(
      local::find_layers({{0, 0, 10, 10}, {10, 0, 10, 10}, {5, 5, 10, 10}, {100, 0, 5, 5}, {0, 0, 200, 200}}, layers),
      2);
  EXPECT_EQ(layers, (std::vector<int>{0, 0, 1, 0, 2}));
  EXPECT_EQ(local::find_layers({}, layers), 0);
}

TEST_P(LocalPlans, BoxMeanEqualsOpenCV) {
  const Geometry geometry{Format::GRAY8, 333, 222};
  const Picture src = make_picture(geometry, 5);
  Picture expected(geometry);
  for (int radius : {1, 4, 30}) {
    // The sum of the samples inside the frame, divided by their number.
    cv::Mat sums, counts, mean;
    const cv::Size window(2 * radius + 1, 2 * radius + 1);
    cv::boxFilter(mat_of(src), sums, CV_64F, window, {-1, -1}, false, cv::BORDER_CONSTANT);
    cv::boxFilter(cv::Mat::ones(sums.size(), CV_64F), counts, CV_64F, window, {-1, -1}, false, cv::BORDER_CONSTANT);
    cv::divide(sums, counts, mean);
    // OpenCV before 4.9 rounds ties away from zero on arm64 when it converts doubles to bytes.
    mean.forEach<double>([](double& value, const int*) { value = std::nearbyint(value); });
    mean.convertTo(mat_of(expected), CV_8U);
    EXPECT_EQ(check(backend, local::Params{Operation::box_mean, radius}, src, expected), "") << radius;
  }
}

/// If the sides of a picture are multiples of the block, cv::resize makes the block means and then the mosaic.
TEST_P(LocalPlans, PixelateEqualsOpenCV) {
  for (int side : {3, 15}) {
    const Geometry geometry{Format::GRAY8, 15 * 21, 15 * 13};
    const Picture src = make_picture(geometry, 7);
    Picture expected(geometry);
    cv::Mat exact, means;
    mat_of(src).convertTo(exact, CV_64F);
    cv::resize(exact, means, {geometry.width / side, geometry.height / side}, 0, 0, cv::INTER_AREA);
    means.convertTo(means, CV_8U);
    cv::Mat blocks = mat_of(expected);
    cv::resize(means, blocks, blocks.size(), 0, 0, cv::INTER_NEAREST);
    EXPECT_EQ(check(backend, local::Params{Operation::pixelate, side / 2}, src, expected), "") << side;
  }
}

/// Near and far regions have the same number of blocks: eight times the radius is the shorter side. Where regions
/// overlap, the box of the larger one sets the strength, whatever their order.
TEST_P(LocalPlans, StrengthFollowsTheRegion) {
  const Geometry geometry{Format::GRAY8, 400, 300};
  const Picture src = make_picture(geometry, 9);
  const auto run = [&](const local::Params& params, const std::vector<Rect>& rects) {
    auto filter = make(params, geometry, backend);
    EXPECT_TRUE(filter.ok());
    return run_filter(*filter.value(), backend, src, {Region::Mode::inside, rects});
  };
  for (Operation operation : {Operation::box_mean, Operation::pixelate})
    for (const auto& [box, radius] : {std::pair{Rect{10, 20, 80, 200}, 10},
                                      {Rect{10, 20, 81, 200}, 11},
                                      {Rect{3, 3, 5, 4}, 2},
                                      {Rect{-50, -60, 5000, 5000}, 38},
                                      {Rect{100, 100, 16, 16}, 2},
                                      {Rect{100, 100, 24, 17}, 3}}) {
      const local::Params following{operation, 0}, fixed{operation, radius};
      EXPECT_EQ(run(fixed, {box}).sample_difference(run(following, {box}), 0), "") << describe(fixed);
      const Rect small{30, 40, 20, 20}, large{25, 35, 160, 120};
      EXPECT_TRUE(run(following, {small, large}).bytes() == run(following, {large, small}).bytes());
      EXPECT_TRUE(run(following, {small, large}).bytes() == run(following, {large}).bytes());
    }
}
INSTANTIATE_FOR_BACKENDS(LocalPlans);

TEST(LocalSchedule, BlocksFitIntoSharedMemory) {
  const int turing = 64 << 10, hopper = 227 << 10;
  for (int limit : {turing, hopper})
    for (int radius = 0; radius <= local::nlm_max_radius; ++radius)
      for (int search = 1; search <= local::nlm_max_search_radius; ++search) {
        const local::NlmBlock block = local::make_nlm_block(radius, radius, search, search, std::size_t(limit));
        ASSERT_GE(block.warps_x * block.warps_y, 1) << radius << ", " << search;
        EXPECT_LE(block.shared_bytes, std::size_t(limit));
        EXPECT_GE(block.reach, radius);
        EXPECT_GE(block.pitch, block.width + 2 * (block.reach + search));
        EXPECT_EQ(block.pitch % 8, 4);
      }
  EXPECT_EQ(local::make_nlm_block(16, 16, 32, 32, 1000).warps_x, 0);
  EXPECT_EQ(local::make_nlm_block(4, 8, 1, 1, hopper).reach, 8);  // the larger radius counts
}

TEST(LocalSchedule, BlocksLieOnAGridOfTheFrame) {
  const local::NlmBlock block = local::make_nlm_block(7, 7, 5, 5, 227 << 10);
  const int w = block.width, h = block.height;
  for (const Rect& rect : {Rect{0, 0, 1, 1}, {w - 1, h, 2, h}, {3 * w, 2 * h + 5, w, 4 * h}}) {
    const local::NlmGrid grid = local::nlm_grid(block, rect);
    EXPECT_EQ(grid.first_x, rect.x / w);
    EXPECT_EQ(grid.first_y, rect.y / h);
    EXPECT_TRUE(just_cover(grid.blocks_x, w, rect.x + rect.width - grid.first_x * w));
    EXPECT_TRUE(just_cover(grid.blocks_y, h, rect.y + rect.height - grid.first_y * h));
  }
}

TEST(LocalSchedule, SpansAreAboutEqual) {
  for (local::Samples samples : {local::Samples::bits8, local::Samples::bits10, local::Samples::bits16})
    for (int search = 1; search <= local::nlm_max_search_radius; ++search) {
      const int offsets = 2 * search + 1, span = local::nlm_span(samples, search), spans = (offsets + span - 1) / span;
      EXPECT_LE(span, std::max(local::tuning.nlm_half_span, local::tuning.nlm_float_span));
      EXPECT_LT(spans * span - offsets, spans);
    }
}

TEST(LocalErrors, NameThePropertyAndItsRange) {
  using Params = local::Params;
  expect_refused(Params(), "radius", {-1, 16385}, &Params::radius);
  expect_refused(Params(), "sensitivity", {-0.1, 1.1, not_a_number}, &Params::sensitivity);
  expect_refused(Params(), "search-radius", {0, 33, -5}, &Params::search_radius);
  expect_refused(Params(), "strength", {0, -1, not_a_number, infinite}, &Params::strength);
  expect_refused(nlm(1, 1), "radius", {17}, &Params::radius);
}

}  // namespace
}  // namespace cudavision::test
