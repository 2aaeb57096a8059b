// SPDX-License-Identifier: LGPL-2.1-or-later
// GstCudaVisionMixer: frames.
#include <algorithm>
#include <deque>
#include <string>
#include <utility>

#include "gst/base/mixer/video_mixer_private.hpp"

namespace cudavision::video_mixer {

namespace {

LumaMatrix matrix_of(GstVideoColorMatrix matrix) {
  switch (matrix) {
    case GST_VIDEO_COLOR_MATRIX_BT709:
      return LumaMatrix::bt709;
    case GST_VIDEO_COLOR_MATRIX_SMPTE240M:
      return LumaMatrix::smpte240m;
    case GST_VIDEO_COLOR_MATRIX_BT2020:
      return LumaMatrix::bt2020;
    default:  // also FCC, whose weights differ from BT.601 by less than 0.005
      return LumaMatrix::bt601;
  }
}

}  // namespace

blend::Color color_of(const GstVideoInfo& video) {
  return {matrix_of(video.colorimetry.matrix), range_of(video) == GST_VIDEO_COLOR_RANGE_16_235};
}

// The base class need not map frames: Composition maps those that are visible.
gboolean prepare_frame(GstVideoAggregatorPad*, GstVideoAggregator*, GstBuffer*, GstVideoFrame*) { return TRUE; }
void clean_frame(GstVideoAggregatorPad*, GstVideoAggregator*, GstVideoFrame*) {}

namespace {

bool covers(const Rect& above, const Rect& below) {
  return above.x <= below.x && above.y <= below.y && above.x + above.width >= below.x + below.width &&
         above.y + above.height >= below.y + below.height;
}

/// Whether a pad hides the picture below it.
bool is_opaque(const blend::Pad& pad, const GstVideoInfo& video) {
  if (pad.key.mode != blend::Key::Mode::none || pad.alpha < 1) return false;
  const bool over = pad.op == blend::Operator::over || pad.op == blend::Operator::add;
  return pad.op == blend::Operator::source || pad.op == blend::Operator::average || (over && !has_alpha(video));
}

/// One output frame.
class Composition {
 public:
  Composition(GstCudaVisionMixer* self, bool cuda)
      : self_(self),
        state_(*self->state),
        video_(GST_VIDEO_AGGREGATOR(self)->info),
        transfer_(cuda ? &state_.host.gpu : nullptr) {
    replace_meaningless_numbers(video_);
  }

  /// Composes the frame. If its work is not finished on return, it must wait in this element.
  Status compose(const Snapshot& snapshot, GstBuffer* outbuf) {
    Transfer::Frame frame;
    frame.may_wait = depth_of(self_) > 0;
    const auto submitted = transfer_.run(frame, [&] { return submit(snapshot, outbuf); });
    if (!submitted.ok()) return submitted.error();
    if (submitted.value() == Transfer::State::unfinished) {
      state_.unfinished = outbuf;
      state_.last = {nullptr, transfer_.ticket(), std::move(output_)};
    }
    return {};
  }

 private:
  Status submit(const Snapshot& snapshot, GstBuffer* outbuf) {
    if (!state_.plan)  // after an error
      if (Status status = make_plan(self_, video_); !status.ok()) return status;
    MixerLayout layout = snapshot.settings().lay_out(video_);
    post_advice(GST_ELEMENT(self_), std::move(layout.advice), state_.advice);
    if (Status status = collect_pads(snapshot.list(), layout, outbuf); !status.ok()) return status;
    output_ = std::make_unique<FrameBuffer>(transfer_, outbuf, video_, GST_MAP_WRITE);
    if (!output_->status().ok()) return output_->status();
    const auto dst = transfer_.target(*output_, state_.output_staging);
    if (!dst.ok()) return dst.error();
    return state_.plan->submit(*dst.value(), layout.background, pads_, transfer_.queue());
  }

