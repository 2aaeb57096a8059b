// SPDX-License-Identifier: LGPL-2.1-or-later
// GstCudaVisionMixer: frames that wait in the element until the GPU has done their work, while it processes the next
// frames (async-depth).
#include <utility>

#include "gst/base/mixer/video_mixer_private.hpp"

namespace cudavision::video_mixer {
namespace {

/// Pushes the oldest waiting frame when its work is done.
GstFlowReturn push_oldest(GstAggregator* agg) {
  MixerState& state = state_of(agg);
  HeldPicture picture = std::move(state.held.front());
  state.held.pop_front();
  Status status;
  {
    const Gpu::Scope scope(state.host.gpu);
    status = scope.status().ok() ? state.host.gpu.wait_for(picture.ticket) : scope.status();
  }
  picture.mapped.reset();
  if (status.ok()) return base_class()->finish_buffer(agg, picture.buffer.release());
  state.held.clear();
  return state.host.failed(status);
}

}  // namespace

GstFlowReturn finish_buffer(GstAggregator* agg, GstBuffer* buffer) {
  MixerState& state = state_of(agg);
  const bool waits = std::exchange(state.unfinished, nullptr) == buffer;
  if (waits) {
    state.last.buffer.reset(buffer);
    state.held.push_back(std::move(state.last));
  }
  state.last = {};
  const std::size_t most = waits ? depth_of(as_mixer(agg)) : 0;
  GstFlowReturn flow = GST_FLOW_OK;
  while (flow == GST_FLOW_OK && state.held.size() > most) flow = push_oldest(agg);
  if (waits) return flow;
  if (flow == GST_FLOW_OK) return base_class()->finish_buffer(agg, buffer);
  gst_buffer_unref(buffer);
  return flow;
}

GstFlowReturn push_held(GstAggregator* agg) {
  MixerState& state = state_of(agg);
  GstFlowReturn flow = GST_FLOW_OK;
  while (flow == GST_FLOW_OK && !state.held.empty()) flow = push_oldest(agg);
  state.held.clear();
  return flow;
}

/// Called while the streaming thread is stopped.
GstFlowReturn flush(GstAggregator* agg) {
  state_of(agg).host.finish_or_post_error();
  state_of(agg).held.clear();
  return base_class()->flush(agg);
}

/// The time of the next frame. From this time on, the base class waits for late pads as long as the latency allows. The
/// waiting time in this element is subtracted, because the latency includes it.
GstClockTime get_next_time(GstAggregator* agg) {
  const GstClockTime next = base_class()->get_next_time(agg), held = state_of(agg).held_time;
  return GST_CLOCK_TIME_IS_VALID(next) ? next - MIN(next, held) : next;
}

guint depth_of(GstCudaVisionMixer* self) {
  // Without a framerate, the time of the next frame is unknown, so a frame that waits for it may be too late.
  const bool has_rate = GST_CLOCK_TIME_IS_VALID(time_between_frames(GST_VIDEO_AGGREGATOR(self)->info));
  return self->state->host.async_depth(has_rate);
}

void update_latency(GstCudaVisionMixer* self) {
  MixerState& state = *self->state;
  const GstClockTime time = time_between_frames(GST_VIDEO_AGGREGATOR(self)->info);
  const bool goes_on = state.to_device && state.host.gpu.may_hand_over();
  const guint depth = goes_on ? 0 : depth_of(self);
  if (std::exchange(state.depth, depth) == depth) return;
  state.held_time = depth > 0 ? depth * time : 0;
  if (!GST_CLOCK_TIME_IS_VALID(time)) return;
  const GstClockTime latency = (1 + depth) * time;  // the base class itself waits for one frame
  gst_aggregator_set_latency(GST_AGGREGATOR(self), latency, latency);
}

}  // namespace cudavision::video_mixer
