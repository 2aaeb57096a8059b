// SPDX-License-Identifier: LGPL-2.1-or-later
// Random values for the properties of an object.
#pragma once

#include <glib-object.h>

#include <string>
#include <vector>

#include "tests/streams/random.hpp"

namespace cudavision::streams {

class Value {
 public:
  explicit Value(GType type) { g_value_init(&value_, type); }
  Value(const Value& other) : Value(G_VALUE_TYPE(&other.value_)) { g_value_copy(&other.value_, &value_); }
  Value& operator=(const Value&) = delete;
  ~Value() { g_value_unset(&value_); }
  GValue* get() { return &value_; }
  const GValue* get() const { return &value_; }

 private:
  GValue value_ = G_VALUE_INIT;
};

struct Setting {
  std::string name;
  Value value;
};

enum class Mood {
  calm,  ///< mostly useful values
  bold,  ///< also unusable values, and values out of the property's range unless GLib warns about them
};

/// The properties of an object that get random values: writable ones, without names and those that the program's
/// options set.
std::vector<GParamSpec*> drawn_properties(GObject* object);
/// Whether a class of this plugin has the property. GStreamer's own properties fail at some values of their range.
bool is_our_property(const GParamSpec* spec);
/// Draws values for up to `most` writable properties.
std::vector<Setting> draw_settings(Random& random, GObject* object, Mood mood, int most);
/// Sets the properties one by one, in this order.
void apply_settings(GObject* object, const std::vector<Setting>& settings);
/// Writes the settings of an object to stderr, for the report of a failed case.
void log_settings(const char* object, const std::vector<Setting>& settings);
void read_all(GObject* object);

}  // namespace cudavision::streams
