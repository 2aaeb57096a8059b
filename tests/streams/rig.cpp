// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/streams/rig.hpp"

#include <numeric>

#include "tests/streams/complaints.hpp"
#include "tests/streams/frames.hpp"
#include "tests/streams/plugin.hpp"

namespace cudavision::streams {
namespace {

/// The sink pad accepts at most this many frames, because a mixer fills all the time before a frame with a distant
/// timestamp.
constexpr int most_frames = 100;

using Count = std::shared_ptr<std::atomic<int>>;

void object_died(gpointer data, GObject*) {
  auto* count = static_cast<Count*>(data);
  --**count;
  delete count;
}
void frame_died(gpointer data, GstMiniObject*) { object_died(data, nullptr); }

gboolean answer_as_source(GstPad* pad, GstObject* parent, GstQuery* query) {
  const bool is_live = GPOINTER_TO_INT(gst_pad_get_element_private(pad));
  if (GST_QUERY_TYPE(query) != GST_QUERY_LATENCY) return gst_pad_query_default(pad, parent, query);
  gst_query_set_latency(query, is_live, 0, GST_CLOCK_TIME_NONE);
  return TRUE;
}

template <typename F>
bool wait_until(int milliseconds, F&& done) {
  for (; !done(); --milliseconds) {
    if (milliseconds <= 0) return false;
    g_usleep(1000);
  }
  return true;
}

}  // namespace

Rig::Rig(const std::string& element, const std::string& backend, const Downstream& downstream, Keep keep)
    : downstream_(downstream),
      keep_(keep),
      element_(make_element(element, backend)),
      sink_(gst_pad_new(nullptr, GST_PAD_SINK)),
      bus_(gst_bus_new()) {
  g_object_weak_ref(G_OBJECT(element_), object_died, new Count(alive_));
  gst_bus_set_sync_handler(bus_, message, this, nullptr);
  gst_element_set_bus(element_, bus_);
  g_autoptr(GstClock) clock = gst_system_clock_obtain();
  gst_element_set_clock(element_, clock);
  gst_element_set_base_time(element_, gst_clock_get_time(clock));
  gst_object_ref_sink(sink_);
  gst_pad_set_element_private(sink_, this);
  gst_pad_set_chain_function(sink_, chain);
  gst_pad_set_event_function(sink_, event);
  gst_pad_set_query_function(sink_, [](GstPad* pad, GstObject* parent, GstQuery* query) -> gboolean {
    return static_cast<Rig*>(gst_pad_get_element_private(pad))->downstream_.answer(query) ||
           gst_pad_query_default(pad, parent, query);
  });
  gst_pad_set_active(sink_, TRUE);
  g_autoptr(GstPad) src = gst_element_get_static_pad(element_, "src");
  gst_pad_link_full(src, sink_, GST_PAD_LINK_CHECK_NOTHING);
}

Rig::~Rig() {
  set_state(GST_STATE_NULL);
  gst_pad_set_active(sink_, FALSE);
  gst_element_set_bus(element_, nullptr);
  for (GstBuffer* frame : frames_) gst_buffer_unref(frame);
  g_autoptr(GstPad) src = gst_element_get_static_pad(element_, "src");
  gst_pad_unlink(src, sink_);
  gst_object_unref(element_);
  gst_object_unref(sink_);
  gst_object_unref(bus_);
  if (!wait_until(2000, [this] { return *alive_ == 0; }))
    complain("something is never freed: the element, or some of the frames pushed into it (" + std::to_string(*alive_) +
             " objects)");
}

bool Rig::set_state(GstState state) {
  const std::lock_guard<std::mutex> lock(flushing_);
  if (state == GST_STATE_PLAYING) errors_ = 0;
  eos_ = false;
  const bool reached = gst_element_set_state(element_, state) != GST_STATE_CHANGE_FAILURE;
  if (!reached && !has_posted_error_) complain("a state change failed, but no error message was posted");
  return reached;
}

void Rig::wait_for_eos(int milliseconds) {
  wait_until(milliseconds, [this] { return eos_ || errors_ > 0; });
}

void Rig::send_upstream(GstEvent* event) {
  const std::lock_guard<std::mutex> lock(flushing_);  // it may be a flushing seek
  gst_pad_push_event(sink_, event);
}

void Rig::query_upstream(GstQuery* query) {
  gst_pad_peer_query(sink_, query);
  gst_query_unref(query);
}

std::vector<std::string> Rig::outputs() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return outputs_;
}

GstBuffer* Rig::take_frame() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (frames_.empty()) return nullptr;
  GstBuffer* frame = frames_.front();
  frames_.pop_front();
  return frame;
}

void Rig::follow(GstBuffer* buffer) {
  if (keep_ == Keep::frames) return;
  ++*alive_;
  gst_mini_object_weak_ref(GST_MINI_OBJECT(buffer), frame_died, new Count(alive_));
  const std::lock_guard<std::mutex> lock(mutex_);
  for (guint i = 0; i < gst_buffer_n_memory(buffer); ++i) pushed_.push_back(gst_buffer_peek_memory(buffer, i));
}

