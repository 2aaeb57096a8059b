// SPDX-License-Identifier: LGPL-2.1-or-later
// The metas that cudadiff attaches.
#pragma once

#include <gst/gst.h>

#include <vector>

#include "kernels/diff/motion.hpp"

namespace cudavision {

/// Attaches regions of interest, which are in pixels of the uncropped frame.
void attach_rois(GstBuffer* buffer, const std::vector<diff::MotionRegion>& regions);

}  // namespace cudavision
