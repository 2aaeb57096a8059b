// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/track/visits.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cudavision::track {
namespace {

struct Foot {
  int x, y;
};
Foot foot_of(const Rect& box) { return {box.x + box.width / 2, box.y + box.height - 1}; }

/// Whether an object moves to this side of a line, or does not move. side: as in side_of().
bool moves_to(int side, const Line& line, const Visitor& visitor) {
  const double along_x = line.to.x - line.from.x, along_y = line.to.y - line.from.y;
  return side * (along_x * visitor.speed_y - along_y * visitor.speed_x) >= 0;
}

/// Whether both ends of a box, as seen along the normal of a line, moved to this side of the line or not at all.
bool both_ends_move(int side, const Line& line, const Rect& before, const Rect& now) {
  const auto ends_of = [&](const Rect& box) {
    const double along_x = side * (line.to.x - line.from.x), along_y = side * (line.to.y - line.from.y);
    const std::pair<double, double> by_x = std::minmax({-along_y * box.x, -along_y * (box.x + box.width)}),
                                    by_y = std::minmax({along_x * box.y, along_x * (box.y + box.height)});
    return std::pair(by_x.first + by_y.first, by_x.second + by_y.second);
  };
  const auto [rear, front] = ends_of(before);
  const auto [rear_now, front_now] = ends_of(now);
  return rear_now >= rear && front_now >= front;
}

/// The distance in pixels of the centre of a pixel from the line through two points.
double distance(const Line& line, const Foot& foot) {
  const double along_x = line.to.x - line.from.x, along_y = line.to.y - line.from.y;
  const double x = foot.x + 0.5 - line.from.x, y = foot.y + 0.5 - line.from.y;
  return std::abs(along_x * y - along_y * x) / std::sqrt(along_x * along_x + along_y * along_y);
}

}  // namespace

void Visits::visit(int zone, const Visitor& visitor, const Moment& moment) {
  const auto same = [zone](const Visit& visit) { return visit.zone == zone; };
  auto found = std::find_if(visits_.begin(), visits_.end(), same);
  if (found == visits_.end()) found = visits_.insert(found, {zone, false, moment, moment, visitor.path, visitor.path});
  found->last = moment;
  found->path_last = visitor.path;
}

void Visits::seen(const Visitor& visitor, const VisitRules& rules, const Moment& moment,
                  std::vector<ObjectEvent>& events) {
  const auto& zones = rules.places.zones;
  const Foot foot = foot_of(visitor.box);
  zones_.clear();
  for (std::size_t i = 0; i < zones.size(); ++i)
    if (contains(zones[i], foot.x, foot.y)) zones_.push_back(int(i));
  for (int zone : zones_) visit(zone, visitor, moment);
  if (zones.empty()) visit(-1, visitor, moment);
  unseen(visitor, rules, moment, events);
  if (visitor.id > 0)
    for (Visit& visit : visits_)
      if (!std::exchange(visit.told, true))
        events.push_back(
            {ObjectEvent::Kind::enter, visitor.id, visit.zone, visitor.box, visit.entered, {}, 0, {}, {}, false});
  look_at_lines(visitor, rules, events);
}

void Visits::unseen(const Visitor& visitor, const VisitRules& rules, const Moment& moment,
                    std::vector<ObjectEvent>& events) {
  passed(visitor, rules, moment.now, moment.now, events);
}

void Visits::passed(const Visitor& visitor, const VisitRules& rules, std::uint64_t frame, std::uint64_t now,
                    std::vector<ObjectEvent>& events) {
  const auto over = [&](const Visit& visit) { return visit.last.now != frame && now - visit.last.now >= rules.hold; };
  for (const Visit& visit : visits_)
    if (over(visit)) leave(visit, visitor, events);
  visits_.erase(std::remove_if(visits_.begin(), visits_.end(), over), visits_.end());
}

void Visits::look_at_lines(const Visitor& visitor, const VisitRules& rules, std::vector<ObjectEvent>& events) {
  const auto& lines = rules.places.lines;
  sides_.resize(lines.size());
  const Foot foot = foot_of(visitor.box);
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    const Line& line = lines[i];
    Side& last = sides_[i];
    const int side = side_of(line.from, line.to, foot.x, foot.y);
    if (visitor.jumped) last = {};  // its path to this side is unknown
    if (side == 0 || distance(line, foot) <= rules.slack) continue;
    if (visitor.id == 0 && last.side != 0)
      continue;  // its path counts from its first position, but only once it is confirmed
    if (last.side == -side && meets(line.from, line.to, last.x, last.y, foot.x, foot.y)) {
      const bool doubtful = last.crossed == -side || !both_ends_move(side, line, last.box, visitor.box);
      if (!moves_to(side, line, visitor) || (doubtful && distance(line, foot) <= visitor.box.width / 2.0)) continue;
      events.push_back({ObjectEvent::Kind::cross, visitor.id, int(i), visitor.box, {}, {}, 0, {}, {}, side > 0});
      last.crossed = side;
    }
    last.side = side, last.x = foot.x, last.y = foot.y, last.box = visitor.box;
  }
}

void Visits::leave(const Visit& visit, const Visitor& visitor, std::vector<ObjectEvent>& events) const {
  if (!visit.told) return;
  events.push_back({ObjectEvent::Kind::leave,
                    visitor.id,
                    visit.zone,
                    visitor.box,
                    visit.entered,
                    visit.last,
                    visit.path_last - visit.path_entered,
                    {},
                    visitor.best,
                    false});
}

void Visits::end(const Visitor& visitor, std::vector<ObjectEvent>& events) {
  for (const Visit& visit : visits_) leave(visit, visitor, events);
  visits_.clear();
  zones_.clear();
}

}  // namespace cudavision::track
