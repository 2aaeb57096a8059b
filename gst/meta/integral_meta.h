// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "prelude.h"

G_BEGIN_DECLS

#define GST_CUDA_VISION_INTEGRAL_META_API_TYPE (gst_cuda_vision_integral_meta_api_get_type())
#define GST_CUDA_VISION_INTEGRAL_META_INFO (gst_cuda_vision_integral_meta_get_info())
#define GST_TYPE_CUDA_VISION_TABLE_LAYOUT (gst_cuda_vision_table_layout_get_type())
#define GST_TYPE_CUDA_VISION_ENTRY_TYPE (gst_cuda_vision_entry_type_get_type())

/**
 * GstCudaVisionTableLayout:
 * @GST_CUDA_VISION_TABLE_LAYOUT_INCLUSIVE: of W × H samples W × H entries: entry (x, y) sums samples 0 to x, 0 to y
 * @GST_CUDA_VISION_TABLE_LAYOUT_PADDED: of W × H samples (W + 1) × (H + 1) entries: entry (x, y) sums the samples left of x and
 * above y; the first row and column are zero, as in OpenCV
 *
 * Which samples an entry of a summed-area table sums.
 */
typedef enum { GST_CUDA_VISION_TABLE_LAYOUT_INCLUSIVE, GST_CUDA_VISION_TABLE_LAYOUT_PADDED } GstCudaVisionTableLayout;

/**
 * GstCudaVisionEntryType:
 * @GST_CUDA_VISION_ENTRY_TYPE_U32: #guint32, modulo 2^32: the sum over a rectangle is right as long as it fits itself
 * @GST_CUDA_VISION_ENTRY_TYPE_U64: #guint64, exact
 * @GST_CUDA_VISION_ENTRY_TYPE_F32: #gfloat, the exact sum, rounded
 * @GST_CUDA_VISION_ENTRY_TYPE_F64: #gdouble, the exact sum, rounded
 *
 * What an entry of a summed-area table is, in the machine's byte order.
 */
typedef enum {
  GST_CUDA_VISION_ENTRY_TYPE_U32,
  GST_CUDA_VISION_ENTRY_TYPE_U64,
  GST_CUDA_VISION_ENTRY_TYPE_F32,
  GST_CUDA_VISION_ENTRY_TYPE_F64
} GstCudaVisionEntryType;

typedef struct _GstCudaVisionIntegralTable GstCudaVisionIntegralTable;
typedef struct _GstCudaVisionIntegralMeta GstCudaVisionIntegralMeta;

/**
 * GstCudaVisionIntegralTable:
 * @channel: what is summed: "luma", "R", "G", "B", "Y", "Cb", "Cr" or "A"
 * @squared: whether the squares of the samples are summed
 * @type: the type of an entry
 * @width: entries of a row
 * @height: rows
 * @memory: the entries, row after row with nothing between them, from the memory's beginning: system memory or CUDA memory
 *
 * One summed-area table.
 */
struct _GstCudaVisionIntegralTable {
  const gchar* channel;
  gboolean squared;
  GstCudaVisionEntryType type;
  guint width;
  guint height;
  GstMemory* memory;

  /*< private >*/
  gpointer _gst_reserved[GST_PADDING];
};

/**
 * GstCudaVisionIntegralMeta:
 * @meta: parent #GstMeta
 * @layout: of all tables
 * @n_tables: tables, at least 1
 * @tables: (array length=n_tables): the tables
 *
 * Summed-area tables (integral images) of a frame. All that it points to lives as long as the meta, and is shared with the metas of
 * copies of the buffer: it is not to be changed. A copy of the whole buffer has the meta too; a copy of a region, and anything made
 * by a transformation (scaling, …), has not.
 */
struct _GstCudaVisionIntegralMeta {
  GstMeta meta;

  GstCudaVisionTableLayout layout;
  guint n_tables;
  const GstCudaVisionIntegralTable* tables;

  /*< private >*/
  gpointer _gst_reserved[GST_PADDING];
};

GST_CUDAVISION_API
GType gst_cuda_vision_table_layout_get_type(void);

GST_CUDAVISION_API
GType gst_cuda_vision_entry_type_get_type(void);

/**
 * gst_cuda_vision_entry_type_get_size:
 * @type: a #GstCudaVisionEntryType
 *
 * Returns: bytes of an entry: 4 or 8
 */
