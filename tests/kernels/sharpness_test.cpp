// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares the sums of luma (kernels/histogram/sharpness.hpp) with the reference, and tests the figures computed from
// them.
#include "kernels/histogram/sharpness.hpp"

#include <optional>

#include "kernels/histogram/cuda_schedule.hpp"
#include "tests/kernels/harness.hpp"
#include "tests/kernels/reference/histogram.hpp"

namespace cudavision::test {
namespace {

using histogram::LumaSums;
using histogram::Sharpness;
using histogram::SharpnessParams;

std::string text(const LumaSums& sums) {
  std::ostringstream text;
  text << "pixels=" << sums.pixels << " luma=" << sums.luma << " squares=" << sums.squares
       << " neighbours=" << sums.neighbours << " gradients=" << sums.gradients << " differences=" << sums.differences
       << " compared=" << sums.compared;
  return text.str();
}

std::unique_ptr<Sharpness> plan(const SharpnessParams& params, const Geometry& geometry, Backend backend) {
  auto made = histogram::make_sharpness(params, geometry, backend);
  if (!made.ok()) throw std::runtime_error(made.error().message());
  return std::move(made.value());
}

LumaSums run(Sharpness& sharpness, Backend backend, const Picture& src, const Region& region = {}) {
  run_on(backend, src, [&](const Image& image, Queue queue) { return sharpness.submit(image, region, queue); });
  return sharpness.result();
}

/// Submits four frames, each with its own region and layout, with and without a comparison with the previous frame.
void expect_sums(Backend backend, SharpnessParams params, const Case& c, Random& random, unsigned seed) {
  for (const bool compare : {false, true}) {
    params.compare = compare;
    const auto sharpness = plan(params, c.geometry, backend);
    std::optional<Picture> before;
    for (int frame = 0; frame < 4; ++frame) {
      const Layout layout = frame == 0 ? c.src : random.pick(layouts);
      const Region region = frame < 2 ? c.region : random_region(random, c.geometry.width, c.geometry.height);
      // frames 1 and 3 repeat a picture
      const Picture src = make_picture(c.geometry, seed + unsigned(frame / 2), c.data, layout);
      const LumaSums expected = reference::luma_sums(params.luma, src, region, compare && before ? &*before : nullptr);
      EXPECT_EQ(text(run(*sharpness, backend, src, region)), text(expected))
          << describe(c.geometry, layout, {}, region, c.data) << " luma=" << int(params.luma) << " frame " << frame;
      before = src;
    }
  }
}

class SharpnessSweep : public OnBackendWithFormat {};

/// Every format and size, with random regions, addresses and contents.
TEST_P(SharpnessSweep, EqualsReference) {
  Random random(unsigned(format) + 900);
  for (int i = 0; i < rounds() * int(sizes.size()); ++i) {
    SharpnessParams params;
    params.luma = luma_matrices[random.below(int(std::size(luma_matrices)))];
    expect_sums(backend, params, random_case(random, format, sizes[i % sizes.size()]), random, unsigned(i) * 10);
  }
}

/// Widths around the ends of a warp's part of a row, where the neighbour is in another warp or does not exist. Each
/// format takes every second width, and the next format takes the others.
TEST_P(SharpnessSweep, WidthsAroundATile) {
  Random random(unsigned(format) + 1000);
  int widths = int(format);
  for (int unit : {124, 252, 508})
    for (int tiles : {1, 2}) {
      ++widths;
      for (int more : {-5, -4, -1, 0, 1, 3, 4, 5})
        if (widths++ % 2)
          expect_sums(backend, {}, {{format, unit * tiles + more, 9}, {0, 0, 16}, {}, {}, Data::random}, random,
                      unsigned(more + 9));
    }
}
INSTANTIATE_FOR_FORMATS(SharpnessSweep, all_formats());

class SharpnessPlans : public OnBackend {};

/// Frames of many tiles and blocks, whose sums exceed 32 bits.
TEST_P(SharpnessPlans, LargeFrames) {
  Random random(5);
  const Region parts{Region::Mode::outside, {{3, 5, 1490, 300}, {1, 1, 700, 450}, {100, 1, 17, 9}}};
  for (Format format :
       {Format::GRAY8, Format::RGB, Format::RGBA, Format::UYVY, Format::GBR, Format::P010_10LE, Format::ARGB64_LE}) {
    expect_sums(backend, {}, {{format, 1501, 503}, {0, 0, 256}, {}, {}, Data::checkerboard}, random, 1);
    expect_sums(backend, {}, {{format, 1501, 503}, {1, 0, 1}, {}, parts, Data::random}, random, 7);
  }
  for (const auto& [width, height] : {std::pair{16384, 3}, std::pair{3, 16384}})
    expect_sums(backend, {}, {{Format::GRAY16_LE, width, height}, {}, {}, {}, Data::max}, random, 1);
}

TEST_P(SharpnessPlans, ManyRectangles) {
  Random random(6);
  for (Format format : {Format::NV12, Format::RGBA, Format::BGRP})
    for (const auto mode : {Region::Mode::inside, Region::Mode::outside}) {
      Region region;
      region.mode = mode;
      for (int i = 0; i < 60; ++i)
        region.rects.push_back(
            {random.between(-20, 620), random.between(-20, 460), random.between(0, 130), random.between(0, 90)});
      expect_sums(backend, {}, {{format, 640, 481}, {}, {}, region, Data::random}, random, 3);
    }
}

/// Several frames in flight, each with its own result. After reset() there is nothing to compare with.
TEST_P(SharpnessPlans, KeepResultsOfSeveralFrames) {
  SharpnessParams params;
  params.compare = true;
  params.history = 3;
  const Geometry geometry{Format::RGB, 333, 222};
  const auto sharpness = plan(params, geometry, backend);
  std::vector<LumaSums> expected;
  std::optional<Picture> before;
  for (unsigned seed = 0; seed < 6; ++seed) {
    if (seed == 4) {
      sharpness->reset();
      before.reset();
    }
    const Picture src = make_picture(geometry, seed);
    expected.push_back(reference::luma_sums(params.luma, src, {}, before ? &*before : nullptr));
    run(*sharpness, backend, src);
    before = src;
  }
  EXPECT_FALSE(sharpness->result(1).compared);
  for (int age = 0; age < 3; ++age)
    EXPECT_EQ(text(sharpness->result(age)), text(expected[std::size_t(5 - age)])) << "age " << age;
}

TEST_P(SharpnessPlans, RefuseWrongHistories) {
  for (int history : {0, 65}) {
    SharpnessParams params;
    params.history = history;
    const auto made = histogram::make_sharpness(params, {Format::GRAY8, 8, 8}, backend);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().message(), "history is " + std::to_string(history) + ": it must be 1 to 64");
  }
}
INSTANTIATE_FOR_BACKENDS(SharpnessPlans);

TEST(SharpnessFigures, FollowFromTheSums) {
  Picture stripes({Format::GRAY8, 4, 2}), before({Format::GRAY8, 4, 2});
  const Component& gray = stripes.format().components[0];
  for (const auto& [x, y] : positions(4, 2)) {
    stripes.write(gray, x, y, x % 2 ? 110 : 100);
    before.write(gray, x, y, 102);
  }
  const LumaSums sums = reference::luma_sums(LumaMatrix::bt601, stripes, {}, &before);
  EXPECT_EQ(histogram::sharpness_of(sums, 8), 60.0 / 10);  // 6 steps of 10 along rows, 4 of 0 along columns
  EXPECT_EQ(histogram::mean_of(sums, 8), 105);
  EXPECT_EQ(histogram::deviation_of(sums, 8), 5);
  EXPECT_EQ(histogram::difference_of(sums, 8), 5);
  EXPECT_EQ(histogram::sharpness_of(sums, 10), 1.5);  // in 8-bit steps
  EXPECT_EQ(histogram::mean_of(sums, 10), 26.25);
  EXPECT_EQ(histogram::deviation_of(sums, 10), 1.25);
  EXPECT_EQ(histogram::difference_of(sums, 10), 1.25);
  LumaSums twice = sums;
  twice.add(sums);
  EXPECT_EQ(text(twice), "pixels=16 luma=1680 squares=176800 neighbours=20 gradients=120 differences=80 compared=1");
  for (const auto figure :
       {histogram::sharpness_of, histogram::mean_of, histogram::deviation_of, histogram::difference_of})
    EXPECT_EQ(figure(LumaSums(), 8), 0);
}

/// The CUDA schedule covers every rectangle, and blocks and tiles stay within their limits.
TEST(SharpnessSchedule, CoversEveryPiece) {
  Random random(8);
  for (Format format : all_formats())
    for (int i = 0; i < 60; ++i) {
      std::vector<Rect> pieces;
      for (int n = random.below(80); n > 0; --n)
        pieces.push_back({random.below(8000), random.below(4000), random.between(1, 8000), random.between(1, 4000)});
      const int multiprocessors = random.pick(std::vector<int>{1, 48, 132});
      std::size_t covered = 0;
      for (std::size_t from = 0; from < pieces.size(); from += histogram::max_rects) {
        const auto launch = histogram::schedule_sharpness(format, multiprocessors, pieces, from);
        ASSERT_GE(launch.rows, histogram::tuning.sharpness_min_rows);
        ASSERT_LE(launch.rows, histogram::tuning.sharpness_max_rows);
        ASSERT_GE(launch.share.blocks, 1);
        ASSERT_LE(launch.share.blocks, multiprocessors * histogram::tuning.sharpness_blocks);
        for (int r = 0; r < launch.share.rect_count; ++r, ++covered)
          ASSERT_EQ(launch.share.rects[r].x, pieces[covered].x);
      }
      ASSERT_EQ(covered, pieces.size());
    }
  EXPECT_EQ(histogram::schedule_sharpness(Format::GRAY8, 132, {}, 0).share.blocks, 1);  // it clears the result
}

}  // namespace
}  // namespace cudavision::test
