// SPDX-License-Identifier: LGPL-2.1-or-later
// The processing of each frame in cudadiff, and the data that it needs from the properties.
#pragma once

#include <gst/video/video.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gst/base/processor.hpp"
#include "kernels/diff/diff.hpp"
#include "kernels/track/visits.hpp"

namespace cudavision {

/// The settings of cudadiff that the processor reads. The parameters of the kernels hold the values of the properties.
struct MotionSettings : diff::Params {
  guint min_area = 1, max_area = G_MAXINT, region_distance = 1, max_regions = 256, min_motion_frames = 1,
        track_min_frames = 3;
  double motion_threshold = 0, gap = 5, track_hold = 1, forget_after = 60, still_time = 10, absorb_time = 300;
  bool post_messages = true, attach_roi = true, track = true;
  guint64 message_interval = 0;

  diff::RegionRules regions() const {
    return {cell_threshold, int(region_distance), int(min_area), int(max_area), max_regions};
  }
};

/// Zones and lines in pixels of the frame, with their names.
struct NamedPlaces {
  track::Places places;
  std::vector<std::string> zones, lines;
};

/// Counts from the start of the element until it stops. They continue across changes of caps.
struct RunCounts {
  struct Crossings {
    guint left = 0, right = 0;
  };

  std::uint64_t last_id = 0;               ///< the last id of an object
  std::map<std::string, Crossings> lines;  ///< by name
};

/// The read-only properties of cudadiff.
struct MotionReadings {
  double changed_ratio = 0;
  bool motion = false;
};
/// Sets these properties. Defined with the properties, in diff.cpp.
void publish_readings(GstElement* element, const MotionReadings& readings);

/// The data that a processor needs in addition to the plan of its kernels.
struct DiffContext {
  MotionSettings settings;
  NamedPlaces places;
  const GstVideoInfo& video;
  std::shared_ptr<RunCounts> counts;
  Processor* previous;  ///< the previous diff_processor() for the same video, whose state continues; or nullptr
};

/// Compares frames with `diff`, and reports motion.
std::unique_ptr<Processor> diff_processor(std::unique_ptr<diff::Diff> diff, DiffContext context);

}  // namespace cudavision
