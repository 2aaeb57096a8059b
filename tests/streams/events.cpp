// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/streams/events.hpp"

#include <gst/video/navigation.h>

namespace cudavision::streams {
namespace {

GstClockTime draw_time(Random& random) {
  return random.pick<GstClockTime>(
      {0, 1, 40000000, 80000000, 1000000000, GstClockTime(G_MAXINT64) - 1, GstClockTime(G_MAXINT64) + 1});
}

GstStructure* draw_structure(Random& random) {
  return gst_structure_new(
      random.pick<const char*>({"a-custom-event", "GstForceKeyUnit", "cudadiff", "application/x-anything"}), "number",
      G_TYPE_INT, random.below(100), "text", G_TYPE_STRING, random.one_in(2) ? nullptr : "a text", nullptr);
}

GstEvent* new_seek(Random& random) {
  const auto flags = GstSeekFlags(
      random.pick<int>({0, GST_SEEK_FLAG_FLUSH, GST_SEEK_FLAG_SEGMENT, GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE}));
  const auto start = gint64(draw_time(random) & (G_MAXINT64 >> 1));
  const double rate = random.pick<double>({1, 1, 2, 0.5, -1, 1e9});
  // GStreamer's own mixers need a stop position to play backwards.
  const bool has_stop = rate < 0 || random.one_in(2);
  return gst_event_new_seek(rate, GST_FORMAT_TIME, flags, GST_SEEK_TYPE_SET, start,
                            has_stop ? GST_SEEK_TYPE_SET : GST_SEEK_TYPE_NONE,
                            has_stop ? start + random.below(1000) : -1);
}

GstEvent* new_navigation(Random& random) {
  const double x = random.pick<double>({0, 5, 1e9, -1, -1e300}), y = random.pick<double>({0, 3, 1e9, -1, 1e300});
  return random.one_in(2)
             ? gst_navigation_event_new_mouse_move(x, y, GST_NAVIGATION_MODIFIER_NONE)
             : gst_navigation_event_new_mouse_button_press(random.below(9), x, y, GST_NAVIGATION_MODIFIER_NONE);
}

GstCaps* draw_query_caps(Random& random, const GstVideoInfo& video) {
  switch (random.below(7)) {
    case 0:
      return gst_caps_new_empty();
    case 1:
      return gst_caps_new_any();
    case 2:
      return gst_video_info_to_caps(const_cast<GstVideoInfo*>(&video));
    default:
      return gst_caps_from_string(random.pick<const char*>(
          {"video/x-raw", "video/x-raw(ANY)", "video/x-raw(memory:CUDAMemory)",
           "video/x-raw(memory:DMABuf,meta:GstVideoOverlayComposition)", "audio/x-raw",
           "video/x-raw,width=(int)[1,max],height=(int){1,3,5}", "video/x-raw,format=(string){NV12,nonsense}",
           "video/x-raw,format=5", "video/x-raw,width=(string)ten",
           "video/x-raw,framerate=(fraction)[0/1,max],format=RGB;video/x-integral",
           "video/x-integral,format=(string){U32LE,F64LE}", "video/x-raw,width=-5,height=0",
           "video/x-raw,width=(int)[2,16384,2],height=4"}));
  }
}

GstQuery* new_allocation(Random& random, const GstVideoInfo& video) {
  g_autoptr(GstCaps) caps = random.one_in(6) ? nullptr : draw_query_caps(random, video);
  if (caps && !gst_caps_is_fixed(caps)) {
    gst_caps_unref(caps);
    caps = gst_video_info_to_caps(const_cast<GstVideoInfo*>(&video));
  }
  GstQuery* query = gst_query_new_allocation(caps, random.below(2));
  if (random.one_in(3))
    gst_query_add_allocation_pool(query, nullptr, guint(random.below(100000)), guint(random.below(5)),
                                  guint(random.below(5)));
  return query;
}

}  // namespace

std::string draw_caps_fields(Random& random, bool hostile) {
  std::string text = ",framerate=" + random.pick<std::string>({"25/1", "25/1", "30000/1001", "0/1", "1/1"});
  if (random.one_in(4))
    text += ",colorimetry=" +
            random.pick<std::string>({"bt601", "bt709", "bt2020", "smpte240m", "sRGB", "2:4:5:1", "1:3:6:4"});
  if (random.one_in(8))
    text +=
        ",interlace-mode=" + random.pick<std::string>({"progressive", "interleaved", "mixed", "fields", "alternate"});
  if (random.one_in(8)) text += ",pixel-aspect-ratio=" + random.pick<std::string>({"1/1", "2/1", "12/11", "1/3"});
  if (random.one_in(8)) text += ",chroma-site=" + random.pick<std::string>({"mpeg2", "jpeg", "dv"});
  if (random.one_in(8))
    text += ",multiview-mode=" + random.pick<std::string>({"mono", "side-by-side", "frame-by-frame", "separated"});
  if (!hostile) return text;
  return text +
         random.pick<std::string>({",colorimetry=99:99:99:99", ",colorimetry=-1:-2:-3:-4", ",colorimetry=2:200:5:1",
                                   ",colorimetry=7:7:7:7", ",colorimetry=2147483647:2147483648:4294967295:9",
                                   ",colorimetry=nonsense", ",chroma-site=nonsense", ",interlace-mode=nonsense",
                                   ",views=0", ",views=-3", ",framerate=2147483647/1", ",framerate=1/2147483647",
                                   ",max-framerate=7/3", ",pixel-aspect-ratio=2147483647/1",
                                   ",pixel-aspect-ratio=1/2147483647", ",pixel-aspect-ratio=0/1", ",colorimetry=5"});
}

GstEvent* draw_segment(Random& random) {
  GstSegment segment;
  gst_segment_init(&segment, random.pick<GstFormat>({GST_FORMAT_TIME, GST_FORMAT_TIME, GST_FORMAT_BYTES,
                                                     GST_FORMAT_DEFAULT, GST_FORMAT_BUFFERS, GST_FORMAT_PERCENT}));
  segment.rate = random.pick<double>({1, -1, 2, 0.5, 1e-9, 1e9});
  segment.applied_rate = random.pick<double>({1, -1, 2});
  segment.start = random.pick<guint64>({0, 1, 40000000, 1000000000});
  segment.stop = segment.rate > 0 && random.one_in(2)
                     ? GST_CLOCK_TIME_NONE
                     : segment.start + random.pick<guint64>({0, 1, 80000000, 1000000000});
  segment.time = random.pick<guint64>({0, 1000000000, GST_CLOCK_TIME_NONE});
  segment.base = random.pick<guint64>({0, 1000000000});
  segment.position = segment.start;
  return gst_event_new_segment(&segment);
}

GstEvent* draw_downstream_event(Random& random) {
  switch (random.below(9)) {
    case 0:
      return gst_event_new_gap(draw_time(random), random.one_in(2) ? GST_CLOCK_TIME_NONE : draw_time(random));
    case 1:
      return gst_event_new_tag(
          gst_tag_list_new(GST_TAG_TITLE, "a title", GST_TAG_BITRATE, guint(random.below(1000)), nullptr));
    case 2:
      return gst_event_new_custom(GST_EVENT_CUSTOM_DOWNSTREAM, draw_structure(random));
    case 3:
      return gst_event_new_custom(GST_EVENT_CUSTOM_DOWNSTREAM_OOB, draw_structure(random));
    case 4:
      return gst_event_new_custom(GST_EVENT_CUSTOM_BOTH, draw_structure(random));
    case 5:
      return gst_event_new_segment_done(GST_FORMAT_TIME, gint64(draw_time(random) & G_MAXINT64));
    case 6:
      return gst_event_new_stream_group_done(guint(random.between(1, 9)));
    case 7:
      return gst_event_new_stream_start(random.pick<const char*>({"a", "another", "a very long name of a stream"}));
    default:
      return gst_event_new_buffer_size(GST_FORMAT_BYTES, 0, random.below(1000), random.below(2));
  }
}

GstEvent* draw_upstream_event(Random& random) {
  switch (random.below(7)) {
    case 0:
      return gst_event_new_qos(
          random.pick<GstQOSType>({GST_QOS_TYPE_OVERFLOW, GST_QOS_TYPE_UNDERFLOW, GST_QOS_TYPE_THROTTLE}),
          random.pick<double>({1, 0, 2, -1, 1e30}), random.pick<GstClockTimeDiff>({0, 1, -1, 1000000000}),
          GstClockTime(G_MAXINT32));
    case 1:
      return new_seek(random);
    case 2:
      return new_navigation(random);
    case 3:
      return gst_event_new_latency(draw_time(random));
    case 4:
      return gst_event_new_reconfigure();
    case 5:
      return gst_event_new_step(GST_FORMAT_BUFFERS, guint64(random.below(5)), 1, TRUE, FALSE);
    default:
      return gst_event_new_custom(GST_EVENT_CUSTOM_UPSTREAM, draw_structure(random));
  }
}

GstQuery* draw_sink_query(Random& random, const GstVideoInfo& video) {
  switch (random.below(6)) {
    case 0:
      return gst_query_new_drain();
    case 1:
      return gst_query_new_context("gst.cuda.context");
    case 2:
      return new_allocation(random, video);
    case 3: {
      g_autoptr(GstCaps) caps = gst_video_info_to_caps(const_cast<GstVideoInfo*>(&video));
      return gst_query_new_accept_caps(caps);
    }
    default: {
      g_autoptr(GstCaps) filter = random.one_in(4) ? nullptr : draw_query_caps(random, video);
      return gst_query_new_caps(filter);
    }
  }
}

GstQuery* draw_src_query(Random& random) {
  const GstFormat format =
      random.pick<GstFormat>({GST_FORMAT_TIME, GST_FORMAT_BYTES, GST_FORMAT_DEFAULT, GST_FORMAT_PERCENT});
  switch (random.below(9)) {
    case 0:
      return gst_query_new_latency();
    case 1:
      return gst_query_new_position(format);
    case 2:
      return gst_query_new_duration(format);
    case 3:
      return gst_query_new_seeking(format);
    case 4:
      return gst_query_new_convert(format, gint64(draw_time(random) & G_MAXINT64), GST_FORMAT_TIME);
    case 5:
      return gst_query_new_segment(format);
    case 6:
      return gst_query_new_context(random.pick<const char*>({"gst.cuda.context", "another"}));
    case 7:
      return gst_query_new_custom(GST_QUERY_CUSTOM, draw_structure(random));
    default:
      return gst_query_new_caps(nullptr);
  }
}

}  // namespace cudavision::streams
