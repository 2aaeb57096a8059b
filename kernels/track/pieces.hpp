// SPDX-License-Identifier: LGPL-2.1-or-later
// Private to the tracker: objects that are pieces of another object. If a person walks past a background of similar
// colours, the mask falls into pieces, such as the torso and the legs, and each is followed as an object. The pieces
// are above each other, are upright together, and move the same way horizontally.
//
//        ┌───┐ whole                       cars that follow each other towards the camera are also above each other,
//        └───┘                             but they move down the picture; cars that pass each other are not
//        ┌──┐  piece  ──▶ both go          upright together, and go opposite ways
//        └──┘         ──▶ the same way
#pragma once

#include <cstdint>

#include "kernels/core/image.hpp"

namespace cudavision::track {

/// Whether two boxes may be pieces of one upright object: one is above or on the other, the gap between them is small
/// (cell: side of a cell; all in pixels), the box around both is upright, and one of the boxes is not upright or is
/// clearly lower.
bool are_stacked(const Rect& a, const Rect& b, int cell);

/// Pixels a second.
struct Speed {
  double x, y;
};
/// Whether the speeds allow an object to be a piece of an older one. They do not if the two move in opposite horizontal
/// directions, or if the object moves down or up. width: of the box around both, in pixels.
bool may_be_one(const Speed& whole, const Speed& piece, int width);

/// An object and an older object that may be one object.
class Companion {
 public:
  struct Centres {
    double whole_x, whole_y, piece_x, piece_y;  ///< pixels
  };
  /// Updates with a frame in which both are stacked. whole: the number of the older object. width: of the box around
  /// both, in pixels. now, born: the times of this frame and of the first frame that showed the younger object, in ns.
  /// Returns whether both are one object.
  bool are_one(std::uint64_t whole, const Centres& centres, int width, std::uint64_t now, std::uint64_t born);

 private:
  std::uint64_t whole_ = 0, since_ = 0, last_ = 0;
  Centres first_{};
};

}  // namespace cudavision::track
