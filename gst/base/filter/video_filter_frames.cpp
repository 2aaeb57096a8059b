// SPDX-License-Identifier: LGPL-2.1-or-later
// GstCudaVisionFilter: frames and events.
#include <utility>

#include "gst/base/filter/video_filter_private.hpp"

namespace cudavision::video_filter {

namespace {

struct Processed {
  Transfer::State state;
  std::uint64_t ticket;
  std::unique_ptr<FrameBuffer> output;  // nullptr if the frame passes through, or data is sent
};

FrameTimes times_of(GstBaseTransform* trans, GstBuffer* buffer) {
  FrameTimes times;
  times.timestamp = GST_BUFFER_PTS(buffer);
  times.duration = GST_BUFFER_DURATION(buffer);
  if (trans->segment.format == GST_FORMAT_TIME) {  // GStreamer cannot convert other formats, such as bytes of a file
    times.stream_time = gst_segment_to_stream_time(&trans->segment, GST_FORMAT_TIME, times.timestamp);
    times.running_time = gst_segment_to_running_time(&trans->segment, GST_FORMAT_TIME, times.timestamp);
  }
  return times;
}

/// Runs the processor on a frame. If the frame passes through, `inbuf` and `outbuf` share their memory, or are the same
/// buffer. Errors: frame, if the incoming frame does not match its caps; resource.
Result<Processed> process(GstCudaVisionFilter* self, Gpu* gpu, GstBuffer* inbuf, GstBuffer* outbuf,
                          const FrameTimes& times) {
  FilterState& state = *self->state;
  const Processor& processor = *state.processor;
  Transfer transfer(gpu);
  const FrameBuffer in(transfer, inbuf, state.video, GST_MAP_READ);
  if (!in.status().ok()) return in.status();
  std::unique_ptr<FrameBuffer> out;
  if (!gst_base_transform_is_passthrough(GST_BASE_TRANSFORM(self)) && !state.data) {
    out = std::make_unique<FrameBuffer>(transfer, outbuf, state.video, GST_MAP_WRITE);
    // The next output frame would also fail, so this is not an error of this frame alone.
    if (!out->status().ok())
      return Status::resource("cannot write to a buffer of the output pool: " + out->status().message());
  }
  const bool reads_results = processor.reads_results(), keeps_results = processor.results_kept() > 1;
  if (keeps_results)
    if (Status status = complete_until(self, std::size_t(processor.results_kept() - 1)); !status.ok()) return status;
  Transfer::Frame frame;
  frame.passes = !out && !state.data;
  frame.complete = reads_results && (state.data || processor.adds_metas() || !keeps_results);
  frame.named = reads_results;
  // The base class must itself push a frame that it marks as a discontinuity.
  frame.may_wait = depth_of(self) > 0 && !state.at_discont && (!reads_results || keeps_results);
  const std::uint64_t number = ++state.frames;
  const auto submitted = transfer.run(frame, [&]() -> Status {
    const bool only_reads = state.data || processor.passes_through();
    const auto src =
        out && only_reads ? transfer.carry(in, *out, state.input_staging) : transfer.fetch(in, state.input_staging);
    if (!src.ok()) return src.error();
    const Image* dst = nullptr;
    if (out && !only_reads) {
      const auto target = transfer.target(*out, state.output_staging);
      if (!target.ok()) return target.error();
      dst = target.value();
    }
    const Region region = region_of(state, inbuf);
    return state.processor->submit(
        {*src.value(), dst, region, transfer.queue(), number, times, [&transfer] { return transfer.wait(); }});
  });
  if (!submitted.ok()) return submitted.error();
  return Processed{submitted.value(), transfer.ticket(), std::move(out)};
}

/// Reports a processed frame now or later. Decides whether it waits in this element. Errors: resource.
Status report_or_hold(GstCudaVisionFilter* self, Processed processed, GstBuffer* outbuf, const FrameTimes& times) {
  FilterState& state = *self->state;
  const bool finished = processed.state == Transfer::State::finished;
  if (finished)  // then all earlier frames are also finished
    if (Status status = complete_until(self, 0); !status.ok()) return status;
  const bool report_now = finished || !state.processor->reads_results();
  if (report_now) report(self, outbuf, state.frames, times);
  state.holds_last = processed.state == Transfer::State::unfinished;
  if (state.holds_last || !report_now)
    add_pending(self, {state.frames, processed.ticket, times, report_now, state.holds_last ? outbuf : nullptr,
                       state.holds_last ? std::move(processed.output) : nullptr});
  update_latency(self);
  return {};
}

}  // namespace

/// The base class calls this function first for each frame, before it asks for passthrough mode and an output buffer.
void before_transform(GstBaseTransform* trans, GstBuffer* buffer) {
  GstCudaVisionFilter* self = as_filter(trans);
  FilterState& state = *self->state;
  // Frames that wait are pushed before a frame that is marked as a discontinuity.
  state.at_discont = std::exchange(state.skipped, true) || state.run.dropped > 0 || GST_BUFFER_IS_DISCONT(buffer);
  if (state.at_discont) push_held(self);
  const std::lock_guard lock(state.processing);
  const GstClockTime time = times_of(trans, buffer).stream_time;
  if (GST_CLOCK_TIME_IS_VALID(time)) gst_object_sync_values(GST_OBJECT(trans), time);
  if (!state.processor) return;
  if (GST_BUFFER_IS_DISCONT(buffer)) interrupt(self, Interruption::discont);
  if (state.changed) state.run.renewed = renew_plan(self);
}

namespace {

/// Drops a frame that does not match its caps. Warns about the first of consecutive frames; a stream of such frames is
/// an error.
GstFlowReturn drop(GstCudaVisionFilter* self, const Status& status) {
  FilterState& state = *self->state;
  state.run.misfit = status.message();
  if (++state.run.dropped == 1)
    GST_ELEMENT_WARNING(self, STREAM, FORMAT, ("%s", status.message().c_str()), ("frames are dropped until one fits"));
  if (state.run.dropped < most_misfits) return GST_BASE_TRANSFORM_FLOW_DROPPED;
  return state.host.failed(too_many_misfits(state.run.dropped, state.run.misfit));
}

}  // namespace

GstFlowReturn transform(GstBaseTransform* trans, GstBuffer* inbuf, GstBuffer* outbuf) {
  GstCudaVisionFilter* self = as_filter(trans);
  FilterState& state = *self->state;
  const std::lock_guard lock(state.processing);
  Status status = std::exchange(state.run.renewed, Status());
  if (status.ok()) {
    Gpu::Scope scope(state.host.gpu);
    status = scope.status();
    if (status.ok()) {
      const FrameTimes times = times_of(trans, inbuf);
      auto processed = process(self, state.host.uses_cuda() ? &state.host.gpu : nullptr, inbuf, outbuf, times);
      status = processed.ok() ? report_or_hold(self, std::move(processed.value()), outbuf, times) : processed.error();
    }
  }
  if (status.code() == Status::Code::frame) return drop(self, status);
  state.run.dropped = 0;
  state.run.fitted_one = true;
  return status.ok() ? GST_FLOW_OK : state.host.failed(status);
}

GstFlowReturn transform_ip(GstBaseTransform* trans, GstBuffer* buffer) { return transform(trans, buffer, buffer); }

namespace {

/// Tells the processor the time before which no frame will arrive.
void pass_gap(GstBaseTransform* trans, GstEvent* event) {
  GstCudaVisionFilter* self = as_filter(trans);
  FilterState& state = *self->state;
  GstClockTime time, duration;
  gst_event_parse_gap(event, &time, &duration);
  if (GST_CLOCK_TIME_IS_VALID(time) && GST_CLOCK_TIME_IS_VALID(duration)) time += duration;
  const GstClockTime running_time = gst_segment_to_running_time(&trans->segment, GST_FORMAT_TIME, time);
  const std::lock_guard lock(state.processing);
  if (!state.processor || !GST_CLOCK_TIME_IS_VALID(running_time)) return;
  const Gpu::Scope scope(state.host.gpu);
  // If this fails, the next frame reports the error.
  if (complete_until(self, 0).ok()) state.processor->passed(running_time, GST_ELEMENT(self));
}

}  // namespace

gboolean sink_event(GstBaseTransform* trans, GstEvent* event) {
  if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP) {
    interrupt(as_filter(trans), Interruption::flush);
    const std::lock_guard lock(state_of(trans).processing);
    state_of(trans).held.clear();
  } else if (GST_EVENT_IS_SERIALIZED(event)) {
    push_held(as_filter(trans));
  }
  if (GST_EVENT_TYPE(event) == GST_EVENT_GAP) pass_gap(trans, event);
  if (GST_EVENT_TYPE(event) == GST_EVENT_EOS) {
    interrupt(as_filter(trans), Interruption::eos);
    finish_work(as_filter(trans));
    FilterState& state = state_of(trans);
    if (state.run.dropped > 0 && !state.run.fitted_one)  // otherwise a short stream would end silently
      state.host.post_error(too_many_misfits(state.run.dropped, state.run.misfit));
  }
  return base_class()->sink_event(trans, event);
}

}  // namespace cudavision::video_filter
