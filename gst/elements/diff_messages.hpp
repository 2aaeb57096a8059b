// SPDX-License-Identifier: LGPL-2.1-or-later
// The messages of cudadiff.
#pragma once

#include "gst/base/processor.hpp"
#include "kernels/diff/motion.hpp"

namespace cudavision {

/// The result for one frame.
struct Finding {
  FrameTimes times;
  bool moves = false, light = false;
  double changed_ratio = 0, mean_difference = 0;
  diff::MotionRegions regions;
  diff::Cells cells;
};

/// (transfer full) The message about a frame.
GstStructure* motion_message(const Finding& finding, const char* event);

}  // namespace cudavision
