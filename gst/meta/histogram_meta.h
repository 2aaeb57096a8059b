// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "prelude.h"

G_BEGIN_DECLS

/**
 * GST_CUDA_VISION_HISTOGRAM_MAX_BINS:
 *
 * The largest number of bins of a histogram.
 */
#define GST_CUDA_VISION_HISTOGRAM_MAX_BINS 65536

/**
 * GST_CUDA_VISION_HISTOGRAM_MAX_CHANNELS:
 *
 * The largest number of channels of a histogram.
 */
#define GST_CUDA_VISION_HISTOGRAM_MAX_CHANNELS 4

#define GST_CUDA_VISION_HISTOGRAM_META_API_TYPE (gst_cuda_vision_histogram_meta_api_get_type())
#define GST_CUDA_VISION_HISTOGRAM_META_INFO (gst_cuda_vision_histogram_meta_get_info())

typedef struct _GstCudaVisionHistogramChannel GstCudaVisionHistogramChannel;
typedef struct _GstCudaVisionHistogramMeta GstCudaVisionHistogramMeta;

/**
 * GstCudaVisionHistogramChannel:
 * @name: "luma", "R", "G", "B", "Y", "Cb" or "Cr"
 * @counts: the number of samples in each bin of the meta
 * @count: the number of samples: the sum of @counts
 * @min: the lowest value
 * @max: the highest value
 * @mean: the mean
 * @deviation: the standard deviation, √(Σ(v − mean)² / count)
 * @median: the lowest value that half of the samples do not exceed
 * @p01: the lowest value that 1 % of the samples do not exceed
 * @p99: the lowest value that 99 % of the samples do not exceed
 * @entropy: −Σ p·log2 p over the bins, in bits
 * @saturated: share of the samples, 0 to 1, in the bins of 0 and of 2^depth − 1
 *
 * One channel of a frame. Values are sample values of the format, 0 to 2^depth − 1. A bin of several values counts as
 * their middle, so all statistics are exact if bins ≥ 2^depth. Without samples, all are 0.
 */
struct _GstCudaVisionHistogramChannel {
  const gchar* name;
  const guint64* counts;
  guint64 count;
  gdouble min;
  gdouble max;
  gdouble mean;
  gdouble deviation;
  gdouble median;
  gdouble p01;
  gdouble p99;
  gdouble entropy;
  gdouble saturated;

  /*< private >*/
  gpointer _gst_reserved[GST_PADDING];
};

/**
 * GstCudaVisionHistogramMeta:
 * @meta: parent #GstMeta
 * @bins: number of bins of each channel, 2 to %GST_CUDA_VISION_HISTOGRAM_MAX_BINS; a sample v is in bin v·bins >> depth
 * @depth: bits of a sample, 1 to 16
 * @n_channels: number of channels, 1 to %GST_CUDA_VISION_HISTOGRAM_MAX_CHANNELS
 * @channels: (array length=n_channels): the channels
 * @sharpness: the mean difference between neighbouring pixels of the luma, in 8-bit steps; negative if it was not
 * measured
 *
 * How often each value occurs in a frame. The data that the meta points to live as long as the meta. They must not be
 * changed, because the metas of copies of the buffer share them. A copy of the whole buffer also has the meta; a copy
 * of a region and the result of a transformation (such as scaling) do not.
 */
struct _GstCudaVisionHistogramMeta {
  GstMeta meta;

  guint bins;
  guint depth;
  guint n_channels;
  const GstCudaVisionHistogramChannel* channels;
  gdouble sharpness;

  /*< private >*/
  gpointer _gst_reserved[GST_PADDING - sizeof(gdouble) / sizeof(gpointer)];
};

GST_CUDAVISION_API
GType gst_cuda_vision_histogram_meta_api_get_type(void);

GST_CUDAVISION_API
const GstMetaInfo* gst_cuda_vision_histogram_meta_get_info(void);

/**
 * gst_buffer_add_cuda_vision_histogram_meta:
 * @buffer: a writable #GstBuffer
 * @bins: number of bins of each channel, 2 to %GST_CUDA_VISION_HISTOGRAM_MAX_BINS
 * @depth: bits of a sample, 1 to 16
 * @n_channels: number of channels, 1 to %GST_CUDA_VISION_HISTOGRAM_MAX_CHANNELS
 * @channels: (array length=n_channels): the channels; their names, @bins counts each, and statistics are copied
 *
 * Adds a histogram to a buffer. The caller computes the statistics. The sharpness is negative at first; the caller may
 * set it in the meta.
 *
 * Returns: (transfer none): the meta
 */
GST_CUDAVISION_API
GstCudaVisionHistogramMeta* gst_buffer_add_cuda_vision_histogram_meta(GstBuffer* buffer, guint bins, guint depth,
                                                                      guint n_channels,
                                                                      const GstCudaVisionHistogramChannel* channels);

/**
 * gst_buffer_get_cuda_vision_histogram_meta:
 * @buffer: a #GstBuffer
 *
 * Returns: (transfer none) (nullable): the first histogram meta of a buffer; gst_buffer_iterate_meta_filtered() finds
 * all, with %GST_CUDA_VISION_HISTOGRAM_META_API_TYPE
 */
GST_CUDAVISION_API
GstCudaVisionHistogramMeta* gst_buffer_get_cuda_vision_histogram_meta(GstBuffer* buffer);

/**
 * gst_cuda_vision_histogram_meta_get_channel:
 * @meta: a #GstCudaVisionHistogramMeta
 * @name: a channel's name, such as "luma"
 *
 * Returns: (transfer none) (nullable): the channel with this name, or %NULL
 */
GST_CUDAVISION_API
const GstCudaVisionHistogramChannel* gst_cuda_vision_histogram_meta_get_channel(const GstCudaVisionHistogramMeta* meta,
                                                                                const gchar* name);

G_END_DECLS
