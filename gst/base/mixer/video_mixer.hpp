// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/video/gstvideoaggregator.h>
#include <gst/video/video.h>

#include <memory>
#include <string>
#include <vector>

#include "gst/base/element_backend.hpp"
#include "kernels/blend/blend.hpp"

namespace cudavision {

struct MixerState;
struct MixerPadState;

/// The base class of elements that lay the frames of their sink pads over each other. It handles backends, memories,
/// caps, allocation, CUDA contexts, errors and request pads. A subclass decides where each pad is shown. Its properties
/// are backend, active-backend and cuda-device-id.
struct GstCudaVisionMixer {
  GstVideoAggregator parent;
  MixerState* state;
};

struct GstCudaVisionMixerPad {
  GstVideoAggregatorPad parent;
  MixerPadState* state;
};
struct GstCudaVisionMixerPadClass {
  GstVideoAggregatorPadClass parent_class;
};

/// The state of a sink pad for the current frame.
struct MixerInput {
  GstCudaVisionMixerPad* pad;
  GstVideoInfo video;
  bool has_caps;  ///< if false, `video` is not valid
  bool inactive;  ///< no data has arrived yet, and the element does not wait for it
};

struct PictureSize {
  int width, height;
};

/// How to make an output picture, apart from the frames.
struct MixerLayout {
  blend::Background background;
  std::vector<blend::Pad> pads;  ///< one for each input; `src` and `color` are ignored
  /// A sentence about settings that work but are rarely intended, posted as a warning when it changes. Empty: none.
  std::string advice{};
};

/// The committed settings of a mixer and of its sink pads at one moment: if an application changes one object after
/// another, these settings never contain a later change without an earlier one.
class MixerSettings {
 public:
  virtual ~MixerSettings() = default;

  /// The size of the output for pixels of this aspect ratio, if downstream does not fix it. 0 × 0: any size.
  virtual PictureSize natural_size(int par_n, int par_d) const = 0;
  virtual MixerLayout lay_out(const GstVideoInfo& output) const = 0;
};

struct GstCudaVisionMixerClass {
  GstVideoAggregatorClass parent_class;

  /// Copies the settings. `inputs` are the sink pads, the lowest first. Called under the object lock, which each change
  /// of settings also takes. Takes the locks of the pads.
  std::unique_ptr<MixerSettings> (*settings)(GstCudaVisionMixer* self, const std::vector<MixerInput>& inputs);
};

GType cudavision_mixer_get_type();
GType cudavision_mixer_pad_get_type();
/// Sets the pad templates of an element class. `sink_pad` is the type of its sink pads, a subclass of
/// GstCudaVisionMixerPad.
void add_mixer_pads(GstElementClass* klass, GType sink_pad);
inline GstCudaVisionMixer* as_mixer(gpointer object) {
  return G_TYPE_CHECK_INSTANCE_CAST(object, cudavision_mixer_get_type(), GstCudaVisionMixer);
}
inline GstCudaVisionMixerClass* as_mixer_class(gpointer klass) {
  return G_TYPE_CHECK_CLASS_CAST(klass, cudavision_mixer_get_type(), GstCudaVisionMixerClass);
}
inline GstCudaVisionMixerPad* as_mixer_pad(gpointer object) {
  return G_TYPE_CHECK_INSTANCE_CAST(object, cudavision_mixer_pad_get_type(), GstCudaVisionMixerPad);
}

}  // namespace cudavision
