// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/diff/tracker.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cudavision::diff {
namespace {

// Tried as the constants of matching.cpp.
constexpr double place_gain = 0.4, speed_gain = 0.1;  ///< of the filter, once an object has been seen often enough
constexpr double size_gain = 0.1;                     ///< share of the new size
constexpr double shared_gain = 0.5;  ///< factor for speed and size while objects share a region, whose division is a guess

}  // namespace

Tracker::Tracker(const TrackRules& rules, std::uint64_t last_id) : rules_(rules), last_id_(last_id) {}

/// Takes what belongs to an object in this frame as a measurement.
void Tracker::see(Track& track, const Match& match, std::uint64_t now) {
  const double n = ++track.frames, trust = match.shared ? shared_gain : 1;
  const double by_place = std::max(place_gain, 2 * (2 * n - 1) / (n * (n + 1)));  // least squares over all frames so far
  const double by_speed = std::max(speed_gain, 6 / (n * (n + 1))) * trust;
  const double by_size = std::max(size_gain, 1 / n) * trust;
  const double off_x = match.box.x + match.box.width / 2.0 - track.x, off_y = match.box.y + match.box.height / 2.0 - track.y;
  track.x += by_place * off_x, track.y += by_place * off_y;
  if (const double seconds = double(now - track.last) / 1e9; seconds > 0)
    track.speed_x += by_speed * off_x / seconds, track.speed_y += by_speed * off_y / seconds;
  track.width += by_size * (match.box.width - track.width);
  track.height += by_size * (match.box.height - track.height);
  track.path += std::hypot(track.x - track.seen_x, track.y - track.seen_y);
  track.seen_x = track.x, track.seen_y = track.y;
  track.box = match.box;
  track.area = match.area;
  track.score = match.score;
  track.last = now;
  track.seen = true;
}

void Tracker::advance(const MotionRegions& found, const Cells& cells, const Moment& moment) {
  const double seconds = double(moment.now - now_) / 1e9;
  now_ = moment.now;
  std::vector<Expected> expected;
  for (Track& track : tracks_) {
    track.x += track.speed_x * seconds, track.y += track.speed_y * seconds;
    expected.push_back({track.x - track.width / 2, track.y - track.height / 2, track.x + track.width / 2,
                        track.y + track.height / 2, track.frames, track.id > 0, track.seen});
  }
  const Matches matches = match(expected, found, cells, max_objects);
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    Track& track = tracks_[i];
    const Match& matched = matches.objects[i];
    track.seen = false;
    track.gone = matched.dropped;
    if (matched.found) see(track, matched, moment.now);
  }
  for (std::uint32_t region : matches.unmatched) {
    if (tracks_.size() >= max_objects) break;
    const auto& [box, area, score] = found.kept[region];
    Track track;
    track.x = track.seen_x = box.x + box.width / 2.0, track.y = track.seen_y = box.y + box.height / 2.0;
    track.width = box.width, track.height = box.height;
    track.box = box, track.area = area, track.score = score;
    track.first = track.last = moment.now;
    track.frames = 1;
    tracks_.push_back(std::move(track));
  }
  objects_.clear();
  const VisitRules rules{rules_.places, rules_.hold, cells.cell_size / 2.0};
  for (Track& track : tracks_) look(track, cells, rules, moment);
  tracks_.erase(std::remove_if(tracks_.begin(), tracks_.end(), [](const Track& track) { return track.gone; }), tracks_.end());
}

/// Finds out whether an object is still there, what it visits, and what is known of it in this frame.
void Tracker::look(Track& track, const Cells& cells, const VisitRules& rules, const Moment& moment) {
  if (track.seen && track.id == 0 && track.frames >= rules_.min_frames) track.id = ++last_id_;
  if (!track.seen && !track.gone) {
    const auto rounded = [](double value) { return int(std::lround(std::clamp(value, -1e6, 1e6))); };
    const int left = rounded(track.x - track.width / 2), top = rounded(track.y - track.height / 2);
    const Rect box = intersection({left, top, rounded(track.x + track.width / 2) - left, rounded(track.y + track.height / 2) - top},
                                  {0, 0, cells.frame_width, cells.frame_height});
    if (!box.empty()) track.box = box;
    const bool inside = track.x >= 0 && track.y >= 0 && track.x < cells.frame_width && track.y < cells.frame_height;
    track.gone = track.id == 0 || !inside || box.empty() || moment.now - track.last >= rules_.hold;
  }
  const Visitor visitor{track.id, track.box, track.path};
  if (track.seen && !track.gone)
    track.visits.seen(visitor, rules, moment, events_);
  else
    track.visits.unseen(visitor, rules, moment, events_);
  if (track.gone) return track.visits.end(visitor, events_);
  const auto since = [&](std::uint64_t time) { return double(moment.now - time) / 1e9; };
  objects_.push_back(
      {track.id, track.box, track.area, track.score, since(track.first), since(track.last), !track.seen, track.visits.zones()});
}

void Tracker::finish() {
  for (Track& track : tracks_) track.visits.end({track.id, track.box, track.path}, events_);
  tracks_.clear();
  objects_.clear();
}

void Tracker::continue_from(Tracker& previous) {
  tracks_ = std::move(previous.tracks_);
  previous.tracks_.clear();
  objects_ = std::move(previous.objects_);
  now_ = previous.now_;
  last_id_ = std::max(last_id_, previous.last_id_);
  if (rules_.places == previous.rules_.places) return;
  for (Track& track : tracks_) track.visits.end({track.id, track.box, track.path}, previous.events_), track.visits = {};
}

std::vector<ObjectEvent> Tracker::take_events() { return std::exchange(events_, {}); }

}  // namespace cudavision::diff
