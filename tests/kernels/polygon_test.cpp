// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares the functions of polygons with slow formulas: sums of angles, and equations of segments.
#include "kernels/core/polygon.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>

#include "tests/kernels/positions.hpp"

namespace cudavision::test {
namespace {

/// Random corners around a centre, ordered by angle, so the polygon does not cross itself.
Polygon star(std::mt19937& random, int corners, int width, int height) {
  const double pi = std::acos(-1.0), middle_x = width / 2.0, middle_y = height / 2.0;
  std::vector<double> angles;
  std::uniform_real_distribution<double> share(0, 1);
  for (int i = 0; i < corners; ++i) angles.push_back((i + 0.9 * share(random)) * 2 * pi / corners);
  Polygon polygon;
  for (double angle : angles) {
    const double radius = 0.2 + 0.8 * share(random);
    polygon.push_back({int(std::lround(middle_x + radius * middle_x * std::cos(angle))),
                       int(std::lround(middle_y + radius * middle_y * std::sin(angle)))});
  }
  return polygon;
}

/// How many times a polygon goes round a point: the sum of the angles of its edges as seen from there. No value if the
/// point is on an edge.
std::optional<int> turns_around(const Polygon& polygon, double x, double y) {
  double sum = 0;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const Point &a = polygon[i], &b = polygon[(i + 1) % polygon.size()];
    const double ax = a.x - x, ay = a.y - y, bx = b.x - x, by = b.y - y, cross = ax * by - ay * bx;
    if (cross == 0 && ax * bx + ay * by <= 0) return {};
    sum += std::atan2(cross, ax * bx + ay * by);
  }
  return int(std::lround(sum / (2 * std::acos(-1.0))));
}

/// Whether the segments a + s (b − a) and c + t (d − c) meet for s and t from 0 to 1.
bool segments_meet(const Point& a, const Point& b, const Point& c, const Point& d) {
  const auto cross = [](const Point& p, const Point& q) { return double(p.x) * q.y - double(p.y) * q.x; };
  const Point u{b.x - a.x, b.y - a.y}, v{d.x - c.x, d.y - c.y}, w{c.x - a.x, c.y - a.y};
  if (const double determinant = cross(u, v); determinant != 0) {
    const double s = cross(w, v) / determinant, t = cross(w, u) / determinant;
    return s >= 0 && s <= 1 && t >= 0 && t <= 1;
  }
  // Parallel segments meet if an end of one is on the other.
  const auto on = [](const Point& p, const Point& from, const Point& to) {
    const double length = std::hypot(to.x - from.x, to.y - from.y);
    return std::abs(std::hypot(p.x - from.x, p.y - from.y) + std::hypot(p.x - to.x, p.y - to.y) - length) < 1e-9;
  };
  return on(a, c, d) || on(b, c, d) || on(c, a, b) || on(d, a, b);
}

/// Whether two edges share more than the corner between them.
bool slowly_crosses_itself(const Polygon& p) {
  const std::size_t n = p.size();
  for (std::size_t i = 0; i < n; ++i) {
    const Point &a = p[i], &b = p[(i + 1) % n], &c = p[(i + 2) % n];
    if (a == b) return true;
    const double in_x = b.x - a.x, in_y = b.y - a.y, out_x = c.x - b.x, out_y = c.y - b.y;
    if (in_x * out_y == in_y * out_x && in_x * out_x + in_y * out_y <= 0) return true;
    for (std::size_t k = 0; k < n; ++k) {
      const bool neighbours = k == i || k == (i + 1) % n || i == (k + 1) % n;
      if (!neighbours && segments_meet(a, b, p[k], p[(k + 1) % n])) return true;
    }
  }
  return false;
}

TEST(Polygons, ContainWhatTheyGoAround) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const int width = 1 + int(random() % 40), height = 1 + int(random() % 40);
    const Polygon polygon = star(random, 3 + int(random() % 12), width, height);
    for (const auto& [x, y] : Positions(-2, -2, width + 2, height + 2))
      if (const auto turns = turns_around(polygon, x + 0.5, y + 0.5)) {
        ASSERT_EQ(contains(polygon, x, y), *turns % 2 != 0) << "pixel " << x << "," << y << " in round " << round;
      }
  }
}

TEST(Polygons, ShareNoPixelAlongAnEdgeAndLeaveNoneOut) {
  // A point and the edges of a frame form triangles, which fill the frame wherever the point is.
  const int width = 23, height = 17;
  const Polygon around{{0, 0}, {width, 0}, {width, height}, {0, height}};
  for (int py = 0; py <= height; ++py)
    for (int px = 0; px <= width; ++px)
      for (const auto& [x, y] : positions(width, height)) {
        int count = 0;
        for (std::size_t i = 0; i < 4; ++i) count += contains({around[i], around[(i + 1) % 4], {px, py}}, x, y);
        ASSERT_EQ(count, 1) << "pixel " << x << "," << y << ", point " << px << "," << py;
      }
}

