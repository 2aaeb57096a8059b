// SPDX-License-Identifier: LGPL-2.1-or-later
// The messages of cudadiff, and the metas that it attaches (diff_metas.cpp).
#pragma once

#include <string>
#include <vector>

#include "gst/base/processor.hpp"
#include "kernels/diff/diff.hpp"
#include "kernels/diff/motion.hpp"
#include "kernels/track/tracker.hpp"

namespace cudavision {

/// The result for one frame.
struct Finding {
  FrameTimes times;
  bool moves = false;
  diff::Cause cause = diff::Cause::none;
  int moved_x = 0, moved_y = 0;  ///< see diff::FrameResult
  double changed_ratio = 0, mean_difference = 0;
  diff::MotionRegions regions;
  diff::Cells cells;
};

/// Sums over the frames since the last message about a frame.
struct FrameSums {
  guint64 frames = 0, motion_frames = 0;
  double changed = 0, changed_max = 0;

  /// Adds a frame. `on`: whether there is motion, according to the property `motion`.
  void add(const Finding& finding, bool on);
  /// Sets the fields of a message.
  void set(GstStructure* message) const;
};

/// (transfer full) The message about a frame.
GstStructure* motion_message(const Finding& finding, const char* event);
/// The time from the first frame to the second one: the difference of their stamps, which are stream times, forwards or
/// backwards. If the timestamps jump by more than the time played between the frames, the result is the time played.
double seconds_between(const track::Moment& from, const track::Moment& to);
/// The names of these places.
std::vector<std::string> names_of(const std::vector<int>& places, const std::vector<std::string>& names);
/// Sets a field to a GstValueArray of strings.
void set_names(GstStructure* structure, const char* field, const std::vector<std::string>& names);

// Metas are in pixels of the uncropped frame: regions of interest and, since GStreamer 1.24, the same data as
// GstAnalyticsRelationMeta.

/// Attaches each region.
void attach_regions(GstBuffer* buffer, const std::vector<diff::MotionRegion>& regions);
/// Attaches each object. `zones` are the names of zones, `moment` is the moment of the frame.
void attach_objects(GstBuffer* buffer, const std::vector<track::TrackedObject>& objects,
                    const std::vector<std::string>& zones, const track::Moment& moment);

}  // namespace cudavision
