// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/meta/integral_meta.h"

#include <gst/video/video.h>

#include <cstring>
#include <type_traits>

#include "gst/meta/block.hpp"

using Meta = GstCudaVisionIntegralMeta;
using Table = GstCudaVisionIntegralTable;

namespace {

void clear_tables(gpointer block) {
  const auto* tables = static_cast<const Table*>(block);
  for (gsize i = 0; i < g_atomic_rc_box_get_size(block) / sizeof(Table); ++i) gst_memory_unref(tables[i].memory);
}
using Integral = cudavision::BlockMeta<&Meta::tables, GDestroyNotify(clear_tables)>;

/// Whether the fields of a table are valid and its memory is large enough.
bool is_valid(const Table& table) {
  if (!table.channel || !table.memory || table.width == 0 || table.height == 0 ||
      guint(table.type) > GST_CUDA_VISION_ENTRY_TYPE_F64)
    return false;
  const gsize row = table.width * gst_cuda_vision_entry_type_get_size(table.type);
  return gst_memory_get_sizes(table.memory, nullptr, nullptr) / row >= table.height;
}

/// The sum over a rectangle. Differences of unsigned sums are correct even if the sums overflowed.
template <typename Entry>
gdouble rectangle_sum(const Entry* entries, gsize row, bool padded, gsize x0, gsize y0, gsize x1, gsize y1) {
  const auto before = [=](gsize x, gsize y) {
    if (padded) return entries[y * row + x];
    return x && y ? entries[(y - 1) * row + x - 1] : Entry(0);
  };
  using Sum = std::conditional_t<std::is_same_v<Entry, gfloat>, gdouble, Entry>;
  return gdouble(Sum(Sum(before(x1, y1)) - before(x0, y1) - before(x1, y0) + before(x0, y0)));
}

}  // namespace

GType gst_cuda_vision_table_layout_get_type() {
  static gsize type = 0;
  return cudavision::once(&type, [] {
    static const GEnumValue values[] = {
        {GST_CUDA_VISION_TABLE_LAYOUT_INCLUSIVE, "GST_CUDA_VISION_TABLE_LAYOUT_INCLUSIVE", "inclusive"},
        {GST_CUDA_VISION_TABLE_LAYOUT_PADDED, "GST_CUDA_VISION_TABLE_LAYOUT_PADDED", "padded"},
        {0, nullptr, nullptr}};
    return g_enum_register_static("GstCudaVisionTableLayout", values);
  });
}

GType gst_cuda_vision_entry_type_get_type() {
  static gsize type = 0;
  return cudavision::once(&type, [] {
    static const GEnumValue values[] = {{GST_CUDA_VISION_ENTRY_TYPE_U32, "GST_CUDA_VISION_ENTRY_TYPE_U32", "u32"},
                                        {GST_CUDA_VISION_ENTRY_TYPE_U64, "GST_CUDA_VISION_ENTRY_TYPE_U64", "u64"},
                                        {GST_CUDA_VISION_ENTRY_TYPE_F32, "GST_CUDA_VISION_ENTRY_TYPE_F32", "f32"},
                                        {GST_CUDA_VISION_ENTRY_TYPE_F64, "GST_CUDA_VISION_ENTRY_TYPE_F64", "f64"},
                                        {0, nullptr, nullptr}};
    return g_enum_register_static("GstCudaVisionEntryType", values);
  });
}

gsize gst_cuda_vision_entry_type_get_size(GstCudaVisionEntryType type) {
  return type == GST_CUDA_VISION_ENTRY_TYPE_U32 || type == GST_CUDA_VISION_ENTRY_TYPE_F32 ? 4 : 8;
}

GType gst_cuda_vision_integral_meta_api_get_type() {
  static gsize type = 0;
  return cudavision::once(&type, [] {
    const gchar* tags[] = {GST_META_TAG_VIDEO_STR, GST_META_TAG_VIDEO_SIZE_STR, GST_META_TAG_VIDEO_ORIENTATION_STR,
                           GST_META_TAG_VIDEO_COLORSPACE_STR, nullptr};
    return gst_meta_api_type_register("GstCudaVisionIntegralMetaAPI", tags);
  });
}

