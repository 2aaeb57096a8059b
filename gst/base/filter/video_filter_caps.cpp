// SPDX-License-Identifier: LGPL-2.1-or-later
// GstCudaVisionFilter: caps, allocation of frames, and their CUDA context.
#include "gst/base/caps.hpp"
#include "gst/base/filter/video_filter_private.hpp"
#include "gst/base/frame.hpp"

namespace cudavision::video_filter {

gboolean query(GstBaseTransform* trans, GstPadDirection direction, GstQuery* query) {
  if (state_of(trans).host.answers(query)) return TRUE;
  if (GST_QUERY_TYPE(query) == GST_QUERY_DRAIN && direction == GST_PAD_SINK) push_held(as_filter(trans));
  if (!base_class()->query(trans, direction, query)) return FALSE;
  if (GST_QUERY_TYPE(query) == GST_QUERY_LATENCY && direction == GST_PAD_SRC) add_latency(state_of(trans), query);
  if (GST_QUERY_TYPE(query) == GST_QUERY_CAPS) {
    // The base class answers in the order of the other side, which may put system memory first.
    GstCaps *caps, *filter;
    gst_query_parse_caps_result(query, &caps);
    gst_query_parse_caps(query, &filter);
    caps = cuda_memory_first(gst_caps_ref(caps));
    if (direction == GST_PAD_SINK && filter && state_of(trans).host.uses_cuda())
      caps = insist_on_cuda(caps, trans->sinkpad);
    if (direction == GST_PAD_SINK && gst_caps_is_empty(caps)) state_of(trans).host.check_memory_of_peer(trans->srcpad);
    gst_query_set_caps_result(query, caps);
    gst_caps_unref(caps);
  }
  return TRUE;
}

GstCaps* transform_caps(GstBaseTransform* trans, GstPadDirection direction, GstCaps* caps, GstCaps* filter) {
  const bool with_cuda = state_of(trans).host.may_use_cuda();
  GstCaps* result = any_memory_caps(caps, with_cuda);
  if (const auto transform_data = class_of(trans)->transform_data_caps) {
    const auto other = owned(transform_data(direction, owned(usable_caps(caps, with_cuda)).get()));
    const auto in_any_memory = direction == GST_PAD_SINK ? any_memory_data_caps : any_memory_caps;
    result = gst_caps_make_writable(result);
    gst_caps_append(result, in_any_memory(other.get(), with_cuda));
  }
  return filter_caps(result, filter);
}

GstCaps* fixate_caps(GstBaseTransform* trans, GstPadDirection direction, GstCaps* caps, GstCaps* othercaps) {
  const auto peer = owned(gst_pad_get_peer(direction == GST_PAD_SINK ? trans->srcpad : trans->sinkpad));
  othercaps = choose_memory(othercaps, caps, peer.get());
  GstVideoInfo video;
  if (!is_video_caps(othercaps) && video_from_caps(video, caps)) {
    ObjectLock lock(trans);
    othercaps = class_of(trans)->fixate_data_caps(as_filter(trans), video, othercaps);
  }
  return gst_caps_fixate(othercaps);
}

namespace {

/// Whether a filter can continue with the other frames. The multiview fields do not matter: some decoders and encoders
/// of pictures omit them, others say mono.
bool describe_the_same(const GstVideoInfo& video, GstVideoInfo other) {
  GST_VIDEO_INFO_MULTIVIEW_MODE(&other) = GST_VIDEO_INFO_MULTIVIEW_MODE(&video);
  GST_VIDEO_INFO_MULTIVIEW_FLAGS(&other) = GST_VIDEO_INFO_MULTIVIEW_FLAGS(&video);
  return gst_video_info_is_equal(&video, &other);
}

}  // namespace

gboolean set_caps(GstBaseTransform* trans, GstCaps* incaps, GstCaps* outcaps) {
  GstCudaVisionFilter* self = as_filter(trans);
  FilterState& state = *self->state;
  push_held(self);  // before the new caps are sent
  state.host.note_copies(trans->sinkpad, incaps);
  state.host.note_copies(trans->srcpad, outcaps);
  const std::lock_guard lock(state.processing);
  GstVideoInfo video;
  if (!video_from_caps(video, incaps)) {
    GST_ELEMENT_ERROR(self, STREAM, FORMAT, ("the incoming caps do not describe raw video"),
                      ("%" GST_PTR_FORMAT, incaps));
    return FALSE;
  }
  state.to_device = is_cuda_caps(outcaps);
  state.same_memory = is_cuda_caps(incaps) == state.to_device;
  const bool to_data = !is_video_caps(outcaps);
  if (state.processor && !describe_the_same(state.video, video)) {
    interrupt(self, Interruption::caps);
    finish_work(self);
    Gpu::Scope scope(state.host.gpu);
    state.processor.reset();
  }
  state.video = video;
  state.data.reset(to_data ? gst_caps_ref(outcaps) : nullptr);
  state.sends_data = to_data;
  state.reset_staging();
  check_times(self);
  const Status status = renew_plan(self);
  update_latency(self);
  if (status.ok()) return TRUE;
  self->state->host.post_error(status);
  return FALSE;
}

gboolean get_unit_size(GstBaseTransform*, GstCaps* caps, gsize* size) {
  GstVideoInfo video;
  if (!video_from_caps(video, caps)) return FALSE;
  *size = GST_VIDEO_INFO_SIZE(&video);
  return TRUE;
}

// Allocation ----------------------------------------------------------------------------------------------------------

namespace {

/// Asks upstream for more buffers than the pool in the query has, because frames may wait in this element.
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
  // Without a decide_query, frames pass through, and the base class has asked downstream.
  const bool asked = base_class()->propose_allocation(trans, decide_query, query);
  if (!decide_query && self->state->host.uses_cuda()) self->state->host.gpu.learn_handover(asked ? query : nullptr);
  if (decide_query ? !asked : asked && gst_query_get_n_allocation_pools(query) > 0) return asked;
  if (!self->state->host.propose_pool(query)) return FALSE;
  if (decide_query) self->state->host.accept_frames(query);  // otherwise downstream has answered
  return TRUE;
}

}  // namespace

gboolean propose_allocation(GstBaseTransform* trans, GstQuery* decide_query, GstQuery* query) {
  if (!answer_allocation(trans, decide_query, query)) return FALSE;
  if (!decide_query) ask_for_more_buffers(query, depth_of(as_filter(trans)));  // frames pass through, and may wait here
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

/// Switches to the CUDA context of an incoming frame, if it is not ours.
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

/// Whether kernels cannot write to an output frame, or the frame is not in the memory that its caps promise.
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
    // The memory of the frame stays shared; metas are added to a separate buffer.
    if (state.processor->adds_metas() && !gst_buffer_is_writable(inbuf)) *outbuf = gst_buffer_copy(inbuf);
    return flow;
  }
  if (!is_in_wrong_memory(state, *outbuf)) return flow;

  // The pool still belongs to the previous CUDA context, or there is no pool because frames passed through until now.
  // GstBaseTransform chooses a pool again before the next frame; this frame is allocated separately.
  gst_clear_buffer(outbuf);
  const auto caps = owned(gst_pad_get_current_caps(trans->srcpad));
  *outbuf = caps ? state.host.gpu.new_device_frame(caps.get()).release() : nullptr;
  if (!*outbuf)
    return state.host.failed(Status::resource("no frame can be allocated in the CUDA context of the incoming frames"));
  copy_metadata(trans, inbuf, *outbuf);
  return GST_FLOW_OK;
}

}  // namespace cudavision::video_filter
