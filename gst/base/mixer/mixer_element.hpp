// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "gst/base/mixer/video_mixer.hpp"
#include "gst/base/settings/settled_object.hpp"

namespace cudavision {

/// The state of a sink pad for the current frame, with the committed settings of the pad.
template <typename PadSettings>
struct SettledInput : MixerInput {
  PadSettings settings;
};

/// A GStreamer element that mixes its sink pads into one picture, described by a struct E. E has the members that
/// SettledObject and set_metadata() require, and
///   static constexpr const char* element_name;
///   struct Pad { … };                                            describes the sink pads, as SettledObject requires
///   using Inputs = std::vector<SettledInput<Pad::Settings>>;     the sink pads, the lowest first
///   static void apply(GstAggregator*, const Settings&);          called after each commit, without the object lock
///   static PictureSize natural_size(const Settings&, const Inputs&, int par_n, int par_d);
///   static MixerLayout lay_out(const Settings&, const Inputs&, const GstVideoInfo& output);
/// The last two implement MixerSettings. All values that the property ranges allow must be valid,
/// because settings are not checked later.
template <typename E>
class MixerElement {
  using Object = SettledObject<cudavision_mixer_get_type, GstCudaVisionMixer, GstCudaVisionMixerClass, E>;
  using Pad =
      SettledObject<cudavision_mixer_pad_get_type, GstCudaVisionMixerPad, GstCudaVisionMixerPadClass, typename E::Pad>;

 public:
  static bool register_in(GstPlugin* plugin) {
    return gst_element_register(plugin, E::element_name, GST_RANK_NONE, Object::new_type(class_init));
  }

 private:
  struct Settings final : MixerSettings {
    /// The caller holds the object lock.
    Settings(GstCudaVisionMixer* self, const std::vector<MixerInput>& pads) : own(Object::settings(self).committed()) {
      for (const MixerInput& pad : pads) inputs.push_back({pad, Pad::committed(pad.pad)});
    }
    PictureSize natural_size(int par_n, int par_d) const override { return E::natural_size(own, inputs, par_n, par_d); }
    MixerLayout lay_out(const GstVideoInfo& output) const override { return E::lay_out(own, inputs, output); }

    const typename E::Settings own;
    typename E::Inputs inputs;
  };

  static void properties_changed(GObject* object, guint count, GParamSpec** changed) {
    if (Object::commit_changes(object, count, changed)) E::apply(GST_AGGREGATOR(object), Object::committed(object));
    Object::parent_class()->dispatch_properties_changed(object, count, changed);
  }
  static void pad_properties_changed(GObject* pad, guint count, GParamSpec** changed) {
    const auto mixer = owned(gst_object_get_parent(GST_OBJECT(pad)));  // nullptr while the pad is made
    {
      std::optional<ObjectLock> no_snapshot;
      if (mixer) no_snapshot.emplace(mixer.get());
      Pad::commit_changes(pad, count, changed);
    }
    Pad::parent_class()->dispatch_properties_changed(pad, count, changed);
  }

  static void pad_class_init(gpointer klass, gpointer) {
    Pad::init_properties(klass);
    G_OBJECT_CLASS(klass)->dispatch_properties_changed = vfunc<pad_properties_changed>;
  }

  static void class_init(gpointer klass, gpointer) {
    Object::init_properties(klass);
    G_OBJECT_CLASS(klass)->dispatch_properties_changed = vfunc<properties_changed>;
    set_metadata<E>(klass);
    add_mixer_pads(GST_ELEMENT_CLASS(klass), Pad::new_type(pad_class_init));
    GstCudaVisionMixerClass* mixer = as_mixer_class(klass);
    mixer->settings = [](GstCudaVisionMixer* self,
                         const std::vector<MixerInput>& inputs) -> std::unique_ptr<MixerSettings> {
      return std::make_unique<Settings>(self, inputs);
    };
  }
};

}  // namespace cudavision
