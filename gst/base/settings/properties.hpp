// SPDX-License-Identifier: LGPL-2.1-or-later
// Settings as GObject properties. An element lists each property once, with the member that holds its value.
#pragma once

#include <gst/video/video.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/core/border.hpp"
#include "kernels/core/image.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

/// Flags of a property that can change while frames flow.
inline constexpr GParamFlags playing_property =
    GParamFlags(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_CONTROLLABLE | GST_PARAM_MUTABLE_PLAYING);
/// Flags of a similar property that is not controllable: a GstControlSource cannot drive strings and arrays.
inline constexpr GParamFlags uncontrolled_property = GParamFlags(playing_property & ~GST_PARAM_CONTROLLABLE);
/// Flags of a property that is read when the element leaves the state NULL.
inline constexpr GParamFlags null_property = GParamFlags(G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);

// Specs of numbers. All values in their ranges are valid, so tools can rely on the ranges. GLib's own specs hide a
// value out of range from the element, and print it as stored (an unsigned -3 as 4294967293). These specs pass it to
// the element, and check_ranges() rejects it: at start with an error, while playing with a warning. "{}" in a blurb
// becomes the range: "0 to 255".
GParamSpec* uint_spec(const char* name, const char* nick, const std::string& blurb, guint least, guint most,
                      guint initial);
GParamSpec* int_spec(const char* name, const char* nick, const std::string& blurb, int least, int most, int initial,
                     GParamFlags flags = playing_property);
GParamSpec* double_spec(const char* name, const char* nick, const std::string& blurb, double least, double most,
                        double initial);

/// The value of an array property.
struct NumberList {
  std::vector<double> values;  ///< NaN for an item that is not a number
  std::size_t wrong_item = 0;  ///< the first item that is not a number, counted from 1; 0: all are numbers
  std::string wrong_text;      ///< the text of this item

  bool operator==(const NumberList& other) const { return values == other.values && wrong_text == other.wrong_text; }
};

namespace detail {

/// The GType of the value that holds a T, which is a number, an enumerator or a truth value. GLib converts between it
/// and the type of the property.
template <typename T>
constexpr GType number_type = std::is_floating_point_v<T> ? G_TYPE_DOUBLE : G_TYPE_INT64;

template <typename T>
void from_value(const GValue* value, T& member) {
  GValue number = G_VALUE_INIT;
  g_value_init(&number, number_type<T>);
  g_value_transform(value, &number);
  member = std::is_floating_point_v<T> ? T(g_value_get_double(&number)) : T(g_value_get_int64(&number));
}
void from_value(const GValue* value, std::string& member);
/// `value` holds a GstValueArray of numbers of any type.
void from_value(const GValue* value, NumberList& member);

template <typename T>
void to_value(const T& member, GValue* value) {
  GValue number = G_VALUE_INIT;
  g_value_init(&number, number_type<T>);
  if constexpr (std::is_floating_point_v<T>)
    g_value_set_double(&number, member);
  else
    g_value_set_int64(&number, gint64(member));
  g_value_transform(&number, value);
}
void to_value(const std::string& member, GValue* value);
void to_value(const NumberList& member, GValue* value);

Status check_range(const GParamSpecUInt* spec, guint value);

/// Checks that a value is in the range of its property. Only numbers have a range to check.
template <typename T>
Status check_range(const GParamSpec* spec, const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    if (G_IS_PARAM_SPEC_UINT(spec)) return check_range(G_PARAM_SPEC_UINT(spec), guint(value));
    if (G_IS_PARAM_SPEC_INT(spec))
      return cudavision::check_range(spec->name, int(value), G_PARAM_SPEC_INT(spec)->minimum,
                                     G_PARAM_SPEC_INT(spec)->maximum);
    if (G_IS_PARAM_SPEC_DOUBLE(spec))
      return cudavision::check_range(spec->name, double(value), G_PARAM_SPEC_DOUBLE(spec)->minimum,
                                     G_PARAM_SPEC_DOUBLE(spec)->maximum);
  }
  return {};
}

}  // namespace detail

/// A property whose value is a member of S, or of a base class of S. A table of properties has one row for each. The
/// default of a property is the value of the member in S(). Names and blurbs of flags, choices and texts are not
/// copied.
template <typename S>
struct Property {
  GParamSpec* spec;
  std::function<void(S&, const GValue*)> set;
  std::function<void(const S&, GValue*)> get;
  std::function<void(const S& from, S& to)> copy;
  std::function<bool(const S&, const S&)> same;
  std::function<Status(const S&)> check;   ///< errors: settings, if the value is out of its range
  void (*implies)(S&) = nullptr;           ///< changes that setting this property makes to other members
  const char* implied_property = nullptr;  ///< the property that `implies` changes
  /// For a property that chooses the values of others: returns all settings for the value that this property has in S.
  /// Values that were set explicitly stay.
  S (*preset)(const S&) = nullptr;

  /// For specs that the functions below cannot make.
  template <typename T, typename Base>
  Property(GParamSpec* spec_, T Base::*member)
      : spec(spec_),
        set([member](S& settings, const GValue* value) { detail::from_value(value, settings.*member); }),
        get([member](const S& settings, GValue* value) { detail::to_value(settings.*member, value); }),
        copy([member](const S& from, S& to) { to.*member = from.*member; }),
        same([member](const S& a, const S& b) { return a.*member == b.*member; }),
        check([spec_, member](const S& settings) { return detail::check_range(spec_, settings.*member); }) {}

