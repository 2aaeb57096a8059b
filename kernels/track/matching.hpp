// SPDX-License-Identifier: LGPL-2.1-or-later
// Private to the tracker: which parts of a frame's regions belong to which object.
#pragma once

#include <limits>
#include <vector>

#include "kernels/diff/motion.hpp"
#include "kernels/track/object_looks.hpp"
#include "kernels/track/sizes.hpp"

namespace cudavision::track {

/// An object as expected in a frame.
struct Expected {
  double left, top, right, bottom;  ///< the predicted box, in pixels; not empty
  int frames;                       ///< frames in which it was seen
  bool confirmed;
  bool was_seen;                                           ///< whether it was seen in the last frame
  double unseen = 0;                                       ///< seconds since it was last seen
  double apart = std::numeric_limits<double>::infinity();  ///< seconds since it last shared a part with others
  const Portrait* portrait = nullptr;                      ///< its looks; nullptr: unknown
  bool leaves = false;                                     ///< whether it leaves the frame across an edge
};

/// The match for an object in a frame.
struct Match {
  bool found = false;    ///< whether the object was found; if not, nothing else is set
  bool dropped = false;  ///< whether the object is a part of an older one
  bool shared = false;   ///< whether other objects also have cells of its parts, or are hidden there
  /// Whether the object is unconfirmed and above, below or on a confirmed one: it may be a piece of that object.
  bool fragment = false;
  Rect box;                     ///< around its changed pixels, in pixels of the frame
  int area = 0;                 ///< cells
  double score = 0;             ///< score of the part that has most of its cells
  diff::Structure structure{};  ///< the sum over its cells
  ObjectLooks looks;            ///< looks of its parts, if it shares none
};

struct Matches {
  std::vector<Match> objects;                 ///< for each expected object
  std::vector<diff::MotionRegion> unmatched;  ///< parts that belong to no object, in order
};

/// Matches objects with the parts of the first `most` regions (find_parts() uses `sizes`). A cell is in a box if its
/// centre is inside, or at most half a cell outside.
///   1. Objects and parts are assigned one to one, at the least cost. If cells of the part are in the box of the
///      object, a pair costs 1 − the intersection over union of the boxes. Otherwise it costs 1 + the distance of
///      the centres ÷ the reach. Such a pair must be within reach, and the areas of the boxes within a factor of
///      five. The reach is one and a half times the longest side of both boxes, plus a cell. It is one side longer
///      if the object has no speed yet, and two sides longer for each second unseen if the looks are alike. An
///      object that leaves the frame reaches no part outside its box. Different looks add to the cost, more so if
///      the object was unseen or shared a part shortly before. An object may stay alone at a cost, which is lower
///      if a part with similar looks covers its box.
///   2. An object that stays alone joins the part of the largest intersection over union. Objects also take their
///      fragments. A fragment is a part with at least half of its cells in the object's box. No confirmed object is
///      assigned to it, and no older one if the object is unconfirmed. It does not stand beside() the object's own
///      part.
///   3. If several objects take a part, unconfirmed ones are dropped as pieces of the confirmed ones. If none is
///      confirmed, the object that was seen most often stays.
///   4. If several are left, each gets the cells that are nearest to its box: the distance from the centre of the
///      box is measured in sides of the box. An object that would get almost nothing is hidden by the others. The
///      new box encloses the changed pixels of the part in the predicted box, and the changed pixels of the
///      object's own cells that no predicted box covers.
Matches match(const std::vector<Expected>& objects, const diff::MotionRegions& found, const diff::Cells& cells,
              std::size_t most, const SizeMap& sizes);

}  // namespace cudavision::track
