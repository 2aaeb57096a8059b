// SPDX-License-Identifier: LGPL-2.1-or-later
// GstCudaVisionFilter: the object, its properties, its backend and its plans.
#include "gst/base/caps.hpp"
#include "gst/base/filter/video_filter_private.hpp"
#include "gst/base/settings/properties.hpp"
#include "gst/base/vfunc.hpp"

namespace cudavision {

G_DEFINE_ABSTRACT_TYPE(GstCudaVisionFilter, cudavision_filter, GST_TYPE_BASE_TRANSFORM)

namespace video_filter {

GstBaseTransformClass* base_class() { return GST_BASE_TRANSFORM_CLASS(cudavision_filter_parent_class); }

namespace {

GObjectClass* object_class() { return G_OBJECT_CLASS(cudavision_filter_parent_class); }
GstElementClass* element_class() { return GST_ELEMENT_CLASS(cudavision_filter_parent_class); }

constexpr Choice region_choices[] = {
    {Region::Mode::frame, "frame", "The whole frame"},
    {Region::Mode::inside, "roi",
     "Only inside the regions of interest that come with the buffer, and the shapes in regions"},
    {Region::Mode::outside, "outside-roi", "Only outside all of these"}};
constexpr Choice shape_choices[] = {{RegionShape::rectangle, "rectangle", "The box itself"},
                                    {RegionShape::ellipse, "ellipse", "The ellipse that fills the box"}};

enum { PROP_HOST = 1, PROP_OWN = PROP_HOST + ElementBackend::property_count };

using Row = Property<FilterSettings>;

const std::vector<Row>& properties() {
  static const std::vector<Row> table{
      Row::choice("region", "Region", &FilterSettings::region, enum_from_table("GstCudaVisionRegion", region_choices),
                  "The part of the frame that is processed; the rest is copied bit for bit"),
      Row::text("roi-type", "Region type", &FilterSettings::roi_type,
                "Only regions of interest of this type count; without a type, all count"),
      Row::number("region-margin", "Region margin", &FilterSettings::region_margin, 0, 10,
                  "Share of the box of a region of interest that is added on each of its four sides, {}"),
      Row::choice("region-shape", "Region shape", &FilterSettings::region_shape,
                  enum_from_table("GstCudaVisionRegionShape", shape_choices),
                  "The part of the box of a region of interest, with its margin, that counts"),
      Row::text("regions", "Regions", &FilterSettings::regions,
                "Shapes that count in addition to the regions of interest: rectangles x,y,width,height and polygons "
                "x,y x,y x,y, with ; between them, in pixels of the frame or in shares of it (0.5)"),
  };
  return table;
}

/// Calls f with the settings of the base class, and then with the settings of the subclass.
template <typename F>
void for_each_settings(GstCudaVisionFilter* self, F&& f) {
  f(self->state->settings);
  f(class_of(self)->settings(self));
}

// Backend -------------------------------------------------------------------------------------------------------------

GstStateChangeReturn change_state(GstElement* element, GstStateChange transition) {
  return state_of(element).host.change_state(element_class(), transition);
}

void set_context(GstElement* element, GstContext* context) {
  state_of(element).host.set_context(element_class(), context);
}

// Plans ---------------------------------------------------------------------------------------------------------------

/// Sets GstBaseTransform's passthrough mode as the processor requires.
void update_passthrough(GstCudaVisionFilter* self) {
  GstBaseTransform* trans = GST_BASE_TRANSFORM(self);
  const bool passthrough = self->state->processor->passes_through() && self->state->same_memory;
  if (passthrough == bool(gst_base_transform_is_passthrough(trans))) return;
  gst_base_transform_set_passthrough(trans, passthrough);
  self->state->host.gpu.learn_handover(nullptr);  // until the next allocation query
  gst_base_transform_reconfigure_src(trans);      // makes or drops the pool
  gst_base_transform_reconfigure_sink(trans);     // so that upstream asks again which pool to use
}

/// Takes the committed settings, and checks those that do not depend on the caps.
Status take_settings(GstCudaVisionFilter* self) {
  {
    const ObjectLock lock(self);
    for_each_settings(self, [](SettingsMachine& machine) { machine.take(); });
  }
  const FilterSettings& settings = self->state->settings.taken();
  Status status = check_ranges(settings, properties());
  if (status.ok()) status = check_shapes(settings);
  return status.ok() ? class_of(self)->check(self) : status;
}

/// Makes a plan from the committed settings for the current caps, and starts to use it.
Status make_plan(GstCudaVisionFilter* self) {
  FilterState& state = *self->state;
  Gpu::Scope scope(state.host.gpu);
  if (!scope.status().ok()) return scope.status();
  if (Status status = complete_until(self, 0); !status.ok()) return status;
  if (Status status = take_settings(self); !status.ok()) return status;
  const FilterSettings& settings = state.settings.taken();
  std::string left_out;
  auto shapes = own_shapes(settings, state.video, !class_of(self)->examines, state.run.fitted, left_out);
  if (!shapes.ok()) return shapes.error();
  auto plan =
      class_of(self)->make_plan(self, {state.video, state.host.backend(), settings.region, state.processor.get(),
                                       state.host.gpu, state.data.get(), state.kept, state.run.fitted});
  if (!plan.ok()) return plan.error();
  if (Status status = state.host.finish_work(); !status.ok()) return status;  // before the previous plan ends
  state.processor = std::move(plan.value().processor);
  state.in_use = settings;
  state.own_shapes = std::move(shapes.value());
  state.run.has_worked = true;
  {
    const ObjectLock lock(self);
    for_each_settings(self, [](SettingsMachine& machine) { machine.accept(); });
  }
  post_advice(GST_ELEMENT(self), std::move(plan.value().advice), state.run.advice);
  post_advice(GST_ELEMENT(self), unused_shapes(state.in_use), state.run.unused);
  post_advice(GST_ELEMENT(self), std::move(left_out), state.run.left_out);
  update_passthrough(self);
  return {};
}

}  // namespace

Status renew_plan(GstCudaVisionFilter* self) {
  FilterState& state = *self->state;
  Status status;
  do {  // repeated if other settings were committed meanwhile
    const bool changed = state.changed.exchange(false);
    status = make_plan(self);
    if (status.code() != Status::Code::settings || !state.run.has_worked) return status;
    if (!changed) return status;  // the frame changed, and these are the last good settings
    GST_ELEMENT_WARNING(self, LIBRARY, SETTINGS, ("%s", message_text(status).c_str()),
                        ("the last good settings stay in use"));
    {
      ObjectLock lock(self);
      if (state.changed) continue;
      for_each_settings(self, [](SettingsMachine& machine) { machine.revert(); });
    }
    status = make_plan(self);
  } while (!status.ok() && state.changed);
  return status;
}

void finish_work(GstCudaVisionFilter* self) {
  FilterState& state = *self->state;
  const std::lock_guard lock(state.processing);
  const Gpu::Scope scope(state.host.gpu);
  const Status reported = complete_until(self, 0), finished = state.host.finish_work();
  if (!reported.ok() || !finished.ok()) state.host.post_error(reported.ok() ? finished : reported);
}

void interrupt(GstCudaVisionFilter* self, Interruption why) {
  FilterState& state = *self->state;
  const std::lock_guard lock(state.processing);
  if (!state.processor) return;
  Gpu::Scope scope(state.host.gpu);
  (void)complete_until(self, 0);  // an error is posted with the next frame, or by finish_work()
  state.processor->interrupted(why, GST_ELEMENT(self));
}

namespace {

gboolean start(GstBaseTransform* trans) {
  GstCudaVisionFilter* self = as_filter(trans);
  FilterState& state = *self->state;
  state.run = {};
  const Status status = take_settings(self);
  if (status.ok()) return TRUE;
  state.host.post_error(status);
  return FALSE;
}

gboolean stop(GstBaseTransform* trans) {
  FilterState& state = state_of(trans);
  state.reporter.reset();
  state.deadline.reset();
  state.host.guard([&] {
    interrupt(as_filter(trans), Interruption::eos);  // for streams that end without EOS
    finish_work(as_filter(trans));
  });
  Gpu::Scope scope(state.host.gpu);
  state.pending.clear();
  state.held.clear();
  state.holds_last = state.skipped = false;
  state.latency = 0;
  state.processor.reset();
  state.kept.reset();
  state.data.reset();
  state.sends_data = false;
  state.reset_staging();
  return TRUE;
}

// Object --------------------------------------------------------------------------------------------------------------

void commit(GstCudaVisionFilter* self) {
  FilterState& state = *self->state;
  {
    ObjectLock lock(self);
    for_each_settings(self, [](SettingsMachine& machine) { machine.commit(); });
    state.changed = true;
  }
  // The caps of data may depend on settings.
  if (state.sends_data) gst_base_transform_reconfigure_src(GST_BASE_TRANSFORM(self));
}

void dispatch_properties_changed(GObject* object, guint count, GParamSpec** changed) {
  if (changes_settings(count, changed, cudavision_filter_get_type())) commit(as_filter(object));
  object_class()->dispatch_properties_changed(object, count, changed);
}

void set_property(GObject* object, guint id, const GValue* value, GParamSpec*) {
  FilterState& state = state_of(object);
  if (id >= PROP_OWN) return state.settings.set(object, properties(), properties()[id - PROP_OWN], value);
  state.host.set_property(id - PROP_HOST, value);
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec*) {
  const FilterState& state = state_of(object);
  if (id >= PROP_OWN) return state.settings.get(object, properties()[id - PROP_OWN], value);
  state.host.get_property(id - PROP_HOST, value);
}

/// Sets the default of qos, which properties passed to g_object_new() then override.
void constructed(GObject* object) {
  gst_base_transform_set_qos_enabled(GST_BASE_TRANSFORM(object), !class_of(object)->examines);
  object_class()->constructed(object);
}

void finalize(GObject* object) {
  delete as_filter(object)->state;
  object_class()->finalize(object);
}

void add_pad_template(GstElementClass* klass, const char* name, GstPadDirection direction, const Owned<GstCaps>& caps) {
  gst_element_class_add_pad_template(klass, gst_pad_template_new(name, direction, GST_PAD_ALWAYS, caps.get()));
}

void class_init(GstCudaVisionFilterClass* klass) {
  GObjectClass* object = G_OBJECT_CLASS(klass);
  object->dispatch_properties_changed = vfunc<dispatch_properties_changed>;
  object->set_property = vfunc<set_property>;
  object->get_property = vfunc<get_property>;
  object->constructed = vfunc<constructed>;
  object->finalize = finalize;
  ElementBackend::install_properties(object, PROP_HOST);
  guint id = PROP_OWN;
  for (const auto& property : properties()) g_object_class_install_property(object, id++, property.spec);

  GstElementClass* element = GST_ELEMENT_CLASS(klass);
  element->change_state = vfunc<change_state, GST_STATE_CHANGE_FAILURE>;
  element->set_context = vfunc<set_context>;
  add_pad_template(element, "sink", GST_PAD_SINK, owned(video_template_caps()));
  add_pad_template(element, "src", GST_PAD_SRC, owned(video_template_caps()));

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
  trans->generate_output = vfunc<generate_output, GST_FLOW_ERROR>;
  trans->before_transform = vfunc<before_transform>;
  trans->transform = vfunc<transform, GST_FLOW_ERROR>;
  trans->transform_ip = vfunc<transform_ip, GST_FLOW_ERROR>;
  trans->transform_ip_on_passthrough = TRUE;
}

}  // namespace
}  // namespace video_filter

const char* region_name(Region::Mode mode) { return nick_of(mode, video_filter::region_choices); }

void add_data_template(GstElementClass* klass, const std::string& text) {
  const auto data = owned(gst_caps_from_string(text.c_str())), caps = owned(video_template_caps());
  gst_caps_append(caps.get(), any_memory_data_caps(data.get(), true));
  video_filter::add_pad_template(klass, "src", GST_PAD_SRC, caps);
}

static void cudavision_filter_init(GstCudaVisionFilter* self) { self->state = new FilterState(GST_ELEMENT(self)); }
static void cudavision_filter_class_init(GstCudaVisionFilterClass* klass) { video_filter::class_init(klass); }

}  // namespace cudavision
