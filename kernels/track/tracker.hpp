// SPDX-License-Identifier: LGPL-2.1-or-later
// Follows objects from frame to frame by their moving regions. Uses plain arithmetic on the host: the same regions at
// the same times give the same objects on every backend.
//
//   regions ──▶ match() ──▶ filter of place and speed ──▶ objects (regions of interest)
//                 ▲                    │           └────▶ visits ──▶ events: enter, leave, cross
//                 └── predicted boxes ◀┘
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/diff/learning.hpp"
#include "kernels/diff/motion.hpp"
#include "kernels/track/lanes.hpp"
#include "kernels/track/matching.hpp"
#include "kernels/track/pieces.hpp"
#include "kernels/track/presence.hpp"
#include "kernels/track/sizes.hpp"
#include "kernels/track/still_light.hpp"
#include "kernels/track/visits.hpp"

namespace cudavision::track {

struct TrackRules {
  /// An object is confirmed after it was seen in this many consecutive frames. If it appears inside the frame and does
  /// not move, it is confirmed half a second after it was first seen. Soon after a change of the camera or the light,
  /// every object is confirmed later. 1: every object is confirmed immediately.
  int min_frames = 3;
  std::uint64_t hold = 1'000'000'000;  ///< how long a confirmed object is kept while unseen, in ns
  Places places;                       ///< places that objects visit
  PresenceRules presence{};
};

/// The maximum number of objects that are followed at the same time. If there are more regions, only the largest become
/// objects.
inline constexpr std::size_t max_objects = 1024;

/// An object in a frame.
struct TrackedObject {
  std::uint64_t id = 0;  ///< counted from 1; 0 until the object is confirmed
  /// Around its changed pixels or, if it is not seen, the predicted box; in pixels, inside the frame, not empty.
  Rect box;
  int area = 0;            ///< size in cells when it was last seen
  double score = 0;        ///< changed ÷ counted pixels of its region, when it was last seen
  Moment first, last;      ///< when it was first and last seen
  bool held = false;       ///< whether it is kept although it is not seen in this frame
  bool stopped = false;    ///< whether it stands still; see PresenceRules
  std::vector<int> zones;  ///< the zones in which it is, or was when it was last seen
};

/// The position of an object is predicted with constant velocity. A filter with growing memory and later with constant
/// gains (an α-β filter: Bar-Shalom, Li and Kirubarajan, Estimation with Applications to Tracking and Navigation, 2001,
/// section 6.5) follows the centre of its box.
class Tracker {
 public:
  /// `last_id`: new ids begin after this one.
  explicit Tracker(const TrackRules& rules, std::uint64_t last_id = 0);

  /// Updates with the next frame, which has these regions of these cells. `moment.now` is not earlier than the last
  /// frame. changes: whether the camera or the light changed in this frame.
  void advance(const diff::MotionRegions& found, const diff::Cells& cells, const Moment& moment, bool changes = false);
  /// Tells the tracker that no frame arrived before `now`, which follows the last frame. Objects that were not seen in
  /// the last frame leave when their hold is over, and objects that were outside a zone leave it. Other objects stay,
  /// because nothing shows that they moved.
  void passed(std::uint64_t now);
  /// Ends a run of frames: no objects remain.
  void finish();
  /// Takes over the objects of a tracker for frames of the same size. If the places differ, all visits end there and
  /// restart here.
  void continue_from(Tracker& previous);

  /// The objects in the last frame, in the order of their appearance: seen ones, and confirmed ones that are held.
  const std::vector<TrackedObject>& objects() const { return objects_; }
  /// What the background may learn after the last frame: a Learning for each cell of `cells`; empty: usual in all
  /// cells. The background learns nothing from certain objects. Ghosts, lasting light, and objects that stood still for
  /// a long time become background. Variances stay small where objects cross the frame repeatedly; see lanes.hpp.
  std::vector<diff::Learning> learning(const diff::Cells& cells) const;
  /// The events since the last call.
  std::vector<ObjectEvent> take_events();
  /// The last id that was assigned.
  std::uint64_t last_id() const { return last_id_; }

 private:
  struct Track {
    std::uint64_t id = 0;
    std::uint64_t number = 0;                    // counts all objects, including unconfirmed ones
    double x = 0, y = 0, width = 0, height = 0;  // the predicted box, by its centre, in pixels
    double speed_x = 0, speed_y = 0;             // pixels per second
    double seen_x = 0, seen_y = 0, path = 0;  // its centre when it was last seen, and the length of its path until then
    Rect box;
    View best;
    int area = 0;
    double score = 0;
    Moment first, last;  // when it was first and last seen
    int frames = 0;      // frames in which it was seen
    bool seen = true, gone = false;
    bool jumped = false;    // it was found so far from its predicted place that it may be another object
    bool came_in = false;   // it was first seen at the edge of the frame
    bool believed = false;  // it is confirmed, or will be when a change of the camera or the light is over
    // Whether it may be a piece of another object. It is not confirmed while this is possible.
    bool fragment = false;
    // Seconds since it last shared a part of a region with other objects.
    double apart = std::numeric_limits<double>::infinity();
    Portrait portrait;
    std::uint64_t taken = 0;     // when it became background
    bool is_background = false;  // it has no more visits, and stays until it is gone from the mask
    Companion companion;         // the older object of which it may be a piece
    Presence presence;
    Visits visits;
  };

  void join_pieces(const diff::Cells& cells);
  void judge(Track& track, const diff::Structure& structure, const diff::Cells& cells, const VisitRules& rules,
             const Moment& moment);
  void confirm(Track& track, const VisitRules& rules, const Moment& moment);
  bool is_established(const Track& track) const { return track.frames >= rules_.min_frames && !track.fragment; }
  static void apply_match(Track& track, const Match& match, const Moment& moment);
  void report(Track& track, const diff::Cells& cells, const VisitRules& rules, const Moment& moment);

  const TrackRules rules_;
  std::uint64_t last_id_, last_number_ = 0;
  std::uint64_t now_ = 0;
  std::uint64_t settled_ = 0;  // when a change of the camera or the light is over
  std::vector<Track> tracks_;
  LaneMap lanes_;
  SizeMap sizes_;
  StillLight light_;
  std::vector<TrackedObject> objects_;
  std::vector<ObjectEvent> events_;
};

}  // namespace cudavision::track
