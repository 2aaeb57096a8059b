// SPDX-License-Identifier: LGPL-2.1-or-later
// Types that the parts of cudadiff share.
#pragma once

#include <gst/gst.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/diff/diff.hpp"
#include "kernels/track/visits.hpp"

namespace cudavision {

/// The settings of cudadiff that the processor reads. The parameters of the kernels have the values of the properties.
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

/// Counts from the start of the element to its stop. They continue across changes of caps.
struct RunCounts {
  struct Crossings {
    guint left = 0, right = 0;
  };

  std::uint64_t last_id = 0;               ///< of an object
  std::map<std::string, Crossings> lines;  ///< by their names
};

}  // namespace cudavision
