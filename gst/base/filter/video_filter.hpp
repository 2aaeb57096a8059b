// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>

#include <memory>
#include <set>
#include <string>

#include "gst/base/processor.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

class Gpu;
class SettingsMachine;

/// The value of the property region in messages: "roi".
const char* region_name(Region::Mode mode);

/// The inputs for making a plan.
struct PlanContext {
  const GstVideoInfo& video;  ///< the video on both sides
  Backend backend;
  Region::Mode region;
  /// The current processor, if video and backend stay the same, so that the new one can take over its state; or
  /// nullptr.
  Processor* previous;
  const Gpu& gpu;               ///< for Backend::cuda; outlives the processor
  GstCaps* data;                ///< fixed caps of the data to send instead of video; or nullptr
  std::shared_ptr<void>& kept;  ///< data that an element's processors share until the element stops; empty at its start
  std::set<std::string>& fitted;  ///< for ShapeFitting
};

/// How an element processes frames of one geometry.
struct FilterPlan {
  std::unique_ptr<Processor> processor;
  /// One sentence about a setting that works but is rarely intended, to be posted as a warning. Empty: none.
  std::string advice;
};

struct FilterState;

/// The base class of elements that turn a video frame into another one of the same format and size, or read a frame and
/// pass it on. It handles backends, memories, caps, allocation, metas, regions, interruptions and errors. Its
/// properties are backend, active-backend, cuda-device-id, region, region-margin, region-shape, regions and roi-type.
///
/// A subclass stores the settings of its own properties, and makes plans from them. Settings are committed together
/// after g_object_set() has set all properties, so a frame never sees a partial change.
struct GstCudaVisionFilter {
  GstBaseTransform parent;
  FilterState* state;
};

struct GstCudaVisionFilterClass {
  GstBaseTransformClass parent_class;

  /// Whether the element examines each frame and posts the results. Otherwise it makes pictures: qos is on by default,
  /// so that late frames are dropped, and a shape in `regions` that leaves the frame ends the stream.
  bool examines;
  /// Returns the subclass's settings.
  SettingsMachine& (*settings)(GstCudaVisionFilter* self);
  /// Checks the taken settings as far as they do not depend on the format.
  Status (*check)(GstCudaVisionFilter* self);
  /// Makes a plan from the taken settings, which check() has accepted. Called with the CUDA context current, and
  /// without the object lock.
  Result<FilterPlan> (*make_plan)(GstCudaVisionFilter* self, const PlanContext& context);

  // Only for elements that can send data other than video if downstream asks for it. They also call
  // add_data_template().
  /// (transfer full) GST_PAD_SINK: the data that can be made from the video in `caps`. GST_PAD_SRC: the video from
  /// which the data in `caps` can be made. Structures of the other kind are skipped. None of these caps have features.
  GstCaps* (*transform_data_caps)(GstPadDirection direction, GstCaps* caps);
  /// (transfer full) The part of `choices` (taken) that the committed settings prefer for this video. Called under the
  /// object lock.
  GstCaps* (*fixate_data_caps)(GstCudaVisionFilter* self, const GstVideoInfo& video, GstCaps* choices);
};

GType cudavision_filter_get_type();
/// Sets a src pad template with video and, after it, data with these caps, each in all memories.
void add_data_template(GstElementClass* klass, const std::string& caps);
inline GstCudaVisionFilter* as_filter(gpointer object) {
  return G_TYPE_CHECK_INSTANCE_CAST(object, cudavision_filter_get_type(), GstCudaVisionFilter);
}
inline GstCudaVisionFilterClass* as_filter_class(gpointer klass) {
  return G_TYPE_CHECK_CLASS_CAST(klass, cudavision_filter_get_type(), GstCudaVisionFilterClass);
}

}  // namespace cudavision
