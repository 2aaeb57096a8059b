// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/soak/reference.hpp"

#include <condition_variable>
#include <mutex>

#include "tests/property_text.hpp"
#include "tests/soak/stream.hpp"

namespace cudavision::soak {
namespace {

GstElement* make(const char* factory, const std::string& settings) {
  auto* element = GST_ELEMENT(gst_object_ref_sink(gst_element_factory_make(factory, nullptr)));
  set(element, "backend=cpu");
  set(element, settings);
  return element;
}

/// (transfer full) Makes an active pad that is linked to this one, and takes these caps.
GstPad* pad_beside(GstPad* other, GstPadDirection direction, GstCaps* caps = nullptr) {
  // Without a template, a pad takes only its current caps.
  GstPadTemplate* pad_template = gst_pad_template_new("pad", direction, GST_PAD_ALWAYS,
                                                      Caps(caps ? gst_caps_ref(caps) : gst_caps_new_any()).get());
  GstPad* pad = gst_pad_new_from_template(pad_template, nullptr);
  gst_object_unref(pad_template);
  gst_pad_set_active(pad, TRUE);
  if (direction == GST_PAD_SRC)
    gst_pad_link(pad, other);
  else
    gst_pad_link(other, pad);
  return pad;
}

void begin(GstPad* pad, const char* id, const GstVideoInfo& video) {
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  const Caps caps(gst_video_info_to_caps(&video));
  gst_pad_push_event(pad, gst_event_new_stream_start(id));
  gst_pad_push_event(pad, gst_event_new_caps(caps.get()));
  gst_pad_push_event(pad, gst_event_new_segment(&segment));
}

/// Flushes the element, so that the next frame is compared with none before it.
void forget(GstPad* pad) {
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  gst_pad_push_event(pad, gst_event_new_flush_start());
  gst_pad_push_event(pad, gst_event_new_flush_stop(TRUE));
  gst_pad_push_event(pad, gst_event_new_segment(&segment));
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

// Filters
// ---------------------------------------------------------------------------------------------------------------------

FilterReference::FilterReference(const std::string& factory, const std::string& settings)
    : element_(make(factory.c_str(), settings)) {
  GstPad *in = gst_element_get_static_pad(element_, "sink"), *out = gst_element_get_static_pad(element_, "src");
  src_ = pad_beside(in, GST_PAD_SRC);
  sink_ = pad_beside(out, GST_PAD_SINK);
  gst_object_unref(in);
  gst_object_unref(out);
  gst_pad_set_element_private(sink_, this);
  gst_pad_set_chain_function(sink_, keep);
  gst_element_set_state(element_, GST_STATE_PLAYING);
}

FilterReference::~FilterReference() {
  gst_element_set_state(element_, GST_STATE_NULL);
  gst_object_unref(element_);
  gst_object_unref(src_);
  gst_object_unref(sink_);
}

GstFlowReturn FilterReference::keep(GstPad* pad, GstObject*, GstBuffer* buffer) {
  static_cast<FilterReference*>(gst_pad_get_element_private(pad))->result_.reset(buffer);
  return GST_FLOW_OK;
}

Buffer FilterReference::push(GstBuffer* frame, bool first) {
  GstBuffer* buffer = at_time(frame, first ? 0 : frame_time);
  if (first) forget(src_);
  result_.reset();
  gst_pad_push(src_, buffer);
  return std::move(result_);
}

Buffer FilterReference::apply(const GstVideoInfo& video, GstBuffer* previous, GstBuffer* frame) {
  if (!video_.finfo || !gst_video_info_is_equal(&video, &video_)) {
    video_ = video;
    begin(src_, "reference", video);
  }
  if (previous) push(previous, true);
  return push(frame, !previous);
}

// Mixers
// ---------------------------------------------------------------------------------------------------------------------

namespace {

struct Result {
  std::mutex mutex;
  std::condition_variable came;
  Buffer buffer;
};

GstFlowReturn take(GstPad* pad, GstObject*, GstBuffer* buffer) {
  Result& result = *static_cast<Result*>(gst_pad_get_element_private(pad));
  const std::lock_guard<std::mutex> lock(result.mutex);
  Buffer taken(buffer);
  if (!result.buffer) result.buffer = std::move(taken);
  result.came.notify_all();
  return GST_FLOW_OK;
}

}  // namespace

Buffer blend(const std::string& settings, const std::vector<MixerInput>& inputs, GstCaps* output) {
  GstElement* mixer = make("cudablend", settings);
  Result result;
  GstPad *out = gst_element_get_static_pad(mixer, "src"), *sink = pad_beside(out, GST_PAD_SINK, output);
  gst_pad_set_element_private(sink, &result);
  gst_pad_set_chain_function(sink, take);
  gst_object_unref(out);
  gst_element_set_state(mixer, GST_STATE_PLAYING);
  std::vector<GstPad*> sources;
  for (const MixerInput& input : inputs) {
    GstPad* pad = gst_element_request_pad_simple(mixer, "sink_%u");
    set(pad, input.settings);
    sources.push_back(pad_beside(pad, GST_PAD_SRC));
    gst_object_unref(pad);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    begin(sources[i], std::to_string(i).c_str(), inputs[i].video);
    gst_pad_push(sources[i], at_time(inputs[i].frame, 0));
    gst_pad_push_event(sources[i], gst_event_new_eos());
  }
  {
    std::unique_lock<std::mutex> lock(result.mutex);
    result.came.wait_for(lock, std::chrono::seconds(20), [&] { return bool(result.buffer); });
  }
  gst_element_set_state(mixer, GST_STATE_NULL);
  for (GstPad* source : sources) gst_object_unref(source);
  gst_object_unref(sink);
  gst_object_unref(mixer);
  return std::move(result.buffer);
}

}  // namespace cudavision::soak
