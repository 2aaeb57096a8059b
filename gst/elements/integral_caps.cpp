// SPDX-License-Identifier: LGPL-2.1-or-later
// video/x-integral: the caps of tables that are sent instead of video.
#include <algorithm>
#include <vector>

#include "gst/base/caps.hpp"
#include "gst/elements/integral_tables.hpp"

namespace cudavision {

int whole_channels(Format format) {
  const Geometry geometry{format, 2, 2};
  integral::Params params;
  params.channel = integral::TableChannel::all;
  const std::vector<integral::TableInfo> tables = integral::describe_tables(params, geometry);
  const bool whole = std::all_of(tables.begin(), tables.end(),
                                 [](const integral::TableInfo& t) { return t.width == 2 && t.height == 2; });
  return whole ? int(tables.size()) : 0;
}

namespace {

constexpr const char* table_media = "video/x-integral";

struct TableFormat {
  const char* name;
  integral::SumType type;
};
constexpr TableFormat table_formats[] = {{"U32LE", integral::SumType::u32},
                                         {"U64LE", integral::SumType::u64},
                                         {"F32LE", integral::SumType::f32},
                                         {"F64LE", integral::SumType::f64}};

GValue as_value(int number) {
  GValue value = G_VALUE_INIT;
  g_value_init(&value, G_TYPE_INT);
  g_value_set_int(&value, number);
  return value;
}
GValue as_value(const char* text) {
  GValue value = G_VALUE_INIT;
  g_value_init(&value, G_TYPE_STRING);
  g_value_set_string(&value, text);
  return value;
}

/// Sets a field to a list of values.
template <typename Values, typename Value>
void set_choices(GstStructure* structure, const char* field, const Values& values, Value&& value_of) {
  GValue list = G_VALUE_INIT;
  g_value_init(&list, GST_TYPE_LIST);
  for (const auto& value : values) {
    GValue item = as_value(value_of(value));
    gst_value_list_append_and_take_value(&list, &item);
  }
  gst_structure_take_value(structure, field, &list);
}

/// The numbers of tables that a buffer can have for a format: 1 (luma), and the number that channel=all gives.
std::vector<int> channel_counts(const FormatInfo& format) {
  const int all = whole_channels(format.format);
  return all > 1 ? std::vector<int>{1, all} : std::vector<int>{1};
}

/// A width or height (a number, a range, or a list of these) plus `more`. For any other value, all sizes.
GValue larger(const GValue* value, int more) {
  const auto moved = [more](int number) { return CLAMP(number, 1, G_MAXINT - 1) + more; };
  if (value && G_VALUE_HOLDS_INT(value)) return as_value(moved(g_value_get_int(value)));
  GValue result = G_VALUE_INIT;
  if (value && GST_VALUE_HOLDS_LIST(value)) {
    g_value_init(&result, GST_TYPE_LIST);
    for (guint i = 0; i < gst_value_list_get_size(value); ++i) {
      GValue item = larger(gst_value_list_get_value(value, i), more);
      gst_value_list_append_and_take_value(&result, &item);
    }
    return result;
  }
  int low = 1, high = max_frame_side + 1;
  if (value && GST_VALUE_HOLDS_INT_RANGE(value)) {
    low = std::max(moved(gst_value_get_int_range_min(value)), 1);
    high = std::max(moved(gst_value_get_int_range_max(value)), low + 1);
  }
  g_value_init(&result, GST_TYPE_INT_RANGE);
  gst_value_set_int_range(&result, low, high);
  return result;
}

/// Whether a structure allows this value of a field.
template <typename T>
bool allows(const GstStructure* structure, const char* field, T wanted) {
  const GValue* value = gst_structure_get_value(structure, field);
  if (!value) return true;
  GValue one = as_value(wanted);
  const bool allowed = gst_value_intersect(nullptr, value, &one);
  g_value_unset(&one);
  return allowed;
}

/// (transfer full) A structure with the fields that video and its tables share: the size, to which `more` is added, and
/// the framerate.
GstStructure* related(const GstStructure* from, const char* media, int more) {
  GstStructure* to = gst_structure_new_empty(media);
  for (const char* field : {"width", "height"}) {
    GValue size = larger(gst_structure_get_value(from, field), more);
    gst_structure_take_value(to, field, &size);
  }
  if (const GValue* rate = gst_structure_get_value(from, "framerate")) gst_structure_set_value(to, "framerate", rate);
  return to;
}

GstStructure* tables_of_video(const GstStructure* video, integral::TableLayout layout) {
  GstStructure* tables = related(video, table_media, int(layout));
  set_choices(tables, "format", table_formats, [](const TableFormat& format) { return format.name; });
  gst_structure_set(tables, "layout", G_TYPE_STRING, nick_of(layout, table_layouts), nullptr);
  const char* name = gst_structure_get_string(video, "format");
  const FormatInfo* format = name ? find_format(name) : nullptr;
  set_choices(tables, "channels", format ? channel_counts(*format) : std::vector<int>{1, 3, 4},
              [](int count) { return count; });
  return tables;
}

GstStructure* video_of_tables(const GstStructure* tables, integral::TableLayout layout) {
  GstStructure* video = related(tables, "video/x-raw", -int(layout));
  std::vector<const char*> names;
  for (const FormatInfo& format : formats()) {
    const std::vector<int> counts = channel_counts(format);
    if (is_known(format) &&
        std::any_of(counts.begin(), counts.end(), [&](int count) { return allows(tables, "channels", count); }))
      names.push_back(format.name);
  }
  set_choices(video, "format", names, [](const char* name) { return name; });
  return video;
}

}  // namespace

std::string table_caps_template() {
  const auto join = [](const auto& rows, auto text_of) {
    std::string text;
    for (const auto& row : rows) text += (text.empty() ? "" : ", ") + std::string(text_of(row));
    return text;
  };
  const std::string side = "(int)[ 1, " + std::to_string(max_frame_side + 1) + " ]";
  return std::string(table_media) + ", format=(string){ " +
         join(table_formats, [](const TableFormat& row) { return row.name; }) + " }, layout=(string){ " +
         join(table_layouts, [](const Choice& row) { return row.nick; }) +
         " }, channels=(int){ 1, 3, 4 }, width=" + side + ", height=" + side + ", framerate=(fraction)[ 0/1, max ]";
}

GstCaps* transform_table_caps(GstPadDirection direction, GstCaps* caps) {
  const bool to_tables = direction == GST_PAD_SINK;
  GstCaps* result = gst_caps_new_empty();
  for (guint i = 0; i < gst_caps_get_size(caps); ++i) {
    const GstStructure* structure = gst_caps_get_structure(caps, i);
    if (bool(gst_structure_has_name(structure, table_media)) == to_tables) continue;
    for (integral::TableLayout layout : {integral::TableLayout::inclusive, integral::TableLayout::padded})
      if (to_tables)
        gst_caps_append_structure(result, tables_of_video(structure, layout));
      else if (allows(structure, "layout", nick_of(layout, table_layouts)))
        gst_caps_append_structure(result, video_of_tables(structure, layout));
  }
  return result;
}

GstCaps* fixate_table_caps(GstCaps* choices, const TableCaps& wanted) {
  guint chosen = 0;
  for (guint i = gst_caps_get_size(choices); i-- > 0;)
    if (allows(gst_caps_get_structure(choices, i), "layout", nick_of(wanted.layout, table_layouts))) chosen = i;
  GstCaps* result = gst_caps_copy_nth(choices, chosen);
  gst_caps_unref(choices);
  GstStructure* structure = gst_caps_get_structure(result, 0);
  // The wanted type if possible, otherwise the type with the largest range.
  for (integral::SumType type :
       {wanted.type, integral::SumType::u64, integral::SumType::f64, integral::SumType::f32, integral::SumType::u32}) {
    const char* name = table_formats[int(type) - int(integral::SumType::u32)].name;
    if (!allows(structure, "format", name)) continue;
    gst_structure_set(structure, "format", G_TYPE_STRING, name, nullptr);
    break;
  }
  gst_structure_fixate_field_nearest_int(structure, "channels", wanted.channels);
  return result;
}

TableCaps read_table_caps(GstCaps* caps) {
  const GstStructure* structure = gst_caps_get_structure(caps, 0);
  TableCaps read{integral::SumType::u64, integral::TableLayout::inclusive, 1};
  for (const TableFormat& row : table_formats)
    if (g_strcmp0(gst_structure_get_string(structure, "format"), row.name) == 0) read.type = row.type;
  for (integral::TableLayout layout : {integral::TableLayout::inclusive, integral::TableLayout::padded})
    if (g_strcmp0(gst_structure_get_string(structure, "layout"), nick_of(layout, table_layouts)) == 0)
      read.layout = layout;
  gst_structure_get_int(structure, "channels", &read.channels);
  return read;
}

}  // namespace cudavision