TEST(Polygons, GiveTheSamePixelsAsSpansAndRectangles) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const int width = 1 + int(random() % 70), height = 1 + int(random() % 50);
    Polygon polygon = star(random, 3 + int(random() % 20), width, height);
    for (Point& corner : polygon) corner.x += int(random() % 3) * 5 - 5;  // a part may lie outside the frame
    std::vector<Rect> rects{{7, 7, 7, 7}};                                // must not change
    append_pixels(polygon, width, height, rects);
    EXPECT_EQ(rects[0].x, 7);
    EXPECT_EQ(rects[0].height, 7);
    std::vector<int> covered(std::size_t(width) * height);
    for (std::size_t i = 1; i < rects.size(); ++i) {
      const Rect& rect = rects[i];
      ASSERT_TRUE(rect.x >= 0 && rect.y >= 0 && rect.x + rect.width <= width && rect.y + rect.height <= height &&
                  !rect.empty());
      for (const auto& [x, y] : positions(rect)) ++covered[std::size_t(y) * width + x];
    }
    for (int y = 0; y < height; ++y) {
      std::vector<Span> expected;
      for (int x = -20; x < width + 20; ++x) {
        const bool in = contains(polygon, x, y);
        if (x >= 0 && x < width) {
          ASSERT_EQ(covered[std::size_t(y) * width + x], int(in)) << x << "," << y;
        }
        if (!in) continue;
        if (!expected.empty() && expected.back().end == x)
          ++expected.back().end;
        else
          expected.push_back({x, x + 1});
      }
      ASSERT_EQ(spans_at(polygon, y), expected) << "row " << y << " in round " << round;
    }
  }
}

TEST(Polygons, OfAWholeFrameAreOneRectangle) {
  std::vector<Rect> rects;
  append_pixels({{0, 0}, {640, 0}, {640, 480}, {0, 480}}, 640, 480, rects);
  ASSERT_EQ(rects.size(), 1u);
  EXPECT_EQ(rects[0].width, 640);
  EXPECT_EQ(rects[0].height, 480);
  rects.clear();
  append_pixels({{0, 0}, {1, 0}, {1, 1}, {0, 1}}, 1, 1, rects);
  ASSERT_EQ(rects.size(), 1u);
  rects.clear();
  append_pixels({{3, 3}, {3, 9}, {3, 3}}, 10, 10, rects);  // no area
  EXPECT_TRUE(rects.empty());
}

TEST(Polygons, StayExactFarOutside) {
  const int far = max_polygon_side;
  const Polygon polygon{{-far, -far}, {far, far}, {-far, far}};  // below the diagonal
  EXPECT_TRUE(contains(polygon, 100000, 100001));
  EXPECT_TRUE(contains(polygon, 100000, 100000) != contains({{-far, -far}, {far, -far}, {far, far}}, 100000, 100000));
  EXPECT_FALSE(contains(polygon, 100001, 100000));
  EXPECT_EQ(side_of({-far, -far}, {far, far}, far - 1, far - 1), 0);
  EXPECT_EQ(side_of({-far, -far}, {far, far}, far - 1, far - 2), -1);
  EXPECT_EQ(side_of({-far, -far}, {far, far}, far - 2, far - 1), 1);
}

TEST(Polygons, ThatCrossThemselvesAreFound) {
  // All triangles and quadrangles with corners on a 3×3 grid, and random polygons with more corners.
  std::vector<Polygon> polygons;
  for (int code = 0; code < 9 * 9 * 9 * 9; ++code) {
    Polygon polygon;
    for (int rest = code, i = 0; i < 4; ++i, rest /= 9) polygon.push_back({rest % 9 % 3, rest % 9 / 3});
    polygons.push_back(polygon);
    if (code < 9 * 9 * 9) polygons.push_back({polygon[0], polygon[1], polygon[2]});
  }
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    Polygon polygon(5 + random() % 3);
    for (Point& corner : polygon) corner = {int(random() % 8), int(random() % 8)};
    polygons.push_back(polygon);
    polygons.push_back(star(random, 3 + int(random() % 10), 200, 200));
  }
  int crossing = 0;
  for (const Polygon& polygon : polygons) {
    const bool expected = slowly_crosses_itself(polygon);
    crossing += expected;
    std::string text;
    for (const Point& corner : polygon) text += std::to_string(corner.x) + "," + std::to_string(corner.y) + " ";
    ASSERT_EQ(crosses_itself(polygon), expected) << text;
  }
  EXPECT_GT(crossing, 1000);
  EXPECT_GT(int(polygons.size()) - crossing, 1000);
}

TEST(Polygons, KnowTheSidesOfALine) {
  std::mt19937 random(4);
  for (int round = 0; round < 10000; ++round) {
    const auto number = [&] { return int(random() % 12); };
    const Point from{number(), number()}, to{number(), number()};
    const int x = number(), y = number();
    // Rotate the picture so that the line points up: points to the right of it have a larger x.
    const double angle = std::atan2(to.y - from.y, to.x - from.x) + std::acos(-1.0) / 2;
    const double right = (x + 0.5 - from.x) * std::cos(angle) + (y + 0.5 - from.y) * std::sin(angle);
    const int expected = from == to || std::abs(right) < 1e-9 ? 0 : right > 0 ? 1 : -1;
    ASSERT_EQ(side_of(from, to, x, y), expected);
    const int x1 = number(), y1 = number();
    if (side_of(from, to, x, y) * side_of(from, to, x1, y1) >= 0) continue;
    const auto twice = [](const Point& p) { return Point{2 * p.x, 2 * p.y}; };
    ASSERT_EQ(meets(from, to, x, y, x1, y1),
              segments_meet(twice(from), twice(to), {2 * x + 1, 2 * y + 1}, {2 * x1 + 1, 2 * y1 + 1}));
  }
}

}  // namespace
}  // namespace cudavision::test
