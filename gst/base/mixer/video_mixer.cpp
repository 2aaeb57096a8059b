// SPDX-License-Identifier: LGPL-2.1-or-later
// GstCudaVisionMixer: the object, its pads, its backend and its plan.
#include "gst/base/mixer/video_mixer.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "gst/base/caps.hpp"
#include "gst/base/mixer/video_mixer_private.hpp"
#include "gst/base/vfunc.hpp"

namespace cudavision {

static void child_proxy_init(gpointer interface, gpointer);

G_DEFINE_ABSTRACT_TYPE_WITH_CODE(GstCudaVisionMixer, cudavision_mixer, GST_TYPE_VIDEO_AGGREGATOR,
                                 G_IMPLEMENT_INTERFACE(GST_TYPE_CHILD_PROXY, child_proxy_init))
G_DEFINE_ABSTRACT_TYPE(GstCudaVisionMixerPad, cudavision_mixer_pad, GST_TYPE_VIDEO_AGGREGATOR_PAD)

namespace video_mixer {

GstAggregatorClass* base_class() { return GST_AGGREGATOR_CLASS(cudavision_mixer_parent_class); }
GstAggregatorPadClass* base_pad_class() { return GST_AGGREGATOR_PAD_CLASS(cudavision_mixer_pad_parent_class); }

bool is_set(const GstVideoInfo& video) {
  return video.finfo && GST_VIDEO_INFO_FORMAT(&video) != GST_VIDEO_FORMAT_UNKNOWN;
}

Inputs::Inputs(GstCudaVisionMixer* self, const ObjectLock&) {
  for (GList* item = GST_ELEMENT(self)->sinkpads; item; item = item->next) {
    GstCudaVisionMixerPad* pad = as_mixer_pad(item->data);
    GstVideoInfo video = GST_VIDEO_AGGREGATOR_PAD(pad)->info;
    replace_meaningless_numbers(video);
    // gst_aggregator_pad_is_inactive() aborts if the pad has no parent. A pad loses its parent only after it has left
    // the list of the element, so it has a parent while the object lock is held.
    const bool inactive = gst_aggregator_pad_is_inactive(GST_AGGREGATOR_PAD(pad));
    held_.push_back(new_reference(GST_PAD(pad)));
    list_.push_back({pad, video, is_set(video), inactive});
  }
}

GstBuffer* frame_of(const MixerInput& input) {
  if (input.inactive || !input.has_caps) return nullptr;
  GstBuffer* buffer = gst_video_aggregator_pad_get_current_buffer(GST_VIDEO_AGGREGATOR_PAD(input.pad));
  return buffer && gst_buffer_get_size(buffer) > 0 ? buffer : nullptr;  // the buffer of a gap is empty
}

namespace {

GObjectClass* object_class() { return G_OBJECT_CLASS(cudavision_mixer_parent_class); }
GstElementClass* element_class() { return GST_ELEMENT_CLASS(cudavision_mixer_parent_class); }

// Backend -------------------------------------------------------------------------------------------------------------

GstStateChangeReturn change_state(GstElement* element, GstStateChange transition) {
  return state_of(element).host.change_state(element_class(), transition);
}

void set_context(GstElement* element, GstContext* context) {
  state_of(element).host.set_context(element_class(), context);
}

gboolean stop(GstAggregator* agg) {
  state_of(agg).advice.clear();
  state_of(agg).host.guard([&] {
    drop_device_state(as_mixer(agg));
    state_of(agg).held.clear();
  });
  return base_class()->stop(agg);
}

}  // namespace

void drop_device_state(GstCudaVisionMixer* self) {
  MixerState& state = *self->state;
  const Inputs inputs(self);
  state.host.finish_or_post_error();
  Gpu::Scope scope(state.host.gpu);
  state.plan.reset();
  state.output_staging.reset();
  for (const MixerInput& input : inputs.list()) {
    input.pad->state->uploaded.reset();
    input.pad->state->staging.reset();
  }
}

Status make_plan(GstCudaVisionMixer* self, const GstVideoInfo& output) {
  MixerState& state = *self->state;
  if (Status status = state.host.finish_work(); !status.ok()) return status;
  Gpu::Scope scope(state.host.gpu);
  state.plan.reset();
  state.output_staging.reset();
  if (!scope.status().ok()) return scope.status();
  auto plan = blend::make(geometry_of(output), color_of(output), state.host.backend(), compositor_division());
  if (!plan.ok()) return plan.error();
  state.plan = std::move(plan.value());
  return {};
}

namespace {

// Pads ----------------------------------------------------------------------------------------------------------------

/// Drops a frame that ends after the largest possible time: the base class would abort. Runs in the upstream thread.
GstPadProbeReturn drop_endless(GstPad* pad, GstPadProbeInfo* info, gpointer) {
  const GstBuffer* buffer = GST_PAD_PROBE_INFO_BUFFER(info);
  const guint64 pts = GST_BUFFER_PTS(buffer), duration = GST_BUFFER_DURATION(buffer), most = G_MAXINT64;
  const bool endless =
      GST_CLOCK_TIME_IS_VALID(pts) && (pts > most || (GST_CLOCK_TIME_IS_VALID(duration) && duration > most - pts));
  const auto element = owned(gst_pad_get_parent_element(pad));
  // Warns once for a series of such frames.
  if (element && std::exchange(as_mixer_pad(pad)->state->endless, endless) < endless)
    GST_ELEMENT_WARNING(element.get(), STREAM, FORMAT,
                        ("%s: a frame is skipped: it ends beyond 2^63 ns", GST_OBJECT_NAME(pad)), (nullptr));
  return endless ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK;
}

/// Whether a sink pad with this number exists or is being added. Called under the object lock.
bool has_number(GstElement* element, guint number) {
  const std::string name = "sink_" + std::to_string(number);
  const auto same = [&](gconstpointer pad) { return name == GST_OBJECT_NAME(pad); };
  for (GList* item = element->sinkpads; item; item = item->next)
    if (same(item->data)) return true;
  return state_of(element).requested.count(number) > 0;
}

/// The number in the name of a pad, as the base class reads it. No value: the element chooses the number.
std::optional<guint> number_in(const gchar* name) {
  if (!name || !g_str_has_prefix(name, "sink_") || !g_ascii_isdigit(name[5])) return {};
  gchar* end;
  const guint64 number = g_ascii_strtoull(name + 5, &end, 10);
  return *end == 0 ? std::optional(guint(number)) : std::nullopt;
}

/// Reserves a number for a new pad: `number`, if it has a value, or a free one. Errors: settings.
Result<guint> take_number(GstElement* element, std::optional<guint> number) {
  MixerState& state = state_of(element);
  const ObjectLock lock(element);
  const int count = element->numsinkpads + int(state.requested.size());
  if (count >= blend::max_pads)
    return Status::settings("no sink pad can be added to the " + std::to_string(count) +
                            " existing ones: the maximum is " + std::to_string(blend::max_pads));
  if (number && has_number(element, *number))
    return Status::settings("sink_" + std::to_string(*number) +
                            " is the name of a pad that the element already has: request another name, or sink_%u");
  if (!number) {
    number = state.next_number;
    while (has_number(element, *number)) ++*number;
  }
  state.next_number = std::max(state.next_number, *number + 1);
  state.requested.insert(*number);
  return *number;
}

/// If a pad cannot be added because its name is taken, the base class would continue to use it after it was freed.
GstPad* request_new_pad(GstElement* element, GstPadTemplate* templ, const gchar* name, const GstCaps* caps) {
  const auto number = take_number(element, number_in(name));
  if (!number.ok()) {
    GST_ELEMENT_WARNING(element, CORE, PAD, ("%s", number.error().message().c_str()), (nullptr));
    return nullptr;
  }
  const std::string own_name = "sink_" + std::to_string(number.value());
  GstPad* pad = element_class()->request_new_pad(element, templ, own_name.c_str(), caps);
  {
    const ObjectLock lock(element);
    state_of(element).requested.erase(number.value());
  }
  if (!pad) return nullptr;
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, drop_endless, nullptr, nullptr);
  gst_child_proxy_child_added(GST_CHILD_PROXY(element), G_OBJECT(pad), GST_OBJECT_NAME(pad));
  return pad;
}

void release_pad(GstElement* element, GstPad* pad) {
  gst_child_proxy_child_removed(GST_CHILD_PROXY(element), G_OBJECT(pad), GST_OBJECT_NAME(pad));
  element_class()->release_pad(element, pad);
}

GObject* get_child_by_index(GstChildProxy* proxy, guint index) {
  ObjectLock lock(proxy);
  gpointer pad = g_list_nth_data(GST_ELEMENT(proxy)->sinkpads, index);
  return pad ? G_OBJECT(gst_object_ref(pad)) : nullptr;
}

guint get_children_count(GstChildProxy* proxy) {
  ObjectLock lock(proxy);
  return GST_ELEMENT(proxy)->numsinkpads;
}

// Object --------------------------------------------------------------------------------------------------------------

enum { PROP_HOST = 1 };

void set_property(GObject* object, guint id, const GValue* value, GParamSpec*) {
  state_of(object).host.set_property(id - PROP_HOST, value);
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec*) {
  state_of(object).host.get_property(id - PROP_HOST, value);
}

void finalize(GObject* object) {
  delete as_mixer(object)->state;
  object_class()->finalize(object);
}

void finalize_pad(GObject* object) {
  delete as_mixer_pad(object)->state;
  G_OBJECT_CLASS(cudavision_mixer_pad_parent_class)->finalize(object);
}

void pad_class_init(GstCudaVisionMixerPadClass* klass) {
  G_OBJECT_CLASS(klass)->finalize = finalize_pad;
  klass->parent_class.parent_class.flush = flush_pad;
  klass->parent_class.prepare_frame = prepare_frame;
  klass->parent_class.clean_frame = clean_frame;
}

void class_init(GstCudaVisionMixerClass* klass) {
  GObjectClass* object = G_OBJECT_CLASS(klass);
  object->set_property = vfunc<set_property>;
  object->get_property = vfunc<get_property>;
  object->finalize = finalize;
  ElementBackend::install_properties(object, PROP_HOST);

  GstElementClass* element = GST_ELEMENT_CLASS(klass);
  element->change_state = vfunc<change_state, GST_STATE_CHANGE_FAILURE>;
  element->set_context = vfunc<set_context>;
  element->request_new_pad = vfunc<request_new_pad, nullptr>;
  element->release_pad = vfunc<release_pad>;

  GstAggregatorClass* aggregator = GST_AGGREGATOR_CLASS(klass);
  aggregator->stop = stop;
  aggregator->aggregate = vfunc<aggregate, GST_FLOW_ERROR>;
  aggregator->sink_query_pre_queue = vfunc<sink_query_pre_queue, FALSE>;
  aggregator->sink_query = vfunc<sink_query, FALSE>;
  aggregator->sink_event_pre_queue = vfunc<sink_event_pre_queue, GST_FLOW_ERROR>;
  aggregator->sink_event = vfunc<sink_event, FALSE>;
  aggregator->src_query = vfunc<src_query, FALSE>;
  aggregator->src_event = vfunc<src_event, FALSE>;
  aggregator->fixate_src_caps = fixate_src_caps;
  aggregator->negotiated_src_caps = vfunc<negotiated_src_caps, FALSE>;
  aggregator->finish_buffer = vfunc<finish_buffer, GST_FLOW_ERROR>;
  aggregator->flush = vfunc<flush, GST_FLOW_ERROR>;
  aggregator->get_next_time = get_next_time;
  aggregator->decide_allocation = vfunc<decide_allocation, FALSE>;

  GstVideoAggregatorClass* mixer = GST_VIDEO_AGGREGATOR_CLASS(klass);
  mixer->update_caps = vfunc<update_caps, gst_caps_new_empty>;
  mixer->create_output_buffer = vfunc<create_output_buffer, GST_FLOW_ERROR>;
  mixer->aggregate_frames = vfunc<aggregate_frames, GST_FLOW_ERROR>;
}

}  // namespace
}  // namespace video_mixer

