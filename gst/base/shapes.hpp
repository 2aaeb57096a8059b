// SPDX-License-Identifier: LGPL-2.1-or-later
// Rectangles, polygons and lines, as users write them in properties:
//
//   areas   0,0,64,48; 100,80 300,80 300,400             rectangles x,y,width,height and polygons x,y x,y x,y
//   zones   door: 100,80 300,80 300,400; yard: …         polygons with names
//   lines   gate: 10,200 630,220; …                      directed lines with names
//
// Coordinates are whole pixels. If a number of a shape has a decimal point, all its numbers are shares of the width and
// the height of the frame. Polygons and lines lie in the frame: 0 to its width and its height.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "kernels/core/filter.hpp"
#include "kernels/core/polygon.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

/// The maximum number of corners that a polygon may have.
inline constexpr int max_corners = max_outline_corners;

enum class ShapeKind { areas, zones, lines };

/// A shape as written by the user.
struct Shape {
  std::string name;             ///< empty for areas
  std::string text;             ///< the numbers
  bool rectangle = false;       ///< whether the shape is x,y,width,height; otherwise it is a list of points
  bool shares = false;          ///< whether the numbers are shares of the frame; otherwise they are pixels
  std::vector<double> numbers;  ///< x, y, x, y …
};

/// Reads the shapes in the text of a property; an empty text has none. Checks only what does not depend on the frame:
/// syntax, names, too few corners, self-intersecting polygons. Errors: settings, with one sentence.
Result<std::vector<Shape>> parse_shapes(const char* property, ShapeKind kind, const std::string& text);

/// Decides which shapes have an effect in frames whose size may change. A shape in pixels that fitted an earlier frame
/// but does not fit this one is omitted: it has no effect until it fits again. A polygon or a line fits if it lies in
/// the frame. A rectangle fits if it covers a part of the frame.
class ShapeFitting {
 public:
  /// `fitted`: the shapes in pixels that have fitted a frame; accept() adds to them.
  ShapeFitting(std::set<std::string>& fitted, int frame_width, int frame_height)
      : fitted_(fitted), width_(frame_width), height_(frame_height) {}

  /// The shapes in the text of a property that have an effect. Errors: as in parse_shapes(); settings, if a shape
  /// neither fits nor fitted earlier (a rectangle is accepted anywhere).
  Result<std::vector<Shape>> accept(const char* property, ShapeKind kind, const std::string& text);
  /// A sentence about the omitted shapes, and the consequence; empty if there are none.
  std::string left_out(const char* consequence = "it has no effect until it fits") const;

 private:
  std::set<std::string>& fitted_;
  const int width_, height_;
  std::vector<std::string> names_;  ///< names of the omitted shapes
};

/// The points of a polygon or a line in a frame; shares are rounded to whole pixels. Errors: settings, if a point is
/// outside the frame.
Result<Polygon> points_in(const char* property, const Shape& shape, int frame_width, int frame_height);

/// A rectangle in a frame; it may extend beyond the frame.
Rect rect_in(const Shape& shape, int frame_width, int frame_height);

/// The pixels of the frame that areas cover, as rectangles, which may overlap and are clipped to the frame. Errors: as
/// in points_in().
Result<std::vector<Rect>> pixels_in(const char* property, const std::vector<Shape>& areas, int frame_width,
                                    int frame_height);

}  // namespace cudavision
