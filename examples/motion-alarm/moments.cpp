// SPDX-License-Identifier: LGPL-2.1-or-later
#include "moments.hpp"

#include <utility>

namespace {

GstClockTime time_of(const GstStructure* event) {
  guint64 time = GST_CLOCK_TIME_NONE;
  gst_structure_get_uint64(event, "timestamp", &time);
  return time;
}

GstClockTime time_of(const Sample& frame) { return GST_BUFFER_PTS(gst_sample_get_buffer(frame.get())); }

}  // namespace

bool Moments::is_pictured(const GstStructure* event) const {
  const gchar* kind = gst_structure_get_string(event, "event");
  return (pictures_ != Pictures::none && g_strcmp0(kind, "begin") == 0) ||
         (pictures_ == Pictures::of_motion && g_strcmp0(kind, "motion") == 0);
}

/// The frame of an event, or the newest frame if none has its time; nullptr if it has not arrived yet.
Sample Moments::frame_of(const GstStructure* event) const {
  const GstClockTime time = time_of(event), newest = time_of(frames_.back());
  const Sample* found = &frames_.back();
  if (GST_CLOCK_TIME_IS_VALID(time) && GST_CLOCK_TIME_IS_VALID(newest)) {
    if (time > newest) return nullptr;
    for (const Sample& frame : frames_)
      if (time_of(frame) == time) found = &frame;
  }
  return Sample(gst_sample_ref(found->get()));
}

void Moments::add(Event event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
}

std::vector<Moments::Moment> Moments::take(GstSample* frame) {
  const std::lock_guard lock(mutex_);
  frames_.emplace_back(gst_sample_ref(frame));
  ++count_;
  std::vector<Moment> moments;
  while (!events_.empty()) {
    Moment moment;
    if (is_pictured(events_.front().get()) && !(moment.frame = frame_of(events_.front().get()))) break;
    moment.event = std::move(events_.front());
    moment.number = count_ - 1;
    events_.pop_front();
    moments.push_back(std::move(moment));
  }
  while (frames_.size() > (pictures_ != Pictures::none ? kept_ : 0)) frames_.pop_front();
  return moments;
}

std::vector<Moments::Moment> Moments::rest() {
  const std::lock_guard lock(mutex_);
  std::vector<Moment> moments;
  for (Event& event : events_) {
    Moment moment;
    if (is_pictured(event.get()) && !frames_.empty()) moment.frame = frame_of(event.get());
    moment.event = std::move(event);
    moment.number = count_ - 1;
    moments.push_back(std::move(moment));
  }
  events_.clear();
  frames_.clear();
  return moments;
}
