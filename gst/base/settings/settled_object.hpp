// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <new>
#include <string>
#include <vector>

#include "gst/base/doc_uri.hpp"
#include "gst/base/settings/settings.hpp"
#include "gst/base/vfunc.hpp"

namespace cudavision {

/// The base of structs for elements and pads without read-only properties.
struct NoReadings {
  struct Readings {};
  static std::vector<Property<Readings>> readings() { return {}; }
};

/// The GObject class of an element or a pad that is described by a struct E. Instances derive from `Parent`, and keep
/// the settings of E. E has
///   static constexpr const char* type_name;                 the GType name; GStreamer derives names of objects from it
///   struct Settings { … };                                  the values of its properties, with their defaults
///   static std::vector<Property<Settings>> properties();    called once
/// and, unless it derives from NoReadings,
///   struct Readings { … };                                  their values
///   static std::vector<Property<Readings>> readings();      called once
template <GType (*parent_type)(), typename Parent, typename ParentClass, typename E>
class SettledObject {
 public:
  using Settings = typename E::Settings;
  using Readings = typename E::Readings;

  /// Registers the GType. `class_init` has to call init_properties().
  static GType new_type(GClassInitFunc class_init) {
    return g_type_register_static_simple(parent_type(), E::type_name, sizeof(ParentClass), class_init, sizeof(Instance),
                                         instance_init, GTypeFlags(0));
  }

  /// Installs the properties.
  static void init_properties(gpointer klass) {
    GObjectClass* object = G_OBJECT_CLASS(klass);
    object->set_property = vfunc<set>;
    object->get_property = vfunc<get>;
    object->finalize = finalize;
    guint id = 0;
    for (const auto& property : properties()) g_object_class_install_property(object, ++id, property.spec);
    for (const auto& reading : readings()) g_object_class_install_property(object, ++id, reading.spec);
  }

  static const std::vector<Property<Settings>>& properties() {
    static const std::vector<Property<Settings>> table = E::properties();
    return table;
  }

  static SettingsOf<Settings>& settings(gpointer object) { return state(object).settings; }
  /// A copy of the committed settings. Takes the object lock.
  static Settings committed(gpointer object) {
    ObjectLock lock(object);
    return settings(object).committed();
  }
  /// Commits the settings if g_object_set() changed one of them, and returns whether it did. Takes the object lock.
  static bool commit_changes(GObject* object, guint count, GParamSpec** changed) {
    if (!changes_settings(count, changed, G_OBJECT_TYPE(object))) return false;
    ObjectLock lock(object);
    settings(object).commit();
    return true;
  }

  /// Sets the values of the read-only properties. Takes the object lock.
  static void publish(gpointer object, const Readings& values) {
    ObjectLock lock(object);
    state(object).readings = values;
  }

  static GObjectClass* parent_class() { return G_OBJECT_CLASS(g_type_class_peek(parent_type())); }

 private:
  struct State {
    SettingsOf<Settings> settings;
    Readings readings;
  };
  struct Instance {
    Parent parent;
    State state;
  };

  static State& state(gpointer object) { return static_cast<Instance*>(object)->state; }

  static const std::vector<Property<Readings>>& readings() {
    static const std::vector<Property<Readings>> table = E::readings();
    return table;
  }

  static void set(GObject* object, guint id, const GValue* value, GParamSpec*) {
    settings(object).set(object, properties(), properties()[id - 1], value);
  }
  static void get(GObject* object, guint id, GValue* value, GParamSpec*) {
    const std::size_t settable = properties().size();
    if (id <= settable) return settings(object).get(object, properties()[id - 1], value);
    ObjectLock lock(object);
    readings()[id - 1 - settable].get(state(object).readings, value);
  }

  static void instance_init(GTypeInstance* instance, gpointer) { new (&state(instance)) State; }
  static void finalize(GObject* object) {
    state(object).~State();
    parent_class()->finalize(object);
  }
};

/// Sets the metadata of an element class from a struct E, which has
///   static constexpr const char *element_name, *long_name, *klass, *description;
template <typename E>
void set_metadata(gpointer klass) {
  gst_element_class_set_static_metadata(GST_ELEMENT_CLASS(klass), E::long_name, E::klass, E::description,
                                        "cudavision developers");
  const std::string page = doc_uri(std::string("docs/elements/") + E::element_name + ".md");
  if (!page.empty())
    gst_element_class_add_metadata(GST_ELEMENT_CLASS(klass), GST_ELEMENT_METADATA_DOC_URI, page.c_str());
}

}  // namespace cudavision
