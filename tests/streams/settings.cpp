// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/streams/settings.hpp"

#include <gst/gst.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <type_traits>

namespace cudavision::streams {
namespace {

/// Whether an object accepts every value of the type, including values outside the property's range.
bool is_open(const GParamSpec* spec) {
  return g_str_has_prefix(g_type_name(G_PARAM_SPEC_TYPE(spec)), "GstCudaVisionParam");
}

/// Draws a small number or a time. In a bold mood it may be an end of the range, or a number at which arithmetic
/// overflows.
template <typename T, typename Spec>
T whole_number(Random& random, Mood mood, const Spec* spec) {
  const T low = spec->minimum, high = spec->maximum, initial = spec->default_value;
  constexpr gint64 long_time = std::is_signed_v<T> ? 3600000000000 : 1000000000;  // GStreamer's mixer waits for latency
  T value = sizeof(T) == 8 ? T(random.pick<gint64>({gint64(initial), 0, 1, 1000, 40000000, 1000000000, long_time}))
                           : random.pick<T>({initial, 0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 21});
  if (sizeof(T) == 8 && std::is_signed_v<T> && random.one_in(2)) value = T(0) - value;
  const bool bold = mood == Mood::bold && random.one_in(3);
  if (bold)
    value = random.one_in(2) ? T(random.edge())
                             : random.pick<T>({low, high, T(low + 1), T(high - 1), random.around(initial)});
  return bold && is_open(G_PARAM_SPEC(spec)) ? value : std::clamp(value, low, high);
}

double real_number(Random& random, Mood mood, const GParamSpecDouble* spec) {
  const double low = spec->minimum, high = spec->maximum, initial = spec->default_value;
  double value = random.pick<double>(
      {initial, 0, 0.02, 0.1, 0.5, 1, 2, 3.7, 10, random.below(256) / 256.0, random.below(5000) / 256.0});
  const bool bold = mood == Mood::bold && random.one_in(3);
  if (bold && random.one_in(2))
    value = random.pick<double>({low, high, -0.0, 1e-300, -1e-300, 1e300, -1e300, 5e-324, 1e-9, 1 - 1e-16, 1e38,
                                 std::nan(""), std::numeric_limits<double>::infinity()});
  else if (bold)
    value = random.one_in(2) ? double(random.edge()) : double(random.around(gint64(initial * 256))) / 256;
  if (bold && is_open(G_PARAM_SPEC(spec))) return value;
  return std::isnan(value) ? low : std::clamp(value, low, high);
}

/// Points in pixels or in shares of the frame. Some polygons cross themselves, and some points are outside small
/// frames.
std::string points(Random& random, int count) {
  const bool shares = random.below(3) > 0;
  std::string written;
  for (int i = 0; i < 2 * count; ++i)
    written += (i == 0  ? ""
                : i % 2 ? ","
                        : " ") +
               (shares ? "0." + std::to_string(random.below(10)) : std::to_string(random.below(40)));
  return written;
}

/// A text for a property of shapes; empty for other properties.
std::string shapes(Random& random, const char* property) {
  if (std::strcmp(property, "zones") == 0)
    return random.pick<std::string>({"a: 0.0,0.0 1.0,0.0 0.5,1.0; b: 0.,0. 1.,1. 0.,1.", "a: " + points(random, 3),
                                     "a:" + points(random, 4) + ";b :" + points(random, 3), "a: 1,1 2,2",
                                     "a: " + points(random, 60)});
  if (std::strcmp(property, "lines") == 0)
    return random.pick<std::string>({"a: 0.0,0.5 1.0,0.5", "a: " + points(random, 2) + "; b: " + points(random, 2),
                                     "a: 3,3 3,3", points(random, 2)});
  if (std::strcmp(property, "mask-regions") == 0 && random.one_in(2)) return points(random, 3) + ";0,0,4,4";
  return {};
}

std::string rectangle(Random& random) {
  std::string written;
  for (int i = 0; i < 4; ++i) written += (i ? "," : "") + std::to_string(random.below(40));
  return written;
}

std::string polygon(Random& random) {
  std::string written;
  for (int i = random.between(3, 6); i > 0; --i)
    written += (written.empty() ? "" : " ") + std::to_string(random.below(40)) + "," + std::to_string(random.below(40));
  return written;
}

constexpr const char* bad_texts[] = {";",
                                     ",",
                                     ",,,",
                                     "1,2,3",
                                     "1,2,3,4,5",
                                     "-5,-5,9,9",
                                     "0,0,0,0",
                                     "0,0,-1,-1",
                                     "2147483647,2147483647,2147483647,2147483647",
                                     "99999999999999999999,1,1,1",
                                     "1.5,2,3,4",
                                     " 1, 2, 3, 4 ",
                                     "0x10,0,4,4",
                                     "nan,inf,1,1",
                                     "1,1,1,1;",
                                     "0,0 9,9 9,0 0,9",
                                     "1,1 2,2",
                                     "0,0 16384,0 16384,16384 0,16384",
                                     "0,0 -1,5 5,5",
                                     "0.0,0.0 1.0,0.0 1.5,1.0",
                                     ";1,1,1,1",
                                     "%s%n%d",
                                     "a very long name of a type of region",
                                     "\"<&>\"",
                                     "\xc3\xa9",
                                     "\xff\xfe"};

std::string text(Random& random, Mood mood, const char* property) {
  if (random.reads_bytes() && random.below(2)) return random.bytes().text();
  if (mood == Mood::calm || random.one_in(3))
    if (const std::string written = shapes(random, property); !written.empty()) return written;
  if (mood == Mood::calm || random.one_in(3))
    return random.pick<std::string>({"", "face", rectangle(random), rectangle(random) + ";" + rectangle(random),
                                     polygon(random), rectangle(random) + ";" + polygon(random),
                                     "0.1,0.1 0.9,0.2 0.5,0.9", "0.25,0.25,0.5,0.5"});
  if (random.one_in(20)) return std::string(20000, random.pick<char>({'1', ',', ';', 'x'}));
  return bad_texts[random.below(int(G_N_ELEMENTS(bad_texts)))];
}

/// Appends a number. In a bold mood it may be NaN, infinite, or very large or small.
void append_number(GValue* array, Random& random, Mood mood) {
  Value element(G_TYPE_DOUBLE);
  g_value_set_double(element.get(), random.one_in(2) ? random.between(-3, 5) : random.below(1024) / 256.0 - 2);
  if (mood == Mood::bold && random.one_in(40))
    g_value_set_double(element.get(), random.pick<double>({std::numeric_limits<double>::quiet_NaN(),
                                                           std::numeric_limits<double>::infinity(), 1e308, -1e308,
                                                           1e-308, G_MAXINT, -1e10}));
  gst_value_array_append_value(array, element.get());
}

void fill_array(GValue* value, Random& random, Mood mood) {
  int length = random.pick<int>({1, 9, 9, 25, 49, 15, 3, 255});
  if (mood == Mood::bold && random.one_in(3))
    length = random.pick<int>({0, 2, 8, 10, 24, 63 * 63, 64 * 64, 65 * 65, 1000});
  Value other(random.pick<GType>(
      {G_TYPE_INT, G_TYPE_STRING, G_TYPE_UINT64, G_TYPE_BOOLEAN, GST_TYPE_ARRAY, G_TYPE_FLOAT, GST_TYPE_FRACTION}));
  if (G_VALUE_HOLDS_STRING(other.get())) g_value_set_string(other.get(), "five");
  const bool of_others = mood == Mood::bold && random.one_in(6);
  for (int i = 0; i < length; ++i)
    if (of_others)
      gst_value_array_append_value(value, other.get());
    else
      append_number(value, random, mood);
}

/// Draws a value of the property. Returns false for types that are not drawn, such as objects.
bool fill(GValue* value, GParamSpec* spec, Random& random, Mood mood) {
  if (G_IS_PARAM_SPEC_BOOLEAN(spec)) {
    g_value_set_boolean(value, random.below(2));
  } else if (G_IS_PARAM_SPEC_ENUM(spec)) {
    const GEnumClass* values = G_PARAM_SPEC_ENUM(spec)->enum_class;
    g_value_set_enum(value, values->values[random.below(int(values->n_values))].value);
  } else if (G_IS_PARAM_SPEC_INT(spec)) {
    g_value_set_int(value, whole_number<gint>(random, mood, G_PARAM_SPEC_INT(spec)));
  } else if (G_IS_PARAM_SPEC_UINT(spec)) {
    g_value_set_uint(value, whole_number<guint>(random, mood, G_PARAM_SPEC_UINT(spec)));
  } else if (G_IS_PARAM_SPEC_INT64(spec)) {
    g_value_set_int64(value, whole_number<gint64>(random, mood, G_PARAM_SPEC_INT64(spec)));
  } else if (G_IS_PARAM_SPEC_UINT64(spec)) {
    g_value_set_uint64(value, whole_number<guint64>(random, mood, G_PARAM_SPEC_UINT64(spec)));
  } else if (G_IS_PARAM_SPEC_DOUBLE(spec)) {
    g_value_set_double(value, real_number(random, mood, G_PARAM_SPEC_DOUBLE(spec)));
  } else if (G_IS_PARAM_SPEC_STRING(spec)) {
    g_value_set_string(value, random.one_in(8) ? nullptr : text(random, mood, spec->name).c_str());
  } else if (G_VALUE_HOLDS(value, GST_TYPE_ARRAY)) {
    fill_array(value, random, mood);
  } else {
    return false;
  }
  return true;
}

/// Whether a property gets random values. Names do not, and neither do properties that options of this program set.
bool is_drawn(const GParamSpec* spec) {
  if (!(spec->flags & G_PARAM_WRITABLE) || spec->flags & G_PARAM_CONSTRUCT_ONLY) return false;
  for (const char* name : {"name", "parent", "backend", "cuda-device-id"})
    if (std::strcmp(spec->name, name) == 0) return false;
  return true;
}

/// Whether bytes may decide the property. GStreamer's own mixer waits for its latency in real time, which a fuzzing
/// engine would trigger repeatedly.
bool is_quick(const GParamSpec* spec) {
  return is_our_property(spec) || (std::strcmp(spec->name, "latency") && !g_str_has_prefix(spec->name, "min-"));
}

std::vector<GParamSpec*> specs_of(GObject* object) {
  guint count = 0;
  GParamSpec** listed = g_object_class_list_properties(G_OBJECT_GET_CLASS(object), &count);
  std::vector<GParamSpec*> specs(listed, listed + count);
  g_free(listed);
  return specs;
}

}  // namespace

std::vector<GParamSpec*> drawn_properties(GObject* object) {
  std::vector<GParamSpec*> specs = specs_of(object);
  specs.erase(std::remove_if(specs.begin(), specs.end(), [](const GParamSpec* spec) { return !is_drawn(spec); }),
              specs.end());
  return specs;
}

bool is_our_property(const GParamSpec* spec) { return g_str_has_prefix(g_type_name(spec->owner_type), "GstCuda"); }

std::vector<Setting> draw_settings(Random& random, GObject* object, Mood mood, int most) {
  const std::vector<GParamSpec*> specs = drawn_properties(object);
  std::vector<Setting> settings;
  for (int left = specs.empty() ? 0 : random.between(0, most); left > 0; --left) {
    GParamSpec* spec = random.pick(specs);
    if (random.reads_bytes() && !is_quick(spec)) continue;
    Setting setting{spec->name, Value(spec->value_type)};
    if (fill(setting.value.get(), spec, random, is_our_property(spec) ? mood : Mood::calm)) settings.push_back(setting);
  }
  return settings;
}

void apply_settings(GObject* object, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) g_object_set_property(object, setting.name.c_str(), setting.value.get());
}

void log_settings(const char* object, const std::vector<Setting>& settings) {
  std::string line;
  for (const Setting& setting : settings) {
    g_autofree gchar* text = gst_value_serialize(setting.value.get());
    line += " " + setting.name + "=" + std::string(text ? text : "NULL").substr(0, 100);
  }
  if (!line.empty()) std::fprintf(stderr, "  %s:%s\n", object, line.c_str());
}

void read_all(GObject* object) {
  for (GParamSpec* spec : specs_of(object)) {
    if (!(spec->flags & G_PARAM_READABLE)) continue;
    Value value(spec->value_type);
    g_object_get_property(object, spec->name, value.get());
  }
}

}  // namespace cudavision::streams
