// SPDX-License-Identifier: LGPL-2.1-or-later
// GstCudaVisionFilter: allocation of frames, and their CUDA context.
#include "gst/base/caps.hpp"
#include "gst/base/filter/video_filter_private.hpp"
#include "gst/base/log.hpp"

namespace cudavision::video_filter {

namespace {

/// Asks upstream for more buffers than the pool in the query has, because frames wait in this element.
void ask_for_more_buffers(GstQuery* query, guint held) {
  if (held == 0 || gst_query_get_n_allocation_pools(query) == 0) return;
  GstBufferPool* pool;
  guint size, least, most;
  gst_query_parse_nth_allocation_pool(query, 0, &pool, &size, &least, &most);
  if (most > 0 && most < least + held) {  // downstream's pool has no more
    gst_clear_object(&pool);
    most = 0;
  }
  gst_query_set_nth_allocation_pool(query, 0, pool, size, least + held, most);
  gst_clear_object(&pool);
}

gboolean answer_allocation(GstBaseTransform* trans, GstQuery* decide_query, GstQuery* query) {
  GstCudaVisionFilter* self = as_filter(trans);
  // Without a decide_query frames pass through, and the base class has asked downstream.
  const bool asked = base_class()->propose_allocation(trans, decide_query, query);
  if (!decide_query && self->state->host.uses_cuda()) self->state->host.gpu.learn_handover(asked ? query : nullptr);
  if (decide_query ? !asked : asked && gst_query_get_n_allocation_pools(query) > 0) return asked;
  GstCaps* caps;
  gboolean need_pool;
  gst_query_parse_allocation(query, &caps, &need_pool);
  if (!caps) return FALSE;
  if (!self->state->host.propose_pool(query, caps, need_pool)) return FALSE;
  if (!decide_query) return TRUE;  // downstream has said which metas it takes
  gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, nullptr);
  gst_query_add_allocation_meta(query, GST_VIDEO_CROP_META_API_TYPE, nullptr);
  self->state->host.offer_handover(query);
  return TRUE;
}

}  // namespace

gboolean propose_allocation(GstBaseTransform* trans, GstQuery* decide_query, GstQuery* query) {
  if (!answer_allocation(trans, decide_query, query)) return FALSE;
  if (!decide_query) ask_for_more_buffers(query, depth_of(as_filter(trans)));  // frames pass, and may wait here
  return TRUE;
}

gboolean decide_allocation(GstBaseTransform* trans, GstQuery* query) {
  GstCudaVisionFilter* self = as_filter(trans);
  GstCaps* caps;
  gst_query_parse_allocation(query, &caps, nullptr);
  if (!caps) return FALSE;
  if (!is_video_caps(caps)) {  // the processor allocates data: new_output()
    while (gst_query_get_n_allocation_pools(query) > 0) gst_query_remove_nth_allocation_pool(query, 0);
    return base_class()->decide_allocation(trans, query);
  }
  if (!self->state->host.decide_pool(query, caps, depth_of(self))) return FALSE;
  return base_class()->decide_allocation(trans, query);
}

namespace {

/// Changes to the CUDA context of an incoming frame, if it is not ours.
Status follow_context(GstCudaVisionFilter* self, GstBuffer* buffer) {
  FilterState& state = *self->state;
  if (!state.host.follows(buffer)) return {};
  push_held(self);
  const std::lock_guard lock(state.processing);
  GST_INFO_OBJECT(self, "going over to the CUDA context of the incoming frames");
  {
    Gpu::Scope scope(state.host.gpu);
    interrupt(self, Interruption::caps);
    finish_work(self);
    state.processor.reset();
    state.reset_staging();
  }
  if (Status status = state.host.gpu.adopt(buffer); !status.ok()) return status;
  gst_base_transform_reconfigure_src(GST_BASE_TRANSFORM(self));
  return renew_plan(self);
}

/// (transfer full) A frame in our CUDA context from a separate pool; nullptr if that fails.
GstBuffer* new_device_frame(GstBaseTransform* trans) {
  GstCaps* caps = gst_pad_get_current_caps(trans->srcpad);
  guint size;
  GstBufferPool* pool = caps ? state_of(trans).host.gpu.new_device_pool(caps, 0, 0, &size) : nullptr;
  gst_clear_caps(&caps);
  if (!pool) return nullptr;
  GstBuffer* frame = nullptr;
  if (!gst_buffer_pool_set_active(pool, TRUE) || gst_buffer_pool_acquire_buffer(pool, &frame, nullptr) != GST_FLOW_OK)
    frame = nullptr;
  gst_buffer_pool_set_active(pool, FALSE);
  gst_object_unref(pool);
  return frame;
}

/// Whether kernels cannot write to an outgoing frame, or the frame is not in the memory that its caps promise.
bool is_in_wrong_memory(const FilterState& state, GstBuffer* frame) {
  return state.host.uses_cuda() && (Gpu::is_device_buffer(frame) ? state.host.gpu.is_foreign(frame) : state.to_device);
}

GstFlowReturn failed(const FilterState& state, const Status& status) {
  state.host.post_error(status);
  return GST_FLOW_ERROR;
}

}  // namespace

GstFlowReturn prepare_output_buffer(GstBaseTransform* trans, GstBuffer* inbuf, GstBuffer** outbuf) {
  GstCudaVisionFilter* self = as_filter(trans);
  FilterState& state = *self->state;
  if (state.host.uses_cuda() && Gpu::is_device_buffer(inbuf))
    if (Status status = follow_context(self, inbuf); !status.ok()) return failed(state, status);
  if (!state.processor) return GST_FLOW_NOT_NEGOTIATED;  // the error was posted for an earlier frame
  if (state.data) {
    Gpu::Scope scope(state.host.gpu);
    const auto made = state.processor->new_output();
    if (!made.ok()) return failed(state, made.error());
    *outbuf = made.value();
    return copy_metadata(trans, inbuf, *outbuf) ? GST_FLOW_OK : GST_FLOW_ERROR;
  }
  const GstFlowReturn flow = base_class()->prepare_output_buffer(trans, inbuf, outbuf);
  if (flow != GST_FLOW_OK) return flow;
  if (gst_base_transform_is_passthrough(trans)) {
    // The memory of the frame stays shared; metas are added to our own buffer.
    if (state.processor->adds_metas() && !gst_buffer_is_writable(inbuf)) *outbuf = gst_buffer_copy(inbuf);
    return flow;
  }
  if (!is_in_wrong_memory(state, *outbuf)) return flow;

  // The pool still belongs to the former CUDA context, or there is no pool because frames passed through until now.
  // GstBaseTransform decides on a pool again before the next frame; this frame comes from elsewhere.
  gst_clear_buffer(outbuf);
  *outbuf = new_device_frame(trans);
  if (!*outbuf)
    return failed(state, Status::resource("no frame can be allocated in the CUDA context of the incoming frames"));
  copy_metadata(trans, inbuf, *outbuf);
  return GST_FLOW_OK;
}

}  // namespace cudavision::video_filter
