// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/video_filter.hpp"

#include <atomic>
#include <optional>
#include <utility>

#include "gst/base/caps.hpp"
#include "gst/base/frame.hpp"
#include "gst/base/host.hpp"
#include "gst/base/properties.hpp"
#include "gst/base/vfunc.hpp"

GST_DEBUG_CATEGORY_STATIC(cudavision_filter_debug);
#define GST_CAT_DEFAULT cudavision_filter_debug

namespace cudavision {

namespace {

constexpr Choice region_choices[] = {{"frame", "The whole frame"},
                                     {"roi", "Only inside the regions of interest that come with the buffer"},
                                     {"outside-roi", "Only outside the regions of interest"}};  // rows as Region::Mode

enum { PROP_HOST = 1, PROP_REGION = PROP_HOST + Host::property_count, PROP_ROI_TYPE };

/// What the base's own properties say, besides those of Host.
struct BaseSettings {
  Region::Mode region = Region::Mode::frame;
  std::string roi_type;
};

}  // namespace

struct FilterState {
  explicit FilterState(GstElement* element) : host(element) {}

  Host host;
  // Under the object lock:
  BaseSettings settings, committed, working;
  bool uncommitted = false;  // something of `settings`
  // Set by any thread, under the object lock together with what was committed; taken by the streaming thread:
  std::atomic<bool> changed{false};
  std::atomic<bool> sends_data{false};  // as `data`, for any thread
  // Of the streaming thread:
  GstVideoInfo video;
  std::unique_ptr<GstCaps, void (*)(GstCaps*)> data{nullptr, gst_caps_unref};  // what goes out, where it is not video
  bool same_memory = false;                                                    // on both sides
  bool to_device = false;                                                      // frames go out in CUDA memory
  bool has_worked = false;                                                     // a plan could be made since start
  std::unique_ptr<Processor> processor;
  Region::Mode region = Region::Mode::frame;  // these three belong to the plan in use
  std::string roi_type;
  std::string advice;
  Status renewed;                                            // of the plan made for the frame that is on its way
  bool dropped = false;                                      // the last frame, as it did not fit its caps
  std::unique_ptr<DeviceImage> device_input, device_output;  // made when the first frame in system memory needs them
};

G_DEFINE_ABSTRACT_TYPE_WITH_CODE(CudaVisionFilter, cudavision_filter, GST_TYPE_BASE_TRANSFORM,
                                 GST_DEBUG_CATEGORY_INIT(cudavision_filter_debug, "cudavision", 0, "cudavision elements"))

namespace {

FilterState& state_of(gpointer object) { return *as_filter(object)->state; }
CudaVisionFilterClass* class_of(gpointer object) { return as_filter_class(G_OBJECT_GET_CLASS(object)); }

bool uses_cuda(gpointer object) { return state_of(object).host.uses_cuda(); }

// Backend -----------------------------------------------------------------------------------------------------------------------

GstStateChangeReturn change_state(GstElement* element, GstStateChange transition) {
  return state_of(element).host.change_state(GST_ELEMENT_CLASS(cudavision_filter_parent_class), transition);
}

void set_context(GstElement* element, GstContext* context) {
  state_of(element).host.set_context(context);
  GST_ELEMENT_CLASS(cudavision_filter_parent_class)->set_context(element, context);
}

gboolean query(GstBaseTransform* trans, GstPadDirection direction, GstQuery* query) {
  if (GST_QUERY_TYPE(query) == GST_QUERY_CONTEXT && state_of(trans).host.gpu.answer_context_query(GST_ELEMENT(trans), query))
    return TRUE;
  if (!GST_BASE_TRANSFORM_CLASS(cudavision_filter_parent_class)->query(trans, direction, query)) return FALSE;
  if (GST_QUERY_TYPE(query) == GST_QUERY_CAPS) {
    // The base class puts first what the other side likes, whatever its memory.
    GstCaps* caps;
    gst_query_parse_caps_result(query, &caps);
    caps = cuda_memory_first(gst_caps_ref(caps));
    if (direction == GST_PAD_SINK && gst_caps_is_empty(caps)) state_of(trans).host.check_memory_of_peer(trans->srcpad);
    gst_query_set_caps_result(query, caps);
    gst_caps_unref(caps);
  }
  return TRUE;
}

// Plans -------------------------------------------------------------------------------------------------------------------------

/// Makes a plan of the committed settings for the current caps, and takes it into use.
Status make_plan(CudaVisionFilter* self) {
  FilterState& state = *self->state;
  Gpu::Scope scope(state.host.gpu);
  std::string advice;
  {
    ObjectLock lock(self);
    if (state.host.backend() == Backend::cuda && !scope.ok()) return Status::resource("the CUDA context cannot be made current");
    auto plan = class_of(self)->make_plan(self, {state.video, *state.host.backend(), state.committed.region, state.processor.get(),
                                                 state.host.gpu, state.data.get()});
    if (!plan.ok()) return plan.error();
    state.processor = std::move(plan.value().processor);
    state.region = state.committed.region;
    state.roi_type = state.committed.roi_type;
    state.working = state.committed;
    state.has_worked = true;
    advice = std::move(plan.value().advice);
  }
  if (advice != state.advice && !advice.empty()) GST_ELEMENT_WARNING(self, STREAM, FORMAT, ("%s", advice.c_str()), (nullptr));
  state.advice = std::move(advice);

  GstBaseTransform* trans = GST_BASE_TRANSFORM(self);
  const bool passthrough = state.processor->passes_through() && state.same_memory;
  if (passthrough != bool(gst_base_transform_is_passthrough(trans))) {
    gst_base_transform_set_passthrough(trans, passthrough);
    gst_base_transform_reconfigure_src(trans);   // to have a pool, or none
    gst_base_transform_reconfigure_sink(trans);  // so that upstream asks whose pool it is to use
  }
  return {};
}

/// The same; but once frames have flowed, settings that cannot be are reported, and given up for the last that could.
Status renew_plan(CudaVisionFilter* self) {
  FilterState& state = *self->state;
  Status status;
  do {  // again where other settings were committed meanwhile
    state.changed = false;
    status = make_plan(self);
    if (status.code() != Status::Code::settings || !state.has_worked) return status;
    GST_ELEMENT_WARNING(self, LIBRARY, SETTINGS, ("%s", message_text(status).c_str()), ("the last good settings stay in use"));
    {
      ObjectLock lock(self);
      if (state.changed) continue;
      state.committed = state.working;
      if (!state.uncommitted) state.settings = state.working;
      class_of(self)->revert(self);
    }
    status = make_plan(self);
  } while (!status.ok() && state.changed);
  return status;
}

gboolean start(GstBaseTransform* trans) {
  CudaVisionFilter* self = as_filter(trans);
  Status status;
  {
    ObjectLock lock(self);
    self->state->has_worked = false;
    self->state->advice.clear();
    self->state->renewed = Status();
    self->state->dropped = false;
    status = class_of(self)->check(self);
  }
  if (status.ok()) return TRUE;
  self->state->host.post_error(status);
  return FALSE;
}

void drop_device_images(FilterState& state) {
  state.device_input.reset();
  state.device_output.reset();
}

void interrupt(CudaVisionFilter* self, Interruption why) {
  FilterState& state = *self->state;
  if (!state.processor) return;
  Gpu::Scope scope(state.host.gpu);
  state.processor->interrupted(why, GST_ELEMENT(self));
}

gboolean stop(GstBaseTransform* trans) {
  FilterState& state = state_of(trans);
  interrupt(as_filter(trans), Interruption::eos);  // where there was no EOS
  Gpu::Scope scope(state.host.gpu);
  state.processor.reset();
  state.data.reset();
  state.sends_data = false;
  drop_device_images(state);
  return TRUE;
}

// Caps --------------------------------------------------------------------------------------------------------------------------

GstCaps* transform_caps(GstBaseTransform* trans, GstPadDirection direction, GstCaps* caps, GstCaps* filter) {
  const bool with_cuda = state_of(trans).host.may_use_cuda();
  GstCaps* result = any_memory_caps(caps, with_cuda);
  if (const auto transform_data = class_of(trans)->transform_data_caps) {
    GstCaps* usable = usable_caps(caps, with_cuda);
    GstCaps* other = transform_data(direction, usable);
    result = gst_caps_make_writable(result);
    gst_caps_append(result, (direction == GST_PAD_SINK ? any_memory_data_caps : any_memory_caps)(other, with_cuda));
    gst_caps_unref(other);
    gst_caps_unref(usable);
  }
  return filter_caps(result, filter);
}

GstCaps* fixate_caps(GstBaseTransform* trans, GstPadDirection direction, GstCaps* caps, GstCaps* othercaps) {
  GstPad* peer = gst_pad_get_peer(direction == GST_PAD_SINK ? trans->srcpad : trans->sinkpad);
  othercaps = choose_memory(othercaps, caps, peer);
  if (peer) gst_object_unref(peer);
  GstVideoInfo video;
  if (!is_video_caps(othercaps) && video_from_caps(video, caps)) {
    ObjectLock lock(trans);
    othercaps = class_of(trans)->fixate_data_caps(as_filter(trans), video, othercaps);
  }
  return gst_caps_fixate(othercaps);
}

gboolean set_caps(GstBaseTransform* trans, GstCaps* incaps, GstCaps* outcaps) {
  CudaVisionFilter* self = as_filter(trans);
  FilterState& state = *self->state;
  GstVideoInfo video;
  if (!video_from_caps(video, incaps)) {
    GST_ELEMENT_ERROR(self, STREAM, FORMAT, ("the incoming caps describe no raw video"), ("%" GST_PTR_FORMAT, incaps));
    return FALSE;
  }
  state.to_device = is_cuda_caps(outcaps);
  state.same_memory = is_cuda_caps(incaps) == state.to_device;
  const bool to_data = !is_video_caps(outcaps);
  if (state.processor && !gst_video_info_is_equal(&video, &state.video)) {
    interrupt(self, Interruption::caps);
    Gpu::Scope scope(state.host.gpu);
    state.processor.reset();
  }
  state.video = video;
  state.data.reset(to_data ? gst_caps_ref(outcaps) : nullptr);
  state.sends_data = to_data;
  drop_device_images(state);
  const Status status = renew_plan(self);
  if (status.ok()) return TRUE;
  self->state->host.post_error(status);
  return FALSE;
}

gboolean get_unit_size(GstBaseTransform*, GstCaps* caps, gsize* size) {
  GstVideoInfo video;
  if (!video_from_caps(video, caps)) return FALSE;
  *size = GST_VIDEO_INFO_SIZE(&video);
  return TRUE;
}

// Allocation --------------------------------------------------------------------------------------------------------------------

gboolean propose_allocation(GstBaseTransform* trans, GstQuery* decide_query, GstQuery* query) {
  CudaVisionFilter* self = as_filter(trans);
  // Without a decide_query frames pass through, and downstream has been asked.
  const bool asked = GST_BASE_TRANSFORM_CLASS(cudavision_filter_parent_class)->propose_allocation(trans, decide_query, query);
  if (decide_query ? !asked : asked && gst_query_get_n_allocation_pools(query) > 0) return asked;
  GstCaps* caps;
  gboolean need_pool;
  gst_query_parse_allocation(query, &caps, &need_pool);
  if (!caps) return FALSE;
  if (!self->state->host.propose_pool(query, caps, need_pool)) return FALSE;
  if (!decide_query) return TRUE;  // the metas are downstream's to take
  gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
  gst_query_add_allocation_meta(query, GST_VIDEO_CROP_META_API_TYPE, nullptr);
  return TRUE;
}

gboolean decide_allocation(GstBaseTransform* trans, GstQuery* query) {
  CudaVisionFilter* self = as_filter(trans);
  GstCaps* caps;
  gst_query_parse_allocation(query, &caps, nullptr);
  if (!caps) return FALSE;
  if (!is_video_caps(caps)) {  // new_output() allocates
    while (gst_query_get_n_allocation_pools(query) > 0) gst_query_remove_nth_allocation_pool(query, 0);
    return GST_BASE_TRANSFORM_CLASS(cudavision_filter_parent_class)->decide_allocation(trans, query);
  }
  if (!self->state->host.decide_pool(query, caps)) return FALSE;
  return GST_BASE_TRANSFORM_CLASS(cudavision_filter_parent_class)->decide_allocation(trans, query);
}

/// Frames of another CUDA context than ours have come: ours becomes theirs.
Status follow_context(CudaVisionFilter* self, GstBuffer* buffer) {
  FilterState& state = *self->state;
  if (!state.host.gpu.is_foreign(buffer)) return {};
  GST_INFO_OBJECT(self, "going over to the CUDA context of the incoming frames");
  {
    Gpu::Scope scope(state.host.gpu);
    interrupt(self, Interruption::discont);
    state.processor.reset();
    drop_device_images(state);
  }
  if (Status status = state.host.gpu.adopt(buffer); !status.ok()) return status;
  gst_base_transform_reconfigure_src(GST_BASE_TRANSFORM(self));
  return renew_plan(self);
}

GstFlowReturn prepare_output_buffer(GstBaseTransform* trans, GstBuffer* inbuf, GstBuffer** outbuf) {
  CudaVisionFilter* self = as_filter(trans);
  FilterState& state = *self->state;
  if (uses_cuda(self) && Gpu::is_device_buffer(inbuf)) {
    if (Status status = follow_context(self, inbuf); !status.ok()) {
      self->state->host.post_error(status);
      return GST_FLOW_ERROR;
    }
  }
  if (!state.processor) return GST_FLOW_NOT_NEGOTIATED;  // why none could be made has been said, of an earlier frame
  if (state.data) {
    Gpu::Scope scope(state.host.gpu);
    const auto made = state.processor->new_output();
    if (!made.ok()) {
      self->state->host.post_error(made.error());
      return GST_FLOW_ERROR;
    }
    *outbuf = made.value();
    return class_of(self)->parent_class.copy_metadata(trans, inbuf, *outbuf) ? GST_FLOW_OK : GST_FLOW_ERROR;
  }
  const GstFlowReturn flow = GST_BASE_TRANSFORM_CLASS(cudavision_filter_parent_class)->prepare_output_buffer(trans, inbuf, outbuf);
  if (flow != GST_FLOW_OK) return flow;
  if (gst_base_transform_is_passthrough(trans)) {
    // The frame stays shared; only what says of it is our own.
    if (state.processor->adds_metas() && !gst_buffer_is_writable(inbuf)) *outbuf = gst_buffer_copy(inbuf);
    return flow;
  }
  if (!uses_cuda(self)) return flow;
  if (Gpu::is_device_buffer(*outbuf) ? !state.host.gpu.is_foreign(*outbuf) : !state.to_device) return flow;

  // The pool was decided on before the context changed, or there is none, as frames passed until now. Until it is decided on anew, with
  // the next frame, take one from elsewhere.
  GstCaps* caps = gst_pad_get_current_caps(trans->srcpad);
  guint size;
  GstBufferPool* pool = caps ? state.host.gpu.new_device_pool(caps, 0, 0, &size) : nullptr;
  gst_clear_caps(&caps);
  gst_clear_buffer(outbuf);
  GstBuffer* fresh = nullptr;
  if (pool) {
    if (gst_buffer_pool_set_active(pool, TRUE) && gst_buffer_pool_acquire_buffer(pool, &fresh, nullptr) == GST_FLOW_OK)
      class_of(self)->parent_class.copy_metadata(trans, inbuf, fresh);
    gst_buffer_pool_set_active(pool, FALSE);
    gst_object_unref(pool);
  }
  if (!fresh) {
    self->state->host.post_error(Status::resource("no frame can be allocated in the CUDA context of the incoming frames"));
    return GST_FLOW_ERROR;
  }
  *outbuf = fresh;
  return GST_FLOW_OK;
}

// Metas -------------------------------------------------------------------------------------------------------------------------

gboolean transform_meta(GstBaseTransform* trans, GstBuffer* outbuf, GstMeta* meta, GstBuffer* inbuf) {
  // Video metas do not apply to tables.
  if (state_of(trans).data)
    return GST_BASE_TRANSFORM_CLASS(cudavision_filter_parent_class)->transform_meta(trans, outbuf, meta, inbuf);
  // Format and size stay, and with them the sense of every meta but the crop, which has been carried out. (The base class drops those
  // that describe memory.)
  return meta->info->api != GST_VIDEO_CROP_META_API_TYPE;
}

/// Calls f(meta) with each GstVideoRegionOfInterestMeta of a buffer.
template <typename F>
void for_each_roi(GstBuffer* buffer, F&& f) {
  gpointer cursor = nullptr;
  while (GstMeta* meta = gst_buffer_iterate_meta_filtered(buffer, &cursor, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE))
    f(reinterpret_cast<GstVideoRegionOfInterestMeta*>(meta));
}

/// A rectangle of an uncropped frame, in pixels of the picture cut out of it at `origin`; what lies before it is cut off.
Rect in_picture(const GstVideoRegionOfInterestMeta* roi, CropOrigin origin) {
  const gint64 x0 = gint64(roi->x) - origin.x, y0 = gint64(roi->y) - origin.y;
  const gint64 x1 = x0 + roi->w, y1 = y0 + roi->h;
  const auto clip = [](gint64 value) { return int(CLAMP(value, 0, 1 << 20)); };
  return {clip(x0), clip(y0), clip(x1) - clip(x0), clip(y1) - clip(y0)};
}

gboolean copy_metadata(GstBaseTransform* trans, GstBuffer* inbuf, GstBuffer* outbuf) {
  if (!GST_BASE_TRANSFORM_CLASS(cudavision_filter_parent_class)->copy_metadata(trans, inbuf, outbuf)) return FALSE;
  if (gst_buffer_get_video_crop_meta(inbuf)) {
    const CropOrigin origin = crop_origin(inbuf);
    for_each_roi(outbuf, [&](GstVideoRegionOfInterestMeta* roi) {
      const Rect rect = in_picture(roi, origin);
      roi->x = rect.x, roi->y = rect.y, roi->w = rect.width, roi->h = rect.height;
    });
  }
  return TRUE;
}

// Frames ------------------------------------------------------------------------------------------------------------------------

Region region_of(CudaVisionFilter* self, GstBuffer* buffer) {
  Region region;
  region.mode = self->state->region;
  const std::string& type = self->state->roi_type;
  if (region.mode == Region::Mode::frame) return region;
  const CropOrigin origin = crop_origin(buffer);
  for_each_roi(buffer, [&](const GstVideoRegionOfInterestMeta* roi) {
    const char* name = g_quark_to_string(roi->roi_type);
    if (type.empty() || (name && type == name)) region.rects.push_back(in_picture(roi, origin));
  });
  return region;
}

Result<const Image*> device_image(FilterState& state, std::unique_ptr<DeviceImage>& image) {
  if (!image) {
    auto made = state.host.gpu.allocate(geometry_of(state.video));
    if (!made.ok()) return made.error();
    image = std::move(made.value());
  }
  return &image->image();
}

/// The error of an outgoing frame that cannot be mapped: the next one will be no better.
Status unwritable(const Status& status) {
  return Status::resource("cannot write to a buffer of the output pool: " + status.message());
}

/// `inbuf` and `outbuf` share their memory, or are the same, where the frame passes through.
Status process_on_cuda(CudaVisionFilter* self, GstBuffer* inbuf, GstBuffer* outbuf, const Region& region) {
  FilterState& state = *self->state;
  Gpu& gpu = state.host.gpu;
  const bool passing = gst_base_transform_is_passthrough(GST_BASE_TRANSFORM(self));
  const bool writes = !passing && !state.data;  // into a frame
  // If a frame is written all the same, it goes over to the other memory.
  const bool looks_only = state.data || state.processor->passes_through();
  const bool device_in = Gpu::is_device_buffer(inbuf), device_out = writes && Gpu::is_device_buffer(outbuf);
  const auto flags = [](GstMapFlags access, bool device) { return device ? GstMapFlags(access | Gpu::map_flag()) : access; };
  MappedFrame in(inbuf, state.video, flags(GST_MAP_READ, device_in));
  if (!in.status().ok()) return in.status();
  std::optional<MappedFrame> out;
  if (writes) {
    out.emplace(outbuf, state.video, flags(GST_MAP_WRITE, device_out));
    if (!out->status().ok()) return unwritable(out->status());
  }

  using Picture = Result<const Image*>;
  const Picture src = device_in                  ? Picture(&in.image())
                      : looks_only && device_out ? Picture(&out->image())
                                                 : device_image(state, state.device_input);
  if (!src.ok()) return src.error();
  const Picture dst = looks_only ? src : device_out ? Picture(&out->image()) : device_image(state, state.device_output);
  if (!dst.ok()) return dst.error();
  if (device_in) gpu.acquire_to_read(inbuf);
  if (device_out) gpu.acquire_to_write(outbuf);

  Status status;
  if (!device_in) status = gpu.upload(in.image(), *src.value());
  if (status.ok())
    status = state.processor->submit(
        {*src.value(), looks_only ? nullptr : dst.value(), region, gpu.queue(), [&gpu] { return gpu.finish(); }});
  if (status.ok() && writes && !device_out) status = gpu.download(*dst.value(), out->image());
  // Always waited for: the input goes back to its owner on return, and whoever gets the output gets it finished.
  const Status finished = gpu.finish();
  if (device_out) gpu.release(outbuf);
  return status.ok() ? finished : status;
}

Status process_on_cpu(CudaVisionFilter* self, GstBuffer* inbuf, GstBuffer* outbuf, const Region& region) {
  FilterState& state = *self->state;
  MappedFrame in(inbuf, state.video, GST_MAP_READ);
  if (!in.status().ok()) return in.status();
  std::optional<MappedFrame> out;
  if (!gst_base_transform_is_passthrough(GST_BASE_TRANSFORM(self)) && !state.data) {
    out.emplace(outbuf, state.video, GST_MAP_WRITE);
    if (!out->status().ok()) return unwritable(out->status());
  }
  return state.processor->submit({in.image(), out ? &out->image() : nullptr, region, {}, [] { return Status(); }});
}

FrameTimes times_of(GstBaseTransform* trans, GstBuffer* buffer) {
  FrameTimes times;
  times.timestamp = GST_BUFFER_PTS(buffer);
  times.duration = GST_BUFFER_DURATION(buffer);
  if (trans->segment.format == GST_FORMAT_TIME) {  // of others, as of a file's bytes, GStreamer must not be asked
    times.stream_time = gst_segment_to_stream_time(&trans->segment, GST_FORMAT_TIME, times.timestamp);
    times.running_time = gst_segment_to_running_time(&trans->segment, GST_FORMAT_TIME, times.timestamp);
  }
  return times;
}

/// Comes first with each frame: what is decided here, the base class asks about later.
void before_transform(GstBaseTransform* trans, GstBuffer* buffer) {
  CudaVisionFilter* self = as_filter(trans);
  FilterState& state = *self->state;
  const GstClockTime time = times_of(trans, buffer).stream_time;
  if (GST_CLOCK_TIME_IS_VALID(time)) gst_object_sync_values(GST_OBJECT(trans), time);
  if (!state.processor) return;
  if (GST_BUFFER_IS_DISCONT(buffer)) interrupt(self, Interruption::discont);
  if (state.changed) state.renewed = renew_plan(self);
}

GstFlowReturn transform(GstBaseTransform* trans, GstBuffer* inbuf, GstBuffer* outbuf) {
  CudaVisionFilter* self = as_filter(trans);
  FilterState& state = *self->state;
  Status status = std::exchange(state.renewed, Status());
  if (status.ok()) {
    const bool cuda = uses_cuda(self);
    Gpu::Scope scope(state.host.gpu);
    if (cuda && !scope.ok())
      status = Status::resource("the CUDA context cannot be made current");
    else
      status = (cuda ? process_on_cuda : process_on_cpu)(self, inbuf, outbuf, region_of(self, inbuf));
    if (status.ok()) state.processor->finished({GST_ELEMENT(self), outbuf, times_of(trans, inbuf)});
  }
  const bool first_dropped = !std::exchange(state.dropped, status.code() == Status::Code::frame);
  if (state.dropped) {
    if (first_dropped)
      GST_ELEMENT_WARNING(self, STREAM, FORMAT, ("%s", status.message().c_str()), ("frames are dropped until one fits"));
    return GST_BASE_TRANSFORM_FLOW_DROPPED;
  }
  if (status.ok()) return GST_FLOW_OK;
  self->state->host.post_error(status);
  return GST_FLOW_ERROR;
}

GstFlowReturn transform_ip(GstBaseTransform* trans, GstBuffer* buffer) { return transform(trans, buffer, buffer); }

gboolean sink_event(GstBaseTransform* trans, GstEvent* event) {
  if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP) interrupt(as_filter(trans), Interruption::flush);
  if (GST_EVENT_TYPE(event) == GST_EVENT_EOS) interrupt(as_filter(trans), Interruption::eos);
  return GST_BASE_TRANSFORM_CLASS(cudavision_filter_parent_class)->sink_event(trans, event);
}

// Object ------------------------------------------------------------------------------------------------------------------------

void commit(gpointer object) {
  FilterState& state = state_of(object);
  {
    ObjectLock lock(object);
    state.committed = state.settings;
    state.uncommitted = false;
    class_of(object)->commit(as_filter(object));
    state.changed = true;
  }
  if (state.sends_data) gst_base_transform_reconfigure_src(GST_BASE_TRANSFORM(object));  // caps of data may follow settings
}

void constructed(GObject* object) {
  G_OBJECT_CLASS(cudavision_filter_parent_class)->constructed(object);
  commit(object);
}

/// Comes once for each g_object_set, when all its properties are set.
void dispatch_properties_changed(GObject* object, guint count, GParamSpec** changed) {
  if (changes_settings(count, changed, cudavision_filter_get_type())) commit(object);
  G_OBJECT_CLASS(cudavision_filter_parent_class)->dispatch_properties_changed(object, count, changed);
}

void set_base_property(GObject* object, guint id, const GValue* value, GParamSpec* spec) {
  ObjectLock lock(object);
  FilterState& state = state_of(object);
  if (id < PROP_REGION) return state.host.set_property(id - PROP_HOST, value);
  BaseSettings& settings = state.settings;
  state.uncommitted = true;
  switch (id) {
    case PROP_REGION:
      settings.region = Region::Mode(g_value_get_enum(value));
      break;
    case PROP_ROI_TYPE:
      settings.roi_type = g_value_get_string(value) ? g_value_get_string(value) : "";
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

void get_base_property(GObject* object, guint id, GValue* value, GParamSpec* spec) {
  ObjectLock lock(object);
  const FilterState& state = state_of(object);
  if (id < PROP_REGION) return state.host.get_property(id - PROP_HOST, value);
  switch (id) {
    case PROP_REGION:
      g_value_set_enum(value, gint(state.settings.region));
      break;
    case PROP_ROI_TYPE:
      g_value_set_string(value, state.settings.roi_type.empty() ? nullptr : state.settings.roi_type.c_str());
      break;
    default:
      G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

void finalize(GObject* object) {
  delete as_filter(object)->state;
  G_OBJECT_CLASS(cudavision_filter_parent_class)->finalize(object);
}

}  // namespace

void add_data_template(GstElementClass* klass, const char* text) {
  GstCaps *data = gst_caps_from_string(text), *caps = video_template_caps();
  gst_caps_append(caps, any_memory_data_caps(data, true));
  gst_caps_unref(data);
  gst_element_class_add_pad_template(klass, gst_pad_template_new("src", GST_PAD_SRC, GST_PAD_ALWAYS, caps));
  gst_caps_unref(caps);
}

static void cudavision_filter_init(CudaVisionFilter* self) { self->state = new FilterState(GST_ELEMENT(self)); }

static void add_pad_template(GstElementClass* klass, const char* name, GstPadDirection direction) {
  GstCaps* caps = video_template_caps();
  gst_element_class_add_pad_template(klass, gst_pad_template_new(name, direction, GST_PAD_ALWAYS, caps));
  gst_caps_unref(caps);
}

static void cudavision_filter_class_init(CudaVisionFilterClass* klass) {
  GObjectClass* object = G_OBJECT_CLASS(klass);
  object->constructed = vfunc<constructed>;
  object->dispatch_properties_changed = vfunc<dispatch_properties_changed>;
  object->set_property = vfunc<set_base_property>;
  object->get_property = vfunc<get_base_property>;
  object->finalize = finalize;

  Host::install_properties(object, PROP_HOST);
  g_object_class_install_property(
      object, PROP_REGION,
      g_param_spec_enum("region", "Region", "The part of the frame that is processed; the rest is copied bit for bit",
                        enum_from_table("CudaVisionRegion", region_choices), gint(Region::Mode::frame), playing_property));
  g_object_class_install_property(
      object, PROP_ROI_TYPE,
      g_param_spec_string("roi-type", "Region type", "Only regions of interest of this type count (none given: all)", nullptr,
                          uncontrolled_property));

  GstElementClass* element = GST_ELEMENT_CLASS(klass);
  element->change_state = vfunc<change_state, GST_STATE_CHANGE_FAILURE>;
  element->set_context = vfunc<set_context>;
  add_pad_template(element, "sink", GST_PAD_SINK);
  add_pad_template(element, "src", GST_PAD_SRC);

  GstBaseTransformClass* trans = GST_BASE_TRANSFORM_CLASS(klass);
  trans->passthrough_on_same_caps = FALSE;
  trans->query = vfunc<query, FALSE>;
  trans->start = vfunc<start, FALSE>;
  trans->stop = vfunc<stop, FALSE>;
  trans->transform_caps = vfunc<transform_caps, gst_caps_new_empty>;
  trans->fixate_caps = vfunc<fixate_caps, gst_caps_new_empty>;
  trans->set_caps = vfunc<set_caps, FALSE>;
  trans->get_unit_size = vfunc<get_unit_size, FALSE>;
  trans->propose_allocation = vfunc<propose_allocation, FALSE>;
  trans->decide_allocation = vfunc<decide_allocation, FALSE>;
  trans->prepare_output_buffer = vfunc<prepare_output_buffer, GST_FLOW_ERROR>;
  trans->transform_meta = vfunc<transform_meta, FALSE>;
  trans->copy_metadata = vfunc<copy_metadata, FALSE>;
  trans->sink_event = vfunc<sink_event, FALSE>;
  trans->before_transform = vfunc<before_transform>;
  trans->transform = vfunc<transform, GST_FLOW_ERROR>;
  trans->transform_ip = vfunc<transform_ip, GST_FLOW_ERROR>;
  trans->transform_ip_on_passthrough = TRUE;
}

}  // namespace cudavision