const GstMetaInfo* gst_cuda_vision_integral_meta_get_info() {
  static gsize info = 0;
  return reinterpret_cast<const GstMetaInfo*>(cudavision::once(&info, [] {
    return Integral::register_info(GST_CUDA_VISION_INTEGRAL_META_API_TYPE, "GstCudaVisionIntegralMeta");
  }));
}

Meta* gst_buffer_add_cuda_vision_integral_meta(GstBuffer* buffer, GstCudaVisionTableLayout layout, guint n_tables,
                                               const Table* tables) {
  g_return_val_if_fail(GST_IS_BUFFER(buffer) && gst_buffer_is_writable(buffer), nullptr);
  g_return_val_if_fail(
      layout == GST_CUDA_VISION_TABLE_LAYOUT_INCLUSIVE || layout == GST_CUDA_VISION_TABLE_LAYOUT_PADDED, nullptr);
  g_return_val_if_fail(n_tables >= 1 && tables, nullptr);
  for (guint i = 0; i < n_tables; ++i) g_return_val_if_fail(is_valid(tables[i]), nullptr);

  auto* block = static_cast<Table*>(g_atomic_rc_box_alloc(n_tables * sizeof(Table)));
  for (guint i = 0; i < n_tables; ++i) {
    block[i] = tables[i];
    block[i].channel = g_intern_string(tables[i].channel);
    gst_memory_ref(block[i].memory);
  }
  Meta model{};
  model.layout = layout;
  model.n_tables = n_tables;
  model.tables = block;
  return Integral::add(buffer, GST_CUDA_VISION_INTEGRAL_META_INFO, &model);
}

Meta* gst_buffer_get_cuda_vision_integral_meta(GstBuffer* buffer) {
  g_return_val_if_fail(GST_IS_BUFFER(buffer), nullptr);
  return reinterpret_cast<Meta*>(gst_buffer_get_meta(buffer, GST_CUDA_VISION_INTEGRAL_META_API_TYPE));
}

gint gst_cuda_vision_integral_meta_get_channel(const Meta* meta, const gchar* channel, gboolean squared) {
  g_return_val_if_fail(meta && channel, -1);
  for (guint i = 0; i < meta->n_tables; ++i)
    if (std::strcmp(meta->tables[i].channel, channel) == 0 && !meta->tables[i].squared == !squared) return gint(i);
  return -1;
}

gboolean gst_cuda_vision_integral_meta_map_table(const Meta* meta, guint index, GstMapInfo* map) {
  g_return_val_if_fail(meta && index < meta->n_tables && map, FALSE);
  return gst_memory_map(meta->tables[index].memory, map, GST_MAP_READ);
}

void gst_cuda_vision_integral_meta_unmap_table(const Meta* meta, guint index, GstMapInfo* map) {
  g_return_if_fail(meta && index < meta->n_tables && map && map->memory);
  gst_memory_unmap(map->memory, map);
}

gdouble gst_cuda_vision_integral_meta_rectangle_sum(const Meta* meta, guint index, const GstMapInfo* map, guint x,
                                                    guint y, guint width, guint height) {
  g_return_val_if_fail(meta && index < meta->n_tables && map && map->data, 0);
  const Table& table = meta->tables[index];
  const bool padded = meta->layout == GST_CUDA_VISION_TABLE_LAYOUT_PADDED;
  const gsize x1 = gsize(x) + width, y1 = gsize(y) + height;
  g_return_val_if_fail(x1 + padded <= table.width && y1 + padded <= table.height, 0);
  const auto sum = [&](auto entry) {
    return rectangle_sum(reinterpret_cast<const decltype(entry)*>(map->data), table.width, padded, x, y, x1, y1);
  };
  switch (table.type) {
    case GST_CUDA_VISION_ENTRY_TYPE_U32:
      return sum(guint32{});
    case GST_CUDA_VISION_ENTRY_TYPE_U64:
      return sum(guint64{});
    case GST_CUDA_VISION_ENTRY_TYPE_F32:
      return sum(gfloat{});
    case GST_CUDA_VISION_ENTRY_TYPE_F64:
      return sum(gdouble{});
  }
  g_return_val_if_reached(0);
}
