// SPDX-License-Identifier: LGPL-2.1-or-later
// The parts of GstCudaVisionFilter, shared only by the files video_filter*.cpp.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "gst/base/element_backend.hpp"
#include "gst/base/filter/deadline.hpp"
#include "gst/base/filter/video_filter.hpp"
#include "gst/base/poller.hpp"
#include "gst/base/settings/settings.hpp"
#include "gst/base/transfer.hpp"

namespace cudavision {

enum class RegionShape { rectangle, ellipse };
/// The settings of the base class, except the settings of ElementBackend.
struct FilterSettings {
  Region::Mode region = Region::Mode::frame;
  RegionShape region_shape = RegionShape::rectangle;
  double region_margin = 0;  // share of a box
  std::string roi_type, regions;
};

/// A frame whose work the GPU may not have finished.
struct PendingFrame {
  std::uint64_t number, ticket;
  FrameTimes times;
  bool reported;                        // the processor need not be told when the work is done
  GstBuffer* held = nullptr;            // the output buffer, if it waits in this element; also in FilterState::held
  std::unique_ptr<FrameBuffer> mapped;  // the mapping of that buffer, while a copy writes it
};

/// A frame that waits in the element until the GPU has done its work (async-depth).
struct HeldFrame {
  Owned<GstBuffer> buffer;
  Deadline::Clock::time_point arrived;
};

struct FilterState {
  explicit FilterState(GstElement* element) : host(element) {}

  ElementBackend host;
  SettingsOf<FilterSettings> settings;  // under the object lock
  // Set by any thread, under the object lock, together with a commit; cleared by the streaming thread:
  std::atomic<bool> changed{false};     // settings were committed since the last plan was made
  std::atomic<bool> sends_data{false};  // whether `data` is set; for any thread

  /// Locked by the thread that uses the members below: the streaming thread (except while it pushes frames and events),
  /// the poller, or the thread of the deadline. Only the streaming thread and the thread that stops the element use the
  /// deadline itself.
  std::recursive_mutex processing;
  GstVideoInfo video;
  Owned<GstCaps> data;       // caps of the output, if the output is not video
  bool same_memory = false;  // both sides use the same kind of memory
  bool to_device = false;    // output frames are in CUDA memory
  std::unique_ptr<Processor> processor;
  std::shared_ptr<void> kept;  // data that processors share until the element stops
  FilterSettings in_use;       // the settings of the base class when `processor` was made
  Region own_shapes;           // shapes of the property `regions`; without a mode
  Staging input_staging, output_staging;
  std::uint64_t frames = 0;  // number of submitted frames
  std::deque<PendingFrame> pending;
  std::optional<Polled> reporter;  // reports frames if no frame follows; made when first needed

  // Reset at each start:
  struct Run {
    bool has_worked = false;       // a plan was made
    std::string advice;            // the advice of the plan in use
    std::string unused, left_out;  // warnings about region settings without effect, and about shapes
    std::set<std::string> fitted;  // see ShapeFitting
    Status renewed;                // the result of making a plan for the current frame
    guint dropped = 0;   // number of consecutive frames that were just dropped because they did not match their caps
    std::string misfit;  // why the last frame was dropped
    bool fitted_one = false;  // a frame has matched its caps
  } run;

  // Frames that wait in this element (async-depth):
  std::deque<HeldFrame> held;            // the oldest first
  std::optional<Deadline> deadline;      // for the oldest frame of a live stream; made when the first frame waits
  bool holds_last = false;               // the frame just processed must wait
  bool skipped = false;                  // the last frame was not processed
  bool at_discont = false;               // the base class marks the next frame it pushes as a discontinuity
  std::atomic<bool> live{false};         // frames arrive in real time, and may stop arriving
  bool in_time = false;                  // frames may wait: they arrive at a known rate, or the stream is not live
  std::atomic<GstClockTime> latency{0};  // the latency that waiting adds; for any thread

