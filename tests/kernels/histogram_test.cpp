// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/kernels/reference/histogram.hpp"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>
#include <sstream>

#include "kernels/core/backend.hpp"
#include "kernels/histogram/cuda_schedule.hpp"
#include "kernels/histogram/cuda_walk.hpp"
#include "tests/kernels/harness.hpp"
#include "tests/kernels/opencv.hpp"

namespace cudavision::test {
namespace {

const std::vector<int> bin_numbers = {2,   3,    7,    16,   100,  255,   256,   257,
                                      300, 1000, 1023, 1024, 4096, 10000, 65535, 65536};

const histogram::Params of_all_channels{256, histogram::Channels::all};

std::string describe(const histogram::Params& params) {
  std::ostringstream text;
  text << "bins=" << params.bins << " channels=" << int(params.channels) << " luma=" << int(params.luma);
  return text.str();
}

histogram::Params random_params(Random& random) {
  using histogram::Channels;
  return {random.pick(bin_numbers), random.pick<Channels>({Channels::luma, Channels::components, Channels::all}),
          luma_matrices[random.below(int(std::size(luma_matrices)))]};
}

/// Returns an empty string if both are equal, otherwise the first difference.
std::string difference(const histogram::Counts& expected, const histogram::Counts& actual) {
  if (expected.size() != actual.size()) return "other channels";
  for (std::size_t c = 0; c < expected.size(); ++c) {
    if (std::string(expected[c].name) != actual[c].name)
      return std::string("channel ") + actual[c].name + " for " + expected[c].name;
    if (expected[c].counts.size() != actual[c].counts.size()) return "other bins";
    for (std::size_t bin = 0; bin < expected[c].counts.size(); ++bin)
      if (expected[c].counts[bin] != actual[c].counts[bin])
        return std::string(expected[c].name) + ", bin " + std::to_string(bin) + ": expected " +
               std::to_string(expected[c].counts[bin]) + ", got " + std::to_string(actual[c].counts[bin]);
  }
  return {};
}

std::unique_ptr<histogram::Histogram> counter(const histogram::Params& params, const Geometry& geometry,
                                              Backend backend) {
  auto made = histogram::make(params, geometry, backend);
  if (!made.ok()) throw std::runtime_error(made.error().message());
  return std::move(made.value());
}

histogram::Counts run(histogram::Histogram& histogram, const Picture& src, const Region& region = {}) {
  run_on(histogram.backend(), src,
         [&](const Image& image, Queue queue) { return histogram.submit(image, region, queue); });
  return histogram.result();
}

void expect_counts(Backend backend, const histogram::Params& params, const Case& c, unsigned seed) {
  const Picture src = make_picture(c.geometry, seed, c.data, c.src);
  const auto histogram = counter(params, c.geometry, backend);
  for (int round = 0; round < 2; ++round)  // the second round reuses the memory of the first
    EXPECT_EQ(difference(reference::count(params, src, c.region), run(*histogram, src, c.region)), "")
        << describe(c.geometry, c.src, {}, c.region, c.data) << "\n"
        << describe(params) << " round " << round;
}

class HistogramSweep : public OnBackendWithFormat {};

/// Every format and size, with random bins, channels, regions, addresses and contents.
TEST_P(HistogramSweep, EqualsReference) {
  Random random(unsigned(format) + 100);
  for (int i = 0; i < 2 * rounds() * int(sizes.size()); ++i)
    expect_counts(backend, random_params(random), random_case(random, format, sizes[i % sizes.size()]), unsigned(i));
}

INSTANTIATE_FOR_FORMATS(HistogramSweep, all_formats());

class HistogramLarge : public OnBackendWithFormat {};

/// Frames so large that all kernels count. Frames with a single value test the overflow of small counters.
TEST_P(HistogramLarge, EqualsReference) {
  Random random(unsigned(format) + 300);
  const bool rotated = int(format) % 2;
  histogram::Params params = of_all_channels;
  if (!rotated) params.bins = 100;
  const Region parts{rotated ? Region::Mode::outside : Region::Mode::inside,
                     {{3, 5, 2490, 1600}, {1, 1, 700, 1700}, {100, 1, 17, 9}}};
  expect_counts(backend, params, {{format, 2501, 1703}, {0, 0, 256}, {}, {}, Data::random}, 1);
  expect_counts(backend, params, {{format, 2501, 1703}, {0, 0, 256}, {}, {}, Data::flat}, 2);
  expect_counts(backend, params, {{format, 2501, 1703}, {0, 0, 16}, {}, parts, Data::random}, 3);
  expect_counts(backend, params, {{format, 1920, 1080}, {1, 3, 1}, {}, parts, Data::faint}, 4);
  params.bins = 65536;
  expect_counts(backend, params, {{format, 1920, 1080}, {}, {}, {}, Data::random}, 5);
  expect_counts(backend, params, {{format, 2501, 1703}, {}, {}, {}, Data::flat}, 6);
  expect_counts(backend, params, {{format, 2501, 1703}, {0, 0, 16}, {}, parts, Data::faint}, 7);
  params.bins = 65535;
  expect_counts(backend, params, {{format, 1920, 1080}, {0, 0, 16}, {}, parts, Data::checkerboard}, 8);
}
const std::vector<Format> large_formats = {Format::GRAY8,     Format::RGB,       Format::RGBA,      Format::NV12,
                                           Format::I420,      Format::Y444,      Format::YUY2,      Format::GBR,
                                           Format::BGRP,      Format::GRAY16_LE, Format::P010_10LE, Format::P016_LE,
                                           Format::Y444_16LE, Format::RGBA64_LE};
INSTANTIATE_FOR_FORMATS(HistogramLarge, large_formats);

class HistogramPlans : public OnBackend {};

TEST_P(HistogramPlans, ManyOverlappingRectangles) {
  Random random(9);
  for (Format format : {Format::GRAY8, Format::NV12, Format::RGBA, Format::I420, Format::GBR, Format::UYVY})
    for (const auto mode : {Region::Mode::inside, Region::Mode::outside}) {
      Region region{mode};
      for (int i = 0; i < 60; ++i)
        region.rects.push_back(
            {random.between(-20, 620), random.between(-20, 460), random.between(0, 130), random.between(0, 90)});
      expect_counts(backend, of_all_channels, {{format, 640, 481}, {0, 0, 16}, {}, region, Data::random}, 1);
    }
  // A frame so large that all kernels count its pieces.
  Region region{Region::Mode::outside};
  for (int i = 0; i < 50; ++i)
    region.rects.push_back(
        {random.between(0, 2400), random.between(0, 2100), random.between(1, 60), random.between(1, 60)});
  for (Format format : {Format::NV12, Format::Y444})
    expect_counts(backend, of_all_channels, {{format, 2500, 2200}, {0, 0, 16}, {}, region, Data::random}, 2);
}

/// The maximum width and height, and the largest frame.
TEST_P(HistogramPlans, LongestSides) {
  for (const Geometry& geometry : longest_frames)
    expect_counts(backend, of_all_channels, {geometry, {}, {}, {}, Data::random}, 1);
  const Picture src = make_picture({Format::GRAY8, 16384, 16384}, 1, Data::max);
  EXPECT_EQ(run(*counter({}, src.geometry(), backend), src)[0].counts[255], std::uint64_t(1) << 28);
}

/// Several frames in flight, each with its own result, and the sum of their results.
TEST_P(HistogramPlans, KeepResultsOfSeveralFrames) {
  histogram::Params params = of_all_channels;
  params.history = 3;
  const Geometry geometry{Format::RGB, 333, 222};
  const auto histogram = counter(params, geometry, backend);
  std::vector<histogram::Counts> expected;
  for (unsigned seed = 0; seed < 5; ++seed) {
    const Picture src = make_picture(geometry, seed);
    expected.push_back(reference::count(params, src));
    run(*histogram, src);
  }
  for (int age = 0; age < 3; ++age)
    EXPECT_EQ(difference(expected[4 - age], histogram->result(age)), "") << "age " << age;
  histogram::Counts sums;
  for (int age = 0; age < 3; ++age) histogram->add_result(sums, age);
  for (std::size_t c = 0; c < sums.size(); ++c)
    for (std::size_t bin = 0; bin < sums[c].counts.size(); ++bin)
      ASSERT_EQ(sums[c].counts[bin],
                expected[2][c].counts[bin] + expected[3][c].counts[bin] + expected[4][c].counts[bin]);
}

INSTANTIATE_FOR_BACKENDS(HistogramPlans);

class Equalize : public OnBackendWithFormat {};

std::string check_equalize(Backend backend, LumaMatrix matrix, const Picture& src, const Picture& expected,
                           const Region& region = {}) {
  auto filter = histogram::make_equalize(matrix, src.geometry(), backend);
  if (!filter.ok()) return filter.error().message();
  for (int round = 0; round < 2; ++round) {
    Job job(backend, src, expected.inverted());
    const Status status = job.submit(*filter.value(), region);
    const Picture actual = job.finish();
    if (!status.ok()) return status.message();
    if (std::string wrong = expected.difference(actual, 0); !wrong.empty()) return wrong;
  }
  return {};
}

TEST_P(Equalize, EqualsReference) {
  Random random(unsigned(format) + 500);
  for (int i = 0; i < rounds() * int(sizes.size()); ++i) {
    const Case c = random_case(random, format, sizes[i % sizes.size()]);
    const LumaMatrix matrix = luma_matrices[random.below(int(std::size(luma_matrices)))];
    const Picture src = make_picture(c.geometry, unsigned(i), c.data, c.src);
    EXPECT_EQ(check_equalize(backend, matrix, src, reference::equalize(matrix, src, c.region, c.dst), c.region), "")
        << describe(c.geometry, c.src, c.dst, c.region, c.data);
  }
}
INSTANTIATE_FOR_FORMATS(Equalize, all_formats());

class EqualizeLarge : public OnBackendWithFormat {};

/// Frames so large that each thread processes several chunks.
TEST_P(EqualizeLarge, EqualsReference) {
  const Region parts{Region::Mode::inside, {{3, 5, 2490, 1600}}};
  for (const Region& region : {Region(), parts}) {
    const Layout layout{0, 0, 16};
    const Picture src = make_picture({format, 2501, 1703}, 1, Data::faint, layout);
    EXPECT_EQ(check_equalize(backend, LumaMatrix::bt709, src,
                             reference::equalize(LumaMatrix::bt709, src, region, layout), region),
              "")
        << describe(src.geometry(), layout, layout, region, Data::faint);
  }
}
INSTANTIATE_FOR_FORMATS(EqualizeLarge, large_formats);

class EqualizeOpenCV : public testing::TestWithParam<Runner> {};

TEST_P(EqualizeOpenCV, IsEqual) {
  const Runner& runner = GetParam();
  if (runner.backend) SKIP_UNLESS_AVAILABLE(*runner.backend);
  for (const auto& [width, height] : {std::pair{640, 480}, {67, 45}, {1, 1}, {2, 1}, {2501, 1703}})
    for (Data data : {Data::random, Data::faint, Data::flat, Data::checkerboard, Data::zero}) {
      const Geometry geometry{Format::GRAY8, width, height};
      const Picture src = make_picture(geometry, unsigned(width), data);
      Picture expected(geometry);
      cv::Mat out = mat_of(expected);
      cv::equalizeHist(mat_of(src), out);
      EXPECT_EQ(runner.backend ? check_equalize(*runner.backend, LumaMatrix::bt601, src, expected)
                               : expected.sample_difference(reference::equalize(LumaMatrix::bt601, src), 0),
                "")
          << width << "x" << height << " data " << int(data);
    }
}
INSTANTIATE_FOR_RUNNERS(EqualizeOpenCV);

class HistogramOverlays : public OnBackendWithFormat {};

TEST_P(HistogramOverlays, EqualReference) {
  Random random(unsigned(format) + 700);
  for (int i = 0; i < 4 * rounds(); ++i) {
    histogram::Params params = random_params(random);
    const Geometry geometry{format, random.between(1, 200), random.between(1, 150)};
    const Picture src = make_picture(geometry, unsigned(i), i % 3 ? Data::random : Data::faint, random.pick(layouts));
    histogram::OverlayParams overlay;
    overlay.position = {random.between(-30, 60), random.between(-30, 60), random.between(1, 300),
                        random.between(1, 90)};
    overlay.opacity = random.below(3) ? random.unit() : 1;
    overlay.log = random.below(2);
    const auto histogram = counter(params, geometry, backend);
    auto drawer = histogram::make_overlay(overlay, *histogram);
    ASSERT_TRUE(drawer.ok()) << drawer.error().message();
    Job job(backend, src, src);
    const Status status = job.submit([&](const Image& from, const Image& to, Queue queue) {
      if (Status counted = histogram->submit(from, {}, queue); !counted.ok()) return counted;
      return drawer.value()->submit(to, queue);
    });
    ASSERT_TRUE(status.ok()) << status.message();
    Picture expected = src;
    reference::draw(overlay, reference::count(params, src), expected);
    expected.fill_padding();
    Picture actual = job.finish();
    EXPECT_EQ(expected.sample_difference(actual, 0), "")
        << describe(geometry, {}, {}, {}, Data::random) << " " << describe(params);
    EXPECT_TRUE(expected.bytes() == actual.bytes()) << "bytes outside the picture";
  }
}
INSTANTIATE_FOR_FORMATS(HistogramOverlays, all_formats());

/// Tests the CUDA schedule of a frame. No GPU is needed.
class HistogramSchedule : public testing::Test {
 protected:
  struct Frame {
    histogram::Plan plan;
    histogram::Limits limits;
    SetPieces pieces;
    std::size_t rects = 0;  ///< of the set with the most pieces
  };

