// SPDX-License-Identifier: LGPL-2.1-or-later
// The objects of cudadiff: a tracker with the names of its places, and the messages about the objects.
#pragma once

#include <memory>
#include <optional>

#include "gst/elements/diff_processor.hpp"
#include "kernels/track/tracker.hpp"

namespace cudavision {

class Objects {
 public:
  /// `counts` continues across runs of frames.
  Objects(const MotionSettings& settings, NamedPlaces places, std::shared_ptr<RunCounts> counts);
  /// Takes over the objects that `previous` followed in the same video with other settings, and its pending messages.
  void continue_from(Objects& previous);

  /// Whether objects are followed. If not, there are no objects and no messages.
  bool on() const { return tracker_.has_value(); }
  /// Advances to the next frame. The stamp of the frame's moment is its stream time. changes: see track::Tracker.
  void advance(const diff::MotionRegions& regions, const diff::Cells& cells, const track::Moment& moment, bool changes);
  /// No frame arrived before `now`; see track::Tracker::passed().
  void passed(GstClockTime now);
  /// Ends a run of frames: all objects leave.
  void finish();

  const std::vector<track::TrackedObject>& objects() const { return tracker_->objects(); }
  /// What the background may learn after the last frame; see track::Tracker::learning().
  std::vector<diff::Learning> learning(const diff::Cells& cells) const {
    return on() ? tracker_->learning(cells) : std::vector<diff::Learning>();
  }
  const std::vector<std::string>& zones() const { return places_.zones; }
  /// (transfer full) The messages since the last call. `times`: the times of the frame to which they belong.
  std::vector<GstStructure*> take_messages(const FrameTimes& times);

 private:
  struct Said {
    track::ObjectEvent event;
    std::string place;               ///< the name of the zone or the line; empty: the event concerns the frame
    RunCounts::Crossings counts;     ///< of the line
    std::vector<std::string> zones;  ///< the names of event.zones
  };

  void collect();

  NamedPlaces places_;
  std::shared_ptr<RunCounts> counts_;
  std::optional<track::Tracker> tracker_;
  std::vector<Said> said_;
};

}  // namespace cudavision
