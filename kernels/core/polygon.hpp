// SPDX-License-Identifier: LGPL-2.1-or-later
// Polygons and directed lines in the pixel plane. All arithmetic is exact, so all backends and machines agree.
//
//      0   1   2   3        Corners lie on the grid between the pixels: 0 to the width and the height of the frame.
//    0 +---+---+---+        Pixel (x, y) is the square from (x, y) to (x + 1, y + 1).
//      |0,0|1,0|2,0|        It is in a polygon if its centre, (x + 1/2, y + 1/2), is in it.
//    1 +---+---+---+
#pragma once

#include <vector>

#include "kernels/core/image.hpp"

namespace cudavision {

/// A point on the grid between the pixels.
struct Point {
  int x = 0, y = 0;  ///< −max_polygon_side to max_polygon_side

  bool operator==(const Point& other) const { return x == other.x && y == other.y; }
};

/// The functions in this file are exact for coordinates up to this size.
inline constexpr int max_polygon_side = 1 << 28;

/// The corners in order, clockwise or counterclockwise; an edge joins the last corner to the first.
using Polygon = std::vector<Point>;

/// Whether two edges of a polygon share more than the corner between them: edges cross or touch, an edge has no length,
/// or an edge runs back along the edge before it. The time is quadratic in the number of corners.
bool crosses_itself(const Polygon& polygon);

/// Whether the centre of pixel (x, y) is in the polygon, that is, whether a ray from the centre crosses the edges an
/// odd number of times. A centre on an edge belongs to the area right of the edge (no centre is on a horizontal edge).
/// So polygons with a common edge share no pixel and omit none.
bool contains(const Polygon& polygon, int x, int y);

/// The pixels [begin, end) of a row.
struct Span {
  int begin = 0, end = 0;

  bool operator==(const Span& other) const { return begin == other.begin && end == other.end; }
};
/// The pixels in row y that a polygon contains, as ordered spans that neither touch nor overlap.
std::vector<Span> spans_at(const Polygon& polygon, int y);

/// Adds the pixels of the frame that a polygon contains, as disjoint rectangles: a span of a row, merged with equal
/// spans of the rows below. They are sorted by first row, then from left to right.
void append_pixels(const Polygon& polygon, int frame_width, int frame_height, std::vector<Rect>& rects);

/// The side of the directed line from `from` to `to` on which the centre of pixel (x, y) lies, looking along the line
/// in the displayed picture: −1 left, 1 right, 0 on the line.
int side_of(const Point& from, const Point& to, int x, int y);

/// Whether the segment from the centre of pixel (x0, y0) to the centre of pixel (x1, y1) crosses or touches the segment
/// from `from` to `to`, including its ends. The two centres lie on different sides of the line through `from` and `to`.
bool meets(const Point& from, const Point& to, int x0, int y0, int x1, int y1);

}  // namespace cudavision
