// SPDX-License-Identifier: LGPL-2.1-or-later
// Tests of ellipses and polygons in regions. The sweeps of all operations also use them (random_region).
#include "kernels/core/outline.hpp"

#include <algorithm>
#include <cmath>

#include "tests/kernels/filters.hpp"
#include "tests/kernels/harness.hpp"

namespace cudavision::test {
namespace {

/// The samples of a channel set that the spans of all rows contain: 1 for each sample.
std::vector<int> by_rows(const Geometry& geometry, const ChannelSet& set, const Outline& outline, Coverage coverage) {
  const Rect grid = geometry.grid(set);
  std::vector<int> held(std::size_t(grid.width) * grid.height);
  std::vector<Span> spans;
  for (int y = 0; y < grid.height; ++y) {
    row_spans(geometry, set, outline, coverage, y, spans);
    int after = -1;
    for (const Span& span : spans) {
      EXPECT_GT(span.begin, after) << "spans touch or overlap";
      after = span.end;
      for (int x = span.begin; x < span.end; ++x) ++held.at(std::size_t(y) * grid.width + x);
    }
  }
  return held;
}

/// Compares the two ways to find the samples of a shape with the reference, which tests each pixel.
void expect_samples(const Geometry& geometry, const Outline& outline, const Region& region) {
  const PackedOutline packed = pack(outline);
  for (Coverage coverage : {Coverage::inner, Coverage::outer}) {
    Region same = region;
    same.mode = coverage == Coverage::inner ? Region::Mode::inside : Region::Mode::outside;
    for (int s = 0; s < info(geometry.format).set_count; ++s) {
      const ChannelSet& set = info(geometry.format).sets[s];
      const Rect grid = geometry.grid(set);
      const std::vector<int> held = by_rows(geometry, set, outline, coverage);
      SCOPED_TRACE(describe(geometry, {}, {}, same, {}) + " set " + std::to_string(s));
      for (const auto& [x, y] : positions(grid)) {
        const bool in = reference::in_region(same, geometry, set, x, y);
        const bool expected = coverage == Coverage::inner ? in : !in;
        ASSERT_EQ(held[std::size_t(y) * grid.width + x], expected) << x << ", " << y;
        ASSERT_EQ(packed.view().holds_sample(x, y, set.shift_x, set.shift_y, geometry.width, geometry.height, coverage),
                  expected)
            << x << ", " << y;
      }
    }
  }
}

TEST(Outlines, HoldTheSamplesOfTheirPixels) {
  Random random(9);
  for (Format format : {Format::GRAY8, Format::NV12, Format::Y42B, Format::YUY2})
    for (int round = 0; round < 400; ++round) {
      const Geometry geometry{format, random.between(1, 24), random.between(1, 24)};
      Region ellipse, polygon;
      const Rect box{random.between(-12, 24), random.between(-12, 24), random.between(0, 40), random.between(0, 40)};
      ellipse.ellipses = {near_frame(box)};
      expect_samples(geometry, {ellipse.ellipses[0], nullptr}, ellipse);
      Polygon corners;
      for (int i = random.between(0, 8); i > 0; --i)
        corners.push_back({random.between(-8, 30), random.between(-8, 30)});
      polygon.polygons = {corners};
      expect_samples(geometry, {near_frame(box_around(corners)), &polygon.polygons[0]}, polygon);
      if (HasFatalFailure()) return;
    }
}

/// At the maximum width and height, the numbers nearly reach 64 bits. Single rows and columns suffice.
TEST(Outlines, AreExactAtTheLargestSides) {
  for (const Geometry& geometry : {Geometry{Format::NV12, max_frame_side, 2}, Geometry{Format::NV12, 3, max_frame_side},
                                   Geometry{Format::NV12, max_frame_side, 40}}) {
    const int w = geometry.width, h = geometry.height;
    for (const Rect& whole :
         {Rect{-1000000, -1000000, 2000003, 2000002}, Rect{-w / 2, -h / 2, w + 1, h}, Rect{-w, -h, 3 * w, 3 * h},
          Rect{-16384, -16384, 49152, 49151}, Rect{1, 1, 2147483647, 2147483647}}) {
      Region region;
      region.ellipses = {near_frame(whole)};
      expect_samples(geometry, {region.ellipses[0], nullptr}, region);
    }
    Region region;
    region.polygons = {{{-20000, 1}, {max_frame_side, -7}, {max_frame_side - 1, max_frame_side}, {3, 20000}}};
    expect_samples(geometry, {near_frame(box_around(region.polygons[0])), &region.polygons[0]}, region);
    if (HasFatalFailure()) return;
  }
}

/// An ellipse covers π / 4 of its box, is symmetric, and touches the middle of each side.
TEST(Outlines, EllipsesFillTheirBoxes) {
  for (const auto& [width, height] :
       {std::pair{1, 1}, {2, 2}, {1, 9}, {8, 1}, {40, 40}, {101, 60}, {300, 33}, {640, 480}}) {
    const Geometry geometry{Format::GRAY8, width, height};
    const std::vector<int> held =
        by_rows(geometry, info(Format::GRAY8).sets[0], {{0, 0, width, height}, nullptr}, Coverage::inner);
    const auto at = [&, w = width](int x, int y) { return held[std::size_t(y) * w + x]; };
    EXPECT_NEAR(double(std::count(held.begin(), held.end(), 1)), M_PI / 4 * width * height, 0.6 * (width + height));
    for (const auto& [x, y] : positions(width, height)) {
      EXPECT_EQ(at(x, y), at(width - 1 - x, y));
      EXPECT_EQ(at(x, y), at(x, height - 1 - y));
    }
    EXPECT_TRUE(at(width / 2, 0) && at(width / 2, height - 1) && at(0, height / 2) && at(width - 1, height / 2))
        << width << "x" << height;
  }
}

class OutlinePlans : public OnBackend {};

/// Many overlapping shapes of each kind, in pictures at odd addresses. Outside the shapes, every bit equals the input.
TEST_P(OutlinePlans, ManyShapesInAllFormats) {
  Random random(21);
  gaussian::Params params;
  params.kernel_width = params.kernel_height = 5;
  for (Format format : all_formats())
    for (Region::Mode mode : {Region::Mode::inside, Region::Mode::outside}) {
      Case c = random_case(random, format, {random.between(60, 90), random.between(40, 70)});
      c.region = {mode};
      for (int i = 0; i < 12; ++i) {
        c.region.ellipses.push_back(
            {random.between(-9, 80), random.between(-9, 60), random.between(1, 30), random.between(1, 30)});
        const int x = random.between(0, 60), y = random.between(0, 40);
        c.region.polygons.push_back(
            {{x, y}, {x + random.between(1, 20), y + random.between(-5, 9)}, {x + 3, y + random.between(1, 30)}});
        c.region.rects.push_back(
            {random.between(0, 80), random.between(0, 60), random.between(1, 9), random.between(1, 9)});
      }
      expect_reference(backend, params, c, unsigned(format));
    }
}

TEST_P(OutlinePlans, LargestPolygons) {
  const Geometry geometry{Format::NV12, 333, 222};
  const auto star = [&](int corners) {
    Polygon polygon;
    for (int i = 0; i < corners; ++i) {
      const double angle = 2 * M_PI * i / corners, radius = i % 2 ? 100 : 60;
      polygon.push_back({int(166 + radius * std::cos(angle)), int(111 + radius * std::sin(angle))});
    }
    return polygon;
  };
  for (Region::Mode mode : {Region::Mode::inside, Region::Mode::outside})
    expect_reference(backend, gaussian::Params(),
                     {geometry, {}, {}, {mode, {}, {}, {star(max_outline_corners)}}, Data::random}, 4);
  auto filter = make(gaussian::Params(), geometry, backend);
  ASSERT_TRUE(filter.ok());
  const Picture src = make_picture(geometry, 1);
  Job job(backend, src, src.inverted());
  const Status status = job.submit(*filter.value(), {Region::Mode::inside, {}, {}, {star(max_outline_corners + 1)}});
  EXPECT_EQ(status.code(), Status::Code::settings);
  EXPECT_EQ(status.message(), "a polygon has 257 corners: at most 256 are allowed");
  job.finish();
}
INSTANTIATE_FOR_BACKENDS(OutlinePlans);

}  // namespace
}  // namespace cudavision::test
