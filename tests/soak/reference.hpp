// SPDX-License-Identifier: LGPL-2.1-or-later
// The expected pictures, from undisturbed elements on the CPU backend.
#pragma once

#include <gst/video/video.h>

#include <string>
#include <vector>

#include "gst/base/owned.hpp"
#include "tests/streams/rig.hpp"

namespace cudavision::soak {

using Buffer = Owned<GstBuffer>;

/// Sets properties from command-line text ("kernel-size=9 sigma=2"), all in one g_object_set.
void set(gpointer object, const std::string& settings);

/// Describes how many bytes differ by more than the tolerance, and the first one; empty: none.
std::string difference(const std::string& bytes, const std::string& expected, int tolerance);

class FilterReference {
 public:
  FilterReference(const std::string& factory, const std::string& settings);
  ~FilterReference() { rig_.set_state(GST_STATE_NULL); }
  /// The element's output for a frame that follows `previous` (NULL: a first frame).
  Buffer apply(const GstVideoInfo& video, GstBuffer* previous, GstBuffer* frame);

 private:
  streams::Rig rig_;
  streams::Input input_;
  GstVideoInfo video_{};
};

/// One pad of a mixer, with one picture.
struct MixerInput {
  std::string settings;
  GstVideoInfo video;
  GstBuffer* frame;
};
/// The picture that cudablend makes from these inputs.
Buffer blend(const std::string& settings, const std::vector<MixerInput>& inputs, const GstVideoInfo& output);

}  // namespace cudavision::soak
