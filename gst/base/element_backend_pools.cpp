// SPDX-License-Identifier: LGPL-2.1-or-later
// ElementBackend: pools of frames in answers to allocation queries.
#include <gst/video/video.h>

#include "gst/base/caps.hpp"
#include "gst/base/element_backend.hpp"
#include "gst/base/frame.hpp"

namespace cudavision {
namespace {

/// Sets the allocator of an allocation query. nullptr: does nothing.
void offer_allocator(GstQuery* query, const Owned<GstAllocator>& allocator) {
  if (!allocator) return;
  GstAllocationParams params;
  gst_allocation_params_init(&params);
  if (gst_query_get_n_allocation_params(query) > 0) {
    gst_query_parse_nth_allocation_param(query, 0, nullptr, &params);
    gst_query_set_nth_allocation_param(query, 0, allocator.get(), &params);
  } else {
    gst_query_add_allocation_param(query, allocator.get(), &params);
  }
}

/// Configures the pool of a neighbour for frames of `caps`, with a GstVideoMeta if the pool supports it: strides may
/// differ from the default. Returns false if the pool rejects the configuration.
bool configure(GstBufferPool* pool, GstCaps* caps, guint size, guint min_buffers, guint max_buffers) {
  GstStructure* config = gst_buffer_pool_get_config(pool);
  gst_buffer_pool_config_set_params(config, caps, size, min_buffers, max_buffers);
  if (gst_buffer_pool_has_option(pool, GST_BUFFER_POOL_OPTION_VIDEO_META))
    gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (gst_buffer_pool_set_config(pool, config)) return true;
  config = gst_buffer_pool_get_config(pool);  // the pool may have changed it
  if (gst_buffer_pool_config_validate_params(config, caps, size, min_buffers, max_buffers))
    return gst_buffer_pool_set_config(pool, config);
  gst_structure_free(config);
  return false;
}

}  // namespace

/// A configured pool of frames of `caps`, and its allocator (nullptr: the default one). Returns nullptr if that fails.
Owned<GstBufferPool> ElementBackend::new_pool(GstCaps* caps, guint min_buffers, guint max_buffers, guint* size,
                                              Owned<GstAllocator>& allocator) const {
  if (is_cuda_caps(caps)) return owned(gpu.new_device_pool(caps, min_buffers, max_buffers, size));
  GstVideoInfo video;
  if (!video_from_caps(video, caps)) return nullptr;
  *size = guint(GST_VIDEO_INFO_SIZE(&video));
  if (uses_cuda()) allocator.reset(gpu.new_pinned_allocator());
  auto pool = owned(gst_video_buffer_pool_new());
  GstStructure* config = gst_buffer_pool_get_config(pool.get());
  gst_buffer_pool_config_set_params(config, caps, *size, min_buffers, max_buffers);
  if (allocator) gst_buffer_pool_config_set_allocator(config, allocator.get(), nullptr);
  gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (!gst_buffer_pool_set_config(pool.get(), config)) return nullptr;
  return pool;
}

bool ElementBackend::propose_pool(GstQuery* query) const {
  GstCaps* caps;
  gboolean need_pool;
  gst_query_parse_allocation(query, &caps, &need_pool);
  if (!caps) return false;
  // No limits: upstream raises the minimum to the number of frames that it needs.
  guint size = 0;
  Owned<GstAllocator> allocator;
  const auto pool = new_pool(caps, 0, 0, &size, allocator);
  if (!pool) return false;
  gst_query_add_allocation_pool(query, need_pool ? pool.get() : nullptr, size, 0, 0);
  offer_allocator(query, allocator);
  return true;
}

void ElementBackend::accept_frames(GstQuery* query) const {
  gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
  gst_query_add_allocation_meta(query, GST_VIDEO_CROP_META_API_TYPE, nullptr);
  if (uses_cuda()) Gpu::offer_handover(query);
}

bool ElementBackend::decide_pool(GstQuery* query, guint held) {
  GstCaps* caps;
  gst_query_parse_allocation(query, &caps, nullptr);
  if (!caps) return false;
  if (uses_cuda()) gpu.learn_handover(query);
  GstBufferPool* offered = nullptr;
  guint size = 0, min_buffers = 0, max_buffers = 0;
  const bool has_offer = gst_query_get_n_allocation_pools(query) > 0;
  if (has_offer) gst_query_parse_nth_allocation_pool(query, 0, &offered, &size, &min_buffers, &max_buffers);
  auto pool = owned(offered);
  min_buffers += held;
  if (max_buffers > 0 && max_buffers < min_buffers) {  // downstream's pool cannot provide enough
    pool.reset();
    max_buffers = 0;
  }
  // Using frames from downstream's own pool saves a copy there. However, device frames must be in our context.
  if (pool && is_cuda_caps(caps) && !gpu.follow_pool(pool.get())) pool.reset();
  if (pool && !configure(pool.get(), caps, size, min_buffers, max_buffers)) pool.reset();
  if (!pool) {
    Owned<GstAllocator> allocator;
    guint needed = 0;
    pool = new_pool(caps, min_buffers, max_buffers, &needed, allocator);
    if (!pool) {
      post_error(Status::resource("no buffer pool for the outgoing frames can be made"));
      return false;
    }
    size = MAX(size, needed);
    offer_allocator(query, allocator);
  }
  if (has_offer)
    gst_query_set_nth_allocation_pool(query, 0, pool.get(), size, min_buffers, max_buffers);
  else
    gst_query_add_allocation_pool(query, pool.get(), size, min_buffers, max_buffers);
  return true;
}

}  // namespace cudavision
