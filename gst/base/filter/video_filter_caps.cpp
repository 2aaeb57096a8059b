// SPDX-License-Identifier: LGPL-2.1-or-later
// GstCudaVisionFilter: caps.
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

gboolean set_caps(GstBaseTransform* trans, GstCaps* incaps, GstCaps* outcaps) {
  GstCudaVisionFilter* self = as_filter(trans);
  FilterState& state = *self->state;
  push_held(self);  // before the new caps are sent
  state.host.note_copies(trans->sinkpad, incaps);
  state.host.note_copies(trans->srcpad, outcaps);
  const std::lock_guard lock(state.processing);
  GstVideoInfo video;
  if (!video_from_caps(video, incaps)) {
    GST_ELEMENT_ERROR(self, STREAM, FORMAT, ("the incoming caps describe no raw video"), ("%" GST_PTR_FORMAT, incaps));
    return FALSE;
  }
  state.to_device = is_cuda_caps(outcaps);
  state.same_memory = is_cuda_caps(incaps) == state.to_device;
  const bool to_data = !is_video_caps(outcaps);
  if (state.processor && !gst_video_info_is_equal(&video, &state.video)) {
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

}  // namespace cudavision::video_filter
