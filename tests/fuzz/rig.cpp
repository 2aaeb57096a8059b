// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rig.hpp"

#include <algorithm>
#include <numeric>

#include "complaints.hpp"
#include "frames.hpp"

namespace cudavision::fuzz {
namespace {

/// More frames than this are not taken: a frame far ahead in time makes a mixer fill all the time before it.
constexpr int most_frames = 100;

/// The CUDA context of the first element that made one: to make another for each case takes longer than the case.
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
  if (!element) return nullptr;
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
void frame_died(gpointer data, GstMiniObject*) {
  object_died(data, nullptr);
}

template <typename F>
bool wait_until(int milliseconds, F&& done) {
  for (; !done(); --milliseconds) {
    if (milliseconds <= 0) return false;
    g_usleep(1000);
  }
  return true;
}

gboolean answer_as_source(GstPad* pad, GstObject* parent, GstQuery* query) {
  const bool is_live = GPOINTER_TO_INT(gst_pad_get_element_private(pad));
  if (GST_QUERY_TYPE(query) != GST_QUERY_LATENCY) return gst_pad_query_default(pad, parent, query);
  gst_query_set_latency(query, is_live, 0, GST_CLOCK_TIME_NONE);
  return TRUE;
}

}  // namespace

Downstream draw_downstream(Random& random, bool mixer) {
  Downstream downstream;
  if (mixer) {
    const std::string most = ",width=(int)[1," + std::to_string(random.between(2, 200)) + "],height=(int)[1,200]";
    downstream.caps = "video/x-raw" + most + random.pick<std::string>({"", "", "", ",format=NV12", ",format=RGBA", ",format=GRAY8", ",format=P010_10LE", ",framerate=30/1"});
    if (random.one_in(2)) downstream.caps = "video/x-raw(memory:CUDAMemory)" + most + ";" + downstream.caps;
    downstream.is_live = random.one_in(6);
  } else if (random.one_in(3)) {
    downstream.caps = random.pick<std::string>({"video/x-raw", "video/x-raw(memory:CUDAMemory);video/x-raw", "video/x-raw;video/x-raw(memory:CUDAMemory)", "video/x-raw(ANY)",
                                                "video/x-raw,width=7", "video/x-raw,format=NV12", "video/x-integral;video/x-raw", "video/x-integral,format=F64LE;video/x-raw"});
  }
  using Pool = Downstream::Pool;
  downstream.pool = random.pick<Pool>({Pool::none, Pool::none, Pool::strange_strides, Pool::plain, Pool::no_video_meta});
  return downstream;
}

// Input -------------------------------------------------------------------------------------------------------------------------

Input::Input(Rig& rig, GstPad* target) : rig_(rig), pad_(gst_pad_new(nullptr, GST_PAD_SRC)), target_(target) {
  ++rig_.inputs_;
  gst_object_ref_sink(pad_);
  gst_pad_set_element_private(pad_, GINT_TO_POINTER(int(rig.downstream_.is_live)));
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

void Input::release() {
  gst_element_release_request_pad(rig_.element_, target_);
}

bool Input::begin(const std::string& text) {
  GstCaps* caps = gst_caps_from_string(text.c_str());
  if (!caps) {
    complain("this program made caps that cannot be: " + text);
    return false;
  }
  send(gst_event_new_stream_start("fuzz"));
  send(gst_event_new_caps(caps));  // is TRUE whatever the element says
  gst_caps_unref(caps);
  if (rig_.errors() > 0) return false;
  GstSegment segment;
  gst_segment_init(&segment, GST_FORMAT_TIME);
  return send(gst_event_new_segment(&segment));
}

GstFlowReturn Input::push(GstBuffer* buffer) {
  ++*rig_.alive_;
  gst_mini_object_weak_ref(GST_MINI_OBJECT(buffer), frame_died, new Count(rig_.alive_));
  {
    const std::lock_guard<std::mutex> lock(rig_.mutex_);
    for (guint i = 0; i < gst_buffer_n_memory(buffer); ++i) rig_.pushed_.push_back(gst_buffer_peek_memory(buffer, i));
  }
  const GstFlowReturn flow = gst_pad_push(pad_, buffer);
  if (flow == GST_FLOW_ERROR && rig_.errors() == 0) complain("a frame ended with an error, but no error message was posted");
  return flow;
}

bool Input::query(GstQuery* query) {
  const bool answered = gst_pad_peer_query(pad_, query);
  gst_query_unref(query);
  return answered;
}

// Rig ---------------------------------------------------------------------------------------------------------------------------

Rig::Rig(const std::string& element, const std::string& backend, const Downstream& downstream)
    : downstream_(downstream), element_(make_element(element, backend)), sink_(gst_pad_new(nullptr, GST_PAD_SINK)), bus_(gst_bus_new()) {
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
  gst_pad_set_query_function(sink_, query);
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
    complain("something is never freed: the element, or some of the frames pushed into it (" + std::to_string(*alive_) + " objects)");
}

bool Rig::set_state(GstState state) {
  if (state == GST_STATE_PLAYING) errors_ = 0;
  eos_ = false;
  const bool reached = gst_element_set_state(element_, state) != GST_STATE_CHANGE_FAILURE;
  if (!reached && errors_ == 0) complain("a state change failed, but no error message was posted");
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

// What comes out ----------------------------------------------------------------------------------------------------------------

bool Rig::is_ours(GstBuffer* buffer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (guint i = 0; i < gst_buffer_n_memory(buffer); ++i) {
    const GstMemory* memory = gst_buffer_peek_memory(buffer, i);
    for (const GstMemory* pushed : pushed_)
      if (memory == pushed || memory->parent == pushed) return true;
  }
  return gst_buffer_n_memory(buffer) == 0;  // an empty frame has passed through
}

void Rig::check(GstBuffer* buffer) {
  GstCaps* caps = gst_pad_get_current_caps(sink_);
  if (!caps) return complain("a frame came out before caps");
  GstVideoInfo video;
  const bool is_video = gst_structure_has_name(gst_caps_get_structure(caps, 0), "video/x-raw") && gst_video_info_from_caps(&video, caps);
  gst_caps_unref(caps);
  std::string samples;
  if (is_video && (downstream_.keeps_samples || !is_ours(buffer))) {
    bool mapped;
    samples = samples_of(buffer, video, mapped);
    if (!mapped) complain("a frame came out that does not hold the picture of its caps");
    if (!gst_buffer_get_video_meta(buffer) && gst_buffer_get_size(buffer) < GST_VIDEO_INFO_SIZE(&video)) complain("a frame came out that is smaller than its caps say");
  }
  GstMapInfo map;
  if (gst_buffer_map(buffer, &map, GST_MAP_READ)) {
    static std::atomic<guint> sum;
    sum += std::accumulate(map.data, map.data + map.size, 0u);  // read every byte
    if (!is_video && downstream_.keeps_samples) samples.assign(reinterpret_cast<const char*>(map.data), map.size);
    gst_buffer_unmap(buffer, &map);
  } else if (!is_ours(buffer)) {
    complain("a frame came out that cannot be mapped");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  outputs_.push_back(downstream_.keeps_samples ? samples : std::string());
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

gboolean Rig::query(GstPad* pad, GstObject* parent, GstQuery* query) {
  Rig& self = *static_cast<Rig*>(gst_pad_get_element_private(pad));
  GstCaps* taken = gst_caps_from_string(self.downstream_.caps.c_str());
  gboolean answered = TRUE;
  if (GST_QUERY_TYPE(query) == GST_QUERY_CAPS) {
    GstCaps* filter;
    gst_query_parse_caps(query, &filter);
    GstCaps* answer = filter ? gst_caps_intersect_full(filter, taken, GST_CAPS_INTERSECT_FIRST) : gst_caps_ref(taken);
    gst_query_set_caps_result(query, answer);
    gst_caps_unref(answer);
  } else if (GST_QUERY_TYPE(query) == GST_QUERY_ACCEPT_CAPS) {
    GstCaps* asked;
    gst_query_parse_accept_caps(query, &asked);
    gst_query_set_accept_caps_result(query, gst_caps_can_intersect(asked, taken));
  } else if (GST_QUERY_TYPE(query) == GST_QUERY_ALLOCATION) {
    self.answer_allocation(query);
  } else {
    answered = gst_pad_query_default(pad, parent, query);
  }
  gst_caps_unref(taken);
  return answered;
}

void Rig::answer_allocation(GstQuery* query) {
  using Kind = Downstream::Pool;
  GstCaps* caps;
  GstVideoInfo video;
  gst_query_parse_allocation(query, &caps, nullptr);
  if (downstream_.pool == Kind::none || !caps || !gst_video_info_from_caps(&video, caps)) return;
  if (!gst_caps_features_is_equal(gst_caps_get_features(caps, 0), GST_CAPS_FEATURES_MEMORY_SYSTEM_MEMORY)) return;
  const guint size = guint(GST_VIDEO_INFO_SIZE(&video));
  GstBufferPool* pool = downstream_.pool == Kind::plain ? gst_buffer_pool_new() : gst_video_buffer_pool_new();
  GstStructure* config = gst_buffer_pool_get_config(pool);
  gst_buffer_pool_config_set_params(config, caps, size, 0, 0);
  const GstAllocationParams odd{GstMemoryFlags(0), 0, 3, 5, {}};
  gst_buffer_pool_config_set_allocator(config, nullptr, &odd);
  if (downstream_.pool == Kind::strange_strides) {
    GstVideoAlignment alignment;
    gst_video_alignment_reset(&alignment);
    alignment.padding_left = 6, alignment.padding_right = 10, alignment.padding_top = 4, alignment.padding_bottom = 2;
    gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
    gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT);
    gst_buffer_pool_config_set_video_alignment(config, &alignment);
    gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
  }
  gst_buffer_pool_set_config(pool, config);
  gst_query_add_allocation_pool(query, pool, size, 0, 0);
  gst_object_unref(pool);
}

GstBusSyncReply Rig::message(GstBus*, GstMessage* message, gpointer data) {
  Rig& self = *static_cast<Rig*>(data);
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_HAVE_CONTEXT) keep_context(message);
  if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
    GError* error;
    gst_message_parse_error(message, &error, nullptr);
    if (++self.errors_ > std::max(1, self.inputs_.load())) complain(std::string("a second error message: ") + error->message);
    if (!g_utf8_validate(error->message, -1, nullptr)) complain("an error message is no UTF-8");
    g_error_free(error);
  }
  gst_message_unref(message);
  return GST_BUS_DROP;
}

bool works(const std::string& name, const std::string& backend, std::string& reason) {
  GstElement* element = make_element(name, backend);
  if (!element) {
    reason = "there is no element " + name + ": is GST_PLUGIN_PATH_1_0 set?";
    return false;
  }
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
