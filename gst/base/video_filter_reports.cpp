// SPDX-License-Identifier: LGPL-2.1-or-later
// GstCudaVisionFilter: the results of frames, which may arrive when the frames have gone on.
//
//   streaming thread   submit 1, push 1   submit 2, push 2   submit 3, push 3 …
//   GPU                      1 ............... 2 ............... 3
//   reported                                   1                 2               3 by the poller, if no frame follows
#include "gst/base/video_filter_private.hpp"
#include "kernels/core/guard.hpp"

namespace cudavision::video_filter {
namespace {

/// Reports the oldest frame, of which the work is done.
void report_oldest(GstCudaVisionFilter* self) {
  FilterState& state = *self->state;
  const UnreportedFrame frame = state.unreported.front();
  state.unreported.pop_front();
  state.processor->finished({GST_ELEMENT(self), nullptr, frame.number, frame.times});
}

/// Reports all frames of which the work is done. If the GPU failed, no report follows: an error does, with the next frame or at the end.
void report_done(GstCudaVisionFilter* self) {
  FilterState& state = *self->state;
  while (!state.unreported.empty()) {
    const Gpu::Progress progress = state.host.gpu.progress(state.unreported.front().ticket);
    if (progress == Gpu::Progress::running) return;
    if (progress == Gpu::Progress::failed) return state.unreported.clear();
    report_oldest(self);
  }
}

/// For the poller. Returns whether frames are left to report.
bool poll(GstCudaVisionFilter* self) {
  FilterState& state = *self->state;
  const std::unique_lock lock(state.processing, std::try_to_lock);
  if (!lock) return true;
  const Gpu::Scope scope(state.host.gpu);
  if (!scope.status().ok()) state.unreported.clear();  // the GPU failed: see report_done()
  const Status status = guarded([&] { return report_done(self), Status(); });
  if (!status.ok()) state.host.post_error(status);
  return !state.unreported.empty();
}

}  // namespace

void report(GstCudaVisionFilter* self, GstBuffer* outbuf, std::uint64_t number, const FrameTimes& times) {
  FilterState& state = *self->state;
  while (!state.unreported.empty()) report_oldest(self);
  state.processor->finished({GST_ELEMENT(self), state.processor->adds_metas() ? outbuf : nullptr, number, times});
}

void report_later(GstCudaVisionFilter* self, const UnreportedFrame& frame) {
  FilterState& state = *self->state;
  state.unreported.push_back(frame);
  report_done(self);
  if (state.unreported.empty()) return;
  if (!state.reporter) state.reporter.emplace(Polled::Purpose::reports, [self] { return poll(self); });
  state.reporter->wake();
}

Status report_until(GstCudaVisionFilter* self, std::size_t most_left) {
  FilterState& state = *self->state;
  while (state.unreported.size() > most_left) {
    if (Status status = state.host.gpu.wait_for(state.unreported.front().ticket); !status.ok()) {
      state.unreported.clear();
      return status;
    }
    report_oldest(self);
  }
  return {};
}

}  // namespace cudavision::video_filter
