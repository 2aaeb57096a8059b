// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/soak/reference.hpp"

#include <algorithm>
#include <cstdlib>

#include "tests/property_text.hpp"
#include "tests/soak/stream.hpp"

namespace cudavision::soak {
namespace {

using streams::Input;
using streams::Rig;

std::string caps_of(const GstVideoInfo& video) {
  g_autoptr(GstCaps) caps = gst_video_info_to_caps(const_cast<GstVideoInfo*>(&video));
  g_autofree gchar* text = gst_caps_to_string(caps);
  return text;
}

/// (transfer full) A writable buffer with the same memory.
GstBuffer* at_time(GstBuffer* frame, GstClockTime pts) {
  GstBuffer* buffer = gst_buffer_copy(frame);
  GST_BUFFER_PTS(buffer) = pts;
  GST_BUFFER_DURATION(buffer) = frame_time;
  return buffer;
}

}  // namespace

void set(gpointer object, const std::string& settings) {
  if (const std::string wrong = test::set_from_text(object, settings); !wrong.empty()) g_error("%s", wrong.c_str());
}

std::string difference(const std::string& bytes, const std::string& expected, int tolerance) {
  std::size_t differing = 0, where = 0;
  for (std::size_t i = 0; i < std::min(bytes.size(), expected.size()); ++i)
    if (std::abs(int(guint8(bytes[i])) - int(guint8(expected[i]))) > tolerance && !differing++) where = i;
  if (!differing) return {};
  return std::to_string(differing) + " of " + std::to_string(expected.size()) + " bytes differ, the first one at " +
         std::to_string(where) + " (" + std::to_string(guint8(bytes[where])) + " instead of " +
         std::to_string(guint8(expected[where])) + ")";
}

FilterReference::FilterReference(const std::string& factory, const std::string& settings)
    : rig_(factory, "cpu", {}, Rig::Keep::frames),
      input_(rig_, gst_element_get_static_pad(rig_.element(), "sink"), false) {
  set(rig_.element(), settings);
  rig_.set_state(GST_STATE_PLAYING);
}

Buffer FilterReference::apply(const GstVideoInfo& video, GstBuffer* previous, GstBuffer* frame) {
  if (!video_.finfo || !gst_video_info_is_equal(&video, &video_)) {
    video_ = video;
    input_.begin(caps_of(video));
  }
  input_.flush(true);  // the next frame is compared with no earlier one
  if (previous) {
    input_.push(at_time(previous, 0));
    Buffer(rig_.take_frame());
  }
  input_.push(at_time(frame, previous ? frame_time : 0));
  return Buffer(rig_.take_frame());
}

Buffer blend(const std::string& settings, const std::vector<MixerInput>& pads, const GstVideoInfo& output) {
  streams::Downstream downstream;
  downstream.caps = caps_of(output);
  Rig rig("cudablend", "cpu", downstream, Rig::Keep::frames);
  set(rig.element(), settings);
  std::vector<std::unique_ptr<Input>> inputs;
  for (const MixerInput& each : pads) {
    GstPad* pad = gst_element_request_pad_simple(rig.element(), "sink_%u");
    set(pad, each.settings);
    inputs.push_back(std::make_unique<Input>(rig, pad, false));
  }
  rig.set_state(GST_STATE_PLAYING);
  for (std::size_t i = 0; i < pads.size(); ++i) {
    inputs[i]->begin(caps_of(pads[i].video));
    inputs[i]->push(at_time(pads[i].frame, 0));
    inputs[i]->send(gst_event_new_eos());
  }
  rig.wait_for_eos(20000);
  rig.set_state(GST_STATE_NULL);
  return Buffer(rig.take_frame());
}

}  // namespace cudavision::soak
