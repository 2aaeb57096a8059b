// SPDX-License-Identifier: LGPL-2.1-or-later
// GstCudaVisionMixer: caps events, segments, seeks and navigation.
#include <algorithm>
#include <string>
#include <utility>

#include "gst/base/mixer/video_mixer_private.hpp"

namespace cudavision::video_mixer {

// Downstream events ---------------------------------------------------------------------------------------------------

namespace {

/// Whether the base class accepts this interlace mode: it must be the mode of the output or, if there is no output yet,
/// of the other pads.
bool is_taken(GstCudaVisionMixer* self, GstVideoInterlaceMode mode) {
  const GstVideoInfo& output = GST_VIDEO_AGGREGATOR(self)->info;
  if (is_set(output)) return GST_VIDEO_INFO_INTERLACE_MODE(&output) == mode;
  const Inputs inputs(self);
  return std::all_of(inputs.list().begin(), inputs.list().end(), [mode](const MixerInput& other) {
    return !other.has_caps || GST_VIDEO_INFO_INTERLACE_MODE(&other.video) == mode;
  });
}

/// Passes a caps event to the base class, which applies the first caps of a pad immediately, and later caps with the
/// next frame. If the element stops before that frame, the base class applies them to the first frame of the next run,
/// unless newer caps arrive.
gboolean apply_caps(GstAggregator* agg, GstAggregatorPad* pad, GstEvent* event) {
  bool& new_caps = as_mixer_pad(pad)->state->new_caps;
  const bool first = !is_set(GST_VIDEO_AGGREGATOR_PAD(pad)->info);
  if (first && new_caps && !base_class()->sink_event(agg, pad, gst_event_ref(event))) {
    gst_event_unref(event);
    return FALSE;
  }
  new_caps |= !first;
  return base_class()->sink_event(agg, pad, event);
}

/// Makes the base class accept caps with any interlace mode. It refuses modes that differ from the mode of the output
/// or of the other pads. So the output temporarily gets the mode of the caps while the base class handles the event.
/// Frames are blended without regard to fields.
gboolean take_caps(GstAggregator* agg, GstAggregatorPad* pad, GstEvent* event) {
  GstCaps* caps;
  gst_event_parse_caps(event, &caps);
  state_of(agg).host.note_copies(GST_PAD(pad), caps);
  GstVideoInfo video;
  if (!video_from_caps(video, caps) || is_taken(as_mixer(agg), GST_VIDEO_INFO_INTERLACE_MODE(&video)))
    return apply_caps(agg, pad, event);
  GstVideoInfo& output = GST_VIDEO_AGGREGATOR(agg)->info;
  const auto show = [&](const GstVideoFormatInfo* format, GstVideoInterlaceMode mode) {
    ObjectLock lock(agg);
    output.finfo = format;
    output.interlace_mode = mode;
  };
  const GstVideoInfo original = output;
  show(is_set(output) ? output.finfo : video.finfo, video.interlace_mode);
  const gboolean taken = apply_caps(agg, pad, event);
  show(original.finfo, original.interlace_mode);
  return taken;
}

/// Why the base class cannot place a segment in time (it would abort); empty if it can.
std::string misplaced(const GstSegment& segment) {
  if (segment.format != GST_FORMAT_TIME)
    return std::string("a stream in ") + gst_format_get_name(segment.format) +
           " cannot be placed in time: its source must be one with format=time";
  if (segment.rate < 0 && !GST_CLOCK_TIME_IS_VALID(segment.stop))
    return "a segment that is played backwards cannot be placed in time without its end: its source must set stop";
  const guint64 most = G_MAXINT64;  // sums of such values do not wrap around
  if (segment.start > most || segment.base > most || segment.offset > most || segment.time > most ||
      (GST_CLOCK_TIME_IS_VALID(segment.stop) && segment.stop > most))
    return "a segment beyond 2^63 ns cannot be placed in time: its source must set smaller times";
  return {};
}

/// The part of a segment whose running time is 0 or more, without the field `offset`; running times stay the same. A
/// negative pad offset sets `offset`. The first frames then have a negative running time, and the base class would
/// abort. It skips frames before the start of a segment.
GstSegment without_offset(GstSegment segment) {
  const guint64 offset = segment.offset;
  segment.offset = 0;
  if (segment.rate > 0) {
    segment.start += offset;
    segment.position = MAX(segment.position, segment.start);
    if (GST_CLOCK_TIME_IS_VALID(segment.stop)) segment.stop = MAX(segment.stop, segment.start);
    if (GST_CLOCK_TIME_IS_VALID(segment.time)) segment.time += guint64(double(offset) * ABS(segment.applied_rate));
  } else {
    segment.stop = MAX(segment.stop, segment.start + offset) - offset;
    segment.position = MIN(segment.position, segment.stop);
  }
  return segment;
}

/// (transfer full) A segment event made from `event` (taken) that the base class can place in time. Posts an error if
/// that is not possible.
GstEvent* take_segment(GstCudaVisionMixer* self, GstCudaVisionMixerPad* pad, GstEvent* event) {
  const GstSegment* segment;
  gst_event_parse_segment(event, &segment);
  const std::string trouble = misplaced(*segment);
  if (trouble.empty() && segment->offset == 0) return event;
  GstSegment placed;
  if (trouble.empty()) {
    placed = without_offset(*segment);
  } else {
    GST_ELEMENT_ERROR(self, STREAM, FORMAT, ("%s: %s", GST_OBJECT_NAME(pad), trouble.c_str()), (nullptr));
    gst_segment_init(&placed, GST_FORMAT_TIME);
  }
  GstEvent* taken = gst_event_new_segment(&placed);
  gst_event_set_seqnum(taken, gst_event_get_seqnum(event));
  gst_event_set_running_time_offset(taken, gst_event_get_running_time_offset(event));
  gst_event_unref(event);
  return taken;
}

}  // namespace

/// Called in the upstream thread for every event that arrives.
///
/// When the streaming thread ends, for example at EOS, GStreamer's aggregator drops everything in the queues of its
/// pads, including caps. A flush starts the thread again, but upstream does not repeat the caps. So caps that were not
/// handled are queued again before the first segment after a flush.
GstFlowReturn sink_event_pre_queue(GstAggregator* agg, GstAggregatorPad* pad, GstEvent* event) {
  Owned<GstCaps>& queued = as_mixer_pad(pad)->state->queued_caps;
  if (GST_EVENT_TYPE(event) == GST_EVENT_CAPS) {
    GstCaps* caps;
    gst_event_parse_caps(event, &caps);
    const ObjectLock lock(pad);
    queued.reset(gst_caps_ref(caps));
  } else if (GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT) {
    event = take_segment(as_mixer(agg), as_mixer_pad(pad), event);
    GstEvent* again = nullptr;
    if (std::exchange(as_mixer_pad(pad)->state->after_flush, false)) {
      const ObjectLock lock(pad);
      if (queued) again = gst_event_new_caps(queued.get());
    }
    if (again) base_class()->sink_event_pre_queue(agg, pad, again);
  }
  return base_class()->sink_event_pre_queue(agg, pad, event);
}

gboolean sink_event(GstAggregator* agg, GstAggregatorPad* pad, GstEvent* event) {
  if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS) return base_class()->sink_event(agg, pad, event);
  Owned<GstCaps>& queued = as_mixer_pad(pad)->state->queued_caps;
  GstCaps* caps;
  gst_event_parse_caps(event, &caps);
  {
    const ObjectLock lock(pad);
    if (queued.get() == caps) queued.reset();
  }
  return take_caps(agg, pad, event);
}

