// SPDX-License-Identifier: LGPL-2.1-or-later
// The output of cudahistogram: statistics of channels, sums over time intervals, messages.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "gst/base/frame.hpp"
#include "gst/base/processor.hpp"
#include "gst/meta/histogram_meta.h"
#include "kernels/histogram/histogram.hpp"
#include "kernels/histogram/sharpness.hpp"
#include "kernels/histogram/watch.hpp"

namespace cudavision {

/// The statistics of counts. The result points into `counts`.
std::vector<GstCudaVisionHistogramChannel> describe(const histogram::Counts& counts, int depth);

/// The sum of the counts of the frames for one message.
class HistogramSum {
 public:
  /// Adds the counts of the frame that was submitted `age` submits ago. `luma`: of the same frame; nullptr if not
  /// measured.
  void add(const histogram::Histogram& histogram, int age, const histogram::LumaSums* luma, const FrameTimes& times);
  bool empty() const { return frames_ == 0; }
  /// Posts a message if frames were added, and starts a new sum.
  void post(GstElement* element);

 private:
  GstStructure* message() const;

  int depth_ = 8;
  guint64 frames_ = 0;
  FrameTimes first_;  ///< times of the first frame
  /// When the first frame begins and the last frame ends, as timestamps.
  GstClockTime begin_ = GST_CLOCK_TIME_NONE, end_ = GST_CLOCK_TIME_NONE;
  histogram::Counts counts_;
  std::optional<histogram::LumaSums> luma_;
};

/// Divides time into consecutive intervals, beginning with the first frame. The frames of an interval are added up.
class Intervals {
 public:
  explicit Intervals(GstClockTime length) : length_(length) {}

  /// Whether a frame is the first one of an interval other than the first interval.
  bool begins(const FrameTimes& frame) {
    const GstClockTime now = time(frame);
    if (!GST_CLOCK_TIME_IS_VALID(now)) return false;
    if (!GST_CLOCK_TIME_IS_VALID(begin_) || now < begin_) {
      const bool back = GST_CLOCK_TIME_IS_VALID(begin_);
      begin_ = now;
      return back;
    }
    if (length_ == 0 || now - begin_ < length_) return false;
    begin_ += (now - begin_) / length_ * length_;
    return true;
  }

  /// Whether this frame, the newest, is probably the last one of its interval.
  bool ends(const FrameTimes& frame) {
    if (length_ == 0) return true;
    const GstClockTime now = time(frame), before = std::exchange(last_, now);
    if (!GST_CLOCK_TIME_IS_VALID(now) || !GST_CLOCK_TIME_IS_VALID(frame.duration)) return false;
    // In fast playback, the time between frames is shorter than their durations.
    const GstClockTime step = before < now ? std::min(now - before, frame.duration) : frame.duration;
    return now + step - begin_ >= length_;
  }

  Intervals with_length(GstClockTime length) const {
    Intervals other = *this;
    other.length_ = length;
    return other;
  }
  void restart() { begin_ = last_ = GST_CLOCK_TIME_NONE; }

 private:
  static GstClockTime time(const FrameTimes& frame) {
    return GST_CLOCK_TIME_IS_VALID(frame.running_time) ? frame.running_time : frame.timestamp;
  }

  GstClockTime length_;
  GstClockTime begin_ = GST_CLOCK_TIME_NONE, last_ = GST_CLOCK_TIME_NONE;  // start of the interval; last frame
};

/// Watches the frames of a camera, and posts the beginning and the end of conditions. A new plan takes it over.
class CameraWatch {
 public:
  /// Judges the next frame. `seconds`: the property watch-time.
  void update(const histogram::LumaSums& luma, const GstVideoInfo& video, double seconds, const FrameTimes& times,
              GstElement* element);
  /// Ends the current conditions, and forgets all frames.
  void end(GstElement* element);

 private:
  void post(const std::vector<histogram::Change>& changes, GstElement* element) const;

  histogram::Watch watch_;
  FrameTimes last_;  ///< times of the last frame
};

}  // namespace cudavision
