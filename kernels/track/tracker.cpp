// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/track/tracker.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/track/parts.hpp"

namespace cudavision::track {
namespace {

// Chosen like the constants of matching.cpp.
constexpr double place_gain = 0.4,
                 speed_gain = 0.1;  ///< gains of the filter, once an object has been seen often enough
constexpr double size_gain = 0.1;   ///< weight of the new size
/// Factor for speed and size while objects share a region, because its division is a guess.
constexpr double shared_gain = 0.5;
/// The maximum number of seconds between two frames for which travel counts towards the usual size.
constexpr double longest_step = 0.25;
/// The largest distance of an object from its predicted place, as a share of its width plus its predicted way.
constexpr double longest_jump = 0.5;

/// Whether a box is at the edge of the frame, or less than `near` pixels away from it.
bool touches_edge(const Rect& box, const diff::Cells& cells, int near) {
  return box.x < near || box.y < near || box.x + box.width > cells.frame_width - near ||
         box.y + box.height > cells.frame_height - near;
}

/// Whether an object at an edge of the frame moves out of the frame there.
bool leaves(const Rect& box, double speed_x, double speed_y, const diff::Cells& cells) {
  return (box.x <= 0 && speed_x < 0) || (box.y <= 0 && speed_y < 0) ||
         (box.x + box.width >= cells.frame_width && speed_x > 0) ||
         (box.y + box.height >= cells.frame_height && speed_y > 0);
}

/// Whether box a shows an object better than box b: not cut by the edge of the frame, and larger.
bool is_better(const Rect& a, const Rect& b, const diff::Cells& cells) {
  const auto is_whole = [&cells](const Rect& box) { return !touches_edge(box, cells, 1); };
  const auto size = [](const Rect& box) { return std::int64_t(box.width) * box.height; };
  return b.empty() || (is_whole(a) != is_whole(b) ? is_whole(a) : size(a) > size(b));
}

/// The time in ns after which an object that became background but is still seen counts as a new object. Decisions
/// affect the mask some frames later.
constexpr std::uint64_t forget_time = 2'000'000'000;
/// The time in ns after which an object that appeared inside the frame and does not move is confirmed. When the light
/// or the camera changes, parts of the picture look like such objects until the cause is found.
constexpr std::uint64_t doubt_time = 500'000'000;
/// The time in ns after a change of the camera or the light in which no object is confirmed, unless it is older than
/// `longest_doubt`: one change often follows another, and a camera that begins to turn may look like a change of the
/// light.
constexpr std::uint64_t settling_time = 1'500'000'000, longest_doubt = 1'000'000'000;

}  // namespace

Tracker::Tracker(const TrackRules& rules, std::uint64_t last_id) : rules_(rules), last_id_(last_id) {}

/// Updates an object with its match in this frame as a measurement.
void Tracker::apply_match(Track& track, const Match& match, const Moment& moment) {
  const double n = ++track.frames, trust = match.shared ? shared_gain : 1;
  // Least squares over all frames so far.
  const double by_place = std::max(place_gain, 2 * (2 * n - 1) / (n * (n + 1)));
  const double by_speed = std::max(speed_gain, 6 / (n * (n + 1))) * trust;
  const double by_size = std::max(size_gain, 1 / n) * trust;
  const double off_x = match.box.x + match.box.width / 2.0 - track.x,
               off_y = match.box.y + match.box.height / 2.0 - track.y;
  track.x += by_place * off_x, track.y += by_place * off_y;
  const double seconds = double(moment.now - track.last.now) / 1e9;
  const double way = std::hypot(track.speed_x, track.speed_y) * seconds;
  track.jumped =
      track.frames > 2 && std::hypot(off_x, off_y) > longest_jump * (std::max(track.box.width, match.box.width) + way);
  if (seconds > 0) track.speed_x += by_speed * off_x / seconds, track.speed_y += by_speed * off_y / seconds;
  track.width += by_size * (match.box.width - track.width);
  track.height += by_size * (match.box.height - track.height);
  track.path += std::hypot(track.x - track.seen_x, track.y - track.seen_y);
  track.seen_x = track.x, track.seen_y = track.y;
  track.box = match.box;
  track.area = match.area;
  track.score = match.score;
  if (match.shared) track.apart = 0;
  if (match.looks.known) track.portrait.learn(match.looks);
  track.last = moment;
  track.seen = true;
}

/// Decides whether an object stops, moves on, or becomes background.
void Tracker::judge(Track& track, const diff::Structure& structure, const diff::Cells& cells, const VisitRules& rules,
                    const Moment& moment) {
  using Kind = ObjectEvent::Kind;
  using Change = Presence::Change;
  if (track.is_background) return;
  if (is_better(track.box, track.best.box, cells)) track.best = {track.box, moment};
  const Change change = track.presence.update({track.box, structure, double(cells.cell_size)}, rules_.presence, moment);
  const auto tell = [&](Kind kind) {
    if (track.id > 0)
      events_.push_back(
          {kind, track.id, -1, track.box, moment, {}, 0, track.presence.rested(), {}, false, track.visits.zones()});
  };
  if (change == Change::stopped) tell(Kind::stopped);
  if (change == Change::moves) tell(Kind::moving);
  if (change != Change::ghost && change != Change::light && change != Change::absorbed) return;
  if (change == Change::ghost && !track.presence.travelled()) {
    if (track.id == 0 && is_established(track)) confirm(track, rules, moment);
    tell(Kind::removed);
  }
  track.is_background = true;
  track.taken = moment.now;
  track.visits.end({track.id, track.box, track.path, track.best}, events_);
}

/// Confirms an object immediately, and reports its visits.
void Tracker::confirm(Track& track, const VisitRules& rules, const Moment& moment) {
  track.id = ++last_id_;
  track.visits.seen({track.id, track.box, track.path, track.best}, rules, moment, events_);
}

std::vector<diff::Learning> Tracker::learning(const diff::Cells& cells) const {
  std::vector<diff::Learning> map = lanes_.steady();
  const int size = cells.cell_size, width = divide_up(cells.frame_width, size),
            height = divide_up(cells.frame_height, size);
  const auto decide = [&](const Rect& box, diff::Learning decision) {
    map.resize(std::size_t(width) * height, diff::Learning::usual);
    // Includes a cell around it, for its shadow and its parts below the threshold.
    const int left = std::max(0, box.x / size - 1), right = std::min(width - 1, (box.x + box.width - 1) / size + 1);
    const int top = std::max(0, box.y / size - 1), bottom = std::min(height - 1, (box.y + box.height - 1) / size + 1);
    for (int y = top; y <= bottom; ++y)
      for (int x = left; x <= right; ++x) {
        diff::Learning& cell = map[std::size_t(y) * width + x];
        cell = diff::Learning(int(decision) | (int(cell) & int(diff::Learning::steady)));  // a lane remains a lane
      }
  };
  // If both are present, an object is in front of a ghost.
  for (const Rect& box : light_.lasting()) decide(box, diff::Learning::take);
  for (const Track& track : tracks_)
    if (track.is_background && track.seen) decide(track.box, diff::Learning::take);
  for (const Track& track : tracks_)
    if (!track.is_background && track.believed && track.presence.certain()) decide(track.box, diff::Learning::hold);
  return map;
}

void Tracker::advance(const diff::MotionRegions& found, const diff::Cells& cells, const Moment& moment, bool changes) {
  const double seconds = double(moment.now - now_) / 1e9;
  now_ = moment.now;
  if (changes) settled_ = now_ + settling_time;
  const VisitRules rules{rules_.places, rules_.hold, cells.cell_size / 2.0};
  std::vector<Expected> expected;
  for (Track& track : tracks_) {
    track.x += track.speed_x * seconds, track.y += track.speed_y * seconds;
    track.apart += seconds;
    expected.push_back({track.x - track.width / 2, track.y - track.height / 2, track.x + track.width / 2,
                        track.y + track.height / 2, track.frames, track.believed, track.seen,
                        double(moment.now - track.last.now) / 1e9, track.apart, &track.portrait,
                        leaves(track.box, track.speed_x, track.speed_y, cells)});
  }
  const Matches matches = match(expected, found, cells, max_objects, sizes_);
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    Track& track = tracks_[i];
    const Match& matched = matches.objects[i];
    track.seen = false;
    track.gone = matched.dropped;
    track.fragment = matched.fragment;
    if (matched.found) apply_match(track, matched, moment), judge(track, matched.structure, cells, rules, moment);
  }
  for (const diff::MotionRegion& seen : matches.unmatched) {
    if (tracks_.size() >= max_objects) break;
    const Rect& box = seen.box;
    Track track;
    track.x = track.seen_x = box.x + box.width / 2.0, track.y = track.seen_y = box.y + box.height / 2.0;
    track.width = box.width, track.height = box.height;
    track.box = box, track.area = seen.area, track.score = seen.score;
    track.first = track.last = moment;
    track.frames = 1;
    track.number = ++last_number_;
    track.came_in = touches_edge(box, cells, cells.cell_size);
    judge(track, seen.structure, cells, rules, moment);
    tracks_.push_back(std::move(track));
  }
  join_pieces(cells);
  light_.advance(found.light, cells.cell_size, now_);
  lanes_.begin_frame(cells, seconds);
  sizes_.begin_frame(cells.frame_height);
  for (const Track& track : tracks_)
    if (track.seen && track.believed && !track.is_background && track.presence.away() && !track.presence.stopped()) {
      lanes_.add(track.box);
      if (track.id > 0 && !track.jumped && !touches_edge(track.box, cells, 1))
        sizes_.add(track.box, std::hypot(track.speed_x, track.speed_y) * std::min(seconds, longest_step));
    }
  objects_.clear();
  for (Track& track : tracks_) report(track, cells, rules, moment);
  tracks_.erase(std::remove_if(tracks_.begin(), tracks_.end(), [](const Track& track) { return track.gone; }),
                tracks_.end());
}

