// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/fuzz/rig.hpp"

#include <algorithm>
#include <numeric>

#include "tests/fuzz/complaints.hpp"
#include "tests/fuzz/frames.hpp"

namespace cudavision::fuzz {
namespace {

/// The sink pad accepts at most this many frames: a mixer fills the whole time before a frame with a distant timestamp.
constexpr int most_frames = 100;

/// The CUDA context of the first element that created one. All cases share it,
/// because creating one takes longer than a case.
std::mutex context_mutex;
GstContext* cuda_context = nullptr;

void keep_context(GstMessage* message) {
  GstContext* context = nullptr;
  gst_message_parse_have_context(message, &context);
  const std::lock_guard<std::mutex> lock(context_mutex);
  if (!cuda_context && gst_context_has_context_type(context, "gst.cuda.context"))
    cuda_context = context;
  else
    gst_context_unref(context);
}

GstElement* make_element(const std::string& name, const std::string& backend) {
  GstElement* element = gst_element_factory_make(name.c_str(), nullptr);
  gst_object_ref_sink(element);
  gst_util_set_object_arg(G_OBJECT(element), "backend", backend.c_str());
  const std::lock_guard<std::mutex> lock(context_mutex);
  if (cuda_context) gst_element_set_context(element, cuda_context);
  return element;
}

using Count = std::shared_ptr<std::atomic<int>>;

void object_died(gpointer data, GObject*) {
  auto* count = static_cast<Count*>(data);
  --**count;
  delete count;
}
void frame_died(gpointer data, GstMiniObject*) { object_died(data, nullptr); }

template <typename F>
bool wait_until(int milliseconds, F&& done) {
  for (; !done(); --milliseconds) {
    if (milliseconds <= 0) return false;
    g_usleep(1000);
  }
  return true;
}

}  // namespace

Rig::Rig(const std::string& element, const std::string& backend, const Downstream& downstream, bool keeps_samples)
    : downstream_(downstream),
      keeps_samples_(keeps_samples),
      element_(make_element(element, backend)),
      sink_(gst_pad_new(nullptr, GST_PAD_SINK)),
      bus_(gst_bus_new()) {
  g_object_weak_ref(G_OBJECT(element_), object_died, new Count(alive_));
  gst_bus_set_sync_handler(bus_, message, this, nullptr);
  gst_element_set_bus(element_, bus_);
  GstClock* clock = gst_system_clock_obtain();
  gst_element_set_clock(element_, clock);
  gst_element_set_base_time(element_, gst_clock_get_time(clock));
  gst_object_unref(clock);
  gst_object_ref_sink(sink_);
  gst_pad_set_element_private(sink_, this);
  gst_pad_set_chain_function(sink_, chain);
  gst_pad_set_event_function(sink_, event);
  gst_pad_set_query_function(sink_, [](GstPad* pad, GstObject* parent, GstQuery* query) -> gboolean {
    return static_cast<Rig*>(gst_pad_get_element_private(pad))->downstream_.answer(query) ||
           gst_pad_query_default(pad, parent, query);
  });
  gst_pad_set_active(sink_, TRUE);
  GstPad* src = gst_element_get_static_pad(element_, "src");
  gst_pad_link_full(src, sink_, GST_PAD_LINK_CHECK_NOTHING);
  gst_object_unref(src);
}

Rig::~Rig() {
  set_state(GST_STATE_NULL);
  gst_pad_set_active(sink_, FALSE);
  gst_element_set_bus(element_, nullptr);
  GstPad* src = gst_element_get_static_pad(element_, "src");
  gst_pad_unlink(src, sink_);
  gst_object_unref(src);
  gst_object_unref(element_);
  gst_object_unref(sink_);
  gst_object_unref(bus_);
  if (!wait_until(2000, [this] { return *alive_ == 0; }))
    complain("something is never freed: the element, or some of the frames pushed into it (" + std::to_string(*alive_) +
             " objects)");
}

bool Rig::set_state(GstState state) {
  if (state == GST_STATE_PLAYING) errors_ = 0;
  eos_ = false;
  const bool reached = gst_element_set_state(element_, state) != GST_STATE_CHANGE_FAILURE;
  if (!reached && !has_posted_error_) complain("a state change failed, but no error message was posted");
  return reached;
}

void Rig::wait_for_eos(int milliseconds) {
  wait_until(milliseconds, [this] { return eos_ || errors_ > 0; });
}

void Rig::query_upstream(GstQuery* query) {
  gst_pad_peer_query(sink_, query);
  gst_query_unref(query);
}

std::vector<std::string> Rig::outputs() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return outputs_;
}