  /// A number that cannot be negative: an unsigned property.
  template <typename T, typename Base>
  static Property count(const char* name, const char* nick, T Base::*member, guint least, guint most,
                        const std::string& blurb) {
    return {uint_spec(name, nick, blurb, least, most, guint(S().*member)), member};
  }
  template <typename Base>
  static Property number(const char* name, const char* nick, int Base::*member, int least, int most,
                         const std::string& blurb) {
    return {int_spec(name, nick, blurb, least, most, S().*member), member};
  }
  template <typename Base>
  static Property number(const char* name, const char* nick, double Base::*member, double least, double most,
                         const std::string& blurb) {
    return {double_spec(name, nick, blurb, least, most, S().*member), member};
  }
  /// A duration in ns.
  template <typename Base>
  static Property time(const char* name, const char* nick, guint64 Base::*member, const char* blurb) {
    return {g_param_spec_uint64(name, nick, blurb, 0, G_MAXUINT64, S().*member, playing_property), member};
  }
  /// A colour as 0xAARRGGBB.
  template <typename Base>
  static Property color(const char* name, const char* nick, guint Base::*member, guint most, const char* blurb) {
    return {g_param_spec_uint(name, nick, blurb, 0, most, S().*member, playing_property), member};
  }
  template <typename Base>
  static Property flag(const char* name, const char* nick, bool Base::*member, const char* blurb) {
    return {g_param_spec_boolean(name, nick, blurb, S().*member, playing_property), member};
  }
  /// A value of the enum `type`.
  template <typename T, typename Base>
  static Property choice(const char* name, const char* nick, T Base::*member, GType type, const char* blurb) {
    return {g_param_spec_enum(name, nick, blurb, type, gint(S().*member), playing_property), member};
  }
  template <typename Base>
  static Property text(const char* name, const char* nick, std::string Base::*member, const char* blurb) {
    const std::string initial = S().*member;
    return {g_param_spec_string(name, nick, blurb, initial.empty() ? nullptr : initial.c_str(), uncontrolled_property),
            member};
  }

  Property with_change(void (*change)(S&), const char* of_property = nullptr) && {
    implies = change;
    implied_property = of_property;
    return std::move(*this);
  }
  Property with_preset(S (*values)(const S&)) && {
    preset = values;
    return std::move(*this);
  }
};

/// Checks that all settings are in the ranges of their properties. Errors: settings, for the first one out of range.
template <typename S>
Status check_ranges(const S& settings, const std::vector<Property<S>>& table) {
  for (const Property<S>& property : table)
    if (Status status = property.check(settings); !status.ok()) return status;
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

/// The nick of a value; "?" if it is not in the table.
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

/// The rows for a filter that reads beyond the edges of the frame: border (the enum `type_name`, with the first
/// `border_count` borders), border-value and filter-alpha. S has the members border, border_color and filter_alpha.
template <typename S>
std::vector<Property<S>> edge_properties(const char* type_name, std::size_t border_count) {
  using Row = Property<S>;
  return {Row::choice("border", "Border", &S::border, enum_from_table(type_name, borders, border_count),
                      "The pixels beyond the edge of the frame"),
          Row::color("border-value", "Border value", &S::border_color, G_MAXUINT32,
                     "Colour of the border as 0xAARRGGBB; a value up to 0xFF is a gray level for all channels"),
          Row::flag("filter-alpha", "Filter alpha", &S::filter_alpha,
                    "Also filter the alpha or padding channel, instead of copying it")};
}

/// Appends rows to a table.
template <typename S>
void append(std::vector<Property<S>>& table, const std::vector<Property<S>>& rows) {
  table.insert(table.end(), rows.begin(), rows.end());
}

/// Converts a colour to sample values of a format. YUV and gray use the matrix and range of its colorimetry. `argb` is
/// 0xAARRGGBB; a value up to 0xFF is a gray level for all channels.
BorderValue border_samples(guint argb, const GstVideoInfo& video);

/// Reads "x,y,width,height", four whole numbers separated by commas only, and moves `at` past them. Empty if the text
/// has another form.
std::optional<Rect> read_rect(const char*& at, const char* end);

/// A property, and the setting that makes it ineffective.
struct Effect {
  const char* name;
  std::string why;             ///< "reference=previous"; empty: the property has an effect
  bool counts_as_set = false;  ///< even if it has its initial value
};
/// `why`, unless the property has an effect.
inline std::string unless(bool has_effect, const std::string& why) { return has_effect ? std::string() : why; }
/// The row of border-value.
Effect effect_of_border_value(Border border);
/// One sentence for each reason, about the properties without effect for this reason; empty if there are none.
std::string without_effect(const std::vector<Effect>& properties);
/// Considers only properties whose values differ from `initial`. All properties must be in the table.
template <typename S>
std::string without_effect(const std::vector<Property<S>>& table, const S& settings, const S& initial,
                           const std::vector<Effect>& properties) {
  std::vector<Effect> set;
  for (const Effect& row : properties) {
    const auto named = [&](const Property<S>& property) { return g_str_equal(property.spec->name, row.name); };
    const auto property = std::find_if(table.begin(), table.end(), named);
    g_assert(property != table.end());
    if (row.counts_as_set || !property->same(settings, initial)) set.push_back(row);
  }
  return without_effect(set);
}
/// Both sentences, with a semicolon between them if neither is empty.
std::string both(const std::string& a, const std::string& b);

/// A warning if a kernel is larger than the frame, which works but is rarely intended; otherwise empty.
std::string larger_than_frame(int kernel_width, int kernel_height, const GstVideoInfo& video);

}  // namespace cudavision