/// Joins objects with the older objects whose pieces they are. While this is possible, an object is not confirmed.
void Tracker::join_pieces(const diff::Cells& cells) {
  const auto counts = [](const Track& track) { return track.seen && !track.gone && !track.is_background; };
  const auto are_pieces = [&](const Rect& a, const Rect& b) {
    return are_stacked(a, b, cells.cell_size) || (sizes_.fits(diff::around(a, b)) && !beside(a, b));
  };
  for (auto piece = tracks_.begin(); piece != tracks_.end(); ++piece) {
    if (!counts(*piece)) continue;
    const auto whole = std::find_if(tracks_.begin(), piece, [&](const Track& older) {
      return counts(older) && (older.believed || !piece->believed) && are_pieces(older.box, piece->box);
    });
    if (whole == piece) continue;
    const Rect both = diff::around(whole->box, piece->box);
    piece->fragment |= may_be_one({whole->speed_x, whole->speed_y}, {piece->speed_x, piece->speed_y}, both.width);
    if (!piece->companion.are_one(whole->number, {whole->x, whole->y, piece->x, piece->y}, both.width, now_,
                                  piece->first.now))
      continue;
    const auto join = [](double& centre, double& side, double other_centre, double other_side) {
      const double first = std::min(centre - side / 2, other_centre - other_side / 2);
      const double last = std::max(centre + side / 2, other_centre + other_side / 2);
      centre = (first + last) / 2, side = last - first;
    };
    join(whole->x, whole->width, piece->x, piece->width), join(whole->y, whole->height, piece->y, piece->height);
    whole->seen_x = whole->x, whole->seen_y = whole->y;
    if (piece->box.y + piece->box.height > whole->box.y + whole->box.height) whole->visits.take_sides(piece->visits);
    whole->box = both, whole->area += piece->area;
    piece->gone = true;
  }
}