// Upstream events -----------------------------------------------------------------------------------------------------

namespace {

/// Whether a seek has a start after its stop. GStreamer would fail an assertion.
bool seeks_past_its_stop(GstAggregator* agg, GstEvent* event) {
  GstSeekType start_type, stop_type;
  gint64 start, stop;
  gst_event_parse_seek(event, nullptr, nullptr, nullptr, &start_type, &start, &stop_type, &stop);
  const GstSegment& now = GST_AGGREGATOR_PAD(agg->srcpad)->segment;
  if (start_type == GST_SEEK_TYPE_NONE) start = gint64(now.start);
  if (stop_type == GST_SEEK_TYPE_NONE) stop = gint64(now.stop);
  return start_type != GST_SEEK_TYPE_END && stop_type != GST_SEEK_TYPE_END && stop >= 0 && start > stop;
}

}  // namespace

/// Sends navigation events to the pads under the pointer, with the position in the picture of each pad.
gboolean src_event(GstAggregator* agg, GstEvent* event) {
  // The base class divides by the framerate.
  if (GST_EVENT_TYPE(event) == GST_EVENT_QOS && GST_VIDEO_INFO_FPS_N(&GST_VIDEO_AGGREGATOR(agg)->info) <= 0) {
    gst_event_unref(event);
    return TRUE;
  }
  if (GST_EVENT_TYPE(event) == GST_EVENT_SEEK && seeks_past_its_stop(agg, event)) {
    gst_event_unref(event);
    return FALSE;
  }
  double x, y;
  if (GST_EVENT_TYPE(event) != GST_EVENT_NAVIGATION || !gst_navigation_event_get_coordinates(event, &x, &y))
    return base_class()->src_event(agg, event);
  bool handled = false;
  const Inputs inputs(as_mixer(agg));
  for (const MixerInput& input : inputs.list()) {
    const auto [place, crop] = input.pad->state->shown(input.pad);
    if (place.empty() || x < place.x || y < place.y || x >= place.x + place.width || y >= place.y + place.height)
      continue;
    GstEvent* moved = gst_event_new_navigation(gst_structure_copy(gst_event_get_structure(event)));
    gst_navigation_event_set_coordinates(moved, crop.x + (x - place.x) * crop.width / place.width,
                                         crop.y + (y - place.y) * crop.height / place.height);
    handled |= bool(gst_pad_push_event(GST_PAD(input.pad), moved));
  }
  gst_event_unref(event);
  return handled;
}

}  // namespace cudavision::video_mixer
