// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>

#include <memory>
#include <string>

#include "gst/base/processor.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

class Gpu;

/// What a plan is made for.
struct PlanContext {
  const GstVideoInfo& video;  ///< of both sides
  Backend backend;
  Region::Mode region;
  Processor* previous;  ///< what ran until now for the same video on the same backend, to take over its state from; or nullptr
  const Gpu& gpu;       ///< of Backend::cuda; lives as long as the processor
  GstCaps* data;        ///< fixed caps of what goes out instead of video; or nullptr
};

/// What an element does for one geometry.
struct FilterPlan {
  std::unique_ptr<Processor> processor;
  std::string advice;  ///< one sentence on a setting that works but may not be meant; posted as a warning. Empty: none
};

struct FilterState;

/// The base of elements that turn one video frame into one of the same format and size, or look at it and pass it on: backends,
/// memories, caps, allocation, metas, regions, interruptions, errors. Its properties are backend, active-backend, cuda-device-id, region and roi-type.
///
/// A subclass keeps what its properties say, and makes a plan of it. Settings are committed at once when g_object_set has set all it
/// was given, so that a frame never sees half of a change.
struct CudaVisionFilter {
  GstBaseTransform parent;
  FilterState* state;
};

struct CudaVisionFilterClass {
  GstBaseTransformClass parent_class;

  /// Takes over what the properties say now, for later plans. Called under the object lock.
  void (*commit)(CudaVisionFilter* self);
  /// Goes back to the settings of the last plan that could be made, so that what the properties say is what is in use; but for
  /// settings that are not committed yet. Called under the object lock.
  void (*revert)(CudaVisionFilter* self);
  /// Says what is wrong with the committed settings, whatever the format. Called under the object lock.
  Status (*check)(CudaVisionFilter* self);
  /// Makes a plan of the committed settings. Called under the object lock, with the CUDA context current.
  Result<FilterPlan> (*make_plan)(CudaVisionFilter* self, const PlanContext& context);

  // Of elements that can send other data than video, when downstream asks for it: add_data_template() and
  /// (transfer full) What data can be made of the video (GST_PAD_SINK), or of what video the data (GST_PAD_SRC), in `caps`. What is of
  /// the other kind is skipped. Memory does not count: no caps have features.
  GstCaps* (*transform_data_caps)(GstPadDirection direction, GstCaps* caps);
  /// (transfer full) What of `choices` (taken) the committed settings prefer for this video. Called under the object lock.
  GstCaps* (*fixate_data_caps)(CudaVisionFilter* self, const GstVideoInfo& video, GstCaps* choices);
};

GType cudavision_filter_get_type();
/// Has the src pad template take, after video, data of these caps in each memory.
void add_data_template(GstElementClass* klass, const char* caps);
inline CudaVisionFilter* as_filter(gpointer object) {
  return G_TYPE_CHECK_INSTANCE_CAST(object, cudavision_filter_get_type(), CudaVisionFilter);
}
inline CudaVisionFilterClass* as_filter_class(gpointer klass) {
  return G_TYPE_CHECK_CLASS_CAST(klass, cudavision_filter_get_type(), CudaVisionFilterClass);
}

}  // namespace cudavision