/// Determines whether an object is still there, which places it visits, and its values in this frame.
void Tracker::report(Track& track, const diff::Cells& cells, const VisitRules& rules, const Moment& moment) {
  if (track.is_background) {
    track.gone = track.gone || !track.seen || moment.now - track.taken >= forget_time;
    return;
  }
  const std::uint64_t age = moment.now - track.first.now;
  const bool rests = !track.came_in && !track.presence.moved(), patient = rules_.min_frames > 1;
  track.believed = track.believed || (is_established(track) && !(patient && rests && age < doubt_time));
  const bool unsettled = patient && moment.now < settled_ && age < longest_doubt;
  if (track.seen && track.id == 0 && track.believed && is_established(track) && !unsettled) track.id = ++last_id_;
  if (!track.seen && !track.gone) {
    const auto rounded = [](double value) { return int(std::lround(std::clamp(value, -1e6, 1e6))); };
    const int left = rounded(track.x - track.width / 2), top = rounded(track.y - track.height / 2);
    const Rect box =
        intersection({left, top, rounded(track.x + track.width / 2) - left, rounded(track.y + track.height / 2) - top},
                     {0, 0, cells.frame_width, cells.frame_height});
    if (!box.empty()) track.box = box;
    const bool inside = track.x >= 0 && track.y >= 0 && track.x < cells.frame_width && track.y < cells.frame_height;
    track.gone = !track.believed || !inside || box.empty() || moment.now - track.last.now >= rules_.hold;
  }
  const Visitor visitor{track.id, track.box, track.path, track.best, track.speed_x, track.speed_y, track.jumped};
  if (track.seen && !track.gone)
    track.visits.seen(visitor, rules, moment, events_);
  else
    track.visits.unseen(visitor, rules, moment, events_);
  if (track.gone) return track.visits.end(visitor, events_);
  if (!track.seen && track.id == 0) return;
  objects_.push_back({track.id, track.box, track.area, track.score, track.first, track.last, !track.seen,
                      track.presence.stopped(), track.visits.zones()});
}