// Output
// ---------------------------------------------------------------------------------------------------------------------

bool Rig::is_ours(GstBuffer* buffer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (guint i = 0; i < gst_buffer_n_memory(buffer); ++i) {
    const GstMemory* memory = gst_buffer_peek_memory(buffer, i);
    for (const GstMemory* pushed : pushed_)
      if (memory == pushed || memory->parent == pushed) return true;
  }
  return gst_buffer_n_memory(buffer) == 0;  // an empty input frame that passed through
}

void Rig::check(GstBuffer* buffer) {
  g_autoptr(GstCaps) caps = gst_pad_get_current_caps(sink_);
  if (!caps) return complain("a frame came out before caps");
  GstVideoInfo video;
  const bool is_video =
      gst_structure_has_name(gst_caps_get_structure(caps, 0), "video/x-raw") && gst_video_info_from_caps(&video, caps);
  std::string samples;
  if (is_video && (keep_ == Keep::samples || !is_ours(buffer))) {
    const auto held = samples_of(buffer, video);
    if (!held) complain("a frame came out that does not hold the picture of its caps");
    samples = held.value_or("");
    if (!gst_buffer_get_video_meta(buffer) && gst_buffer_get_size(buffer) < GST_VIDEO_INFO_SIZE(&video))
      complain("a frame came out that is smaller than its caps say");
  }
  GstMapInfo map;
  if (gst_buffer_map(buffer, &map, GST_MAP_READ)) {
    static std::atomic<guint> sum;
    sum += std::accumulate(map.data, map.data + map.size, 0u);  // reads every byte
    if (!is_video && keep_ == Keep::samples) samples.assign(reinterpret_cast<const char*>(map.data), map.size);
    gst_buffer_unmap(buffer, &map);
  } else if (!is_ours(buffer)) {
    complain("a frame came out that cannot be mapped");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  outputs_.push_back(keep_ == Keep::samples ? samples : std::string());
}

void Rig::keep(GstBuffer* buffer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  frames_.push_back(buffer);
}

GstFlowReturn Rig::chain(GstPad* pad, GstObject*, GstBuffer* buffer) {
  Rig& self = *static_cast<Rig*>(gst_pad_get_element_private(pad));
  if (self.keep_ == Keep::frames) return self.keep(buffer), GST_FLOW_OK;
  self.check(buffer);
  gst_buffer_unref(buffer);
  return ++self.count_ < most_frames ? GST_FLOW_OK : GST_FLOW_EOS;
}

gboolean Rig::event(GstPad* pad, GstObject*, GstEvent* event) {
  Rig& self = *static_cast<Rig*>(gst_pad_get_element_private(pad));
  if (GST_EVENT_TYPE(event) == GST_EVENT_EOS) self.eos_ = true;
  gst_event_unref(event);
  return TRUE;
}

GstBusSyncReply Rig::message(GstBus*, GstMessage* message, gpointer data) {
  Rig& self = *static_cast<Rig*>(data);
  share_context(message);
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
    g_autoptr(GError) error = nullptr;
    gst_message_parse_error(message, &error, nullptr);
    self.has_posted_error_ = true;
    if (++self.errors_ > self.most_errors_) complain(std::string("a second error message: ") + error->message);
    if (!g_utf8_validate(error->message, -1, nullptr)) complain("an error message is not valid UTF-8");
  }
  gst_message_unref(message);
  return GST_BUS_DROP;
}

// Input
// ---------------------------------------------------------------------------------------------------------------------

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

void Input::flush(bool reset_time) {
  send(gst_event_new_flush_start());
  send(gst_event_new_flush_stop(reset_time));
  send_segment();
}

bool Input::send_segment() {
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  return send(gst_event_new_segment(&segment));
}

void Input::release() { gst_element_release_request_pad(rig_.element(), target_); }

bool Input::send(GstEvent* event) {
  // A mixer handles serialized events later, in its own thread, so each event can cause its own error.
  if (GST_EVENT_IS_SERIALIZED(event) && GST_PAD_TEMPLATE_PRESENCE(GST_PAD_PAD_TEMPLATE(target_)) == GST_PAD_REQUEST)
    rig_.allow_error();
  if (GST_EVENT_TYPE(event) != GST_EVENT_FLUSH_START && GST_EVENT_TYPE(event) != GST_EVENT_FLUSH_STOP)
    return gst_pad_push_event(pad_, event);
  const std::lock_guard<std::mutex> lock(rig_.flushing());
  return gst_pad_push_event(pad_, event);
}

bool Input::begin(const std::string& text) {
  g_autoptr(GstCaps) caps = gst_caps_from_string(text.c_str());
  if (!caps) {
    complain("this program made invalid caps: " + text);
    return false;
  }
  send(gst_event_new_stream_start("stream"));
  send(gst_event_new_caps(caps));  // returns TRUE even if the element refuses the caps
  return rig_.errors() == 0 && send_segment();
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

}  // namespace cudavision::streams
