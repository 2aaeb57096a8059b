// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/settings/properties.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <memory>

#include "gst/base/frame.hpp"

namespace cudavision {

namespace {

/// Replaces "{}" by the range. The result is never freed.
const char* with_range(std::string blurb, double least, double most) {
  if (const auto at = blurb.find("{}"); at != std::string::npos)
    blurb.replace(at, 2, number_text(least) + " to " + number_text(most));
  return g_intern_string(blurb.c_str());
}

/// A GParamSpec of a type derived from GLib's type, which does not validate values.
template <typename Spec, typename T>
GParamSpec* open_spec(GType type, const char* name, const char* nick, const std::string& blurb, T least, T most,
                      T initial, GParamFlags flags = playing_property) {
  const char* text = with_range(blurb, least, most);
  auto* spec = static_cast<Spec*>(g_param_spec_internal(type, name, nick, text, flags));
  spec->minimum = least;
  spec->maximum = most;
  spec->default_value = initial;
  return &spec->parent_instance;
}
template <typename Spec>
GType open_spec_type(GType parent, const char* name) {
  const auto init = [](gpointer klass, gpointer) { G_PARAM_SPEC_CLASS(klass)->value_validate = nullptr; };
  return g_type_register_static_simple(parent, name, sizeof(GParamSpecClass), init, sizeof(Spec), nullptr,
                                       GTypeFlags(0));
}

}  // namespace

GParamSpec* uint_property(const char* name, const char* nick, const std::string& blurb, guint least, guint most,
                          guint initial) {
  static const GType type = open_spec_type<GParamSpecUInt>(G_TYPE_PARAM_UINT, "GstCudaVisionParamUInt");
  return open_spec<GParamSpecUInt>(type, name, nick, blurb, least, most, initial);
}
GParamSpec* int_property(const char* name, const char* nick, const std::string& blurb, int least, int most, int initial,
                         GParamFlags flags) {
  static const GType type = open_spec_type<GParamSpecInt>(G_TYPE_PARAM_INT, "GstCudaVisionParamInt");
  return open_spec<GParamSpecInt>(type, name, nick, blurb, least, most, initial, flags);
}
GParamSpec* double_property(const char* name, const char* nick, const std::string& blurb, double least, double most,
                            double initial) {
  static const GType type = open_spec_type<GParamSpecDouble>(G_TYPE_PARAM_DOUBLE, "GstCudaVisionParamDouble");
  return open_spec<GParamSpecDouble>(type, name, nick, blurb, least, most, initial);
}
GParamSpec* enum_property(const char* name, const char* nick, const char* blurb, GType type, int initial) {
  return g_param_spec_enum(name, nick, blurb, type, initial, playing_property);
}
GParamSpec* bool_property(const char* name, const char* nick, const char* blurb, bool initial) {
  return g_param_spec_boolean(name, nick, blurb, initial, playing_property);
}

namespace detail {

Status check_range(const GParamSpec* spec, guint value) {
  const GParamSpecUInt* range = G_PARAM_SPEC_UINT(spec);
  if (value >= range->minimum && value <= range->maximum) return {};
  // GStreamer adds 2^32 to a negative number that it reads for an unsigned property.
  // So the user may have written either number.
  const std::string text = (value > G_MAXINT ? std::to_string(gint(value)) + " or " : "") + std::to_string(value);
  return Status::settings(spec->name + (" is " + text) + ": it must be " + number_text(range->minimum) + " to " +
                          number_text(range->maximum));
}
Status check_range(const GParamSpec* spec, int value) {
  if (!G_IS_PARAM_SPEC_INT(spec)) return {};  // an enum
  const GParamSpecInt* range = G_PARAM_SPEC_INT(spec);
  return cudavision::check_range(spec->name, value, range->minimum, range->maximum);
}
Status check_range(const GParamSpec* spec, double value) {
  const GParamSpecDouble* range = G_PARAM_SPEC_DOUBLE(spec);
  return cudavision::check_range(spec->name, value, range->minimum, range->maximum);
}

void from_value(const GValue* value, guint& member) { member = g_value_get_uint(value); }
void from_value(const GValue* value, guint64& member) { member = g_value_get_uint64(value); }
void from_value(const GValue* value, int& member) {
  member = G_VALUE_HOLDS_ENUM(value) ? g_value_get_enum(value) : g_value_get_int(value);
}
void from_value(const GValue* value, double& member) { member = g_value_get_double(value); }
void from_value(const GValue* value, bool& member) { member = g_value_get_boolean(value); }
void from_value(const GValue* value, std::string& member) {
  member = g_value_get_string(value) ? g_value_get_string(value) : "";
}

void from_value(const GValue* value, NumberList& member) {
  NumberList list;
  for (guint i = 0; i < gst_value_array_get_size(value); ++i) {
    const GValue* item = gst_value_array_get_value(value, i);
    GValue number = G_VALUE_INIT;
    g_value_init(&number, G_TYPE_DOUBLE);
    const bool is_number = g_value_transform(item, &number);
    list.values.push_back(is_number ? g_value_get_double(&number) : std::numeric_limits<double>::quiet_NaN());
    g_value_unset(&number);
    if (is_number || list.wrong_item > 0) continue;
    const std::unique_ptr<gchar, void (*)(gpointer)> text(g_strdup_value_contents(item), g_free);
    list.wrong_item = i + 1;
    list.wrong_text = text.get();
  }
  member = std::move(list);
}

void to_value(guint member, GValue* value) { g_value_set_uint(value, member); }
void to_value(guint64 member, GValue* value) { g_value_set_uint64(value, member); }
void to_value(int member, GValue* value) {
  G_VALUE_HOLDS_ENUM(value) ? g_value_set_enum(value, member) : g_value_set_int(value, member);
}
void to_value(double member, GValue* value) { g_value_set_double(value, member); }
void to_value(bool member, GValue* value) { g_value_set_boolean(value, member); }
void to_value(const std::string& member, GValue* value) {
  g_value_set_string(value, member.empty() ? nullptr : member.c_str());
}

void to_value(const NumberList& member, GValue* value) {
  g_value_reset(value);
  for (double number : member.values) {
    GValue element = G_VALUE_INIT;
    g_value_init(&element, G_TYPE_DOUBLE);
    g_value_set_double(&element, number);
    gst_value_array_append_and_take_value(value, &element);
  }
}

}  // namespace detail

std::vector<Property<EdgeSettings>> edge_properties(const char* type_name, std::size_t border_count) {
  const EdgeSettings initial;
  return {
      {enum_property("border", "Border", "The pixels beyond the edge of the frame",
                     enum_from_table(type_name, borders, border_count), initial.border),
       &EdgeSettings::border},
      {g_param_spec_uint("border-value", "Border value",
                         "Colour of the border as 0xAARRGGBB; a value up to 0xFF is a gray level for all channels", 0,
                         G_MAXUINT32, initial.border_value, playing_property),
       &EdgeSettings::border_value},
      {bool_property("filter-alpha", "Filter alpha", "Filter the alpha or padding channel too, instead of copying it",
                     initial.filter_alpha),
       &EdgeSettings::filter_alpha},
  };
}

BorderValue border_samples(guint argb, const GstVideoInfo& video) {
  if (argb <= 0xff) argb *= 0x01010101u;
  const auto channel = [argb](int shift) { return (argb >> shift & 0xff) / 255.0; };
  const double a = channel(24), r = channel(16), g = channel(8), b = channel(0);
  const GstVideoFormatInfo* format = video.finfo;
  const double full = (1 << GST_VIDEO_FORMAT_INFO_DEPTH(format, 0)) - 1;

  gint offset[4], scale[4];
  gst_video_color_range_offsets(range_of(video), format, offset, scale);
  double kr = 0.299, kb = 0.114;
  gst_video_color_matrix_get_Kr_Kb(video.colorimetry.matrix, &kr, &kb);
  const double y = kr * r + (1 - kr - kb) * g + kb * b;

  BorderValue samples{};
  const auto put = [&](Role role, double value) {
    samples[std::size_t(role)] = std::uint16_t(std::clamp(std::round(value), 0.0, full));
  };
  put(Role::luma, offset[0] + y * scale[0]);
  if (GST_VIDEO_FORMAT_INFO_IS_YUV(format)) {
    put(Role::cb, offset[1] + (b - y) / (2 * (1 - kb)) * scale[1]);
    put(Role::cr, offset[2] + (r - y) / (2 * (1 - kr)) * scale[2]);
  }
  put(Role::red, r * full);
  put(Role::green, g * full);
  put(Role::blue, b * full);
  put(Role::alpha, a * full);
  put(Role::padding, a * full);
  return samples;
}

std::optional<Rect> read_rect(const char*& at, const char* end) {
  Rect rect;
  for (int* number : {&rect.x, &rect.y, &rect.width, &rect.height}) {
    const auto [next, error] = std::from_chars(at, end, *number);
    if (error != std::errc()) return {};
    at = next;
    if (number != &rect.height && (at == end || *at++ != ',')) return {};
  }
  return rect;
}

std::string without_effect(const std::vector<Effect>& properties) {
  std::vector<std::pair<std::string, std::vector<const char*>>> reasons;  // and the properties of each
  for (const auto& [name, is_set, reason] : properties) {
    if (!is_set || reason.empty()) continue;
    const auto same = [why = &reason](const auto& known) { return known.first == *why; };
    auto known = std::find_if(reasons.begin(), reasons.end(), same);
    if (known == reasons.end()) known = reasons.insert(known, {reason, {}});
    known->second.push_back(name);
  }
  std::string text;
  for (const auto& [reason, names] : reasons) {
    text += text.empty() ? "" : "; ";
    for (std::size_t i = 0; i < names.size(); ++i) text += (i ? ", " : "") + std::string(names[i]);
    text += (names.size() > 1 ? " have" : " has") + std::string(" no effect with ") + reason;
  }
  return text;
}

Effect effect_of_border_value(const EdgeSettings& settings) {
  const bool used = Border(settings.border) == Border::constant || Border(settings.border) == Border::fill;
  return {"border-value", settings.border_value != 0,
          used ? "" : "border=" + std::string(borders[std::size_t(settings.border)].nick)};
}

std::string both(const std::string& a, const std::string& b) { return a.empty() || b.empty() ? a + b : a + "; " + b; }

std::string larger_than_frame(int kernel_width, int kernel_height, const GstVideoInfo& video) {
  const int width = GST_VIDEO_INFO_WIDTH(&video), height = GST_VIDEO_INFO_HEIGHT(&video);
  if (kernel_width <= width && kernel_height <= height) return {};
  return "the kernel of " + size_text(kernel_width, kernel_height) + " is larger than the frame of " +
         size_text(width, height) + ": what lies beyond the frame is made up by the border rule";
}

}  // namespace cudavision
