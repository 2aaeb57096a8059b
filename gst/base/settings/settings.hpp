// SPDX-License-Identifier: LGPL-2.1-or-later
// The settings of an element or a pad, in four states. GObject sets one property after another; a frame must never see
// a partial change.
//
//   g_object_set() ──set()──▶ pending ──commit()──▶ committed ──take()──▶ taken ──accept()──▶ working
//                                ▲        at the end of  ▲      for a plan       when it      │
//                                │        g_object_set() │                       was made     │
//                                └──────────── revert(), if no plan can be made ──────────────┘
//
// Plans are made from the taken settings without the object lock, because this can take a long time: it loads kernels
// and waits for the GPU. A state also records which properties g_object_set() has set. A preset does not change their
// values, whether it is set before or after them.
#pragma once

#include <gst/gst.h>

#include <algorithm>
#include <set>
#include <vector>

#include "gst/base/element_backend.hpp"
#include "gst/base/settings/properties.hpp"

namespace cudavision {

/// The transitions between the states, for settings of any type. Each call needs the lock of the object that owns the
/// settings. take(), accept() and revert() are for the thread that makes plans: the streaming thread, or the thread
/// that starts the element.
class SettingsMachine {
 public:
  virtual ~SettingsMachine() = default;

  /// Commits the pending settings: the next plan uses them.
  virtual void commit() = 0;
  /// Copies the committed settings, so that a plan can be made from them.
  virtual void take() = 0;
  /// Records that a plan was made from the taken settings.
  virtual void accept() = 0;
  /// Restores the working settings. Pending settings that are not committed yet stay as they are.
  virtual void revert() = 0;
};

/// Settings of the type S in three states.
template <typename S>
class SettingsOf final : public SettingsMachine {
 public:
  /// Sets one property of `object`, which owns these settings and has the properties `table`, and sends notifications
  /// for the other properties that change with it. Takes the object lock.
  void set(GObject* object, const std::vector<Property<S>>& table, const Property<S>& property, const GValue* value) {
    std::vector<GParamSpec*> changed;
    {
      ObjectLock lock(object);
      uncommitted_ = true;
      property.set(pending_.values, value);
      if (property.implies) property.implies(pending_.values);
      pending_.by_hand.insert(property.spec);
      if (property.preset) {
        const S preset = property.preset(pending_.values);
        for (const Property<S>& other : table) {
          if (pending_.by_hand.count(other.spec) > 0 || other.same(preset, pending_.values)) continue;
          other.copy(preset, pending_.values);
          changed.push_back(other.spec);
        }
      }
    }
    if (property.implied_property) g_object_notify(object, property.implied_property);
    for (GParamSpec* spec : changed) g_object_notify_by_pspec(object, spec);
  }
  /// Gets the pending value of one property. Takes the object lock.
  void get(GObject* object, const Property<S>& property, GValue* value) const {
    ObjectLock lock(object);
    property.get(pending_.values, value);
  }

  /// The caller holds the object lock.
  const S& committed() const { return committed_.values; }
  /// For the thread that makes plans, without the object lock.
  const S& taken() const { return taken_.values; }

  void commit() override {
    committed_ = pending_;
    uncommitted_ = false;
  }
  void take() override { taken_ = committed_; }
  void accept() override { working_ = taken_; }
  void revert() override {
    committed_ = working_;
    if (!uncommitted_) pending_ = working_;
  }

 private:
  struct State {
    S values;
    std::set<const GParamSpec*> by_hand;
  };

  State pending_, committed_, taken_, working_;
  bool uncommitted_ = false;  // whether set() was called since the last commit()
};

/// Whether one of the properties that g_object_set() changed belongs to `type` or to a class derived from it. For use
/// in dispatch_properties_changed(), which GObject calls once at the end of each g_object_set().
inline bool changes_settings(guint count, GParamSpec** changed, GType type) {
  // Read-only properties are not settings.
  return std::any_of(changed, changed + count, [type](GParamSpec* spec) {
    return (spec->flags & G_PARAM_WRITABLE) && g_type_is_a(spec->owner_type, type);
  });
}

}  // namespace cudavision
