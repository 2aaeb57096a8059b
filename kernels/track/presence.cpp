// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/track/presence.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cudavision::track {
namespace {

constexpr double memory = 0.3;  ///< seconds over which votes are averaged
// In the scenes of tests/bench/motion_world.py, 99.7 % of still regions with people have a balance above 0.1, and 99 %
// of ghosts have a balance below −0.2.
constexpr double object_balance = 0.25;  ///< balance above which an object is certain
constexpr double ghost_balance = -0.1;   ///< balance below which a region may be a ghost
/// The same limit if the object came here from elsewhere. An object with few edges also hides edges of the background.
constexpr double ghost_balance_after_way = -0.5;
constexpr std::uint32_t least_votes = 8;             ///< fewest votes in a frame that count
constexpr std::uint64_t ghost_time = 400'000'000;    ///< shortest duration of a ghost, in ns
constexpr double clear_light = 0.6;                  ///< balance of votes for the structure of the background
constexpr std::uint32_t least_structure = 4;         ///< fewest votes of structure in a frame that count
constexpr std::uint64_t light_time = 1'000'000'000;  ///< shortest duration of light, in ns
constexpr double near = 0.5;  ///< the distance within which an object stands still, in units of its shorter side

}  // namespace

double Presence::Place::distance(const Place& other) const { return std::hypot(x - other.x, y - other.y); }

bool Presence::certain() const { return travelled_ || balance_ > object_balance; }

Presence::Change Presence::update(const Sighting& sighting, const PresenceRules& rules, const Moment& moment) {
  const std::uint64_t now = moment.now;
  const Rect& box = sighting.box;
  const Place here{box.x + box.width / 2.0, box.y + box.height / 2.0};
  if (!std::exchange(seen_, true)) first_ = still_ = here, since_ = moment, doubtless_ = lit_ = last_ = now;
  const double seconds = double(now - std::exchange(last_, now)) / 1e9;

  const auto [edges, reference_edges, same, other] = sighting.structure;
  if (const double votes = double(edges) + reference_edges; votes >= least_votes)
    balance_ += ((double(edges) - reference_edges) / votes - balance_) * seconds / (seconds + memory);
  if (same + other >= least_structure)
    light_ += ((double(same) - other) / (double(same) + other) - light_) * seconds / (seconds + memory);
  // A part of the sky that is brighter after a change of the exposure has no edge, neither inside nor at its outline.
  const bool smooth = rules.structured && edges + reference_edges + same + other < least_structure;
  if ((light_ < clear_light && !smooth) || travelled_) lit_ = now;
  if (balance_ > (travelled_ ? ghost_balance_after_way : ghost_balance)) doubtless_ = now;

  const int longer = std::max(box.width, box.height), shorter = std::min(box.width, box.height);
  away_ = here.distance(first_) > std::max(double(longer), sighting.slack);
  travelled_ = travelled_ || away_;
  if (here.distance(still_) > std::max(near * shorter, sighting.slack)) {
    still_ = here, moved_ = true;
    rested_ = std::exchange(since_, moment);
    return std::exchange(stopped_, false) ? Change::moves : Change::none;
  }
  rested_ = since_;
  const std::uint64_t still = now - since_.now;
  if (std::min(still, now - doubtless_) >= ghost_time) return Change::ghost;
  if (std::min(still, now - lit_) >= light_time) return Change::light;
  if (rules.absorb > 0 && still >= rules.absorb) return Change::absorbed;
  return still >= rules.still && !std::exchange(stopped_, true) ? Change::stopped : Change::none;
}

}  // namespace cudavision::track
