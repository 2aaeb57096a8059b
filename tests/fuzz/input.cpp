// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/fuzz/input.hpp"

#include "tests/fuzz/complaints.hpp"
#include "tests/fuzz/rig.hpp"

namespace cudavision::fuzz {
namespace {

gboolean answer_as_source(GstPad* pad, GstObject* parent, GstQuery* query) {
  const bool is_live = GPOINTER_TO_INT(gst_pad_get_element_private(pad));
  if (GST_QUERY_TYPE(query) != GST_QUERY_LATENCY) return gst_pad_query_default(pad, parent, query);
  gst_query_set_latency(query, is_live, 0, GST_CLOCK_TIME_NONE);
  return TRUE;
}

}  // namespace

Input::Input(Rig& rig, GstPad* target, bool is_live)
    : rig_(rig), pad_(gst_pad_new(nullptr, GST_PAD_SRC)), target_(target) {
  rig_.allow_error();
  gst_object_ref_sink(pad_);
  gst_pad_set_element_private(pad_, GINT_TO_POINTER(int(is_live)));
  gst_pad_set_query_function(pad_, answer_as_source);
  gst_pad_set_event_function(pad_, [](GstPad*, GstObject*, GstEvent* event) -> gboolean {
    gst_event_unref(event);
    return TRUE;
  });
  gst_pad_set_active(pad_, TRUE);
  gst_pad_link_full(pad_, target_, GST_PAD_LINK_CHECK_NOTHING);
}

Input::~Input() {
  gst_pad_set_active(pad_, FALSE);
  gst_pad_unlink(pad_, target_);
  gst_object_unref(pad_);
  gst_object_unref(target_);
}

void Input::release() { gst_element_release_request_pad(rig_.element(), target_); }

bool Input::send(GstEvent* event) {
  // A mixer handles serialized events later, in its own thread, so each event can cause an error of its own.
  if (GST_EVENT_IS_SERIALIZED(event) && GST_PAD_TEMPLATE_PRESENCE(GST_PAD_PAD_TEMPLATE(target_)) == GST_PAD_REQUEST)
    rig_.allow_error();
  return gst_pad_push_event(pad_, event);
}

bool Input::begin(const std::string& text) {
  GstCaps* caps = gst_caps_from_string(text.c_str());
  if (!caps) {
    complain("this program made invalid caps: " + text);
    return false;
  }
  send(gst_event_new_stream_start("fuzz"));
  send(gst_event_new_caps(caps));  // returns TRUE even if the element refuses the caps
  gst_caps_unref(caps);
  if (rig_.errors() > 0) return false;
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  return send(gst_event_new_segment(&segment));
}

GstFlowReturn Input::push(GstBuffer* buffer) {
  rig_.follow(buffer);
  const GstFlowReturn flow = gst_pad_push(pad_, buffer);
  if (flow == GST_FLOW_ERROR && !rig_.has_posted_error())
    complain("a frame ended with an error, but no error message was posted");
  return flow;
}

bool Input::query(GstQuery* query) {
  const bool answered = gst_pad_peer_query(pad_, query);
  gst_query_unref(query);
  return answered;
}

}  // namespace cudavision::fuzz