  /// Collects the visible pads, the lowest first, with their frames in the memory of the backend.
  Status collect_pads(const std::vector<MixerInput>& inputs, MixerLayout& layout, GstBuffer* outbuf) {
    GstBuffer* lowest = nullptr;
    std::vector<Rect> opaque;                        // places of frames that hide the pads below
    for (std::size_t i = inputs.size(); i-- > 0;) {  // the highest first, to find hidden pads
      GstCudaVisionMixerPad* const pad = inputs[i].pad;
      blend::Pad& layer = layout.pads[i];
      pad->state->show(pad, layer.place, layer.crop);
      const Rect visible =
          intersection(layer.place, {0, 0, GST_VIDEO_INFO_WIDTH(&video_), GST_VIDEO_INFO_HEIGHT(&video_)});
      const bool shows =
          layer.alpha > 0 && !visible.empty() &&
          std::none_of(opaque.begin(), opaque.end(), [&](const Rect& above) { return covers(above, visible); });
      GstBuffer* buffer = shows ? frame_of(inputs[i]) : nullptr;
      if (!buffer) {
        pad->state->uploaded.reset();
        continue;
      }
      auto src = picture(inputs[i], buffer);
      if (!src.ok()) return src.error();
      if (!src.value()) continue;
      layer.src = *src.value();
      layer.color = color_of(inputs[i].video);
      if (is_opaque(layer, inputs[i].video)) opaque.push_back(layer.place);
      pads_.push_back(layer);
      lowest = buffer;
    }
    std::reverse(pads_.begin(), pads_.end());
    if (lowest && GST_VIDEO_INFO_IS_INTERLACED(&video_))
      GST_BUFFER_FLAG_SET(outbuf,
                          GST_BUFFER_FLAGS(lowest) & (GST_VIDEO_BUFFER_FLAG_INTERLACED | GST_VIDEO_BUFFER_FLAG_TFF));
    return {};
  }

  /// The frame of a pad in the memory of the backend; nullptr if the frame does not match the caps of the pad. Errors:
  /// resource.
  Result<const Image*> picture(const MixerInput& input, GstBuffer* buffer) {
    MixerPadState& pad = *input.pad->state;
    if (pad.uploaded.get() == buffer) return &pad.staging.image();
    pad.uploaded.reset();
    const FrameBuffer& frame = mapped_.emplace_back(transfer_, buffer, input.video, GST_MAP_READ);
    if (!frame.status().ok()) {
      const std::string name = GST_OBJECT_NAME(input.pad), why = frame.status().message();
      mapped_.pop_back();
      if (std::exchange(pad.misfit, {buffer, GST_BUFFER_PTS(buffer)}) == std::pair(buffer, GST_BUFFER_PTS(buffer)) &&
          pad.misfits > 0)
        return nullptr;        // a frame that is shown again
      if (++pad.misfits == 1)  // warns once for a series of such frames
        GST_ELEMENT_WARNING(self_, STREAM, FORMAT, ("%s: a frame is skipped: %s", name.c_str(), why.c_str()),
                            (nullptr));
      if (pad.misfits < most_misfits) return nullptr;
      return Status::frame(name + ": " + too_many_misfits(pad.misfits, why).message());
    }
    pad.misfits = 0;
    auto fetched = transfer_.fetch(frame, pad.staging);
    if (fetched.ok() && transfer_.copies(frame)) pad.uploaded.reset(gst_buffer_ref(buffer));
    return fetched;
  }

