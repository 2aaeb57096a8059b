// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/elements/diff_metas.hpp"

#include "gst/base/frame.hpp"

namespace cudavision {
namespace {

/// Attaches a box in pixels of the picture. Returns the structure that describes it, which the meta owns.
GstStructure* attach(GstBuffer* buffer, CropOrigin origin, const Rect& box, int id, double score, int area) {
  auto* roi = gst_buffer_add_video_region_of_interest_meta(buffer, "motion", guint(origin.x + box.x), guint(origin.y + box.y),
                                                           guint(box.width), guint(box.height));
  roi->id = id;
  GstStructure* motion = gst_structure_new("motion", "score", G_TYPE_DOUBLE, score, "area", G_TYPE_UINT, guint(area), nullptr);
  gst_video_region_of_interest_meta_add_param(roi, motion);
  return motion;
}

/// Sets a field to a GstValueArray of strings.
void set_names(GstStructure* structure, const char* field, const std::vector<int>& places, const std::vector<std::string>& names) {
  GValue list = G_VALUE_INIT;
  gst_value_array_init(&list, guint(places.size()));
  for (int place : places) {
    GValue name = G_VALUE_INIT;
    g_value_init(&name, G_TYPE_STRING);
    g_value_set_string(&name, names[std::size_t(place)].c_str());
    gst_value_array_append_and_take_value(&list, &name);
  }
  gst_structure_take_value(structure, field, &list);
}

}  // namespace

void attach_regions(GstBuffer* buffer, const std::vector<diff::MotionRegion>& regions) {
  const CropOrigin origin = crop_origin(buffer);
  for (const auto& [box, area, score] : regions) attach(buffer, origin, box, 0, score, area);
}

void attach_objects(GstBuffer* buffer, const std::vector<diff::TrackedObject>& objects, const std::vector<std::string>& zones) {
  const CropOrigin origin = crop_origin(buffer);
  for (const diff::TrackedObject& object : objects) {
    GstStructure* motion = attach(buffer, origin, object.box, int(object.id), object.score, object.area);
    gst_structure_set(motion, "id", G_TYPE_UINT, guint(object.id), "age", G_TYPE_DOUBLE, object.age, "confirmed", G_TYPE_BOOLEAN,
                      object.id > 0, "held", G_TYPE_BOOLEAN, object.held, nullptr);
    set_names(motion, "zones", object.zones, zones);
  }
}

}  // namespace cudavision
