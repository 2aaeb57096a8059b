// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/video/gstvideoaggregator.h>
#include <gst/video/video.h>

#include <vector>

#include "gst/base/host.hpp"
#include "kernels/blend/blend.hpp"

namespace cudavision {

struct MixerState;
struct MixerPadState;

/// The base of elements that lay the frames of their pads over each other: backends, memories, caps, allocation, CUDA contexts,
/// errors, pads on request. Its properties are backend, active-backend and cuda-device-id. A subclass says what goes where.
struct CudaVisionMixer {
  GstVideoAggregator parent;
  MixerState* state;
};

struct CudaVisionMixerPad {
  GstVideoAggregatorPad parent;
  MixerPadState* state;
};
struct CudaVisionMixerPadClass {
  GstVideoAggregatorPadClass parent_class;
};

/// A sink pad as one frame finds it.
struct MixerInput {
  CudaVisionMixerPad* pad;
  GstVideoInfo video;
  bool has_caps;  ///< else `video` says nothing
  bool inactive;  ///< not waited for, as nothing has come yet
};

struct PictureSize {
  int width, height;
};

/// A whole picture, but for the frames.
struct MixerLayout {
  BlendBackground background;
  std::vector<BlendPad> pads;  ///< one for each input, whose `src` and `color` are not looked at
};

struct CudaVisionMixerClass {
  GstVideoAggregatorClass parent_class;

  /// The size of the picture where downstream does not say, of pixels of this aspect; 0 × 0: no matter. This and lay_out() come
  /// from the streaming thread, with the inputs from below to above.
  PictureSize (*natural_size)(CudaVisionMixer* self, const std::vector<MixerInput>& inputs, int par_n, int par_d);
  MixerLayout (*lay_out)(CudaVisionMixer* self, const std::vector<MixerInput>& inputs, const GstVideoInfo& output);
};

GType cudavision_mixer_get_type();
GType cudavision_mixer_pad_get_type();
/// Gives an element its pads, the sink pads of this type, which is derived from that of the base.
void add_mixer_pads(GstElementClass* klass, GType sink_pad);
inline CudaVisionMixer* as_mixer(gpointer object) {
  return G_TYPE_CHECK_INSTANCE_CAST(object, cudavision_mixer_get_type(), CudaVisionMixer);
}
inline CudaVisionMixerClass* as_mixer_class(gpointer klass) {
  return G_TYPE_CHECK_CLASS_CAST(klass, cudavision_mixer_get_type(), CudaVisionMixerClass);
}
inline CudaVisionMixerPad* as_mixer_pad(gpointer object) {
  return G_TYPE_CHECK_INSTANCE_CAST(object, cudavision_mixer_pad_get_type(), CudaVisionMixerPad);
}

/// Calls f(pad) with each sink pad, from below to above, under the object lock.
template <typename F>
void for_each_sink_pad(CudaVisionMixer* self, F&& f) {
  ObjectLock lock(self);
  for (GList* item = GST_ELEMENT(self)->sinkpads; item; item = item->next) f(as_mixer_pad(item->data));
}

}  // namespace cudavision
