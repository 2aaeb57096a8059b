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

/// Replaces "{}" with the range. The result is never freed.
const char* with_range(std::string blurb, double least, double most) {
  if (const auto at = blurb.find("{}"); at != std::string::npos)
    blurb.replace(at, 2, number_text(least) + " to " + number_text(most));
  return g_intern_string(blurb.c_str());
}

/// A GParamSpec of a type derived from GLib's type. The derived type does not validate values.
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

GParamSpec* uint_spec(const char* name, const char* nick, const std::string& blurb, guint least, guint most,
                      guint initial) {
  static const GType type = open_spec_type<GParamSpecUInt>(G_TYPE_PARAM_UINT, "GstCudaVisionParamUInt");
  return open_spec<GParamSpecUInt>(type, name, nick, blurb, least, most, initial);
}
GParamSpec* int_spec(const char* name, const char* nick, const std::string& blurb, int least, int most, int initial,
                     GParamFlags flags) {
  static const GType type = open_spec_type<GParamSpecInt>(G_TYPE_PARAM_INT, "GstCudaVisionParamInt");
  return open_spec<GParamSpecInt>(type, name, nick, blurb, least, most, initial, flags);
}
GParamSpec* double_spec(const char* name, const char* nick, const std::string& blurb, double least, double most,
                        double initial) {
  static const GType type = open_spec_type<GParamSpecDouble>(G_TYPE_PARAM_DOUBLE, "GstCudaVisionParamDouble");
  return open_spec<GParamSpecDouble>(type, name, nick, blurb, least, most, initial);
}

namespace detail {

Status check_range(const GParamSpecUInt* spec, guint value) {
  if (value >= spec->minimum && value <= spec->maximum) return {};
  // GStreamer adds 2^32 to a negative number that it reads for an unsigned property. So the user may have written
  // either number.
  const std::string text = (value > G_MAXINT ? std::to_string(gint(value)) + " or " : "") + std::to_string(value);
  return Status::settings(spec->parent_instance.name + (" is " + text) + ": it must be " + number_text(spec->minimum) +
                          " to " + number_text(spec->maximum));
}

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
  std::vector<std::pair<std::string, std::vector<const char*>>> reasons;  // with the properties of each reason
  for (const auto& [name, reason, counts_as_set] : properties) {
    if (reason.empty()) continue;
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

Effect effect_of_border_value(Border border) {
  const bool used = border == Border::constant || border == Border::fill;
  return {"border-value", unless(used, "border=" + std::string(borders[std::size_t(border)].nick))};
}

std::string both(const std::string& a, const std::string& b) { return a.empty() || b.empty() ? a + b : a + "; " + b; }

std::string larger_than_frame(int kernel_width, int kernel_height, const GstVideoInfo& video) {
  const int width = GST_VIDEO_INFO_WIDTH(&video), height = GST_VIDEO_INFO_HEIGHT(&video);
  if (kernel_width <= width && kernel_height <= height) return {};
  return "the kernel of " + size_text(kernel_width, kernel_height) + " is larger than the frame of " +
         size_text(width, height) + ": the border rule fills the pixels beyond the frame";
}

}  // namespace cudavision
