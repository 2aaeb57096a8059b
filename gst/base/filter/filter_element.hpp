// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "gst/base/filter/video_filter.hpp"
#include "gst/base/settings/settled_object.hpp"

namespace cudavision {

/// The base of structs for elements that only change pictures.
struct PictureFilter : NoReadings {
  static constexpr bool examines = false, sends_data = false;
};

/// A GStreamer element with one sink pad and one source pad, described by a struct E. E has the members that
/// SettledObject and set_metadata() require, and also
///   static constexpr const char* element_name;
///   static Status check(const Settings&);                 checks settings that do not depend on the format
///   static Result<FilterPlan> make_plan(const Settings&, const PlanContext&);
///   static constexpr bool examines;                       whether it examines each frame and posts the results
///   static constexpr bool sends_data;                     whether it can send data other than video
/// and, if it sends data (see GstCudaVisionFilterClass),
///   static std::string data_caps();                       for the pad template
///   static GstCaps* transform_data_caps(GstPadDirection, GstCaps*);
///   static GstCaps* fixate_data_caps(const Settings&, const GstVideoInfo&, GstCaps*);
template <typename E>
class FilterElement {
  using Object = SettledObject<cudavision_filter_get_type, GstCudaVisionFilter, GstCudaVisionFilterClass, E>;

 public:
  static bool register_in(GstPlugin* plugin) {
    return gst_element_register(plugin, E::element_name, GST_RANK_NONE, Object::new_type(class_init));
  }

  /// The table of E.
  static const std::vector<Property<typename E::Settings>>& properties() { return Object::properties(); }

  /// Sets the values of the read-only properties.
  static void publish(GstElement* element, const typename Object::Readings& values) {
    Object::publish(element, values);
  }

 private:
  static Status check(GstCudaVisionFilter* filter) {
    const auto& taken = Object::settings(filter).taken();
    Status status = check_ranges(taken, Object::properties());
    return status.ok() ? E::check(taken) : status;
  }

  static Result<FilterPlan> make_plan(GstCudaVisionFilter* filter, const PlanContext& context) {
    return E::make_plan(Object::settings(filter).taken(), context);
  }

  static void class_init(gpointer klass, gpointer) {
    Object::init_properties(klass);
    set_metadata<E>(klass);
    GstCudaVisionFilterClass* filter = as_filter_class(klass);
    filter->examines = E::examines;
    filter->settings = [](GstCudaVisionFilter* self) -> SettingsMachine& { return Object::settings(self); };
    filter->check = check;
    filter->make_plan = make_plan;
    if constexpr (E::sends_data) {
      add_data_template(GST_ELEMENT_CLASS(klass), E::data_caps());
      filter->transform_data_caps = E::transform_data_caps;
      filter->fixate_data_caps = [](GstCudaVisionFilter* self, const GstVideoInfo& video, GstCaps* choices) {
        return E::fixate_data_caps(Object::settings(self).committed(), video, choices);
      };
    }
  }
};

}  // namespace cudavision
