// SPDX-License-Identifier: LGPL-2.1-or-later
// The zones that objects enter and leave, and the lines that they cross.
//
// The position of an object is its foot: the pixel in the middle of the lower edge of its box. A visit of a zone begins
// with the first frame in which the foot is in the zone. It ends with the last such frame before the foot was outside
// for the time `hold`, or before the object left. So an object that moves along the edge of a zone does not enter it
// repeatedly.
//
// Boxes are as exact as the pixels of the analysis, but feet and their shadows appear and disappear in the mask. So the
// side of a line counts only if the foot is farther from the line than a slack. A person who stands on the line does
// not cross it repeatedly.
//
// Where objects touch, a box can grow over its neighbours, lose one, or move to one, so that its foot jumps over the
// line. So an object crosses only if it moves in this direction. If it crosses back, or if one end of its box moved in
// the other direction, its foot must also be farther from the line than half the width of its box.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/core/polygon.hpp"

namespace cudavision::track {

/// A counting line, from `from` to `to`.
struct Line {
  Point from, to;

  bool operator==(const Line& other) const { return from == other.from && to == other.to; }
};

/// The places that objects visit, in pixels of the frame.
struct Places {
  std::vector<Polygon> zones;  ///< if empty, the whole frame is the only zone
  std::vector<Line> lines;

  bool operator==(const Places& other) const { return zones == other.zones && lines == other.lines; }
};

/// The time of a frame.
struct Moment {
  /// Ns, on a clock that does not run backwards. It may overflow: only differences count.
  std::uint64_t now = 0;
  std::uint64_t stamp = 0;  ///< the caller's identifier of the frame; copied to events
  /// The stream time played until the frame, in ns, independent of the playback speed; also copied to events. Only
  /// differences count.
  std::uint64_t played = 0;
};

/// A view of an object.
struct View {
  Rect box;  ///< in pixels; empty: no view yet
  Moment at;
};

/// An event of an object.
struct ObjectEvent {
  enum class Kind { enter, leave, cross, stopped, moving, removed } kind = Kind::enter;
  std::uint64_t id = 0;  ///< id of the object
  int place = 0;         ///< index of the zone or the line; -1: the frame, if there are no zones
  Rect box;              ///< box of the object, in pixels
  Moment entered, left;  ///< leave: the first and the last frame of the visit. enter: the first frame
  double path = 0;       ///< leave: the length of the path during the visit, in pixels
  Moment rested;         ///< stopped, moving: when the object came to rest
  View best;             ///< leave: the best view of the object
  /// Cross: from left to right, for a viewer who looks along the line; false: to the left.
  bool to_right = false;
  std::vector<int> zones{};  ///< stopped, moving, removed: the zones of the object when it was last seen before
};

/// The data of an object that its visits use.
struct Visitor {
  std::uint64_t id = 0;             ///< 0: not confirmed; there are no events yet
  Rect box;                         ///< in pixels
  double path = 0;                  ///< the length of its path so far, in pixels
  View best{};                      ///< its best view so far
  double speed_x = 0, speed_y = 0;  ///< pixels a second
  bool jumped = false;              ///< whether it may be a different object than before
};

struct VisitRules {
  const Places& places;
  std::uint64_t hold = 0;  ///< ns
  double slack = 0;        ///< the distance from a line, in pixels, within which its side does not count
};

/// The visits of one object.
class Visits {
 public:
  /// Updates with a frame in which the object is seen.
  void seen(const Visitor& visitor, const VisitRules& rules, const Moment& moment, std::vector<ObjectEvent>& events);
  /// Updates with a frame in which the object is not seen.
  void unseen(const Visitor& visitor, const VisitRules& rules, const Moment& moment, std::vector<ObjectEvent>& events);
  /// Called if no frame arrived between the last frame, at `frame`, and `now`. Ends the visits that would end with a
  /// frame in which the object is in its last position.
  void passed(const Visitor& visitor, const VisitRules& rules, std::uint64_t frame, std::uint64_t now,
              std::vector<ObjectEvent>& events);
  /// Ends all visits.
  void end(const Visitor& visitor, std::vector<ObjectEvent>& events);

  /// The object now has the foot of another object, which was a piece of it. Takes over the side of each line on which
  /// the piece was.
  void take_sides(const Visits& of_piece) { sides_ = of_piece.sides_; }

  /// The zones in which the object was when it was last seen, in order.
  const std::vector<int>& zones() const { return zones_; }

 private:
  struct Visit {
    int zone;
    bool told;  ///< whether its beginning was reported as an event
    Moment entered, last;
    double path_entered, path_last;
  };
  struct Side {
    int side = 0;  ///< as side_of(); 0: not known yet
    int x = 0, y = 0;
    Rect box;         ///< the box at that time
    int crossed = 0;  ///< the side to which it last crossed; 0: it has not crossed
  };

  void visit(int zone, const Visitor& visitor, const Moment& moment);
  void leave(const Visit& visit, const Visitor& visitor, std::vector<ObjectEvent>& events) const;
  void look_at_lines(const Visitor& visitor, const VisitRules& rules, std::vector<ObjectEvent>& events);

  std::vector<Visit> visits_;  ///< in the order in which they began
  std::vector<int> zones_;
  std::vector<Side> sides_;  ///< for each line, where the object was last clearly on one side
};

}  // namespace cudavision::track
