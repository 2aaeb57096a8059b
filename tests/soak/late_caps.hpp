// SPDX-License-Identifier: LGPL-2.1-or-later
// The warning of a capsfilter that GStreamer before 1.24.10 posts after a flush (UPSTREAM.md).
#pragma once

#include <gst/gst.h>

#include <memory>
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

/// Whether a pad forgets at FLUSH_STOP that caps are still to be sent.
inline bool forgets_caps(const Version& version) {
  return std::tie(version.major, version.minor, version.micro) < std::make_tuple(1U, 24U, 10U);
}

/// Whether caps wait in the pad above a capsfilter: its caps changed, the flush kept the new caps from its sink pad,
/// and no segment has come since. The old caps of the sink pad do not fit.
inline bool awaits_caps(GstElement* filter) {
  struct Unref {
    void operator()(gpointer object) const { gst_object_unref(object); }
    void operator()(GstCaps* caps) const { gst_caps_unref(caps); }
    void operator()(GstEvent* event) const { gst_event_unref(event); }
  };
  using Caps = std::unique_ptr<GstCaps, Unref>;
  const std::unique_ptr<GstPad, Unref> sink(gst_element_get_static_pad(filter, "sink"));
  const std::unique_ptr<GstPad, Unref> above(gst_pad_get_peer(sink.get()));
  if (!above || std::unique_ptr<GstEvent, Unref>(gst_pad_get_sticky_event(sink.get(), GST_EVENT_SEGMENT, 0)))
    return false;
  const Caps old(gst_pad_get_current_caps(sink.get())), sent(gst_pad_get_current_caps(above.get()));
  GstCaps* caps = nullptr;
  g_object_get(filter, "caps", &caps, nullptr);
  const Caps wanted(caps);
  return old && sent && !gst_caps_can_intersect(old.get(), wanted.get()) &&
         gst_caps_can_intersect(sent.get(), wanted.get());
}

/// Whether a message is the warning of a capsfilter that awaits caps. For the thread that posts the message.
inline bool warns_of_late_caps(GstMessage* message, const Version& version = running_version()) {
  if (GST_MESSAGE_TYPE(message) != GST_MESSAGE_WARNING || !forgets_caps(version)) return false;
  GstObject* source = GST_MESSAGE_SRC(message);
  GstElementFactory* factory = GST_IS_ELEMENT(source) ? gst_element_get_factory(GST_ELEMENT(source)) : nullptr;
  if (!factory || g_strcmp0(GST_OBJECT_NAME(factory), "capsfilter") != 0) return false;
  GError* error = nullptr;
  gst_message_parse_warning(message, &error, nullptr);
  const bool not_negotiated = g_error_matches(error, GST_STREAM_ERROR, GST_STREAM_ERROR_FORMAT) &&
                              g_strcmp0(error->message, "not negotiated") == 0;
  g_error_free(error);
  return not_negotiated && awaits_caps(GST_ELEMENT(source));
}

}  // namespace cudavision::soak
