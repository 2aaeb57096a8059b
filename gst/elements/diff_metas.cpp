// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/elements/diff_metas.hpp"

#include "gst/base/frame.hpp"

namespace cudavision {

void attach_rois(GstBuffer* buffer, const std::vector<diff::MotionRegion>& regions) {
  const CropOrigin origin = crop_origin(buffer);
  for (const auto& [box, area, score] : regions) {
    auto* roi = gst_buffer_add_video_region_of_interest_meta(buffer, "motion", guint(origin.x + box.x), guint(origin.y + box.y),
                                                             guint(box.width), guint(box.height));
    gst_video_region_of_interest_meta_add_param(
        roi, gst_structure_new("motion", "score", G_TYPE_DOUBLE, score, "area", G_TYPE_UINT, guint(area), nullptr));
  }
}

}  // namespace cudavision