void Rig::follow(GstBuffer* buffer) {
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
  GstCaps* caps = gst_pad_get_current_caps(sink_);
  if (!caps) return complain("a frame came out before caps");
  GstVideoInfo video;
  const bool is_video =
      gst_structure_has_name(gst_caps_get_structure(caps, 0), "video/x-raw") && gst_video_info_from_caps(&video, caps);
  gst_caps_unref(caps);
  std::string samples;
  if (is_video && (keeps_samples_ || !is_ours(buffer))) {
    bool mapped;
    samples = samples_of(buffer, video, mapped);
    if (!mapped) complain("a frame came out that does not hold the picture of its caps");
    if (!gst_buffer_get_video_meta(buffer) && gst_buffer_get_size(buffer) < GST_VIDEO_INFO_SIZE(&video))
      complain("a frame came out that is smaller than its caps say");
  }
  GstMapInfo map;
  if (gst_buffer_map(buffer, &map, GST_MAP_READ)) {
    static std::atomic<guint> sum;
    sum += std::accumulate(map.data, map.data + map.size, 0u);  // reads every byte
    if (!is_video && keeps_samples_) samples.assign(reinterpret_cast<const char*>(map.data), map.size);
    gst_buffer_unmap(buffer, &map);
  } else if (!is_ours(buffer)) {
    complain("a frame came out that cannot be mapped");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  outputs_.push_back(keeps_samples_ ? samples : std::string());
}

GstFlowReturn Rig::chain(GstPad* pad, GstObject*, GstBuffer* buffer) {
  Rig& self = *static_cast<Rig*>(gst_pad_get_element_private(pad));
  self.check(buffer);
  gst_buffer_unref(buffer);
  return ++self.frames_ < most_frames ? GST_FLOW_OK : GST_FLOW_EOS;
}

gboolean Rig::event(GstPad* pad, GstObject*, GstEvent* event) {
  Rig& self = *static_cast<Rig*>(gst_pad_get_element_private(pad));
  if (GST_EVENT_TYPE(event) == GST_EVENT_EOS) self.eos_ = true;
  gst_event_unref(event);
  return TRUE;
}

GstBusSyncReply Rig::message(GstBus*, GstMessage* message, gpointer data) {
  Rig& self = *static_cast<Rig*>(data);
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_HAVE_CONTEXT) keep_context(message);
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
    GError* error;
    gst_message_parse_error(message, &error, nullptr);
    self.has_posted_error_ = true;
    if (++self.errors_ > self.most_errors_) complain(std::string("a second error message: ") + error->message);
    if (!g_utf8_validate(error->message, -1, nullptr)) complain("an error message is not valid UTF-8");
    g_error_free(error);
  }
  gst_message_unref(message);
  return GST_BUS_DROP;
}

bool works(const std::string& name, const std::string& backend, std::string& reason) {
  GstElement* element = make_element(name, backend);
  GstBus* bus = gst_bus_new();
  gst_element_set_bus(element, bus);
  const bool opened = gst_element_set_state(element, GST_STATE_READY) != GST_STATE_CHANGE_FAILURE;
  if (GstMessage* message = gst_bus_pop_filtered(bus, GST_MESSAGE_ERROR)) {
    GError* error;
    gst_message_parse_error(message, &error, nullptr);
    reason = error->message;
    g_error_free(error);
    gst_message_unref(message);
  }
  gst_element_set_state(element, GST_STATE_NULL);
  gst_element_set_bus(element, nullptr);
  gst_object_unref(bus);
  gst_object_unref(element);
  return opened;
}

}  // namespace cudavision::fuzz