  /// Calls check(frame) for many formats, sizes, regions and parameters, on large and small devices.
  template <typename Check>
  static void for_frames(Check check) {
    Random random(21);
    for (Format format : all_formats())
      for (int i = 0; i < 60; ++i) {
        const auto [width, height] = random.pick(std::vector<std::pair<int, int>>{
            {1, 1}, {67, 45}, {640, 480}, {1920, 1080}, {2501, 1703}, {7680, 4320}, {16384, 3}});
        const histogram::Params params = random_params(random);
        auto plan = histogram::resolve(params, {format, width, height});
        ASSERT_TRUE(plan.ok());
        Frame frame{plan.value(), {}, {}, 0};
        const auto [multiprocessors, shared] =
            random.pick(std::vector<std::pair<int, int>>{{132, 232448}, {48, 101376}, {1, 49152}});
        frame.limits = histogram::limits_of(multiprocessors, shared);
        Region region;
        region.mode = i % 3 == 0 ? Region::Mode::frame : i % 3 == 1 ? Region::Mode::inside : Region::Mode::outside;
        for (int r = random.below(80); r > 0; --r)
          region.rects.push_back({random.between(-20, width), random.between(-20, height), random.between(0, width),
                                  random.between(0, 90)});
        region_pieces(frame.plan.geometry, region, frame.pieces);
        for (int s = 0; s < info(format).set_count; ++s)
          if (frame.plan.counts(info(format).sets[s])) frame.rects = std::max(frame.rects, frame.pieces[s].size());
        SCOPED_TRACE(describe(frame.plan.geometry, {}, {}, region, Data::random) + " " + describe(params));
        check(frame);
        if (testing::Test::HasFatalFailure()) return;
      }
  }

