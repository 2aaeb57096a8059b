// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/elements/histogram_messages.hpp"

namespace cudavision {

std::vector<GstCudaVisionHistogramChannel> describe(const histogram::Counts& counts, int depth) {
  std::vector<GstCudaVisionHistogramChannel> channels;
  for (const histogram::ChannelCounts& channel : counts) {
    const histogram::Statistics s = histogram::statistics(channel.counts, depth);
    channels.push_back({channel.name,
                        channel.counts.data(),
                        s.count,
                        s.min,
                        s.max,
                        s.mean,
                        s.deviation,
                        s.median,
                        s.p01,
                        s.p99,
                        s.entropy,
                        s.saturated,
                        {}});
  }
  return channels;
}

void HistogramSum::add(const histogram::Histogram& histogram, int age, const histogram::LumaSums* luma,
                       const FrameTimes& times) {
  if (frames_++ == 0) {
    depth_ = info(histogram.geometry().format).depth;
    first_ = times;
  }
  histogram.add_result(counts_, age);
  if (luma) {
    if (!luma_) luma_.emplace();
    luma_->add(*luma);
  }
  if (!GST_CLOCK_TIME_IS_VALID(times.timestamp)) return;
  const GstClockTime last = times.timestamp + (GST_CLOCK_TIME_IS_VALID(times.duration) ? times.duration : 0);
  begin_ = std::min(begin_, times.timestamp);  // GST_CLOCK_TIME_NONE is the largest value
  end_ = GST_CLOCK_TIME_IS_VALID(end_) ? std::max(end_, last) : last;
}

void HistogramSum::post(GstElement* element) {
  if (!empty()) post_message(element, message());
  *this = {};
}

/// (transfer full) The structure of the message.
GstStructure* HistogramSum::message() const {
  FrameTimes times = first_;
  if (frames_ > 1) times.duration = GST_CLOCK_TIME_IS_VALID(end_) ? end_ - begin_ : GST_CLOCK_TIME_NONE;
  GstStructure* structure = new_message("cudahistogram", times);
  gst_structure_set(structure, "frames", G_TYPE_UINT64, frames_, "bins", G_TYPE_UINT, guint(counts_[0].counts.size()),
                    "depth", G_TYPE_UINT, guint(depth_), nullptr);
  std::vector<GstStructure*> channels;
  for (const GstCudaVisionHistogramChannel& channel : describe(counts_, depth_)) {
    GstStructure* fields = gst_structure_new(
        "channel", "name", G_TYPE_STRING, channel.name, "count", G_TYPE_UINT64, channel.count, "min", G_TYPE_DOUBLE,
        channel.min, "max", G_TYPE_DOUBLE, channel.max, "mean", G_TYPE_DOUBLE, channel.mean, "deviation", G_TYPE_DOUBLE,
        channel.deviation, "median", G_TYPE_DOUBLE, channel.median, "p01", G_TYPE_DOUBLE, channel.p01, "p99",
        G_TYPE_DOUBLE, channel.p99, "entropy", G_TYPE_DOUBLE, channel.entropy, "saturated", G_TYPE_DOUBLE,
        channel.saturated, nullptr);
    set_array(fields, "counts", G_TYPE_UINT64, counts_[channels.size()].counts, g_value_set_uint64);
    channels.push_back(fields);
  }
  set_array(structure, "channels", GST_TYPE_STRUCTURE, channels, g_value_take_boxed);
  if (luma_) gst_structure_set(structure, "sharpness", G_TYPE_DOUBLE, histogram::sharpness_of(*luma_, depth_), nullptr);
  return structure;
}

void CameraWatch::update(const histogram::LumaSums& luma, const GstVideoInfo& video, double seconds,
                         const FrameTimes& times, GstElement* element) {
  if (luma.pixels == 0) return;  // a region without pixels has no luma
  const bool full = range_of(video) == GST_VIDEO_COLOR_RANGE_0_255;
  const double black = full ? 0 : 16, white = full ? 255 : 235;
  const int depth = GST_VIDEO_INFO_COMP_DEPTH(&video, 0);
  histogram::Look look;
  look.brightness = (histogram::mean_of(luma, depth) - black) / (white - black);
  look.deviation = histogram::deviation_of(luma, depth);
  look.sharpness = histogram::sharpness_of(luma, depth);
  if (luma.compared) look.difference = histogram::difference_of(luma, depth);
  const GstClockTime now = times.running_time, before = std::exchange(last_, times).running_time,
                     usual = time_between_frames(video);
  if (GST_CLOCK_TIME_IS_VALID(now) && GST_CLOCK_TIME_IS_VALID(before) && now >= before)
    look.step = now - before;
  else
    look.step = GST_CLOCK_TIME_IS_VALID(usual) ? usual : GST_SECOND / 25;
  look.time = now;
  post(watch_.update(look, {seconds}), element);
}

void CameraWatch::end(GstElement* element) {
  post(watch_.end(), element);
  last_ = {};
}

void CameraWatch::post(const std::vector<histogram::Change>& changes, GstElement* element) const {
  for (const histogram::Change& change : changes) {
    GstStructure* message = new_message("cudahistogram-watch", last_);
    gst_structure_set(message, "condition", G_TYPE_STRING, histogram::name_of(change.condition), "event", G_TYPE_STRING,
                      change.begins ? "begin" : "end", "since", G_TYPE_UINT64, change.since, "value", G_TYPE_DOUBLE,
                      change.value, "limit", G_TYPE_DOUBLE, change.limit, nullptr);
    post_message(element, message);
  }
}

}  // namespace cudavision
