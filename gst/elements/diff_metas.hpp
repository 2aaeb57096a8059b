// SPDX-License-Identifier: LGPL-2.1-or-later
// The metas that cudadiff attaches, in pixels of the uncropped frame: regions of interest and, from GStreamer 1.24 on,
// the same data as GstAnalyticsRelationMeta.
#pragma once

#include <gst/gst.h>

#include <string>
#include <vector>

#include "kernels/track/tracker.hpp"

namespace cudavision {

/// Attaches each region.
void attach_regions(GstBuffer* buffer, const std::vector<diff::MotionRegion>& regions);
/// Attaches each object. `zones` are the names of zones, `moment` is the moment of the frame.
void attach_objects(GstBuffer* buffer, const std::vector<track::TrackedObject>& objects,
                    const std::vector<std::string>& zones, const track::Moment& moment);

}  // namespace cudavision
