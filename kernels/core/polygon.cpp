// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/core/polygon.hpp"

#include <algorithm>

namespace cudavision {
namespace {

using Wide = std::int64_t;  // holds products of two coordinate differences

int sign(Wide value) { return (value > 0) - (value < 0); }

/// The side of the line a → b on which c lies, as in side_of().
int line_side(const Point& a, const Point& b, const Point& c) {
  return sign((Wide(b.x) - a.x) * (Wide(c.y) - a.y) - (Wide(b.y) - a.y) * (Wide(c.x) - a.x));
}

/// Whether c, which lies on the line through a and b, lies between them.
bool between(const Point& a, const Point& b, const Point& c) {
  return std::min(a.x, b.x) <= c.x && c.x <= std::max(a.x, b.x) && std::min(a.y, b.y) <= c.y &&
         c.y <= std::max(a.y, b.y);
}

/// Whether the segments a–b and c–d share a point.
bool segments_touch(const Point& a, const Point& b, const Point& c, const Point& d) {
  const int abc = line_side(a, b, c), abd = line_side(a, b, d), cda = line_side(c, d, a), cdb = line_side(c, d, b);
  if (abc * abd < 0 && cda * cdb < 0) return true;
  return (abc == 0 && between(a, b, c)) || (abd == 0 && between(a, b, d)) || (cda == 0 && between(c, d, a)) ||
         (cdb == 0 && between(c, d, b));
}

/// The centre of a pixel, and a grid point, in half pixels.
Point centre(int x, int y) { return {2 * x + 1, 2 * y + 1}; }
Point doubled(const Point& point) { return {2 * point.x, 2 * point.y}; }

/// Rounds numerator ÷ denominator up. The denominator is positive.
Wide ceil_div(Wide numerator, Wide denominator) {
  const Wide quotient = numerator / denominator;
  return quotient + (numerator % denominator > 0);
}

/// Calls f for each edge that crosses the line through the pixel centres of row y, with the first pixel that is not
/// left of the edge.
template <typename F>
void for_each_crossing(const Polygon& polygon, int y, F&& f) {
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    Point top = polygon[i], bottom = polygon[i + 1 < polygon.size() ? i + 1 : 0];
    if (top.y > bottom.y) std::swap(top, bottom);
    if (y < top.y || y >= bottom.y) continue;  // centres of rows never meet a corner
    // The edge is at x = top.x + dx · (y + 1/2 − top.y) / dy. Pixel p is not left of it if p + 1/2 ≥ x.
    const Wide dx = Wide(bottom.x) - top.x, dy = Wide(bottom.y) - top.y;
    f(int(top.x + ceil_div(dx * (2 * (Wide(y) - top.y) + 1) - dy, 2 * dy)));
  }
}

}  // namespace

bool crosses_itself(const Polygon& polygon) {
  const std::size_t count = polygon.size();
  const auto corner = [&](std::size_t i) -> const Point& { return polygon[i % count]; };
  for (std::size_t i = 0; i < count; ++i) {
    const Point &a = corner(i), &b = corner(i + 1), &c = corner(i + 2);
    if (a == b) return true;
    if (line_side(a, b, c) == 0 && (between(a, b, c) || between(b, c, a))) return true;  // runs back
    for (std::size_t k = i + 2; k < count; ++k) {
      if (i == 0 && k + 1 == count) continue;  // edges that meet in corner 0
      if (segments_touch(a, b, corner(k), corner(k + 1))) return true;
    }
  }
  return false;
}

bool contains(const Polygon& polygon, int x, int y) {
  bool inside = false;
  for_each_crossing(polygon, y, [&](int first) { inside ^= first <= x; });
  return inside;
}

std::vector<Span> spans_at(const Polygon& polygon, int y) {
  std::vector<int> crossings;
  for_each_crossing(polygon, y, [&](int first) { crossings.push_back(first); });
  std::sort(crossings.begin(), crossings.end());
  std::vector<Span> spans;
  for (std::size_t i = 0; i + 1 < crossings.size(); i += 2) {
    const Span span{crossings[i], crossings[i + 1]};
    if (span.begin == span.end) continue;
    if (!spans.empty() && spans.back().end == span.begin)
      spans.back().end = span.end;
    else
      spans.push_back(span);
  }
  return spans;
}

void append_pixels(const Polygon& polygon, int frame_width, int frame_height, std::vector<Rect>& rects) {
  std::vector<Span> above;
  for (int y = 0; y < frame_height; ++y) {
    std::vector<Span> spans;
    for (const Span& span : spans_at(polygon, y)) {
      const Span clipped{std::max(span.begin, 0), std::min(span.end, frame_width)};
      if (clipped.begin < clipped.end) spans.push_back(clipped);
    }
    if (spans == above) {
      for (std::size_t i = rects.size() - spans.size(); i < rects.size(); ++i) ++rects[i].height;
      continue;
    }
    for (const Span& span : spans) rects.push_back({span.begin, y, span.end - span.begin, 1});
    above = std::move(spans);
  }
}

int side_of(const Point& from, const Point& to, int x, int y) {
  return line_side(doubled(from), doubled(to), centre(x, y));
}

bool meets(const Point& from, const Point& to, int x0, int y0, int x1, int y1) {
  const Point begin = centre(x0, y0), end = centre(x1, y1);
  return line_side(begin, end, doubled(from)) * line_side(begin, end, doubled(to)) <= 0;
}

}  // namespace cudavision
