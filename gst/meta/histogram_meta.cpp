// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/meta/histogram_meta.h"

#include <gst/video/video.h>

#include <cstring>

#include "gst/meta/block.hpp"

using Meta = GstCudaVisionHistogramMeta;
using Channel = GstCudaVisionHistogramChannel;
// The block holds the channels, followed by their counts.
using Histogram = cudavision::BlockMeta<&Meta::channels, GDestroyNotify(nullptr)>;

GType gst_cuda_vision_histogram_meta_api_get_type() {
  static gsize type = 0;
  return cudavision::once(&type, [] {
    const gchar* tags[] = {GST_META_TAG_VIDEO_STR, GST_META_TAG_VIDEO_SIZE_STR, GST_META_TAG_VIDEO_COLORSPACE_STR,
                           nullptr};
    return gst_meta_api_type_register("GstCudaVisionHistogramMetaAPI", tags);
  });
}

const GstMetaInfo* gst_cuda_vision_histogram_meta_get_info() {
  static gsize info = 0;
  return reinterpret_cast<const GstMetaInfo*>(cudavision::once(&info, [] {
    return Histogram::register_info(GST_CUDA_VISION_HISTOGRAM_META_API_TYPE, "GstCudaVisionHistogramMeta");
  }));
}

Meta* gst_buffer_add_cuda_vision_histogram_meta(GstBuffer* buffer, guint bins, guint depth, guint n_channels,
                                                const Channel* channels) {
  g_return_val_if_fail(GST_IS_BUFFER(buffer) && gst_buffer_is_writable(buffer), nullptr);
  g_return_val_if_fail(bins >= 2 && bins <= GST_CUDA_VISION_HISTOGRAM_MAX_BINS, nullptr);
  g_return_val_if_fail(depth >= 1 && depth <= 16, nullptr);
  g_return_val_if_fail(n_channels >= 1 && n_channels <= GST_CUDA_VISION_HISTOGRAM_MAX_CHANNELS && channels, nullptr);
  for (guint i = 0; i < n_channels; ++i) g_return_val_if_fail(channels[i].name && channels[i].counts, nullptr);

  auto* block = static_cast<Channel*>(g_atomic_rc_box_alloc(n_channels * (sizeof(Channel) + bins * sizeof(guint64))));
  auto* counts = reinterpret_cast<guint64*>(block + n_channels);
  for (guint i = 0; i < n_channels; ++i, counts += bins) {
    std::memcpy(counts, channels[i].counts, bins * sizeof(guint64));
    block[i] = channels[i];
    block[i].name = g_intern_string(channels[i].name);
    block[i].counts = counts;
  }
  Meta model{};
  model.bins = bins;
  model.depth = depth;
  model.n_channels = n_channels;
  model.channels = block;
  model.sharpness = -1;
  return Histogram::add(buffer, GST_CUDA_VISION_HISTOGRAM_META_INFO, &model);
}

Meta* gst_buffer_get_cuda_vision_histogram_meta(GstBuffer* buffer) {
  g_return_val_if_fail(GST_IS_BUFFER(buffer), nullptr);
  return reinterpret_cast<Meta*>(gst_buffer_get_meta(buffer, GST_CUDA_VISION_HISTOGRAM_META_API_TYPE));
}

const Channel* gst_cuda_vision_histogram_meta_get_channel(const Meta* meta, const gchar* name) {
  g_return_val_if_fail(meta && name, nullptr);
  for (guint i = 0; i < meta->n_channels; ++i)
    if (std::strcmp(meta->channels[i].name, name) == 0) return &meta->channels[i];
  return nullptr;
}
