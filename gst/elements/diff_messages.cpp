// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/elements/diff_messages.hpp"

namespace cudavision {
namespace {

void set_regions(GstStructure* message, const diff::MotionRegions& regions) {
  std::vector<GstStructure*> list;
  for (const auto& [box, area, score] : regions.kept)
    list.push_back(gst_structure_new("region", "x", G_TYPE_INT, box.x, "y", G_TYPE_INT, box.y, "width", G_TYPE_INT, box.width,
                                     "height", G_TYPE_INT, box.height, "area", G_TYPE_UINT, guint(area), "score", G_TYPE_DOUBLE,
                                     score, nullptr));
  take_structures(message, "regions", list);
  gst_structure_set(message, "regions-left-out", G_TYPE_UINT, guint(regions.left_out), nullptr);
}

}  // namespace

GstStructure* motion_message(const Finding& finding, const char* event) {
  GstStructure* message = new_message("cudadiff", finding.times);
  gst_structure_set(message, "event", G_TYPE_STRING, event, "changed-ratio", G_TYPE_DOUBLE, finding.changed_ratio,
                    "mean-difference", G_TYPE_DOUBLE, finding.mean_difference, nullptr);
  set_regions(message, finding.regions);
  return message;
}

}  // namespace cudavision
