// SPDX-License-Identifier: LGPL-2.1-or-later
// Decides whether an object moves, has stopped, or is a ghost (background that an object uncovered), from its boxes and
// its structure (structure.hpp) over time.
//
//   moves ─── still for PresenceRules::still ───▶ stopped ─── still for PresenceRules::absorb ───▶ absorbed: it becomes
//     ▲                                              │                                              background
//     └────────────────── goes on ───────────────────┘
//   still, and the background has the edges at its outline ───▶ ghost: the picture there becomes background
//   still, never elsewhere, and with the edges of the background inside, or without any edge ───▶ light: the same
#pragma once

#include <cstdint>

#include "kernels/core/image.hpp"
#include "kernels/diff/structure.hpp"
#include "kernels/track/visits.hpp"

namespace cudavision::track {

/// Times in ns.
struct PresenceRules {
  std::uint64_t still = 10'000'000'000;    ///< time after which an object that stands still counts as stopped
  std::uint64_t absorb = 300'000'000'000;  ///< time after which the object becomes background; 0: never
  bool structured = false;                 ///< whether the structure of sightings is known
};

/// The observation of an object in a frame.
struct Sighting {
  Rect box;                   ///< in pixels
  diff::Structure structure;  ///< structure of its cells; see PresenceRules::structured
  double slack = 0;           ///< the smallest distance that counts as movement, in pixels
};

class Presence {
 public:
  /// light: only the light changed where the object stands still.
  enum class Change { none, stopped, moves, ghost, light, absorbed };

  /// Updates with a frame in which the object is seen.
  Change update(const Sighting& sighting, const PresenceRules& rules, const Moment& moment);

  /// Whether this is certainly an object, from which the background must learn nothing.
  bool certain() const;
  bool stopped() const { return stopped_; }
  /// When it came to rest. For the frame with Change::moves: when the rest that just ended had begun.
  const Moment& rested() const { return rested_; }
  /// Whether it has moved since it was first seen.
  bool moved() const { return moved_; }
  /// Whether it has left the place where it was first seen.
  bool travelled() const { return travelled_; }
  /// Whether it is away from that place in this frame.
  bool away() const { return away_; }

 private:
  struct Place {
    double x = 0, y = 0;
    double distance(const Place& other) const;
  };

  Place first_, still_;          // centre of its box: where it was first seen, and where it stands still
  Moment since_, rested_;        // when it came to still_; the result of rested()
  std::uint64_t doubtless_ = 0;  // ns: the last time when it was certainly not a ghost
  std::uint64_t lit_ = 0;        // ns: the last time when not only the light had changed
  std::uint64_t last_ = 0;       // ns: the last frame
  double balance_ = 0;  // smoothed votes at the outline: 1 if all are for an object, −1 if all are for a ghost
  double light_ = 0;    // smoothed votes inside: 1 if all are for the structure of the background
  bool seen_ = false, stopped_ = false, moved_ = false, away_ = false, travelled_ = false;
};

}  // namespace cudavision::track
