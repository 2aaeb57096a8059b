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
 * @GST_CUDA_VISION_TABLE_LAYOUT_INCLUSIVE: W × H entries for W × H samples: entry (x, y) sums columns 0 to x of rows 0
 * to y
 * @GST_CUDA_VISION_TABLE_LAYOUT_PADDED: (W + 1) × (H + 1) entries for W × H samples: entry (x, y) sums the samples to
 * the left of x and above y; the first row and column are zero, as in OpenCV
 *
 * The set of samples that an entry of a summed-area table sums.
 */
typedef enum { GST_CUDA_VISION_TABLE_LAYOUT_INCLUSIVE, GST_CUDA_VISION_TABLE_LAYOUT_PADDED } GstCudaVisionTableLayout;

/**
 * GstCudaVisionEntryType:
 * @GST_CUDA_VISION_ENTRY_TYPE_U32: #guint32, modulo 2^32: the sum over a rectangle is correct if it is below 2^32
 * @GST_CUDA_VISION_ENTRY_TYPE_U64: #guint64, exact
 * @GST_CUDA_VISION_ENTRY_TYPE_F32: #gfloat, the exact sum, rounded
 * @GST_CUDA_VISION_ENTRY_TYPE_F64: #gdouble, the exact sum, rounded
 *
 * The type of the entries of a summed-area table, in the byte order of the machine.
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
 * @channel: the channel that is summed: "luma", "R", "G", "B", "Y", "Cb", "Cr" or "A"
 * @squared: whether the squares of the samples are summed
 * @type: the type of an entry
 * @width: number of entries in a row
 * @height: number of rows
 * @memory: the entries, row by row without gaps, from the start of the memory: system memory or CUDA memory
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
 * @layout: layout of all tables
 * @n_tables: number of tables, at least 1
 * @tables: (array length=n_tables): the tables
 *
 * Summed-area tables (integral images) of a frame. The data that the meta points to live as long as the meta. They must
 * not be changed, because the metas of copies of the buffer share them. A copy of the whole buffer also has the meta; a
 * copy of a region and the result of a transformation (such as scaling) do not.
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
 * Returns: the size of an entry in bytes: 4 or 8
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
 * @layout: layout of all tables
 * @n_tables: number of tables, at least 1
 * @tables: (array length=n_tables): the tables; names are copied, and the meta adds references to the memories, which
 * must be large enough
 *
 * Adds summed-area tables to a buffer. CUDA memory must have been written through a map with %GST_MAP_WRITE and
 * GST_MAP_CUDA, or be marked GST_CUDA_MEMORY_TRANSFER_NEED_DOWNLOAD, so that it is downloaded when the CPU reads it.
 *
 * Returns: (transfer none): the meta
 */
GST_CUDAVISION_API
GstCudaVisionIntegralMeta* gst_buffer_add_cuda_vision_integral_meta(GstBuffer* buffer, GstCudaVisionTableLayout layout,
                                                                    guint n_tables,
                                                                    const GstCudaVisionIntegralTable* tables);

/**
 * gst_buffer_get_cuda_vision_integral_meta:
 * @buffer: a #GstBuffer
 *
 * Returns: (transfer none) (nullable): the first integral meta of a buffer; gst_buffer_iterate_meta_filtered() finds
 * all, with %GST_CUDA_VISION_INTEGRAL_META_API_TYPE
 */
GST_CUDAVISION_API
GstCudaVisionIntegralMeta* gst_buffer_get_cuda_vision_integral_meta(GstBuffer* buffer);

/**
 * gst_cuda_vision_integral_meta_get_channel:
 * @meta: a #GstCudaVisionIntegralMeta
 * @channel: a channel's name, such as "luma"
 * @squared: whether to find the table of the squares
 *
 * Returns: the index of this table in `meta->tables`, or −1 if there is none
 */
GST_CUDAVISION_API
gint gst_cuda_vision_integral_meta_get_channel(const GstCudaVisionIntegralMeta* meta, const gchar* channel,
                                               gboolean squared);

/**
 * gst_cuda_vision_integral_meta_map_table:
 * @meta: a #GstCudaVisionIntegralMeta
 * @index: index of the table, below `meta->n_tables`
 * @map: (out): `map->data` holds the entries; `map->size` may be larger than needed
 *
 * Maps a table into system memory for reading. A table in CUDA memory is downloaded, which waits for the GPU. Later
 * calls for the same table do not download it again. The meta, and therefore its buffer, must live until
 * gst_cuda_vision_integral_meta_unmap_table().
 *
 * Returns: whether the table could be mapped
 */
GST_CUDAVISION_API
gboolean gst_cuda_vision_integral_meta_map_table(const GstCudaVisionIntegralMeta* meta, guint index, GstMapInfo* map);

/**
 * gst_cuda_vision_integral_meta_unmap_table:
 * @meta: a #GstCudaVisionIntegralMeta
 * @index: index of the table
 * @map: the result of gst_cuda_vision_integral_meta_map_table()
 */
GST_CUDAVISION_API
void gst_cuda_vision_integral_meta_unmap_table(const GstCudaVisionIntegralMeta* meta, guint index, GstMapInfo* map);

/**
 * gst_cuda_vision_integral_meta_rectangle_sum:
 * @meta: a #GstCudaVisionIntegralMeta
 * @index: index of the table
 * @map: the result of gst_cuda_vision_integral_meta_map_table() for this table
 * @x: first column, in samples of the channel
 * @y: first row
 * @width: number of columns; @x + @width must not exceed the width of the channel
 * @height: number of rows; @y + @height must not exceed the height of the channel
 *
 * Computes the sum over a rectangle of samples (or of their squares) from four entries, for any layout and type. Sums
 * of integer types are exact up to 2^53 (modulo 2^32 for %GST_CUDA_VISION_ENTRY_TYPE_U32); larger sums are rounded to
 * the nearest double. The sum over an empty rectangle is 0.
 *
 * Returns: the sum
 */
GST_CUDAVISION_API
gdouble gst_cuda_vision_integral_meta_rectangle_sum(const GstCudaVisionIntegralMeta* meta, guint index,
                                                    const GstMapInfo* map, guint x, guint y, guint width, guint height);

G_END_DECLS
