// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/track/still_light.hpp"

#include <algorithm>
#include <cmath>

namespace cudavision::track {
namespace {

constexpr std::uint64_t least_time = 1'000'000'000;  ///< ns after which light counts as lasting
constexpr std::uint64_t longest_gap = 300'000'000;   ///< ns for which light may be unseen: it flickers at the threshold
constexpr double near = 0.5;  ///< the distance within which light stands still, in units of its shorter side
constexpr std::size_t most_places = 256;

double distance(const Rect& a, const Rect& b) {
  return std::hypot(a.x + a.width / 2.0 - b.x - b.width / 2.0, a.y + a.height / 2.0 - b.y - b.height / 2.0);
}

}  // namespace

void StillLight::advance(const std::vector<Rect>& boxes, double slack, std::uint64_t now) {
  for (const Rect& box : boxes) {
    const double reach = std::max(near * std::min(box.width, box.height), slack);
    const auto found = std::find_if(places_.begin(), places_.end(),
                                    [&](const Place& place) { return distance(place.first, box) <= reach; });
    if (found != places_.end())
      found->box = box, found->last = now;
    else if (places_.size() < most_places)
      places_.push_back({box, box, now, now});
  }
  places_.erase(std::remove_if(places_.begin(), places_.end(),
                               [now](const Place& place) { return now - place.last > longest_gap; }),
                places_.end());
  lasting_.clear();
  for (const Place& place : places_)
    if (place.last == now && now - place.since >= least_time) lasting_.push_back(place.box);
}

}  // namespace cudavision::track
