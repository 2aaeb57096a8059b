// SPDX-License-Identifier: LGPL-2.1-or-later
// Settings as GObject properties: an element lists its properties once, each with the member that holds it.
#pragma once

#include <gst/video/video.h>

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/core/border.hpp"
#include "kernels/core/image.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

/// Flags of every property that may change while frames flow.
inline constexpr GParamFlags playing_property =
    GParamFlags(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_CONTROLLABLE | GST_PARAM_MUTABLE_PLAYING);
/// Of those that a GstControlSource cannot drive: strings and arrays.
inline constexpr GParamFlags uncontrolled_property = GParamFlags(playing_property & ~GST_PARAM_CONTROLLABLE);
/// Of those that are looked at when the element leaves NULL.
inline constexpr GParamFlags null_property = GParamFlags(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);

// Specs of numbers. Their ranges are exactly what is accepted, so that tools can go by them. GLib's own specs keep a value out of
// range from the element, and print it as it was stored (an unsigned -3 as 4294967293). These let it through to the element, where
// check_ranges() refuses it: at start with an error, while playing with a warning.
GParamSpec* uint_property(const char* name, const char* nick, const char* blurb, guint least, guint most, guint initial);
GParamSpec* int_property(const char* name, const char* nick, const char* blurb, int least, int most, int initial);
GParamSpec* double_property(const char* name, const char* nick, const char* blurb, double least, double most, double initial);

/// The value of an array property.
struct NumberList {
  std::vector<double> values;  ///< NaN in place of an item that is no number
  std::size_t wrong_item = 0;  ///< the first such item, counted from 1; 0: there is none
  std::string wrong_text;      ///< what was written in its place
};

/// A property of an element whose settings are an S. Enums are held as int.
template <typename S>
struct Property {
  GParamSpec* spec;
  std::variant<guint S::*, guint64 S::*, int S::*, double S::*, bool S::*, std::string S::*, NumberList S::*> member;
  void (*implies)(S&) = nullptr;           ///< what setting it changes besides, and
  const char* implied_property = nullptr;  ///< the property that shows it
};

namespace detail {

void from_value(const GValue* value, guint& member);
void from_value(const GValue* value, guint64& member);
void from_value(const GValue* value, int& member);
void from_value(const GValue* value, double& member);
void from_value(const GValue* value, bool& member);
void from_value(const GValue* value, std::string& member);
/// A GstValueArray of numbers of any type.
void from_value(const GValue* value, NumberList& member);
void to_value(guint member, GValue* value);
void to_value(guint64 member, GValue* value);
void to_value(int member, GValue* value);
void to_value(double member, GValue* value);
void to_value(bool member, GValue* value);
void to_value(const std::string& member, GValue* value);
void to_value(const NumberList& member, GValue* value);

Status check_range(const GParamSpec* spec, guint value);
Status check_range(const GParamSpec* spec, int value);
Status check_range(const GParamSpec* spec, double value);
/// Settings of other types have no range, or all of their type's.
template <typename T>
Status check_range(const GParamSpec*, const T&) {
  return {};
}

}  // namespace detail

template <typename S>
void set_property(S& settings, const Property<S>& property, const GValue* value) {
  std::visit([&](auto member) { detail::from_value(value, settings.*member); }, property.member);
  if (property.implies) property.implies(settings);
}

template <typename S>
void get_property(const S& settings, const Property<S>& property, GValue* value) {
  std::visit([&](auto member) { detail::to_value(settings.*member, value); }, property.member);
}

/// What is wrong with the first setting that is out of its property's range.
template <typename S>
Status check_ranges(const S& settings, const std::vector<Property<S>>& table) {
  for (const Property<S>& property : table) {
    const Status status =
        std::visit([&](auto member) { return detail::check_range(property.spec, settings.*member); }, property.member);
    if (!status.ok()) return status;
  }
  return {};
}

/// A value of an enum property, which is the number of its row.
struct Choice {
  const char* nick;
  const char* blurb;
};

/// Registers an enum with the first `count` rows of a table whose rows have `nick` and `blurb`; the value is the row.
template <typename Table>
GType enum_from_table(const char* name, const Table& table, std::size_t count) {
  auto* values = g_new0(GEnumValue, count + 1);  // GType keeps it for good
  for (std::size_t i = 0; i < count; ++i) values[i] = {gint(i), table[i].blurb, table[i].nick};
  return g_enum_register_static(name, values);
}
template <std::size_t N>
GType enum_from_table(const char* name, const Choice (&table)[N]) {
  const Choice* const rows = table;
  return enum_from_table(name, rows, N);
}

/// What filters that look beyond the edge of the frame have in common: the base of their settings.
struct EdgeSettings {
  int border = int(Border::reflect_101);
  guint border_value = 0;
  bool filter_alpha = false;
};

/// Of EdgeSettings: border (an enum `type_name` of the first `border_count` rows of the table), border-value, filter-alpha.
std::vector<Property<EdgeSettings>> edge_properties(const char* type_name, std::size_t border_count);

/// The properties of a base of S as properties of S.
template <typename S, typename Base>
void append_properties(std::vector<Property<S>>& properties, const std::vector<Property<Base>>& inherited) {
  for (const Property<Base>& property : inherited)
    std::visit(
        [&](auto member) {
          properties.push_back({property.spec, static_cast<std::decay_t<decltype(std::declval<Base>().*member)> S::*>(member)});
        },
        property.member);
}

/// A colour as sample values of a format: through the matrix and range of its colorimetry for YUV and gray. A value up to 0xFF is a
/// gray level for all channels (the classic border-value=140), any other is 0xAARRGGBB.
BorderValue border_samples(guint argb, const GstVideoInfo& video);

/// Reads "x,y,width,height", four whole numbers with nothing between them but commas; `at` is then behind them. Nothing where it is
/// not that.
std::optional<Rect> read_rect(const char*& at, const char* end);

/// A warning that a kernel reaches beyond the whole frame, which works but is seldom meant; empty where it does not.
std::string larger_than_frame(int kernel_width, int kernel_height, const GstVideoInfo& video);

}  // namespace cudavision
