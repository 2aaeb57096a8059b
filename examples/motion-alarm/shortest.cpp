// SPDX-License-Identifier: LGPL-2.1-or-later
#include "shortest.hpp"

namespace {

/// A time of a structure in seconds, if it is known.
std::optional<double> seconds_of(const GstStructure* event, const char* name) {
  guint64 time = GST_CLOCK_TIME_NONE;
  if (!gst_structure_get_uint64(event, name, &time) || time == GST_CLOCK_TIME_NONE) return {};
  return double(time) / GST_SECOND;
}

}  // namespace

bool Shortest::lasts(double seconds, double frame_time) const {
  const double least = double(least_->value) * (least_->in_frames ? frame_time : 1.0 / GST_SECOND);
  return seconds + 0.0005 >= least;
}

void Shortest::add(Moments::Moment moment) {
  const GstStructure* event = moment.event.get();
  const std::string kind = gst_structure_get_string(event, "event");
  const double time = seconds_of(event, "stream-time").value_or(0);
  const double frame_time = seconds_of(event, "duration").value_or(1.0 / 25);
  const bool of_object = gst_structure_has_field(event, "id");
  Key key;
  if (of_object) {
    gst_structure_get_uint(event, "id", &key.first);
    if (const char* zone = gst_structure_get_string(event, "zone")) key.second = zone;
  }
  const auto found = open_.find(key);
  std::shared_ptr<Held> held = found == open_.end() ? nullptr : found->second;
  if (kind == "begin" || kind == "enter")
    open_[key] = held =
        std::make_shared<Held>(Held{seconds_of(event, of_object ? "entered" : "stream-time").value_or(time), time, {}});
  const GValue* regions = gst_structure_get_value(event, "regions");
  if (kind == "motion" && held && regions && gst_value_array_get_size(regions) > 0) held->last = time;
  if (held && (kind == "end" || kind == "leave")) {
    double length = seconds_of(event, "last-motion").value_or(held->last) -
                    seconds_of(event, "began").value_or(held->began) + frame_time;
    if (of_object) gst_structure_get_double(event, "seconds", &length);
    if (!held->kept) held->kept = lasts(length, frame_time);
    open_.erase(key);
  }
  for (auto& [each, one] : open_)
    if (!one->kept && lasts(each.first ? time - hold_ - one->began : one->last - one->began + frame_time, frame_time))
      one->kept = true;
  const bool waits =
      of_object ? kind == "enter" || kind == "leave" : kind == "begin" || kind == "motion" || kind == "end";
  queue_.emplace_back(std::move(moment), waits ? held : nullptr);
}

std::vector<Moments::Moment> Shortest::pass(std::vector<Moments::Moment> moments) {
  if (!least_) return moments;
  std::vector<Moments::Moment> told;
  for (auto& moment : moments) add(std::move(moment));
  while (!queue_.empty() && (!queue_.front().second || queue_.front().second->kept)) {
    auto& [moment, held] = queue_.front();
    if (!held || *held->kept) told.push_back(std::move(moment));
    queue_.pop_front();
  }
  return told;
}
