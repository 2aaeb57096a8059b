// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/elements/diff_messages.hpp"

#include <algorithm>

namespace cudavision {
namespace {

void set_regions(GstStructure* message, const diff::MotionRegions& regions) {
  std::vector<GstStructure*> list;
  for (const auto& [box, area, score, structure] : regions.kept)
    list.push_back(gst_structure_new("region", "x", G_TYPE_INT, box.x, "y", G_TYPE_INT, box.y, "width", G_TYPE_INT,
                                     box.width, "height", G_TYPE_INT, box.height, "area", G_TYPE_UINT, guint(area),
                                     "score", G_TYPE_DOUBLE, score, nullptr));
  set_array(message, "regions", GST_TYPE_STRUCTURE, list, g_value_take_boxed);
  gst_structure_set(message, "regions-left-out", G_TYPE_UINT, guint(regions.left_out), nullptr);
}

}  // namespace

void FrameSums::add(const Finding& finding, bool on) {
  ++frames;
  motion_frames += on;
  changed += finding.changed_ratio;
  changed_max = std::max(changed_max, finding.changed_ratio);
}

void FrameSums::set(GstStructure* message) const {
  const double mean = frames ? changed / double(frames) : 0;
  gst_structure_set(message, "frames", G_TYPE_UINT64, frames, "motion-frames", G_TYPE_UINT64, motion_frames,
                    "changed-mean", G_TYPE_DOUBLE, mean, "changed-max", G_TYPE_DOUBLE, changed_max, nullptr);
}

GstStructure* motion_message(const Finding& finding, const char* event) {
  GstStructure* message = new_message("cudadiff", finding.times);
  gst_structure_set(message, "event", G_TYPE_STRING, event, "changed-ratio", G_TYPE_DOUBLE, finding.changed_ratio,
                    "mean-difference", G_TYPE_DOUBLE, finding.mean_difference, nullptr);
  set_regions(message, finding.regions);
  return message;
}

double seconds_between(const track::Moment& from, const track::Moment& to) {
  guint64 time = to.played - from.played;
  if (GST_CLOCK_TIME_IS_VALID(from.stamp) && GST_CLOCK_TIME_IS_VALID(to.stamp))
    time = std::min<guint64>(time, std::max(from.stamp, to.stamp) - std::min(from.stamp, to.stamp));
  return double(time) / GST_SECOND;
}

std::vector<std::string> names_of(const std::vector<int>& places, const std::vector<std::string>& names) {
  std::vector<std::string> picked;
  for (int place : places) picked.push_back(names[std::size_t(place)]);
  return picked;
}

void set_names(GstStructure* structure, const char* field, const std::vector<std::string>& names) {
  const auto set = [](GValue* value, const std::string& name) { g_value_set_string(value, name.c_str()); };
  set_array(structure, field, G_TYPE_STRING, names, set);
}

}  // namespace cudavision
