// SPDX-License-Identifier: LGPL-2.1-or-later
// What cudadiff does with each frame.
#pragma once

#include <gst/video/video.h>

#include <memory>

#include "gst/base/processor.hpp"
#include "kernels/diff/diff.hpp"

namespace cudavision {

/// What the processor reads of the settings of cudadiff.
struct MotionSettings {
  int output = int(diff::Output::difference);  ///< a diff::Output
  guint min_area = 1, max_area = G_MAXINT, region_distance = 1, max_regions = 256, min_motion_frames = 1;
  double cell_threshold = 0.2, motion_threshold = 0, gap = 5;
  bool post_messages = true, attach_roi = true;
  guint64 message_interval = 0;

  diff::RegionRules regions() const { return {cell_threshold, int(region_distance), int(min_area), int(max_area), max_regions}; }
};

/// The read-only properties of cudadiff.
struct MotionReadings {
  double changed_ratio = 0;
  bool motion = false;
};
/// Sets them. Defined with the properties, in diff.cpp.
void publish_readings(GstElement* element, const MotionReadings& readings);

/// Compares frames with `diff`, and reports what moves. It goes on from `previous`, if that is not nullptr: a processor that this
/// function made for the same video.
std::unique_ptr<Processor> diff_processor(std::unique_ptr<diff::Diff> diff, const MotionSettings& settings,
                                          const GstVideoInfo& video, Processor* previous);

}  // namespace cudavision