void Tracker::passed(std::uint64_t now) {
  const VisitRules rules{rules_.places, rules_.hold};
  for (Track& track : tracks_) {
    if (track.is_background) continue;
    const Visitor visitor{track.id, track.box, track.path, track.best, track.speed_x, track.speed_y};
    track.visits.passed(visitor, rules, now_, now, events_);
    track.gone = !track.seen && now - track.last.now >= rules_.hold;
    if (track.gone) track.visits.end(visitor, events_);
  }
  tracks_.erase(std::remove_if(tracks_.begin(), tracks_.end(), [](const Track& track) { return track.gone; }),
                tracks_.end());
}

void Tracker::finish() {
  for (Track& track : tracks_) track.visits.end({track.id, track.box, track.path, track.best}, events_);
  tracks_.clear();
  objects_.clear();
  settled_ = 0;
  lanes_ = {};
  sizes_ = {};
  light_ = {};
}

void Tracker::continue_from(Tracker& previous) {
  tracks_ = std::move(previous.tracks_);
  previous.tracks_.clear();
  objects_ = std::move(previous.objects_);
  lanes_ = std::move(previous.lanes_);
  sizes_ = previous.sizes_;
  light_ = std::move(previous.light_);
  now_ = previous.now_;
  settled_ = previous.settled_;
  last_id_ = std::max(last_id_, previous.last_id_);
  last_number_ = previous.last_number_;
  if (rules_.places == previous.rules_.places) return;
  for (Track& track : tracks_)
    track.visits.end({track.id, track.box, track.path, track.best}, previous.events_), track.visits = {};
}

std::vector<ObjectEvent> Tracker::take_events() { return std::exchange(events_, {}); }

}  // namespace cudavision::track
