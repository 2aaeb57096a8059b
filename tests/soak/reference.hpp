// SPDX-License-Identifier: LGPL-2.1-or-later
// The pictures that should come out: those of undisturbed elements on the CPU backend.
#pragma once

#include <gst/video/video.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cudavision::soak {

struct Unref {
  void operator()(GstBuffer* buffer) const { gst_buffer_unref(buffer); }
  void operator()(GstCaps* caps) const { gst_caps_unref(caps); }
};
using Buffer = std::unique_ptr<GstBuffer, Unref>;
using Caps = std::unique_ptr<GstCaps, Unref>;

/// Sets properties from command-line text ("kernel-size=9 sigma=2"), all in one g_object_set.
void set(gpointer object, const std::string& settings);

/// A filter with fixed settings.
class FilterReference {
 public:
  FilterReference(const std::string& factory, const std::string& settings);
  ~FilterReference();
  FilterReference(const FilterReference&) = delete;
  /// The element's output for a frame that follows `previous` (NULL: a first frame).
  Buffer apply(const GstVideoInfo& video, GstBuffer* previous, GstBuffer* frame);

 private:
  static GstFlowReturn keep(GstPad*, GstObject*, GstBuffer*);
  Buffer push(GstBuffer* frame, bool first);
  GstElement* element_;
  GstPad *src_, *sink_;
  GstVideoInfo video_{};
  Buffer result_;
};

/// One pad of a mixer, with one picture.
struct MixerInput {
  std::string settings;
  GstVideoInfo video;
  GstBuffer* frame;
};
/// The picture that cudablend makes of these.
Buffer blend(const std::string& settings, const std::vector<MixerInput>& inputs, GstCaps* output);

}  // namespace cudavision::soak