void add_mixer_pads(GstElementClass* klass, GType sink_pad) {
  const auto caps = owned(video_template_caps());
  const auto add = [&](const char* name, GstPadDirection direction, GstPadPresence presence, GType type) {
    gst_element_class_add_pad_template(klass,
                                       gst_pad_template_new_with_gtype(name, direction, presence, caps.get(), type));
  };
  add("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_TYPE_AGGREGATOR_PAD);
  add("sink_%u", GST_PAD_SINK, GST_PAD_REQUEST, sink_pad);
}

static void child_proxy_init(gpointer interface, gpointer) {
  auto* proxy = static_cast<GstChildProxyInterface*>(interface);
  proxy->get_child_by_index = video_mixer::get_child_by_index;
  proxy->get_children_count = video_mixer::get_children_count;
}

static void cudavision_mixer_pad_init(GstCudaVisionMixerPad* self) { self->state = new MixerPadState; }
static void cudavision_mixer_pad_class_init(GstCudaVisionMixerPadClass* klass) { video_mixer::pad_class_init(klass); }
static void cudavision_mixer_init(GstCudaVisionMixer* self) { self->state = new MixerState(GST_ELEMENT(self)); }
static void cudavision_mixer_class_init(GstCudaVisionMixerClass* klass) { video_mixer::class_init(klass); }

}  // namespace cudavision
