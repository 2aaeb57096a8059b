// SPDX-License-Identifier: LGPL-2.1-or-later
// GstCudaVisionFilter: frames whose work the GPU may not have finished, and their results, which arrive later.
//
//   streaming thread   submit 1, push 1   submit 2, push 2   submit 3, push 3 …
//   GPU                      1 ............... 2 ............... 3
//   reported                                   1                 2               3 by the poller, if no frame follows
#include "gst/base/filter/video_filter_private.hpp"

namespace cudavision::video_filter {
namespace {

/// Completes the oldest pending frame, whose work is done.
void complete_oldest(GstCudaVisionFilter* self) {
  FilterState& state = *self->state;
  PendingFrame frame = std::move(state.pending.front());
  state.pending.pop_front();
  frame.mapped.reset();
  if (!frame.reported) report(self, frame.held, frame.number, frame.times);
}

/// Called if the GPU failed: nothing more is reported. Waiting frames stay pending, and fail when they are to be
/// pushed.
void fail_pending(FilterState& state) {
  while (!state.pending.empty() && !state.pending.front().held) state.pending.pop_front();
}

/// Reports all frames whose work is done, except the frames that wait in this element. If the GPU failed, nothing is
/// reported; an error is posted with the next frame or at the end.
void report_done(GstCudaVisionFilter* self) {
  FilterState& state = *self->state;
  while (!state.pending.empty() && !state.pending.front().held) {
    const Gpu::Progress progress = state.host.gpu.progress(state.pending.front().ticket);
    if (progress == Gpu::Progress::running) return;
    if (progress == Gpu::Progress::failed) return fail_pending(state);
    complete_oldest(self);
  }
}

/// Called by the poller. Returns whether frames are left to report.
bool poll(GstCudaVisionFilter* self) {
  FilterState& state = *self->state;
  const std::unique_lock lock(state.processing, std::try_to_lock);
  if (!lock) return true;
  if (state.pending.empty() || state.pending.front().held) return false;
  const Gpu::Scope scope(state.host.gpu);
  if (!scope.status().ok()) fail_pending(state);
  state.host.guard([&] { report_done(self); });
  return !state.pending.empty() && !state.pending.front().held;
}

}  // namespace

void report(GstCudaVisionFilter* self, GstBuffer* outbuf, std::uint64_t number, const FrameTimes& times) {
  Processor& processor = *self->state->processor;
  processor.finished({GST_ELEMENT(self), processor.adds_metas() ? outbuf : nullptr, number, times});
}

void add_pending(GstCudaVisionFilter* self, PendingFrame frame) {
  FilterState& state = *self->state;
  state.pending.push_back(std::move(frame));
  report_done(self);
  if (state.pending.empty() || state.pending.front().held) return;
  if (!state.reporter) state.reporter.emplace(Polled::Purpose::reports, [self] { return poll(self); });
  state.reporter->wake();
}

Status complete_until(GstCudaVisionFilter* self, std::size_t most_left) {
  FilterState& state = *self->state;
  while (state.pending.size() > most_left) {
    if (Status status = state.host.gpu.wait_for(state.pending.front().ticket); !status.ok()) {
      state.pending.clear();
      state.held.clear();
      return status;
    }
    complete_oldest(self);
  }
  return {};
}

}  // namespace cudavision::video_filter
