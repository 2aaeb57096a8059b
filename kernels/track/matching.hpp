// SPDX-License-Identifier: LGPL-2.1-or-later
// Private to the tracker: which parts of a frame's regions belong to which object.
#pragma once

#include <limits>
#include <vector>

#include "kernels/diff/motion.hpp"
#include "kernels/track/appearance.hpp"

namespace cudavision::track {

/// An object as it is expected in a frame.
struct Expected {
  double left, top, right, bottom;  ///< the predicted box, in pixels; not empty
  int frames;                       ///< frames in which it was seen
  bool confirmed;
  bool was_seen;                                           ///< whether it was seen in the last frame
  double unseen = 0;                                       ///< seconds since it was last seen
  double apart = std::numeric_limits<double>::infinity();  ///< seconds since it last shared a part with others
  const Portrait* portrait = nullptr;                      ///< its looks; nullptr: not known
};

/// The match of an object in a frame.
struct Match {
  bool found = false;    ///< whether the object was found; if not, nothing else is set
  bool dropped = false;  ///< the object is a part of an older one
  bool shared = false;   ///< other objects also have cells of its parts, or are hidden there
  /// The object is not confirmed, and above, below or on a confirmed one: it may be a piece of that object.
  bool fragment = false;
  Rect box;                     ///< around its changed pixels, in pixels of the frame
  int area = 0;                 ///< cells
  double score = 0;             ///< score of the part that has most of its cells
  diff::Structure structure{};  ///< the sum of its cells
  Appearance appearance;        ///< looks of its parts, if it shares none
};

struct Matches {
  std::vector<Match> objects;                 ///< for each expected object
  std::vector<diff::MotionRegion> unmatched;  ///< parts that belong to no object, in their order
};

/// Matches objects with the parts of the first `most` regions (see find_parts()). A cell is in a box if its centre is
/// inside, or at most half a cell outside.
///   1. Objects and parts are assigned one to one, at the least cost. A pair costs 1 less the intersection over union
///      of the boxes if cells of the part are in the box of the object. Otherwise it costs 1 plus the distance of the
///      centres ÷ the reach, and is only possible within reach: one and a half sides (the longest of both boxes) and a
///      cell; a side more for an object without a speed yet, and two sides more for each second unseen if the looks are
///      alike; and if the areas of the boxes are within a factor of five. Unlike looks add to the cost, more so if the
///      object was unseen or shared a part shortly before. An object may stay alone at a cost, which is lower if a part
///      of the same looks covers its box.
///   2. An object that stays alone joins the part of the largest intersection over union. Objects also take their
///      fragments: parts with at least half of their cells in the object's box, to which no object was assigned that
///      is confirmed, or older than an unconfirmed one. What stands beside() the object's own part is no fragment.
///   3. If several objects take a part, unconfirmed ones are dropped as pieces of the confirmed ones; the one that was
///      seen most often stays where none is confirmed.
///   4. If several are left, each gets the cells that are nearest to its box: those at the smallest distance from its
///      centre in units of its sides. An object that would get next to nothing is hidden by the others. Its box is
///      around the changed pixels of the part in the predicted box,
///      and around those of its cells that no predicted box covers.
Matches match(const std::vector<Expected>& objects, const diff::MotionRegions& found, const diff::Cells& cells,
              std::size_t most);

}  // namespace cudavision::track
