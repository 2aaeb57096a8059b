// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/fuzz/lying_pool.hpp"

#include <cstdint>
#include <string>

#include "tests/fuzz/hostile.hpp"

namespace cudavision::fuzz {
namespace {

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

}  // namespace

GstBufferPool* new_lying_pool() {
  return GST_BUFFER_POOL(gst_object_ref_sink(g_object_new(lying_pool_get_type(), nullptr)));
}

}  // namespace cudavision::fuzz
