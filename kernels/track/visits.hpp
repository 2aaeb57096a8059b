// SPDX-License-Identifier: LGPL-2.1-or-later
// The zones that an object enters and leaves, and the lines that it crosses.
//
// An object is where its foot is: the pixel in the middle of the lower edge of its box. A visit of a zone begins with
// the first frame in which the foot is in the zone. It ends with the last one, after which the foot was outside for the
// time `hold`, or the object was gone. So an object that walks along the edge of a zone does not
// enter it again and again.
//
// Boxes are as exact as the pixels of the analysis, but feet and their shadows come and go in the mask. So a side of a
// line counts only where the foot is further from the line than a slack, and somebody who stands on the line does not
// cross it again and again.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/core/polygon.hpp"

namespace cudavision::track {

/// A line that counts: from `from` to `to`.
struct Line {
  Point from, to;

  bool operator==(const Line& other) const { return from == other.from && to == other.to; }
};

/// What objects visit, in pixels of the frame.
struct Places {
  std::vector<Polygon> zones;  ///< if there is none, the whole frame is the one zone
  std::vector<Line> lines;

  bool operator==(const Places& other) const { return zones == other.zones && lines == other.lines; }
};

/// The time of a frame.
struct Moment {
  /// Ns, on a clock that does not run backwards. It may pass its largest value: only differences count.
  std::uint64_t now = 0;
  std::uint64_t stamp = 0;  ///< whatever the caller knows the frame by; goes into events
  /// Ns of the stream that were played until the frame, however fast; goes into events, too. Only differences count.
  std::uint64_t played = 0;
};

/// Where an object was seen.
struct View {
  Rect box;  ///< in pixels; empty: not yet
  Moment at;
};

/// Something that an object did.
struct ObjectEvent {
  enum class Kind { enter, leave, cross, stopped, moving, removed } kind = Kind::enter;
  std::uint64_t id = 0;  ///< of the object
  int place = 0;         ///< the zone or the line; -1: the frame, where there are no zones
  Rect box;              ///< of the object, in pixels
  Moment entered, left;  ///< leave: the first and the last frame of the visit. enter: the first
  double path = 0;       ///< leave: the length of the way during the visit, in pixels
  Moment rested;         ///< stopped, moving: since when it stands still, or had stood still
  View best;             ///< leave: where the object was seen best
  /// Cross: from left to right, as seen by somebody who looks along the line; otherwise to the left.
  bool to_right = false;
  std::vector<int> zones{};  ///< stopped, moving, removed: those in which the object was when it was seen before
};

/// An object as its visits see it.
struct Visitor {
  std::uint64_t id = 0;  ///< 0: not confirmed; nothing is told yet
  Rect box;              ///< in pixels
  double path = 0;       ///< the length of its way so far, in pixels
  View best{};           ///< where it was seen best so far
};

struct VisitRules {
  const Places& places;
  std::uint64_t hold = 0;  ///< ns
  double slack = 0;        ///< the distance from a line, in pixels, up to which its side does not count
};

/// The visits of one object.
class Visits {
 public:
  /// The object is seen in this frame.
  void seen(const Visitor& visitor, const VisitRules& rules, const Moment& moment, std::vector<ObjectEvent>& events);
  /// The object is not seen in this frame.
  void unseen(const Visitor& visitor, const VisitRules& rules, const Moment& moment, std::vector<ObjectEvent>& events);
  /// No frame came until `now`, which follows the last frame at `frame`: ends the visits that would end with a frame in
  /// which the object is where it was in the last one.
  void passed(const Visitor& visitor, const VisitRules& rules, std::uint64_t frame, std::uint64_t now,
              std::vector<ObjectEvent>& events);
  /// Ends all visits.
  void end(const Visitor& visitor, std::vector<ObjectEvent>& events);

  /// The zones in which the object was when it was last seen, in their order.
  const std::vector<int>& zones() const { return zones_; }

 private:
  struct Visit {
    int zone;
    bool told;  ///< whether there was an event that it began
    Moment entered, last;
    double path_entered, path_last;
  };
  struct Side {
    int side = 0;  ///< as side_of(); 0: not known yet
    int x = 0, y = 0;
  };

  void visit(int zone, const Visitor& visitor, const Moment& moment);
  void leave(const Visit& visit, const Visitor& visitor, std::vector<ObjectEvent>& events) const;
  void look_at_lines(const Visitor& visitor, const VisitRules& rules, std::vector<ObjectEvent>& events);

  std::vector<Visit> visits_;  ///< in the order in which they began
  std::vector<int> zones_;
  std::vector<Side> sides_;  ///< of each line, where the object last was on one of its sides
};

}  // namespace cudavision::track
