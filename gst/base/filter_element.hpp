// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <new>
#include <utility>
#include <vector>

#include "gst/base/properties.hpp"
#include "gst/base/vfunc.hpp"
#include "gst/base/video_filter.hpp"

namespace cudavision {
namespace detail {

struct NoReadings {};

template <typename E, typename = void>
struct ReadingsOf {
  using type = NoReadings;
  static std::vector<Property<NoReadings>> table() { return {}; }
};
template <typename E>
struct ReadingsOf<E, std::void_t<typename E::Readings>> {
  using type = typename E::Readings;
  static std::vector<Property<type>> table() { return E::readings(); }
};

template <typename E, typename = void>
struct SendsData : std::false_type {};
template <typename E>
struct SendsData<E, std::void_t<decltype(E::data_caps)>> : std::true_type {};

}  // namespace detail

/// A GStreamer element made of what is its own. E has
///   static constexpr const char* type_name, *element_name, *long_name, *klass, *description;
///   struct Settings { … };                                             what its properties say, with their defaults
///   static std::vector<Property<Settings>> properties();               called once
///   static Status check(const Settings&);                              whatever the format; every number is in its property's range
///   static Result<FilterPlan> make_plan(const Settings&, const PlanContext&);
/// and, if it has properties to be read only,
///   struct Readings { … };                                             what they say
///   static std::vector<Property<Readings>> readings();                 called once
/// and, if other data than video can go out (CudaVisionFilterClass),
///   static constexpr const char* data_caps;                            of the pad template
///   static GstCaps* transform_data_caps(GstPadDirection, GstCaps*);
///   static GstCaps* fixate_data_caps(const Settings&, const GstVideoInfo&, GstCaps*);
template <typename E>
class FilterElement {
 public:
  static GType get_type() {
    static const GType type = g_type_register_static_simple(cudavision_filter_get_type(), E::type_name, sizeof(Class), class_init,
                                                            sizeof(Instance), instance_init, GTypeFlags(0));
    return type;
  }

  static bool register_in(GstPlugin* plugin) { return gst_element_register(plugin, E::element_name, GST_RANK_NONE, get_type()); }

  using Readings = typename detail::ReadingsOf<E>::type;

  /// Shows other values in the read-only properties.
  static void publish(GstElement* element, const Readings& values) {
    ObjectLock lock(element);
    self(element)->readings = values;
  }

 private:
  using Settings = typename E::Settings;

  struct Instance {
    CudaVisionFilter parent;
    Settings settings, committed, working;
    bool uncommitted;  // something of `settings`
    Readings readings;
  };
  struct Class {
    CudaVisionFilterClass parent_class;
  };

  static Instance* self(gpointer object) { return static_cast<Instance*>(object); }

  static const std::vector<Property<Settings>>& properties() {
    static const std::vector<Property<Settings>> table = E::properties();
    return table;
  }

  static const std::vector<Property<Readings>>& readings() {
    static const std::vector<Property<Readings>> table = detail::ReadingsOf<E>::table();
    return table;
  }

  static void commit(CudaVisionFilter* filter) {
    self(filter)->committed = self(filter)->settings;
    self(filter)->uncommitted = false;
  }
  static void revert(CudaVisionFilter* filter) {
    self(filter)->committed = self(filter)->working;
    if (!self(filter)->uncommitted) self(filter)->settings = self(filter)->working;
  }
  static Status check(CudaVisionFilter* filter) {
    const Settings& committed = self(filter)->committed;
    Status status = check_ranges(committed, properties());
    return status.ok() ? E::check(committed) : status;
  }
  static Result<FilterPlan> make_plan(CudaVisionFilter* filter, const PlanContext& context) {
    if (Status status = check(filter); !status.ok()) return status;
    auto plan = E::make_plan(self(filter)->committed, context);
    if (plan.ok()) self(filter)->working = self(filter)->committed;
    return plan;
  }

  static void set(GObject* object, guint id, const GValue* value, GParamSpec*) {
    const Property<Settings>& property = properties()[id - 1];
    {
      ObjectLock lock(object);
      self(object)->uncommitted = true;
      set_property(self(object)->settings, property, value);
    }
    if (property.implied_property) g_object_notify(object, property.implied_property);
  }

  static void get(GObject* object, guint id, GValue* value, GParamSpec*) {
    ObjectLock lock(object);
    if (id <= properties().size())
      get_property(self(object)->settings, properties()[id - 1], value);
    else
      get_property(self(object)->readings, readings()[id - 1 - properties().size()], value);
  }

  static void finalize(GObject* object) {
    self(object)->settings.~Settings();
    self(object)->committed.~Settings();
    self(object)->working.~Settings();
    self(object)->readings.~Readings();
    G_OBJECT_CLASS(g_type_class_peek(cudavision_filter_get_type()))->finalize(object);
  }

  static void instance_init(GTypeInstance* instance, gpointer) {
    new (&self(instance)->settings) Settings;
    new (&self(instance)->committed) Settings;
    new (&self(instance)->working) Settings;
    new (&self(instance)->readings) Readings;
  }

  static void class_init(gpointer klass, gpointer) {
    GObjectClass* object = G_OBJECT_CLASS(klass);
    object->set_property = vfunc<set>;
    object->get_property = vfunc<get>;
    object->finalize = finalize;
    install_properties(object, properties());
    guint id = guint(properties().size());
    for (const auto& reading : readings()) g_object_class_install_property(object, ++id, reading.spec);

    gst_element_class_set_static_metadata(GST_ELEMENT_CLASS(klass), E::long_name, E::klass, E::description,
                                          "cudavision developers");

    CudaVisionFilterClass* filter = as_filter_class(klass);
    filter->commit = commit;
    filter->revert = revert;
    filter->check = check;
    filter->make_plan = make_plan;
    if constexpr (detail::SendsData<E>::value) {
      add_data_template(GST_ELEMENT_CLASS(klass), E::data_caps);
      filter->transform_data_caps = E::transform_data_caps;
      filter->fixate_data_caps = [](CudaVisionFilter* self_, const GstVideoInfo& video, GstCaps* choices) {
        return E::fixate_data_caps(self(self_)->committed, video, choices);
      };
    }
  }
};

}  // namespace cudavision
