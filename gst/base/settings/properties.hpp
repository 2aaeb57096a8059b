// SPDX-License-Identifier: LGPL-2.1-or-later
// Settings as GObject properties. An element lists its properties once, each with the member that holds its value.
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

/// Flags of a property that can change while frames flow.
inline constexpr GParamFlags playing_property =
    GParamFlags(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_CONTROLLABLE | GST_PARAM_MUTABLE_PLAYING);
/// Flags of such a property that is not controllable: a GstControlSource cannot drive strings and arrays.
inline constexpr GParamFlags uncontrolled_property = GParamFlags(playing_property & ~GST_PARAM_CONTROLLABLE);
/// Flags of a property that is read when the element leaves the state NULL.
inline constexpr GParamFlags null_property = GParamFlags(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);

// Specs of numbers. All values in their ranges are valid, so tools can rely on the ranges. GLib's own specs hide a
// value out of range from the element, and print it as it is stored (an unsigned -3 as 4294967293). These specs pass it
// to the element, and check_ranges() refuses it: at start with an error, while playing with a warning. "{}" in a blurb
// becomes the range: "0 to 255".
GParamSpec* uint_property(const char* name, const char* nick, const std::string& blurb, guint least, guint most,
                          guint initial);
GParamSpec* int_property(const char* name, const char* nick, const std::string& blurb, int least, int most, int initial,
                         GParamFlags flags = playing_property);
GParamSpec* double_property(const char* name, const char* nick, const std::string& blurb, double least, double most,
                            double initial);
/// `name`, `nick` and `blurb` are not copied.
GParamSpec* enum_property(const char* name, const char* nick, const char* blurb, GType type, int initial);
GParamSpec* bool_property(const char* name, const char* nick, const char* blurb, bool initial);

/// The value of an array property.
struct NumberList {
  std::vector<double> values;  ///< NaN for an item that is not a number
  std::size_t wrong_item = 0;  ///< the first item that is not a number, counted from 1; 0: all are numbers
  std::string wrong_text;      ///< the text of this item

  bool operator==(const NumberList& other) const { return values == other.values && wrong_text == other.wrong_text; }
};

/// A property whose value is a member of S. Enums are held as int.
template <typename S>
struct Property {
  GParamSpec* spec;
  std::variant<guint S::*, guint64 S::*, int S::*, double S::*, bool S::*, std::string S::*, NumberList S::*> member;
  void (*implies)(S&) = nullptr;           ///< the change that setting this property makes to others
  const char* implied_property = nullptr;  ///< the property that `implies` changes
  /// For a property that chooses the values of others: returns all settings for the value that it has in S.
  /// Values that were set explicitly stay.
  S (*preset)(const S&) = nullptr;
};

namespace detail {

void from_value(const GValue* value, guint& member);
void from_value(const GValue* value, guint64& member);
void from_value(const GValue* value, int& member);
void from_value(const GValue* value, double& member);
void from_value(const GValue* value, bool& member);
void from_value(const GValue* value, std::string& member);
/// `value` holds a GstValueArray of numbers of any type.
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
/// Settings of other types have no range, or the full range of their type.
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

/// Copies the value of one property. Returns whether the value changed. (Not inlined:
/// GCC 14 would warn about members that S does not have.)
template <typename S>
[[gnu::noinline]] bool copy_property(const Property<S>& property, const S& from, S& to) {
  return std::visit(
      [&](auto member) {
        const bool changes = !(to.*member == from.*member);
        if (changes) to.*member = from.*member;
        return changes;
      },
      property.member);
}

/// Checks that all settings are in the ranges of their properties. Errors: settings, for the first one that is not.
template <typename S>
Status check_ranges(const S& settings, const std::vector<Property<S>>& table) {
  for (const Property<S>& property : table) {
    const Status status =
        std::visit([&](auto member) { return detail::check_range(property.spec, settings.*member); }, property.member);
    if (!status.ok()) return status;
  }
  return {};
}

/// A value of an enum property: an enumerator, or a number.
struct Choice {
  template <typename Value>
  constexpr Choice(Value value_, const char* nick_, const char* blurb_)
      : value(int(value_)), nick(nick_), blurb(blurb_) {}

  int value;
  const char* nick;
  const char* blurb;
};

/// The nick of a value; "?" if the table does not have it.
template <typename Value, std::size_t N>
const char* nick_of(Value value, const Choice (&table)[N]) {
  for (const Choice& row : table)
    if (row.value == int(value)) return row.nick;
  return "?";
}

/// Registers an enum with the first `count` rows of a table, which have `value`, `nick` and `blurb`.
template <typename Table>
GType enum_from_table(const char* name, const Table& table, std::size_t count) {
  auto* values = g_new0(GEnumValue, count + 1);  // GType keeps a pointer to it
  for (std::size_t i = 0; i < count; ++i) values[i] = {gint(table[i].value), table[i].blurb, table[i].nick};
  return g_enum_register_static(name, values);
}
template <std::size_t N>
GType enum_from_table(const char* name, const Choice (&table)[N]) {
  const Choice* const rows = table;
  return enum_from_table(name, rows, N);
}

/// The base of the settings of filters that read beyond the edge of the frame.
struct EdgeSettings {
  int border = int(Border::reflect_101);
  guint border_value = 0;
  bool filter_alpha = false;
};

/// The properties of EdgeSettings: border (the enum `type_name`, with the first `border_count` borders),
/// border-value, filter-alpha.
std::vector<Property<EdgeSettings>> edge_properties(const char* type_name, std::size_t border_count);

/// Appends the properties of a base class of S, as properties of S.
template <typename S, typename Base>
void append_properties(std::vector<Property<S>>& properties, const std::vector<Property<Base>>& inherited) {
  for (const Property<Base>& property : inherited)
    std::visit(
        [&](auto member) {
          properties.push_back(
              {property.spec, static_cast<std::decay_t<decltype(std::declval<Base>().*member)> S::*>(member)});
        },
        property.member);
}

/// Converts a colour to sample values of a format, for YUV and gray by the matrix and range of its colorimetry. `argb`
/// is 0xAARRGGBB; a value up to 0xFF is a gray level for all channels.
BorderValue border_samples(guint argb, const GstVideoInfo& video);

/// Reads "x,y,width,height", four whole numbers separated by commas only, and moves `at` past them. Empty if the text
/// has another form.
std::optional<Rect> read_rect(const char*& at, const char* end);

/// A property and the setting that takes its effect away.
struct Effect {
  const char* name;
  bool is_set;
  std::string why;  ///< "reference=previous"; empty: the property has its effect
};
/// One sentence for each reason, about the properties that are set but have no effect for this reason; empty if there
/// are none.
std::string without_effect(const std::vector<Effect>& properties);
/// The row of border-value.
Effect effect_of_border_value(const EdgeSettings& settings);
/// Both sentences, with a semicolon between them if neither is empty.
std::string both(const std::string& a, const std::string& b);

/// A warning if a kernel is larger than the frame, which works but is rarely intended; else empty.
std::string larger_than_frame(int kernel_width, int kernel_height, const GstVideoInfo& video);

}  // namespace cudavision
