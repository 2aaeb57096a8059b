// SPDX-License-Identifier: LGPL-2.1-or-later
// Functions of rectangles, and the positions of a picture row by row: for (const auto& [x, y] : positions(width,
// height)) …
#pragma once

#include <ostream>

#include "kernels/core/image.hpp"

namespace cudavision {

/// Goes through the columns [left, right) of each row in [top, bottom).
class Positions {
 public:
  struct Position {
    int x, y;
  };
  class Iterator {
   public:
    Iterator(int left, int right, int y) : left_(left), right_(right), at_{left, y} {}
    const Position& operator*() const { return at_; }
    Iterator& operator++() {
      if (++at_.x == right_) at_ = {left_, at_.y + 1};
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at_.y != other.at_.y; }  // the end is the begin of a row

   private:
    int left_, right_;
    Position at_;
  };

  Positions(int left, int top, int right, int bottom)
      : left_(left), right_(right), top_(top), bottom_(left < right && top < bottom ? bottom : top) {}
  Iterator begin() const { return {left_, right_, top_}; }
  Iterator end() const { return {left_, right_, bottom_}; }

 private:
  int left_, right_, top_, bottom_;
};

inline Positions positions(int width, int height) { return {0, 0, width, height}; }
inline Positions positions(const Rect& rect) { return {rect.x, rect.y, rect.x + rect.width, rect.y + rect.height}; }
/// Positions in an image, a grid, or anything with a width and a height.
template <typename Sized>
Positions positions(const Sized& sized) {
  return {0, 0, sized.width, sized.height};
}

/// Whether a position is in a rectangle, which may have any position and size.
inline bool contains(const Rect& rect, int x, int y) {
  return x >= rect.x && y >= rect.y && x < long(rect.x) + rect.width && y < long(rect.y) + rect.height;
}
inline bool operator==(const Rect& a, const Rect& b) {
  return a.x == b.x && a.y == b.y && a.width == b.width && a.height == b.height;
}
inline std::ostream& operator<<(std::ostream& out, const Rect& rect) {
  return out << '(' << rect.x << ", " << rect.y << ' ' << rect.width << 'x' << rect.height << ')';
}

}  // namespace cudavision
