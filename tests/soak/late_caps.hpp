// SPDX-License-Identifier: LGPL-2.1-or-later
// The warning that a capsfilter of GStreamer before 1.24.10 posts after a flush (UPSTREAM.md).
#pragma once

#include <gst/gst.h>

#include <tuple>

namespace cudavision::soak {

struct Version {
  guint major, minor, micro;
};

inline Version running_version() {
  Version version{};
  guint nano;
  gst_version(&version.major, &version.minor, &version.micro, &nano);
  return version;
}

/// Whether a pad forgets at FLUSH_STOP that it still has to send caps.
inline bool forgets_caps(const Version& version) {
  return std::tie(version.major, version.minor, version.micro) < std::make_tuple(1U, 24U, 10U);
}

/// Whether caps wait in the pad above a capsfilter: its caps changed, the flush kept the new caps from its sink pad,
/// and no segment has arrived since. The old caps of the sink pad do not fit.
inline bool awaits_caps(GstElement* filter) {
  g_autoptr(GstPad) sink = gst_element_get_static_pad(filter, "sink");
  g_autoptr(GstPad) above = gst_pad_get_peer(sink);
  g_autoptr(GstEvent) segment = gst_pad_get_sticky_event(sink, GST_EVENT_SEGMENT, 0);
  if (!above || segment) return false;
  g_autoptr(GstCaps) old = gst_pad_get_current_caps(sink);
  g_autoptr(GstCaps) sent = gst_pad_get_current_caps(above);
  g_autoptr(GstCaps) wanted = nullptr;
  g_object_get(filter, "caps", &wanted, nullptr);
  return old && sent && !gst_caps_can_intersect(old, wanted) && gst_caps_can_intersect(sent, wanted);
}

/// Whether a message is the warning of a capsfilter that awaits caps. Call it in the thread that posts the message.
inline bool warns_of_late_caps(GstMessage* message, const Version& version = running_version()) {
  if (GST_MESSAGE_TYPE(message) != GST_MESSAGE_WARNING || !forgets_caps(version)) return false;
  GstObject* source = GST_MESSAGE_SRC(message);
  GstElementFactory* factory = GST_IS_ELEMENT(source) ? gst_element_get_factory(GST_ELEMENT(source)) : nullptr;
  if (!factory || g_strcmp0(GST_OBJECT_NAME(factory), "capsfilter") != 0) return false;
  g_autoptr(GError) error = nullptr;
  gst_message_parse_warning(message, &error, nullptr);
  return g_error_matches(error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT) &&
         g_strcmp0(error->message, "not negotiated") == 0 && awaits_caps(GST_ELEMENT(source));
}

}  // namespace cudavision::soak
