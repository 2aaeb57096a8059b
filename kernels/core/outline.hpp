// SPDX-License-Identifier: LGPL-2.1-or-later
// Ellipses and polygons in a frame: the pixels and samples that they contain. All arithmetic is exact, so both backends
// agree.
//
//   a shape and its box    row by row, for the CPU and for counting    point by point, for CUDA
//      ┌──▄▄▄▄──┐             row_spans(): spans of samples               OutlineView::holds_sample()
//      │▄██████▄│             of each row of a channel set                of the samples in the box
//      │▀██████▀│
//      └──▀▀▀▀──┘
#pragma once

#include "kernels/core/filter.hpp"
#include "kernels/core/host_device.hpp"
#include "kernels/core/polygon.hpp"

namespace cudavision {

/// An ellipse or a polygon in pixels of the picture. Does not own the polygon.
struct Outline {
  Rect box;  ///< the box that the ellipse fills, or the box around the polygon; sides of at most max_box_side
  const Polygon* polygon = nullptr;  ///< nullptr: the outline is an ellipse
};

/// Cuts off the parts of a box that are more than max_frame_side outside the largest frame. The box may have any
/// position and size. The results are small enough for exact arithmetic. A box that touches the frame keeps its size,
/// unless it is too large.
Rect near_frame(const Rect& box);
inline constexpr int max_box_side = 3 * max_frame_side;  ///< longest side of the returned box
/// The smallest rectangle that contains a polygon. Empty for a polygon without corners.
Rect box_around(const Polygon& polygon);

/// Whether the centre of pixel (x, y) is in the ellipse that fills the box, or on its edge. The pixel lies in the box.
/// With the distances dx and dy from the centre of the box in half pixels, the test is (dx / width)² + (dy / height)² ≤
/// 1. Both sides are computed as integers below 2^64.
CUDAVISION_HOST_DEVICE constexpr bool ellipse_contains(const Rect& box, int x, int y) {
  const std::int64_t dx = 2 * (x - box.x) + 1 - box.width, dy = 2 * (y - box.y) + 1 - box.height;
  const std::uint64_t width = std::uint64_t(box.width) * box.width, height = std::uint64_t(box.height) * box.height;
  return std::uint64_t(dx * dx) * height + std::uint64_t(dy * dy) * width <= width * height;
}

/// Sorts spans and joins those that touch or overlap.
void merge(std::vector<Span>& spans);

/// Finds the samples in row `row` of a channel set that belong to a shape, as ordered spans that neither touch nor
/// overlap. inner: all pixels of the sample are in the shape; outer: at least one is.
void row_spans(const Geometry& geometry, const ChannelSet& set, const Outline& outline, Coverage coverage, int row,
               std::vector<Span>& spans);

/// A shape for device code. The corners are in the parameters of a kernel.
struct OutlineView {
  Rect box;
  const Point* corners;
  int count;  ///< number of corners; 0: the shape is an ellipse

  /// Whether the centre of pixel (x, y), which lies in the box, is in the shape. For polygons, the result equals that
  /// of the free function contains().
  CUDAVISION_HOST_DEVICE constexpr bool contains(int x, int y) const {
    if (count == 0) return ellipse_contains(box, x, y);
    bool inside = false;
    for (int i = 0; i < count; ++i) {
      const Point &a = corners[i], &b = corners[i + 1 < count ? i + 1 : 0];
      const Point &top = a.y < b.y ? a : b, &bottom = a.y < b.y ? b : a;
      if (y < top.y || y >= bottom.y) continue;
      const std::int64_t dx = std::int64_t(bottom.x) - top.x, dy = std::int64_t(bottom.y) - top.y;
      inside ^= dx * (2 * (std::int64_t(y) - top.y) + 1) <= dy * (2 * (std::int64_t(x) - top.x) + 1);
    }
    return inside;
  }

  /// Whether a sample of a set with these subsampling shifts belongs to the shape, in a picture of width × height
  /// pixels. Pixels outside the box are not in the shape.
  CUDAVISION_HOST_DEVICE constexpr bool holds_sample(int x, int y, int shift_x, int shift_y, int width, int height,
                                                     Coverage coverage) const {
    for (int py = y << shift_y; py < (y + 1) << shift_y && py < height; ++py)
      for (int px = x << shift_x; px < (x + 1) << shift_x && px < width; ++px) {
        const bool in_box = px >= box.x && px < box.x + box.width && py >= box.y && py < box.y + box.height;
        const bool inside = in_box && contains(px, py);
        if (inside != (coverage == Coverage::inner)) return inside;
      }
    return coverage == Coverage::inner;
  }
};

/// A shape as an argument of a kernel.
struct PackedOutline {
  Rect box;
  int count = 0;  ///< number of corners; 0: the shape is an ellipse
  Point corners[max_outline_corners];

  CUDAVISION_HOST_DEVICE constexpr OutlineView view() const { return {box, corners, count}; }
};
/// Packs an outline for a launch. A polygon has at most max_outline_corners corners.
PackedOutline pack(const Outline& outline);

}  // namespace cudavision
