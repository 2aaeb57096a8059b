// SPDX-License-Identifier: LGPL-2.1-or-later
// Private to the tracker: which region of a frame belongs to which object.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/diff/motion.hpp"

namespace cudavision::diff {

/// An object as it is expected in a frame.
struct Expected {
  double left, top, right, bottom;  ///< the predicted box, in pixels; not empty
  int frames;                       ///< in which it was seen
  bool confirmed;
  bool was_seen;  ///< in the frame before
};

/// What belongs to an object in a frame.
struct Match {
  bool found = false;    ///< whether anything does; if not, nothing else is set
  bool dropped = false;  ///< the object is a part of an older one
  bool shared = false;   ///< other objects have cells of the same regions
  Rect box;              ///< around its cells, in pixels, clipped to the frame
  int area = 0;          ///< cells
  double score = 0;      ///< of the region that has most of its cells
};

struct Matches {
  std::vector<Match> objects;            ///< for each expected object
  std::vector<std::uint32_t> unmatched;  ///< regions that belong to none, in their order
};

/// Regions beyond the first `most` are ignored. With the centres of cells as the points of the plane:
///   1. An object takes the region with which its box has the largest intersection over union, and the regions of which at least
///      half of the cells are in its box, or up to half a cell outside: its fragments.
///   2. If several objects take a region, unconfirmed ones are dropped as parts of the confirmed ones (the one that was seen most
///      often stays where none is confirmed), and objects that were seen in the frame before go before those that were not.
///   3. If several are left, each gets the cells that are nearest to its box: those at the smallest distance from its centre in
///      units of its sides. An object that would get next to nothing is hidden by the others.
///   4. Objects and regions that are left are paired by the distance of their centres, the nearest first, if it is at most one and
///      a half sides and a cell (a side more for an object without a speed yet), and if the areas are within a factor of five.
Matches match(const std::vector<Expected>& objects, const MotionRegions& found, const Cells& cells, std::size_t most);

}  // namespace cudavision::diff