  void reset_staging() {
    input_staging.reset();
    output_staging.reset();
  }
};

namespace video_filter {

inline FilterState& state_of(gpointer object) { return *as_filter(object)->state; }
inline GstCudaVisionFilterClass* class_of(gpointer object) { return as_filter_class(G_OBJECT_GET_CLASS(object)); }
/// The functions of GstBaseTransform.
GstBaseTransformClass* base_class();

/// Makes a plan from the committed settings. Once frames have flowed, settings that do not work are reported and
/// replaced by the last ones that did.
Status renew_plan(GstCudaVisionFilter* self);
/// Waits until the GPU has done all work, and posts an error if some of it failed.
void finish_work(GstCudaVisionFilter* self);
/// Tells the processor, if there is one, that a run of frames has ended.
void interrupt(GstCudaVisionFilter* self, Interruption why);

// video_filter_reports.cpp
/// Calls the processor's finished() for a frame.
void report(GstCudaVisionFilter* self, GstBuffer* outbuf, std::uint64_t number, const FrameTimes& times);
/// Adds a pending frame. It is reported when its work is done.
void add_pending(GstCudaVisionFilter* self, PendingFrame frame);
/// Waits until at most `most_left` frames are pending, and reports the others. Errors: resource, if the GPU failed;
/// then no frame is left, neither pending nor held.
Status complete_until(GstCudaVisionFilter* self, std::size_t most_left);

// video_filter_held.cpp
/// The number of frames of the current plan that wait in this element; 0: frames are pushed as soon as possible.
guint depth_of(GstCudaVisionFilter* self);
/// Pushes all frames that wait in this element. Called by the streaming thread, without holding `processing`.
GstFlowReturn push_held(GstCudaVisionFilter* self);
/// Determines from the caps in use whether and how long frames can wait in this element.
void check_times(GstCudaVisionFilter* self);
/// Posts a message if the latency of this element has changed.
void update_latency(GstCudaVisionFilter* self);
/// Adds the latency of this element to an answered query. The query also tells whether upstream is live.
void add_latency(FilterState& state, GstQuery* query);
GstFlowReturn generate_output(GstBaseTransform* trans, GstBuffer** outbuf);

// video_filter_caps.cpp
gboolean query(GstBaseTransform* trans, GstPadDirection direction, GstQuery* query);
GstCaps* transform_caps(GstBaseTransform* trans, GstPadDirection direction, GstCaps* caps, GstCaps* filter);
GstCaps* fixate_caps(GstBaseTransform* trans, GstPadDirection direction, GstCaps* caps, GstCaps* othercaps);
gboolean set_caps(GstBaseTransform* trans, GstCaps* incaps, GstCaps* outcaps);
gboolean get_unit_size(GstBaseTransform* trans, GstCaps* caps, gsize* size);
gboolean propose_allocation(GstBaseTransform* trans, GstQuery* decide_query, GstQuery* query);
gboolean decide_allocation(GstBaseTransform* trans, GstQuery* query);
GstFlowReturn prepare_output_buffer(GstBaseTransform* trans, GstBuffer* inbuf, GstBuffer** outbuf);

// video_filter_frames.cpp
gboolean sink_event(GstBaseTransform* trans, GstEvent* event);
void before_transform(GstBaseTransform* trans, GstBuffer* buffer);
GstFlowReturn transform(GstBaseTransform* trans, GstBuffer* inbuf, GstBuffer* outbuf);
GstFlowReturn transform_ip(GstBaseTransform* trans, GstBuffer* buffer);

// video_filter_regions.cpp
gboolean transform_meta(GstBaseTransform* trans, GstBuffer* outbuf, GstMeta* meta, GstBuffer* inbuf);
gboolean copy_metadata(GstBaseTransform* trans, GstBuffer* inbuf, GstBuffer* outbuf);
/// The part of a frame to process, according to the settings in use.
Region region_of(const FilterState& state, GstBuffer* buffer);
/// The shapes of the property `regions` in a frame; none with region=frame. `left_out` becomes a warning about shapes
/// that have no effect since the size changed. Errors: settings, if a polygon leaves the frame; with `closed` also if a
/// shape has no effect, because something that should be hidden would be visible.
Result<Region> own_shapes(const FilterSettings& settings, const GstVideoInfo& video, bool closed,
                          std::set<std::string>& fitted, std::string& left_out);
/// Checks the property `regions` as far as the checks do not depend on the frame. Errors: settings.
Status check_shapes(const FilterSettings& settings);
/// A sentence about region settings that have no effect; otherwise empty.
std::string unused_shapes(const FilterSettings& settings);

}  // namespace video_filter
}  // namespace cudavision
