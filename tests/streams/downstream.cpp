// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/streams/downstream.hpp"

#include <cstdint>

#include "tests/streams/broken.hpp"
#include "tests/streams/memory.hpp"

namespace cudavision::streams {
namespace {

// A pool of system memory. The rows of its frames share bytes.
struct LyingPool {
  GstBufferPool parent;
  GstVideoInfo video;
  std::uint64_t frames;
};
struct LyingPoolClass {
  GstBufferPoolClass parent_class;
};

G_DEFINE_TYPE(LyingPool, lying_pool, GST_TYPE_BUFFER_POOL)

gboolean set_config(GstBufferPool* pool, GstStructure* config) {
  GstCaps* caps = nullptr;
  if (!gst_buffer_pool_config_get_params(config, &caps, nullptr, nullptr, nullptr) || !caps) return FALSE;
  if (!gst_video_info_from_caps(&reinterpret_cast<LyingPool*>(pool)->video, caps)) return FALSE;
  return GST_BUFFER_POOL_CLASS(lying_pool_parent_class)->set_config(pool, config);
}

GstFlowReturn alloc_buffer(GstBufferPool* pool, GstBuffer** buffer, GstBufferPoolAcquireParams*) {
  LyingPool& self = *reinterpret_cast<LyingPool*>(pool);
  const GstVideoInfo& video = self.video;
  const std::string bytes(GST_VIDEO_INFO_SIZE(&video), '\0');
  *buffer = gst_buffer_new();
  gst_buffer_append_memory(*buffer, new_fenced_memory(bytes.data(), bytes.size(), Fence::heap, false));
  Random random(self.frames++);
  overlap_rows(random, *buffer, video);
  return GST_FLOW_OK;
}

void lying_pool_init(LyingPool*) {}

void lying_pool_class_init(LyingPoolClass* klass) {
  klass->parent_class.set_config = set_config;
  klass->parent_class.alloc_buffer = alloc_buffer;
}

/// (transfer full)
GstBufferPool* new_lying_pool() {
  return GST_BUFFER_POOL(gst_object_ref_sink(g_object_new(lying_pool_get_type(), nullptr)));
}

}  // namespace

Downstream draw_downstream(Random& random, bool mixer) {
  Downstream downstream;
  if (mixer) {
    const std::string most = ",width=(int)[1," + std::to_string(random.between(2, 200)) + "],height=(int)[1,200]";
    downstream.caps = "video/x-raw" + most +
                      random.pick<std::string>({"", "", "", ",format=NV12", ",format=RGBA", ",format=GRAY8",
                                                ",format=P010_10LE", ",framerate=30/1"});
    if (random.one_in(2)) downstream.caps = "video/x-raw(memory:CUDAMemory)" + most + ";" + downstream.caps;
  } else if (random.one_in(3)) {
    downstream.caps = random.pick<std::string>(
        {"video/x-raw", "video/x-raw(memory:CUDAMemory);video/x-raw", "video/x-raw;video/x-raw(memory:CUDAMemory)",
         "video/x-raw(ANY)", "video/x-raw,width=7", "video/x-raw,format=NV12", "video/x-integral;video/x-raw",
         "video/x-integral,format=F64LE;video/x-raw"});
  }
  using Pool = Downstream::Pool;
  downstream.pool =
      random.pick<Pool>({Pool::none, Pool::none, Pool::strange_strides, Pool::plain, Pool::no_video_meta});
  return downstream;
}

bool Downstream::answer(GstQuery* query) const {
  g_autoptr(GstCaps) taken = gst_caps_from_string(caps.c_str());
  if (GST_QUERY_TYPE(query) == GST_QUERY_CAPS) {
    GstCaps* filter;
    gst_query_parse_caps(query, &filter);
    g_autoptr(GstCaps) result = gst_caps_intersect_full(filter ? filter : taken, taken, GST_CAPS_INTERSECT_FIRST);
    gst_query_set_caps_result(query, result);
  } else if (GST_QUERY_TYPE(query) == GST_QUERY_ACCEPT_CAPS) {
    GstCaps* asked;
    gst_query_parse_accept_caps(query, &asked);
    gst_query_set_accept_caps_result(query, gst_caps_can_intersect(asked, taken));
  } else if (GST_QUERY_TYPE(query) == GST_QUERY_ALLOCATION) {
    answer_allocation(query);
  } else {
    return false;
  }
  return true;
}

void Downstream::answer_allocation(GstQuery* query) const {
  GstCaps* caps;
  GstVideoInfo video;
  gst_query_parse_allocation(query, &caps, nullptr);
  if (pool == Pool::none || !caps || !gst_video_info_from_caps(&video, caps)) return;
  if (!gst_caps_features_is_equal(gst_caps_get_features(caps, 0), GST_CAPS_FEATURES_MEMORY_SYSTEM_MEMORY)) return;
  const guint size = guint(GST_VIDEO_INFO_SIZE(&video));
  g_autoptr(GstBufferPool) made = pool == Pool::lying   ? new_lying_pool()
                                  : pool == Pool::plain ? gst_buffer_pool_new()
                                                        : gst_video_buffer_pool_new();
  GstStructure* config = gst_buffer_pool_get_config(made);
  gst_buffer_pool_config_set_params(config, caps, size, 0, 0);
  const GstAllocationParams odd{GstMemoryFlags(0), 0, 3, 5, {}};
  gst_buffer_pool_config_set_allocator(config, nullptr, &odd);
  if (pool == Pool::strange_strides) {
    GstVideoAlignment alignment;
    gst_video_alignment_reset(&alignment);
    alignment.padding_left = 6, alignment.padding_right = 10, alignment.padding_top = 4, alignment.padding_bottom = 2;
    gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
    gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT);
    gst_buffer_pool_config_set_video_alignment(config, &alignment);
    gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
  }
  gst_buffer_pool_set_config(made, config);
  gst_query_add_allocation_pool(query, made, size, 0, 0);
}

}  // namespace cudavision::streams
