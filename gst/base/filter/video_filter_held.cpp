// SPDX-License-Identifier: LGPL-2.1-or-later
// GstCudaVisionFilter: frames that wait in the element until the GPU has done their work, while it processes the next
// frames (async-depth).
//
//   async-depth=2   in 1   in 2   in 3, out 1   in 4, out 2 …   at EOS and before other events: out 3, out 4
//                                                               a live stream stalls: each frame after its latency
#include <algorithm>
#include <chrono>

#include "gst/base/filter/video_filter_private.hpp"

namespace cudavision::video_filter {
namespace {

/// Whether frames cannot be pushed before their work is done.
bool frames_need_completion(GstCudaVisionFilter* self) {
  const FilterState& state = *self->state;
  const Processor& processor = *state.processor;
  if (state.data || (processor.reads_results() && processor.adds_metas())) return true;
  if (gst_base_transform_is_passthrough(GST_BASE_TRANSFORM(self))) return false;
  return !state.to_device || !state.host.gpu.may_hand_over();
}

/// Takes the oldest waiting frame, after its work is done. Errors: resource.
Result<Owned<GstBuffer>> take_oldest(GstCudaVisionFilter* self) {
  FilterState& state = *self->state;
  const GstBuffer* oldest = state.held.front().buffer.get();
  const auto frame = std::find_if(state.pending.begin(), state.pending.end(),
                                  [oldest](const PendingFrame& pending) { return pending.held == oldest; });
  if (frame != state.pending.end()) {
    const Gpu::Scope scope(state.host.gpu);
    if (Status status = complete_until(self, std::size_t(state.pending.end() - frame) - 1); !status.ok()) return status;
  }
  Owned<GstBuffer> buffer = std::move(state.held.front().buffer);
  state.held.pop_front();
  return buffer;
}

}  // namespace

guint depth_of(GstCudaVisionFilter* self) {
  const FilterState& state = *self->state;
  return state.host.async_depth(state.in_time && GST_PAD_MODE(GST_BASE_TRANSFORM_SRC_PAD(self)) == GST_PAD_MODE_PUSH);
}

namespace {

/// The time at which the oldest waiting frame has waited as long as the reported latency.
Deadline::Clock::time_point due(const FilterState& state) {
  return state.held.front().arrived + std::chrono::nanoseconds(state.latency.load());
}

/// Pushes the frames that wait in this element: all of them, or only those that are due.
GstFlowReturn push_frames(GstCudaVisionFilter* self, bool all) {
  FilterState& state = *self->state;
  GstFlowReturn flow = GST_FLOW_OK;
  for (;;) {
    Owned<GstBuffer> buffer;
    {
      const std::lock_guard lock(state.processing);
      if (state.held.empty() || (!all && due(state) > Deadline::Clock::now())) return flow;
      auto taken = take_oldest(self);
      if (!taken.ok()) return state.host.failed(taken.error());
      buffer = std::move(taken.value());
    }
    if (flow == GST_FLOW_OK) flow = gst_pad_push(GST_BASE_TRANSFORM_SRC_PAD(self), buffer.release());
  }
}

/// The time at which the oldest frame is pushed even if no other frame arrives: a live camera may stall, or be slower
/// than its caps say. No value: never.
Deadline::Time next_deadline(const FilterState& state) {
  if (!state.live || state.held.empty() || state.latency == 0) return {};
  return due(state);
}

/// In the thread of the deadline: pushes frames if no other frame arrived in time, and returns the next deadline. The
/// stream lock prevents upstream from sending anything meanwhile. This function does not wait for the lock, because the
/// thread that holds it may be stopping the element and waiting for this thread.
Deadline::Time push_due(GstCudaVisionFilter* self) {
  GstPad* const sink = GST_BASE_TRANSFORM_SINK_PAD(self);
  if (!GST_PAD_STREAM_TRYLOCK(sink)) return Deadline::Clock::now() + std::chrono::milliseconds(1);
  Deadline::Time next;
  const Status status = guarded([&] {
    push_frames(self, false);
    const std::lock_guard lock(self->state->processing);
    next = next_deadline(*self->state);
  });
  GST_PAD_STREAM_UNLOCK(sink);
  if (!status.ok()) self->state->host.post_error(status);
  return next;
}

void set_deadline(GstCudaVisionFilter* self) {
  FilterState& state = *self->state;
  const Deadline::Time time = next_deadline(state);
  if (time && !state.deadline) state.deadline.emplace([self] { return push_due(self); });
  if (state.deadline) state.deadline->set(time);
}

}  // namespace

GstFlowReturn push_held(GstCudaVisionFilter* self) {
  if (self->state->deadline) self->state->deadline->set({});
  return push_frames(self, true);
}

GstFlowReturn generate_output(GstBaseTransform* trans, GstBuffer** outbuf) {
  GstCudaVisionFilter* self = as_filter(trans);
  FilterState& state = *self->state;
  const auto arrived = Deadline::Clock::now();
  state.skipped = false;
  const GstFlowReturn flow = base_class()->generate_output(trans, outbuf);
  if (flow != GST_FLOW_OK) return flow;
  if (std::exchange(state.holds_last, false)) state.held.push_back({owned(std::exchange(*outbuf, nullptr)), arrived});
  if (*outbuf) return push_held(self);
  const std::lock_guard lock(state.processing);
  if (state.held.size() > depth_of(self)) {
    auto taken = take_oldest(self);
    if (!taken.ok()) return state.host.failed(taken.error());
    *outbuf = taken.value().release();
  }
  set_deadline(self);
  return GST_FLOW_OK;
}

// Latency -------------------------------------------------------------------------------------------------------------

void check_times(GstCudaVisionFilter* self) {
  FilterState& state = *self->state;
  const auto query = owned(gst_query_new_latency());
  gboolean live = FALSE;
  if (gst_pad_peer_query(GST_BASE_TRANSFORM_SINK_PAD(self), query.get()))
    gst_query_parse_latency(query.get(), &live, nullptr, nullptr);
  state.live = bool(live);
  // Without a framerate, the arrival of the next frame of a live stream is unknown, so a frame that waits for it may be
  // too late.
  state.in_time = !live || GST_CLOCK_TIME_IS_VALID(time_between_frames(state.video));
}

void update_latency(GstCudaVisionFilter* self) {
  FilterState& state = *self->state;
  const guint frames = state.processor && frames_need_completion(self) ? depth_of(self) : 0;
  const GstClockTime time = frames > 0 ? time_between_frames(state.video) : 0,
                     latency = GST_CLOCK_TIME_IS_VALID(time) ? frames * time : 0;
  if (state.latency.exchange(latency) != latency)
    gst_element_post_message(GST_ELEMENT(self), gst_message_new_latency(GST_OBJECT(self)));
}

void add_latency(FilterState& state, GstQuery* query) {
  const GstClockTime latency = state.latency;
  gboolean live;
  GstClockTime min, max;
  gst_query_parse_latency(query, &live, &min, &max);
  state.live = bool(live);  // upstream may not have known this when the caps arrived
  gst_query_set_latency(query, live, min + latency, GST_CLOCK_TIME_IS_VALID(max) ? max + latency : max);
}

}  // namespace cudavision::video_filter
