// SPDX-License-Identifier: LGPL-2.1-or-later
// The parts of GstCudaVisionMixer, shared only by the files video_mixer*.cpp.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "gst/base/mixer/video_mixer.hpp"
#include "gst/base/transfer.hpp"

namespace cudavision {

/// An output frame that waits in the element until the GPU has done its work (async-depth).
struct HeldPicture {
  Owned<GstBuffer> buffer;
  std::uint64_t ticket;
  std::unique_ptr<FrameBuffer> mapped;  // while a copy writes the buffer
};

struct MixerState {
  explicit MixerState(GstElement* element) : host(element) {}

  ElementBackend host;
  std::atomic<bool> some_flushed{false};  // whether `flushed` of a pad may be set
  // Under the object lock of the element:
  std::set<guint> requested;  // numbers of the pads that are being added
  guint next_number = 0;      // number of the next pad, if no name is requested
  // For the streaming thread only:
  std::unique_ptr<blend::Blend> plan;  // for the negotiated output
  Staging output_staging;
  std::string advice;                      // advice for the last frame
  bool to_device = false;                  // output frames are in CUDA memory
  bool timeout = false;                    // the next frame is composed without late pads
  bool collected = false;                  // the current call of aggregate() has collected a frame from each pad
  std::deque<HeldPicture> held;            // the oldest first
  GstBuffer* unfinished = nullptr;         // the frame just composed, if it must wait
  HeldPicture last{};                      // the work of that frame, without the buffer
  guint depth = 0;                         // number of frames that wait, according to the latency
  std::atomic<GstClockTime> held_time{0};  // the latency that these frames add
};

struct MixerPadState {
  // For the streaming thread only:
  Staging staging;
  Owned<GstBuffer> uploaded;  // the frame whose copy is in `staging`; not copied again while it is shown
  guint misfits = 0;          // number of frames in a row, up to the last, that did not match their caps
  std::pair<GstBuffer*, GstClockTime> misfit{nullptr, 0};  // the last of these frames and its time, to recognise it
  bool new_caps = false;  // newer caps have arrived, which the base class may not have applied yet
  // Set by the upstream thread: the streaming thread must drop the frame that is shown.
  std::atomic<bool> flushed{false};
  // For the upstream thread only:
  bool endless = false;      // the last frame ended after the largest possible time
  bool after_flush = false;  // no segment has arrived since the last flush
  // Under the pad's object lock:
  Rect place, crop;            // where the last frame was shown, and which part of it
  Owned<GstCaps> queued_caps;  // the newest caps, until the streaming thread has handled them

  void show(GstCudaVisionMixerPad* pad, const Rect& where, const Rect& what) {
    ObjectLock lock(pad);
    place = where;
    crop = what;
  }
  std::pair<Rect, Rect> shown(GstCudaVisionMixerPad* pad) const {
    ObjectLock lock(pad);
    return {place, crop};
  }
};

namespace video_mixer {

inline MixerState& state_of(gpointer object) { return *as_mixer(object)->state; }
inline GstCudaVisionMixerClass* class_of(gpointer object) { return as_mixer_class(G_OBJECT_GET_CLASS(object)); }
/// The functions of GstVideoAggregator.
GstAggregatorClass* base_class();
GstAggregatorPadClass* base_pad_class();

/// The sink pads, the lowest first. They stay alive for the lifetime of this object.
class Inputs {
 public:
  explicit Inputs(GstCudaVisionMixer* self) : Inputs(self, ObjectLock(self)) {}
  const std::vector<MixerInput>& list() const { return list_; }

 protected:
  Inputs(GstCudaVisionMixer* self, const ObjectLock& lock);

 private:
  std::vector<Owned<GstPad>> held_;
  std::vector<MixerInput> list_;
};

/// The sink pads with a snapshot of all settings.
class Snapshot : public Inputs {
 public:
  explicit Snapshot(GstCudaVisionMixer* self) : Snapshot(self, ObjectLock(self)) {}
  const MixerSettings& settings() const { return *settings_; }

 private:
  Snapshot(GstCudaVisionMixer* self, const ObjectLock& lock)
      : Inputs(self, lock), settings_(class_of(self)->settings(self, list())) {}

  const std::unique_ptr<MixerSettings> settings_;
};

/// The frame that a pad shows now, or nullptr.
GstBuffer* frame_of(const MixerInput& input);
/// Whether a GstVideoInfo was read from caps.
bool is_set(const GstVideoInfo& video);
inline bool has_alpha(const GstVideoInfo& video) { return GST_VIDEO_INFO_HAS_ALPHA(&video); }

/// Makes the plan for the negotiated output.
Status make_plan(GstCudaVisionMixer* self, const GstVideoInfo& output);
/// Frees everything that belongs to the CUDA context.
void drop_device_state(GstCudaVisionMixer* self);

// compositor_division.cpp

/// How GStreamer's compositor divides by 255 on this machine: like its ORC library, or to the nearest integer without
/// ORC.
blend::Division compositor_division();

// video_mixer_caps.cpp
gboolean sink_query(GstAggregator* agg, GstAggregatorPad* pad, GstQuery* query);
gboolean sink_query_pre_queue(GstAggregator* agg, GstAggregatorPad* pad, GstQuery* query);
gboolean src_query(GstAggregator* agg, GstQuery* query);
GstCaps* update_caps(GstVideoAggregator* vagg, GstCaps* caps);
GstCaps* fixate_src_caps(GstAggregator* agg, GstCaps* caps);
gboolean negotiated_src_caps(GstAggregator* agg, GstCaps* caps);
gboolean decide_allocation(GstAggregator* agg, GstQuery* query);
GstFlowReturn create_output_buffer(GstVideoAggregator* vagg, GstBuffer** buffer);

// video_mixer_events.cpp
GstFlowReturn sink_event_pre_queue(GstAggregator* agg, GstAggregatorPad* pad, GstEvent* event);
gboolean sink_event(GstAggregator* agg, GstAggregatorPad* pad, GstEvent* event);
gboolean src_event(GstAggregator* agg, GstEvent* event);

// video_mixer_frames.cpp
blend::Color color_of(const GstVideoInfo& video);
gboolean prepare_frame(GstVideoAggregatorPad* pad, GstVideoAggregator* vagg, GstBuffer* buffer, GstVideoFrame* frame);
void clean_frame(GstVideoAggregatorPad* pad, GstVideoAggregator* vagg, GstVideoFrame* frame);
GstFlowReturn aggregate(GstAggregator* agg, gboolean timeout);
GstFlowReturn aggregate_frames(GstVideoAggregator* vagg, GstBuffer* outbuf);
GstFlowReturn flush_pad(GstAggregatorPad* pad, GstAggregator* agg);

// video_mixer_held.cpp
GstFlowReturn finish_buffer(GstAggregator* agg, GstBuffer* buffer);
/// Pushes all frames that wait in the element.
GstFlowReturn push_held(GstAggregator* agg);
GstFlowReturn flush(GstAggregator* agg);
GstClockTime get_next_time(GstAggregator* agg);
/// The number of frames of the negotiated output that may wait in the element.
guint depth_of(GstCudaVisionMixer* self);
/// Tells the base class how long frames stay in this element.
void update_latency(GstCudaVisionMixer* self);

}  // namespace video_mixer
}  // namespace cudavision
