// SPDX-License-Identifier: LGPL-2.1-or-later
// An element in a pipeline, for failures and state changes that a harness does not allow.
#pragma once

#include "tests/elements/harness.hpp"

namespace cudavision::test {

/// A pipeline that sends frames, a quarter of a second apart, through an element.
class Line {
 public:
  /// `frames`: -1 for no end.
  explicit Line(const Run& run, const std::string& settings = "", int frames = 5, Size size = {320, 288}) {
    pipeline = gst_parse_launch(("videotestsrc name=source num-buffers=" + show(frames) + " ! capsfilter name=caps ! " +
                                 run.element + " name=e " + settings + " ! fakesink")
                                    .c_str(),
                                nullptr);
    FAIL_UNLESS(pipeline != nullptr, "no pipeline with %s", run.element.c_str());
    element = part("e");
    caps(caps_text("NV12", size, ",framerate=4/1"));
    set(element, "backend=" + run.backend);
    with_shared_context(element, run);
    bus = gst_element_get_bus(pipeline);
  }
  ~Line() {
    stop();
    gst_object_unref(bus);
    gst_object_unref(pipeline);
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  /// The element or its pad. The pipeline keeps a reference.
  gpointer object(bool of_pad) const {
    if (!of_pad) return element;
    g_autoptr(GstPad) pad = gst_element_get_static_pad(element, "sink_0");
    return pad;
  }
  GstElement* part(const char* name) const {
    g_autoptr(GstElement) found = gst_bin_get_by_name(GST_BIN(pipeline), name);
    return found;
  }
  void caps(const std::string& text) { set(part("caps"), "caps=" + text); }

  void pause() {
    gst_element_set_state(pipeline, GST_STATE_PAUSED);
    gst_element_get_state(pipeline, nullptr, nullptr, 20 * GST_SECOND);
  }
  void stop() { EXPECT_EQ(gst_element_set_state(pipeline, GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS); }
  /// Plays to the end or to an error. Returns the errors and warnings.
  std::vector<Message> play() {
    std::vector<Message> heard;
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    for (bool more = true; more;) {
      g_autoptr(GstMessage) message = gst_bus_timed_pop_filtered(
          bus, 60 * GST_SECOND, GstMessageType(GST_MESSAGE_EOS | GST_MESSAGE_ERROR | GST_MESSAGE_WARNING));
      EXPECT(message);
      if (GST_MESSAGE_TYPE(message) != GST_MESSAGE_EOS) heard.push_back(read_message(message));
      more = GST_MESSAGE_TYPE(message) == GST_MESSAGE_WARNING;
    }
    return heard;
  }

  GstElement *pipeline, *element;
  GstBus* bus;
};

}  // namespace cudavision::test
