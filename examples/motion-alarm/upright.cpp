// SPDX-License-Identifier: LGPL-2.1-or-later
#include "upright.hpp"

#include <gst/video/video.h>

#include <initializer_list>
#include <string>

namespace {

using Direction = GstVideoOrientationMethod;  // identity: players do not rotate the frames

Direction direction_of(GstEvent* event) {
  GstTagList* tags = nullptr;
  gst_event_parse_tag(event, &tags);
  Direction direction = GST_VIDEO_ORIENTATION_IDENTITY;
  gst_video_orientation_from_tag(tags, &direction);
  return direction;
}

/// The direction in the tags that a pad received.
Direction told(GstPad* pad) {
  Direction direction = GST_VIDEO_ORIENTATION_IDENTITY;
  GstEvent* event = nullptr;
  for (guint number = 0;
       direction == GST_VIDEO_ORIENTATION_IDENTITY && (event = gst_pad_get_sticky_event(pad, GST_EVENT_TAG, number));
       ++number) {
    direction = direction_of(event);
    gst_event_unref(event);
  }
  return direction;
}

/// The element that sends frames to a sink pad, through elements with one input. The caller owns it.
GstElement* source_of(GstPad* pad) {
  GstPad* peer = gst_pad_get_peer(pad);
  GstElement* element = peer ? gst_pad_get_parent_element(peer) : nullptr;
  if (peer) gst_object_unref(peer);
  GstPad* inner = element && !GST_IS_BIN(element) ? gst_element_get_static_pad(element, "sink") : nullptr;
  if (!inner) return element;
  gst_object_unref(element);
  GstElement* source = source_of(inner);
  gst_object_unref(inner);
  return source;
}

/// The direction in the tags of any pad of the source before a sink pad. A decoder passes the tags on only after its
/// caps, but zones in pixels need the caps of the rotated picture.
Direction direction_before(GstPad* pad) {
  Direction direction = GST_VIDEO_ORIENTATION_IDENTITY;
  GstElement* source = source_of(pad);
  if (source && GST_IS_BIN(source)) {
    GstIterator* elements = gst_bin_iterate_recurse(GST_BIN(source));
    gst_iterator_foreach(
        elements,
        [](const GValue* element, gpointer direction) {
          const auto look = [](GstElement*, GstPad* pad, gpointer direction) -> gboolean {
            if (const Direction found = told(pad)) *static_cast<Direction*>(direction) = found;
            return TRUE;
          };
          gst_element_foreach_pad(GST_ELEMENT(g_value_get_object(element)), look, direction);
        },
        &direction);
    gst_iterator_free(elements);
  }
  if (source) gst_object_unref(source);
  return direction;
}

/// No frame is on its way yet, because caps and tags precede frames in their thread. The new elements get all events
/// that the source has sent, except this one.
GstPadProbeReturn on_event(GstPad* pad, GstPadProbeInfo* info, gpointer done) {
  GstEvent* event = GST_PAD_PROBE_INFO_EVENT(info);
  const bool tag = GST_EVENT_TYPE(event) == GST_EVENT_TAG;
  if (*static_cast<bool*>(done) || (!tag && GST_EVENT_TYPE(event) != GST_EVENT_CAPS)) return GST_PAD_PROBE_OK;
  const Direction direction = tag ? direction_of(event) : direction_before(pad);
  if (direction == GST_VIDEO_ORIENTATION_IDENTITY) return GST_PAD_PROBE_OK;
  const std::string elements = "videoconvert ! videoflip video-direction=" + std::to_string(int(direction));
  GstElement* flip = gst_parse_bin_from_description(elements.c_str(), TRUE, nullptr);
  if (!flip) return GST_PAD_PROBE_OK;
  *static_cast<bool*>(done) = true;
  GstElement* element = gst_pad_get_parent_element(pad);
  GstObject* pipeline = gst_element_get_parent(element);
  gst_bin_add(GST_BIN(pipeline), flip);
  GstPad *source = gst_pad_get_peer(pad), *in = gst_element_get_static_pad(flip, "sink"),
         *out = gst_element_get_static_pad(flip, "src");
  gst_pad_unlink(source, pad);
  gst_pad_link(out, pad);
  gst_element_sync_state_with_parent(flip);
  gst_pad_link(source, in);
  if (!tag) {
    if (GstEvent* start = gst_pad_get_sticky_event(source, GST_EVENT_STREAM_START, 0)) gst_pad_send_event(in, start);
    gst_pad_send_event(in, gst_event_ref(event));
  }
  for (GstPad* each : {source, in, out}) gst_object_unref(each);
  gst_object_unref(pipeline);
  gst_object_unref(element);
  return GST_PAD_PROBE_DROP;
}

}  // namespace

void keep_upright(GstPad* pad) {
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, on_event, new bool(false),
                    [](gpointer done) { delete static_cast<bool*>(done); });
}
