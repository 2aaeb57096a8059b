// SPDX-License-Identifier: LGPL-2.1-or-later
#include "json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>

namespace {

/// Collects `"name": value` pairs.
class Object {
 public:
  void add(const char* name, const std::string& value) {
    members_ += (members_.empty() ? "\"" : ", \"") + std::string(name) + "\": " + value;
  }
  void add_string(const char* name, const char* value) { add(name, value ? json_string(value) : "null"); }
  /// Adds a number from a field of `structure`, if there is such a field.
  void add_number(const char* name, const GstStructure* structure, const char* field) {
    const GValue* value = gst_structure_get_value(structure, field);
    if (!value) return;
    GValue number = G_VALUE_INIT;
    g_value_init(&number, G_TYPE_DOUBLE);
    if (g_value_transform(value, &number)) add(name, json_number(g_value_get_double(&number)));
    g_value_unset(&number);
  }
  /// Adds numbers from the fields with these names, with `-` in place of `_`.
  void add_numbers(std::initializer_list<const char*> names, const GstStructure* structure) {
    for (const char* name : names) add_number(name, structure, field_of(name).c_str());
  }
  /// Adds times in the same way. ns become seconds, and an unknown time becomes null.
  void add_times(std::initializer_list<const char*> names, const GstStructure* structure) {
    for (const char* name : names)
      if (GstClockTime time; gst_structure_get_uint64(structure, field_of(name).c_str(), &time))
        add(name, json_number(GST_CLOCK_TIME_IS_VALID(time) ? double(time) / GST_SECOND : NAN));
  }
  /// Adds a list of texts from a field of `structure`, if there is such a field.
  void add_strings(const char* name, const GstStructure* structure) {
    const GValue* list = gst_structure_get_value(structure, name);
    if (!list || !GST_VALUE_HOLDS_ARRAY(list)) return;
    std::string text;
    for (guint i = 0; i < gst_value_array_get_size(list); ++i)
      text += (i ? ", " : "") + json_string(g_value_get_string(gst_value_array_get_value(list, i)));
    add(name, '[' + text + ']');
  }
  std::string text() const { return '{' + members_ + '}'; }

 private:
  static std::string field_of(std::string name) {
    std::replace(name.begin(), name.end(), '_', '-');
    return name;
  }

  std::string members_;
};

std::string json_regions(const GValue* regions) {
  std::string text;
  const guint count = regions && GST_VALUE_HOLDS_ARRAY(regions) ? gst_value_array_get_size(regions) : 0;
  for (guint i = 0; i < count; ++i) {
    const GstStructure* region = gst_value_get_structure(gst_value_array_get_value(regions, i));
    Object object;
    for (const char* name : {"x", "y", "width", "height", "area", "score"}) object.add_number(name, region, name);
    text += (text.empty() ? "" : ", ") + object.text();
  }
  return '[' + text + ']';
}

void add_object(Object& line, const GstStructure* message) {
  line.add_numbers({"id", "x", "y", "width", "height"}, message);
  for (const char* name : {"zone", "line", "direction"})
    if (const gchar* text = gst_structure_get_string(message, name)) line.add_string(name, text);
  line.add_numbers(
      {"seconds", "path_length", "crossed_left", "crossed_right", "best_x", "best_y", "best_width", "best_height"},
      message);
  line.add_times({"entered", "left", "since", "best_time"}, message);
  line.add_strings("zones", message);
}

}  // namespace

std::string json_string(const std::string& text) {
  gchar* valid = g_utf8_make_valid(text.data(), gssize(text.size()));
  std::string quoted = "\"";
  for (const gchar* c = valid; *c; ++c) {
    if (*c == '"' || *c == '\\') {
      quoted += {'\\', *c};
    } else if (guchar(*c) < 0x20) {
      char escape[8];
      g_snprintf(escape, sizeof escape, "\\u%04x", guint(*c));
      quoted += escape;
    } else {
      quoted += *c;
    }
  }
  g_free(valid);
  return quoted + '"';
}

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  char digits[32];
  if (std::fabs(value) < 1e15 && std::trunc(value) == value) return std::to_string(gint64(value));  // not 1e+05
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

GstClockTime event_time(const GstStructure* message) {
  GstClockTime time = GST_CLOCK_TIME_NONE;
  for (const char* field : {"stream-time", "running-time"})
    if (gst_structure_get_uint64(message, field, &time) && GST_CLOCK_TIME_IS_VALID(time)) break;
  return time;
}

std::string json_line(const std::string& input, const GstStructure* message) {
  Object object;
  const GstClockTime time = event_time(message);
  object.add("input", json_string(input));
  object.add_string("event", gst_structure_get_string(message, "event"));
  object.add("time", json_number(GST_CLOCK_TIME_IS_VALID(time) ? double(time) / GST_SECOND : NAN));
  object.add_numbers({"changed_ratio", "mean_difference"}, message);
  object.add_times({"began", "last_motion"}, message);
  if (gst_structure_has_field(message, "id")) {
    add_object(object, message);
  } else {
    object.add_numbers({"x", "y"}, message);
    object.add("regions", json_regions(gst_structure_get_value(message, "regions")));
  }
  for (const char* field : {"at", "snapshot"})
    if (const gchar* text = gst_structure_get_string(message, field)) object.add_string(field, text);
  return object.text() + '\n';
}