GST_CUDAVISION_API
gsize gst_cuda_vision_entry_type_get_size(GstCudaVisionEntryType type);

GST_CUDAVISION_API
GType gst_cuda_vision_integral_meta_api_get_type(void);

GST_CUDAVISION_API
const GstMetaInfo* gst_cuda_vision_integral_meta_get_info(void);

/**
 * gst_buffer_add_cuda_vision_integral_meta:
 * @buffer: a writable #GstBuffer
 * @layout: of all tables
 * @n_tables: tables, at least 1
 * @tables: (array length=n_tables): the tables; names are copied, the meta takes references of its own to the memories, which must
 * be large enough
 *
 * Adds summed-area tables to a buffer. CUDA memory must have been written through a map with %GST_MAP_WRITE and GST_MAP_CUDA, or be
 * marked GST_CUDA_MEMORY_TRANSFER_NEED_DOWNLOAD: that is how it knows that system memory must follow.
 *
 * Returns: (transfer none): the meta
 */
GST_CUDAVISION_API
GstCudaVisionIntegralMeta* gst_buffer_add_cuda_vision_integral_meta(GstBuffer* buffer, GstCudaVisionTableLayout layout,
                                                                    guint n_tables, const GstCudaVisionIntegralTable* tables);

/**
 * gst_buffer_get_cuda_vision_integral_meta:
 * @buffer: a #GstBuffer
 *
 * Returns: (transfer none) (nullable): the first such meta of a buffer; all of them: gst_buffer_iterate_meta_filtered() with
 *     %GST_CUDA_VISION_INTEGRAL_META_API_TYPE
 */
GST_CUDAVISION_API
GstCudaVisionIntegralMeta* gst_buffer_get_cuda_vision_integral_meta(GstBuffer* buffer);

/**
 * gst_cuda_vision_integral_meta_get_channel:
 * @meta: a #GstCudaVisionIntegralMeta
 * @channel: a channel's name, such as "luma"
 * @squared: whether the table of the squares is meant
 *
 * Returns: the index of this table in `meta->tables`, or −1 where there is none
 */
GST_CUDAVISION_API
gint gst_cuda_vision_integral_meta_get_channel(const GstCudaVisionIntegralMeta* meta, const gchar* channel, gboolean squared);

/**
 * gst_cuda_vision_integral_meta_map_table:
 * @meta: a #GstCudaVisionIntegralMeta
 * @index: of the table, below `meta->n_tables`
 * @map: (out): `map->data` has the entries; `map->size` may be more than they take
 *
 * Gives a table in system memory, to read. From CUDA memory it is downloaded, which waits for the GPU; a second map of the same
 * table finds it there. The meta (so, its buffer) must live until gst_cuda_vision_integral_meta_unmap_table().
 *
 * Returns: whether it could be mapped
 */
GST_CUDAVISION_API
gboolean gst_cuda_vision_integral_meta_map_table(const GstCudaVisionIntegralMeta* meta, guint index, GstMapInfo* map);

/**
 * gst_cuda_vision_integral_meta_unmap_table:
 * @meta: a #GstCudaVisionIntegralMeta
 * @index: of the table
 * @map: what gst_cuda_vision_integral_meta_map_table() gave
 */
GST_CUDAVISION_API
void gst_cuda_vision_integral_meta_unmap_table(const GstCudaVisionIntegralMeta* meta, guint index, GstMapInfo* map);

/**
 * gst_cuda_vision_integral_meta_rectangle_sum:
 * @meta: a #GstCudaVisionIntegralMeta
 * @index: of the table
 * @map: what gst_cuda_vision_integral_meta_map_table() gave for it
 * @x: first column, in samples of the channel
 * @y: first row
 * @width: columns; with @x, at most the channel's
 * @height: rows; with @y, at most the channel's
 *
 * Sums a rectangle of samples (or of their squares) by four entries, whatever the layout and the type. Of whole numbers it is exact
 * up to 2^53 (of %GST_CUDA_VISION_ENTRY_TYPE_U32: modulo 2^32), beyond that it is the nearest double. Of an empty rectangle it is
 * 0.
 *
 * Returns: the sum
 */
GST_CUDAVISION_API
gdouble gst_cuda_vision_integral_meta_rectangle_sum(const GstCudaVisionIntegralMeta* meta, guint index, const GstMapInfo* map,
                                                    guint x, guint y, guint width, guint height);

G_END_DECLS
