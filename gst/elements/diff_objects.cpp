// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/elements/diff_objects.hpp"

#include "gst/elements/diff_messages.hpp"

namespace cudavision {

Objects::Objects(const MotionSettings& settings, NamedPlaces places, std::shared_ptr<RunCounts> counts)
    : places_(std::move(places)), counts_(std::move(counts)) {
  if (!settings.track) return;
  track::TrackRules rules;
  rules.min_frames = int(settings.track_min_frames);
  rules.hold = guint64(settings.track_hold * GST_SECOND);
  rules.places = places_.places;
  rules.presence = {guint64(settings.still_time * GST_SECOND),
                    guint64(is_adaptive(settings) ? settings.absorb_time * GST_SECOND : 0), is_adaptive(settings)};
  tracker_.emplace(rules, counts_->last_id);
}

void Objects::continue_from(Objects& previous) {
  if (!on())
    previous.finish();
  else if (previous.on())
    tracker_->continue_from(*previous.tracker_);
  previous.collect();
  said_ = std::move(previous.said_);
}

void Objects::advance(const diff::MotionRegions& regions, const diff::Cells& cells, const track::Moment& moment,
                      bool changes) {
  if (!on()) return;
  tracker_->advance(regions, cells, moment, changes);
  collect();
}

void Objects::passed(GstClockTime now) {
  if (!on()) return;
  tracker_->passed(now);
  collect();
}

void Objects::finish() {
  if (!on()) return;
  tracker_->finish();
  collect();
}

/// Stores the state of the tracker, under the current names.
void Objects::collect() {
  if (!on()) return;
  counts_->last_id = tracker_->last_id();
  for (const track::ObjectEvent& event : tracker_->take_events()) {
    Said said{event, {}, {}, names_of(event.zones, places_.zones)};
    if (event.kind == track::ObjectEvent::Kind::cross) {
      said.place = places_.lines[std::size_t(event.place)];
      RunCounts::Crossings& counts = counts_->lines[said.place];
      ++(event.to_right ? counts.right : counts.left);
      said.counts = counts;
    } else if (event.place >= 0) {
      said.place = places_.zones[std::size_t(event.place)];
    }
    said_.push_back(std::move(said));
  }
}

std::vector<GstStructure*> Objects::take_messages(const FrameTimes& times) {
  using Kind = track::ObjectEvent::Kind;
  std::vector<GstStructure*> messages;
  for (const auto& [event, place, counts, zones] : std::exchange(said_, {})) {
    GstStructure* message = new_message("cudadiff", times);
    const char* const names[] = {"enter", "leave", "cross", "stopped", "moving", "removed"};  // in the order of Kind
    const Rect& box = event.box;
    gst_structure_set(message, "event", G_TYPE_STRING, names[int(event.kind)], "id", G_TYPE_UINT, guint(event.id), "x",
                      G_TYPE_INT, box.x, "y", G_TYPE_INT, box.y, "width", G_TYPE_INT, box.width, "height", G_TYPE_INT,
                      box.height, nullptr);
    if (event.kind == Kind::cross) {
      gst_structure_set(message, "line", G_TYPE_STRING, place.c_str(), "direction", G_TYPE_STRING,
                        event.to_right ? "right" : "left", "crossed-left", G_TYPE_UINT, counts.left, "crossed-right",
                        G_TYPE_UINT, counts.right, nullptr);
    } else if (event.kind == Kind::stopped || event.kind == Kind::moving || event.kind == Kind::removed) {
      set_names(message, "zones", zones);
      if (event.kind != Kind::removed)
        gst_structure_set(message, "since", G_TYPE_UINT64, guint64(event.rested.stamp), nullptr);
    } else {
      if (!place.empty()) gst_structure_set(message, "zone", G_TYPE_STRING, place.c_str(), nullptr);
      gst_structure_set(message, "entered", G_TYPE_UINT64, guint64(event.entered.stamp), nullptr);
    }
    if (event.kind == Kind::leave)
      gst_structure_set(message, "left", G_TYPE_UINT64, guint64(event.left.stamp), "seconds", G_TYPE_DOUBLE,
                        seconds_between(event.entered, event.left), "path-length", G_TYPE_DOUBLE, event.path,
                        "best-time", G_TYPE_UINT64, guint64(event.best.at.stamp), "best-x", G_TYPE_INT,
                        event.best.box.x, "best-y", G_TYPE_INT, event.best.box.y, "best-width", G_TYPE_INT,
                        event.best.box.width, "best-height", G_TYPE_INT, event.best.box.height, nullptr);
    messages.push_back(message);
  }
  return messages;
}

}  // namespace cudavision
