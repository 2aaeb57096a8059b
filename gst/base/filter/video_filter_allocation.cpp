// SPDX-License-Identifier: LGPL-2.1-or-later
// GstCudaVisionFilter: allocation of frames, and their CUDA context.
#include "gst/base/caps.hpp"
#include "gst/base/filter/video_filter_private.hpp"

namespace cudavision::video_filter {

namespace {

/// Asks upstream for more buffers than the pool in the query has, because frames wait in this element.
void ask_for_more_buffers(GstQuery* query, guint held) {
  if (held == 0 || gst_query_get_n_allocation_pools(query) == 0) return;
  GstBufferPool* pool;
  guint size, least, most;
  gst_query_parse_nth_allocation_pool(query, 0, &pool, &size, &least, &most);
  const auto owner = owned(pool);
  const bool has_more = most == 0 || most >= least + held;
  gst_query_set_nth_allocation_pool(query, 0, has_more ? pool : nullptr, size, least + held, has_more ? most : 0);
}

gboolean answer_allocation(GstBaseTransform* trans, GstQuery* decide_query, GstQuery* query) {
  GstCudaVisionFilter* self = as_filter(trans);
  // Without a decide_query frames pass through, and the base class has asked downstream.
  const bool asked = base_class()->propose_allocation(trans, decide_query, query);
  if (!decide_query && self->state->host.uses_cuda()) self->state->host.gpu.learn_handover(asked ? query : nullptr);
  if (decide_query ? !asked : asked && gst_query_get_n_allocation_pools(query) > 0) return asked;
  if (!self->state->host.propose_pool(query)) return FALSE;
  if (decide_query) self->state->host.accept_frames(query);  // else downstream has said what it takes
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
  if (!self->state->host.decide_pool(query, depth_of(self))) return FALSE;
  return base_class()->decide_allocation(trans, query);
}

namespace {

/// Changes to the CUDA context of an incoming frame, if it is not ours.
Status follow_context(GstCudaVisionFilter* self, GstBuffer* buffer) {
  FilterState& state = *self->state;
  if (!state.host.follows(buffer)) return {};
  push_held(self);
  const std::lock_guard lock(state.processing);
  {
    Gpu::Scope scope(state.host.gpu);
    interrupt(self, Interruption::caps);
    finish_work(self);
    state.processor.reset();
    state.reset_staging();
  }
  if (Status status = state.host.adopt(buffer); !status.ok()) return status;
  gst_base_transform_reconfigure_src(GST_BASE_TRANSFORM(self));
  return renew_plan(self);
}

/// Whether kernels cannot write to an outgoing frame, or the frame is not in the memory that its caps promise.
bool is_in_wrong_memory(const FilterState& state, GstBuffer* frame) {
  return state.host.uses_cuda() && (Gpu::is_device_buffer(frame) ? state.host.gpu.is_foreign(frame) : state.to_device);
}

}  // namespace

GstFlowReturn prepare_output_buffer(GstBaseTransform* trans, GstBuffer* inbuf, GstBuffer** outbuf) {
  GstCudaVisionFilter* self = as_filter(trans);
  FilterState& state = *self->state;
  if (state.host.uses_cuda() && Gpu::is_device_buffer(inbuf))
    if (Status status = follow_context(self, inbuf); !status.ok()) return state.host.failed(status);
  if (!state.processor) return GST_FLOW_NOT_NEGOTIATED;  // the error was posted for an earlier frame
  if (state.data) {
    Gpu::Scope scope(state.host.gpu);
    const auto made = state.processor->new_output();
    if (!made.ok()) return state.host.failed(made.error());
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
  const auto caps = owned(gst_pad_get_current_caps(trans->srcpad));
  *outbuf = caps ? state.host.gpu.new_device_frame(caps.get()).release() : nullptr;
  if (!*outbuf)
    return state.host.failed(Status::resource("no frame can be allocated in the CUDA context of the incoming frames"));
  copy_metadata(trans, inbuf, *outbuf);
  return GST_FLOW_OK;
}

}  // namespace cudavision::video_filter