  GstCudaVisionMixer* const self_;
  MixerState& state_;
  GstVideoInfo video_;  // of the output
  Transfer transfer_;
  std::deque<FrameBuffer> mapped_;  // frames of the pads; a deque keeps addresses
  std::unique_ptr<FrameBuffer> output_;
  std::vector<blend::Pad> pads_;  // visible pads
};

/// Whether a pad has no frame yet although one will come. The base class waits until all pads have frames, but does not
/// notice if a pad was added or flushed meanwhile.
bool lacks_frame(const MixerInput& input) {
  GstAggregatorPad* pad = GST_AGGREGATOR_PAD(input.pad);
  return !input.inactive && !gst_video_aggregator_pad_get_current_buffer(GST_VIDEO_AGGREGATOR_PAD(pad)) &&
         !gst_aggregator_pad_has_buffer(pad) && !gst_aggregator_pad_is_eos(pad);
}

}  // namespace

GstFlowReturn aggregate_frames(GstVideoAggregator* vagg, GstBuffer* outbuf) {
  GstCudaVisionMixer* self = as_mixer(vagg);
  MixerState& state = *self->state;
  // The base class does this only for the pads.
  const GstSegment& segment = GST_AGGREGATOR_PAD(GST_AGGREGATOR(vagg)->srcpad)->segment;
  const GstClockTime time = gst_segment_to_stream_time(&segment, GST_FORMAT_TIME, GST_BUFFER_PTS(outbuf));
  if (GST_CLOCK_TIME_IS_VALID(time)) gst_object_sync_values(GST_OBJECT(vagg), time);

  Status status;
  {
    const Snapshot snapshot(self);
    if (!state.timeout && std::any_of(snapshot.list().begin(), snapshot.list().end(), lacks_frame))
      return GST_AGGREGATOR_FLOW_NEED_DATA;
    Gpu::Scope scope(state.host.gpu);
    status = scope.status();
    state.unfinished = nullptr;
    state.last = {};
    if (status.ok()) status = Composition(self, state.host.uses_cuda()).compose(snapshot, outbuf);
  }
  if (status.ok()) return GST_FLOW_OK;
  drop_device_state(self);
  return state.host.failed(status);
}

/// Called in the upstream thread, while the streaming thread may be using the frame of the pad. So the streaming thread
/// drops the frame.
GstFlowReturn flush_pad(GstAggregatorPad* pad, GstAggregator* agg) {
  as_mixer_pad(pad)->state->flushed = as_mixer_pad(pad)->state->after_flush = true;
  state_of(agg).some_flushed = true;  // set after the pad's flag, so that the streaming thread finds the pad
  return GST_FLOW_OK;
}

namespace {

/// Drops the frames of pads that were flushed.
void flush_pads(GstAggregator* agg) {
  if (!state_of(agg).some_flushed.exchange(false)) return;
  const Inputs inputs(as_mixer(agg));
  for (const MixerInput& input : inputs.list())
    if (input.pad->state->flushed.exchange(false)) base_pad_class()->flush(GST_AGGREGATOR_PAD(input.pad), agg);
}

/// Posts an error after the base class failed to collect frames: it fails at a frame without a timestamp, and posts no
/// message. The pad of that frame may have been released meanwhile.
void post_missing_timestamp(GstAggregator* agg) {
  std::string name = "a released pad";
  const Inputs inputs(as_mixer(agg));
  for (const MixerInput& input : inputs.list()) {
    const auto next = owned(gst_aggregator_pad_peek_buffer(GST_AGGREGATOR_PAD(input.pad)));
    if (next && !GST_BUFFER_PTS_IS_VALID(next.get())) name = GST_OBJECT_NAME(input.pad);
  }
  GST_ELEMENT_ERROR(agg, STREAM, FORMAT,
                    ("%s: a frame without a timestamp cannot be placed in time: its source must set one, for example "
                     "with do-timestamp=true",
                     name.c_str()),
                    (nullptr));
}

}  // namespace

GstFlowReturn aggregate(GstAggregator* agg, gboolean timeout) {
  MixerState& state = state_of(agg);
  flush_pads(agg);
  state.timeout = timeout;
  state.collected = false;
  update_latency(as_mixer(agg));
  const GstFlowReturn flow = base_class()->aggregate(agg, timeout);
  if (timeout || flow == GST_FLOW_EOS) push_held(agg);  // after a timeout, frames are already late
  if (flow == GST_FLOW_EOS && !state.host.finish_or_post_error()) return GST_FLOW_ERROR;
  if (flow == GST_FLOW_ERROR && !state.collected) post_missing_timestamp(agg);
  return flow;
}

}  // namespace cudavision::video_mixer
