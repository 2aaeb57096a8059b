// SPDX-License-Identifier: LGPL-2.1-or-later
// GstCudaVisionMixer: allocation of frames, and their CUDA context.
#include "gst/base/mixer/video_mixer_private.hpp"

namespace cudavision::video_mixer {

gboolean decide_allocation(GstAggregator* agg, GstQuery* query) {
  // The base class is not called: it leaks a reference to our allocator.
  return state_of(agg).host.decide_pool(query, depth_of(as_mixer(agg)));
}

namespace {

/// Changes to the CUDA context of the incoming frames, if some are in CUDA memory and none of them is in our context.
/// (If frames are in several contexts, those in other contexts are copied.) Returns whether it did;
/// the output must then be negotiated again.
Result<bool> follow_context(GstCudaVisionMixer* self) {
  ElementBackend& host = self->state->host;
  GstBuffer* foreign = nullptr;
  const Inputs inputs(self);
  for (const MixerInput& input : inputs.list()) {
    GstBuffer* buffer = frame_of(input);
    if (!buffer || !Gpu::is_device_buffer(buffer)) continue;
    if (!host.gpu.is_foreign(buffer)) return false;
    if (!foreign && host.follows(buffer)) foreign = buffer;
  }
  if (!foreign) return false;
  drop_device_state(self);
  if (Status status = host.adopt(foreign); !status.ok()) return status;
  gst_pad_mark_reconfigure(GST_AGGREGATOR(self)->srcpad);
  return true;
}

}  // namespace

GstFlowReturn create_output_buffer(GstVideoAggregator* vagg, GstBuffer** buffer) {
  MixerState& state = state_of(vagg);
  state.collected = true;
  if (state.host.uses_cuda()) {
    const auto followed = follow_context(as_mixer(vagg));
    if (!followed.ok()) return state.host.failed(followed.error());
    if (followed.value()) return GST_AGGREGATOR_FLOW_NEED_DATA;
  }
  return GST_VIDEO_AGGREGATOR_CLASS(base_class())->create_output_buffer(vagg, buffer);
}

}  // namespace cudavision::video_mixer
