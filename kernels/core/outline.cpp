// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/core/outline.hpp"

#include <algorithm>

namespace cudavision {
namespace {

/// The pixels in row y of an ellipse. A binary search in the left half of the row finds the first pixel. This works
/// because the ellipse is convex and symmetric.
Span ellipse_span(const Rect& box, int y) {
  int outside = box.x - 1, inside = box.x + (box.width - 1) / 2;
  if (y < box.y || y >= box.y + box.height || box.width <= 0 || !ellipse_contains(box, inside, y)) return {};
  while (inside - outside > 1) {
    const int middle = outside + (inside - outside) / 2;
    (ellipse_contains(box, middle, y) ? inside : outside) = middle;
  }
  return {inside, 2 * box.x + box.width - inside};
}

/// The pixels in row y of a shape.
void pixel_spans(const Outline& outline, int y, std::vector<Span>& spans) {
  spans.clear();
  if (outline.polygon)
    spans = spans_at(*outline.polygon, y);
  else if (const Span span = ellipse_span(outline.box, y); span.begin < span.end)
    spans.push_back(span);
}

/// The intersection of two ordered lists of spans.
std::vector<Span> common(const std::vector<Span>& a, const std::vector<Span>& b) {
  std::vector<Span> both;
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size(); ++(a[i].end < b[k].end ? i : k)) {
    const Span span{std::max(a[i].begin, b[k].begin), std::min(a[i].end, b[k].end)};
    if (span.begin < span.end) both.push_back(span);
  }
  return both;
}

}  // namespace

Rect near_frame(const Rect& box) {
  return intersection(box, {-max_frame_side, -max_frame_side, max_box_side, max_box_side});
}

Rect box_around(const Polygon& polygon) {
  if (polygon.empty()) return {};
  const auto [left, right] =
      std::minmax_element(polygon.begin(), polygon.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
  const auto [top, bottom] =
      std::minmax_element(polygon.begin(), polygon.end(), [](const Point& a, const Point& b) { return a.y < b.y; });
  return {left->x, top->y, right->x - left->x, bottom->y - top->y};
}

void merge(std::vector<Span>& spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::size_t count = 0;
  for (const Span& span : spans) {
    if (count > 0 && span.begin <= spans[count - 1].end)
      spans[count - 1].end = std::max(spans[count - 1].end, span.end);
    else
      spans[count++] = span;
  }
  spans.resize(count);
}

void row_spans(const Geometry& geometry, const ChannelSet& set, const Outline& outline, Coverage coverage, int row,
               std::vector<Span>& spans) {
  spans.clear();
  std::vector<Span> pixels;
  for (int y = row << set.shift_y; y < (row + 1) << set.shift_y && y < geometry.height; ++y) {
    pixel_spans(outline, y, pixels);
    std::vector<Span> samples;
    for (const Span& span : pixels) {
      const auto [begin, end] = samples_of(span.begin, span.end, geometry.width, set.shift_x, coverage);
      if (begin < end) samples.push_back({begin, end});
    }
    if (coverage == Coverage::outer)
      spans.insert(spans.end(), samples.begin(), samples.end());
    else
      spans = y == row << set.shift_y ? std::move(samples) : common(spans, samples);
  }
  if (coverage == Coverage::outer) merge(spans);
}

PackedOutline pack(const Outline& outline) {
  PackedOutline packed;
  packed.box = outline.box;
  if (!outline.polygon) return packed;
  packed.count = int(outline.polygon->size());
  std::copy(outline.polygon->begin(), outline.polygon->end(), packed.corners);
  return packed;
}

}  // namespace cudavision