  static void add(const histogram::Share& share, std::vector<Rect>& counted) {
    ASSERT_LE(share.rect_count, histogram::max_rects);
    counted.insert(counted.end(), share.rects, share.rects + share.rect_count);
  }
};

/// The launches of a frame count every piece of every set exactly once.
TEST_F(HistogramSchedule, LaunchesCountEveryPieceOnce) {
  for_frames([](const Frame& frame) {
    const FormatInfo& format = info(frame.plan.geometry.format);
    std::vector<Rect> counted[3];
    for (std::size_t from = 0; from < frame.rects; from += histogram::max_rects) {
      const auto words = histogram::schedule_words(frame.plan, frame.limits, frame.pieces, from);
      for (int j = 0; j < words.jobs; ++j) add(words.shares[j], counted[words.sets[j]]);
      const auto pixels = histogram::schedule_pixels(frame.plan, frame.limits, frame.pieces, from);
      for (int s = 0; s < format.color_sets(); ++s) add(pixels.shares[s], counted[s]);
    }
    if (frame.plan.three_planes && frame.rects > 0) {
      ASSERT_TRUE(histogram::schedule_pixels(frame.plan, frame.limits, frame.pieces, 0).any)
          << "planes are read together";
    }
    for (int s = 0; s < (frame.plan.three_planes ? 1 : format.color_sets()); ++s)
      ASSERT_EQ(frame.plan.counts(format.sets[s]) ? frame.pieces[s] : std::vector<Rect>(), counted[s]);
  });
}

/// Each job of the word kernel has a range of blocks. The ranges are consecutive and have at most about one block per
/// multiprocessor.
TEST_F(HistogramSchedule, WordBlocksBelongToOneJob) {
  for_frames([](const Frame& frame) {
    const auto launch = histogram::schedule_words(frame.plan, frame.limits, frame.pieces, 0);
    int blocks = 0;
    for (int j = 0; j < 3; ++j) {
      if (j >= launch.jobs) {
        ASSERT_EQ(launch.shares[j].first_block, INT_MAX);
        continue;
      }
      ASSERT_TRUE(histogram::counts_words(frame.plan, launch.sets[j], frame.limits));
      const Role role = info(frame.plan.geometry.format).sets[launch.sets[j]].roles[0];
      ASSERT_GE(frame.plan.table_of[std::size_t(role)], 0) << "the word kernel counts in this table";
      ASSERT_EQ(launch.shares[j].first_block, blocks);
      ASSERT_GE(launch.shares[j].blocks, 1);
      blocks += launch.shares[j].blocks;
    }
    ASSERT_EQ(launch.blocks, blocks);
    ASSERT_LE(blocks, frame.limits.multiprocessors + 2);
    ASSERT_TRUE(launch.jobs == 0 || histogram::word_counter_bytes <= frame.limits.shared_bytes);
  });
}

/// Each block of the pixel kernel finds its job as the kernel does, and every job has its blocks in every pass.
TEST_F(HistogramSchedule, PixelBlocksBelongToOneJob) {
  for_frames([](const Frame& frame) {
    const auto launch = histogram::schedule_pixels(frame.plan, frame.limits, frame.pieces, 0);
    const histogram::Share* shares = launch.shares;
    int blocks[3] = {};
    ASSERT_GE(launch.blocks, 1);
    ASSERT_LE(shares[1].first_block, shares[2].first_block);
    for (int block = 0; block < launch.blocks; ++block)
      ++blocks[(block >= shares[1].first_block) + (block >= shares[2].first_block)];
    for (int i = 0; i < 3; ++i)  // job 0 has a block even if there is nothing to count
      ASSERT_EQ(blocks[i], shares[i].rect_count > 0 ? shares[i].blocks * launch.tables[i].passes : i == 0);
    ASSERT_LE(launch.shared_bytes, std::size_t(frame.limits.shared_bytes));
    ASSERT_LE(launch.blocks, frame.limits.multiprocessors + launch.tables[0].passes + launch.tables[1].passes +
                                 launch.tables[2].passes);
  });
}

/// The passes of a job cover its entries, and each pass fits in shared memory.
TEST_F(HistogramSchedule, PassesCoverTheEntries) {
  for_frames([](const Frame& frame) {
    const auto launch = histogram::schedule_pixels(frame.plan, frame.limits, frame.pieces, 0);
    for (int i = 0; i < 3; ++i) {
      const histogram::PixelTables& tables = launch.tables[i];
      if (launch.shares[i].rect_count == 0) continue;
      ASSERT_GT(tables.entries, 0);
      ASSERT_TRUE(just_cover(tables.passes, tables.pass_entries, tables.entries));
      ASSERT_LE(tables.pass_entries, frame.limits.pixel_entries);
      ASSERT_LE(tables.first_entry + tables.entries, frame.plan.tables * frame.plan.fine);
      for (int base : tables.base) ASSERT_LE(base + frame.plan.fine, tables.entries);
      ASSERT_LE(tables.luma_base + frame.plan.fine, tables.entries);
    }
  });
}

TEST_F(HistogramSchedule, LanesHaveCountersIfTheseFit) {
  const auto by_lane = [](Format format, int set, histogram::Channels channels, int bins, int shared) {
    const histogram::Plan plan = histogram::resolve({bins, channels}, {format, 1920, 1080}).value();
    return histogram::pixel_tables(plan, set, histogram::limits_of(132, shared)).by_lane;
  };
  using histogram::Channels;
  EXPECT_TRUE(by_lane(Format::GRAY8, 0, Channels::luma, 256, 232448));
  EXPECT_TRUE(by_lane(Format::GRAY8, 0, Channels::luma, 256, 49152));
  EXPECT_TRUE(by_lane(Format::RGBA, 0, Channels::all, 256, 232448));
  EXPECT_FALSE(by_lane(Format::RGBA, 0, Channels::all, 256, 49152));
  EXPECT_TRUE(by_lane(Format::P010_10LE, 0, Channels::components, 1024, 232448));
  EXPECT_FALSE(by_lane(Format::P010_10LE, 1, Channels::components, 1024, 232448));
  EXPECT_FALSE(by_lane(Format::GRAY16_LE, 0, Channels::luma, 4096, 232448));
}

TEST_F(HistogramSchedule, WordKernelCountsOneChannelInManyEntries) {
  const auto counts = [](Format format, int set, int bins, int shared) {
    const histogram::Params params{bins, histogram::Channels::components};
    return histogram::counts_words(histogram::resolve(params, {format, 640, 480}).value(), set,
                                   histogram::limits_of(132, shared));
  };
  EXPECT_TRUE(counts(Format::GRAY16_LE, 0, 65536, 232448));
  EXPECT_TRUE(counts(Format::P016_LE, 0, 65536, 232448));
  EXPECT_TRUE(counts(Format::Y444_16LE, 2, 65536, 232448));
  EXPECT_FALSE(counts(Format::P016_LE, 1, 65536, 232448));
  EXPECT_FALSE(counts(Format::RGBA64_LE, 0, 65536, 232448));
  EXPECT_FALSE(counts(Format::GRAY16_LE, 0, 65535, 232448));
  EXPECT_FALSE(counts(Format::GRAY16_LE, 0, 65536, 101376));
  EXPECT_FALSE(counts(Format::GRAY8, 0, 65536, 232448));
}

/// Together, the workers visit every unit of a rectangle once.
TEST_F(HistogramSchedule, WalksVisitEveryUnitOnce) {
  for (unsigned units : {1u, 2u, 7u, 60u})
    for (int height : {1, 3, 50})
      for (unsigned workers : {1u, 2u, 5u, 64u, 1000u}) {
        std::vector<int> visits(units * height);
        for (unsigned worker = 0; worker < workers; ++worker)
          for (histogram::Walk walk(worker, workers, units); walk.y < height; walk.next())
            ++visits.at(walk.y * units + walk.x);
        EXPECT_EQ(std::count(visits.begin(), visits.end(), 1), std::ptrdiff_t(visits.size()))
            << units << " units, " << height << " rows, " << workers << " workers";
      }
}

TEST(RegionPieces, AreDisjointAndCoverTheRegion) {
  Random random(5);
  for (Format format : {Format::GRAY8, Format::NV12, Format::Y42B, Format::YUY2, Format::RGB})
    for (int round = 0; round < 300; ++round) {
      const Geometry geometry{format, random.between(1, 40), random.between(1, 40)};
      Region region = random_region(random, geometry.width, geometry.height);
      for (int i = random.below(6); i > 0 && region.mode != Region::Mode::frame; --i)
        region.rects.push_back(
            {random.between(-6, 40), random.between(-6, 40), random.between(0, 20), random.between(0, 20)});
      SetPieces pieces;
      region_pieces(geometry, region, pieces);
      for (int s = 0; s < info(format).set_count; ++s) {
        const ChannelSet& set = info(format).sets[s];
        const Rect grid = geometry.grid(set);
        std::vector<int> covered(std::size_t(grid.width) * grid.height);
        for (const Rect& rect : pieces[s])
          for (const auto& [x, y] : positions(rect)) ++covered.at(std::size_t(y) * grid.width + x);
        for (const auto& [x, y] : positions(grid))
          ASSERT_EQ(covered[std::size_t(y) * grid.width + x], reference::in_region(region, geometry, set, x, y))
              << describe(geometry, {}, {}, region, Data::random) << " set " << s << " (" << x << ", " << y << ")";
      }
    }
}

TEST(HistogramStatistics, EqualTheStatisticsOfTheSamples) {
  Random random(11);
  for (int depth : {8, 10, 16})
    for (int bins : {2, 5, 100, 256, 300, 1024, 65536}) {
      if (depth == 16 && bins > 300) continue;  // the reference is too slow: it searches all values for each bin
      for (int round = 0; round < 6; ++round) {
        std::vector<std::uint64_t> counts(bins);
        for (int i = round == 0 ? 0 : round == 1 ? 1 : 400; i > 0; --i)
          ++counts[std::int64_t(random.below(1 << depth)) * bins >> depth];
        const histogram::Statistics e = reference::statistics(counts, depth), a = histogram::statistics(counts, depth);
        EXPECT_EQ(e.count, a.count);
        EXPECT_FALSE(std::signbit(a.entropy));  // the entropy of a flat picture is 0, not −0
        for (const auto& [expected, actual, what] : {std::tuple{e.min, a.min, "min"},
                                                     {e.max, a.max, "max"},
                                                     {e.mean, a.mean, "mean"},
                                                     {e.deviation, a.deviation, "deviation"},
                                                     {e.median, a.median, "median"},
                                                     {e.p01, a.p01, "p01"},
                                                     {e.p99, a.p99, "p99"},
                                                     {e.entropy, a.entropy, "entropy"},
                                                     {e.saturated, a.saturated, "saturated"}})
          EXPECT_NEAR(expected, actual, 1e-9 * (1 << depth))
              << what << ", " << bins << " bins, depth " << depth << ", round " << round;
      }
    }
}

/// One pixel of a bright 16-bit 4K picture is a step brighter. The sum of all squares has more bits than a double.
TEST(HistogramStatistics, DeviationOfANearlyFlatPicture) {
  const std::uint64_t count = 3840 * 2160;
  std::vector<std::uint64_t> counts(65536);
  counts[60000] = count - 1;
  counts[60001] = 1;
  const histogram::Statistics found = histogram::statistics(counts, 16);
  EXPECT_NEAR(found.mean, 60000 + 1.0 / double(count), 1e-9);
  EXPECT_NEAR(found.deviation, std::sqrt(double(count - 1)) / double(count), 1e-6);
}

TEST(HistogramErrors, NameThePropertyAndItsRange) {
  using Params = histogram::Params;
  expect_refused(Params(), "bins", {-1, 0, 1, 65537}, &Params::bins);
  expect_refused(Params(), "history", {0, 65}, &Params::history);
  for (double opacity : {-0.1, 1.1, not_a_number}) {
    histogram::OverlayParams overlay;
    overlay.opacity = opacity;
    EXPECT_NE(validate(overlay).message().find("overlay-opacity"), std::string::npos);
  }
  for (const Rect& rect : {Rect{0, 0, 0, 5}, Rect{0, 0, 5, -1}, Rect{0, 0, 20000, 5}, Rect{100000, 0, 5, 5}}) {
    histogram::OverlayParams overlay;
    overlay.position = rect;
    EXPECT_NE(validate(overlay).message().find("overlay-position"), std::string::npos);
  }
}

}  // namespace
}  // namespace cudavision::test
