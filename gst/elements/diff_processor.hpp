// SPDX-License-Identifier: LGPL-2.1-or-later
// The processing of each frame in cudadiff.
#pragma once

#include <gst/video/video.h>

#include <memory>

#include "gst/base/processor.hpp"
#include "gst/elements/diff_settings.hpp"

namespace cudavision {

/// The read-only properties of cudadiff.
struct MotionReadings {
  double changed_ratio = 0;
  bool motion = false;
};
/// Sets them. Defined with the properties, in diff.cpp.
void publish_readings(GstElement* element, const MotionReadings& readings);

/// The data that a processor needs in addition to the plan of its kernels.
struct DiffContext {
  MotionSettings settings;
  NamedPlaces places;
  const GstVideoInfo& video;
  std::shared_ptr<RunCounts> counts;
  Processor* previous;  ///< whose state continues: from diff_processor(), for the same video; or nullptr
};

/// Compares frames with `diff`, and reports what moves.
std::unique_ptr<Processor> diff_processor(std::unique_ptr<diff::Diff> diff, DiffContext context);

}  // namespace cudavision
