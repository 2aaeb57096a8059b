// SPDX-License-Identifier: LGPL-2.1-or-later
#include "caps.hpp"

#include <string>

#include "backend.hpp"
#include "format.hpp"

namespace cudavision {

const char* const cuda_memory_feature = "memory:CUDAMemory";

namespace {

bool cuda_can_allocate(const FormatInfo& format) {
  guint major, minor, micro, nano;
  gst_version(&major, &minor, &micro, &nano);
  return format.cuda_since > 0 && (major > 1 || minor >= format.cuda_since);
}

std::string caps_string(const char* feature, bool (*include)(const FormatInfo&)) {
  std::string names;
  for (const FormatInfo& format : formats())
    if (include(format)) names += (names.empty() ? "" : ", ") + std::string(format.name);
  return "video/x-raw" + (feature ? "(" + std::string(feature) + ")" : std::string()) + ", format=(string){ " + names +
         " }, width=(int)[ 1, 16384 ], height=(int)[ 1, 16384 ], framerate=(fraction)[ 0/1, max ]";
}

/// (transfer full) The one structure of CUDA memory, or NULL.
GstCaps* cuda_template_caps() {
  if (!built_with(Backend::cuda)) return nullptr;
  return gst_caps_from_string(caps_string(cuda_memory_feature, cuda_can_allocate).c_str());
}

/// Whether a structure has these features by name, and not because it takes any.
bool names_feature(const GstCapsFeatures* features, const char* name) {
  return !gst_caps_features_is_any(features) && gst_caps_features_contains(features, name);
}

/// Whether the features are those of a memory that we handle.
bool is_known_memory(const GstCapsFeatures* features) {
  return gst_caps_features_is_any(features) || gst_caps_features_is_equal(features, GST_CAPS_FEATURES_MEMORY_SYSTEM_MEMORY) ||
         (gst_caps_features_get_size(features) == 1 && gst_caps_features_contains(features, cuda_memory_feature));
}

/// Appends the known structures of `caps` with their features replaced (NULL: system memory).
void append_with_feature(GstCaps* result, GstCaps* caps, const char* feature) {
  for (guint i = 0; i < gst_caps_get_size(caps); ++i)
    if (is_known_memory(gst_caps_get_features(caps, i)))
      gst_caps_append_structure_full(result, gst_structure_copy(gst_caps_get_structure(caps, i)),
                                     feature ? gst_caps_features_new(feature, nullptr) : nullptr);
}

}  // namespace

GstCaps* video_template_caps() {
  GstCaps* caps = cuda_template_caps();
  GstCaps* system = gst_caps_from_string(caps_string(nullptr, [](const FormatInfo&) { return true; }).c_str());
  if (!caps) return system;
  gst_caps_append(caps, system);
  return caps;
}

GstCaps* any_memory_caps(GstCaps* caps, bool with_cuda) {
  GstCaps* result = gst_caps_new_empty();
  if (GstCaps* cuda = with_cuda ? cuda_template_caps() : nullptr) {
    append_with_feature(result, caps, cuda_memory_feature);
    GstCaps* allocatable = gst_caps_intersect_full(result, cuda, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref(cuda);
    gst_caps_unref(result);
    result = allocatable;
  }
  append_with_feature(result, caps, nullptr);
  return gst_caps_simplify(result);
}

bool is_cuda_caps(GstCaps* caps) {
  return caps && !gst_caps_is_any(caps) && gst_caps_get_size(caps) > 0 && names_feature(gst_caps_get_features(caps, 0), cuda_memory_feature);
}

GstCaps* choose_memory(GstCaps* choices, GstCaps* input, GstPad* peer) {
  bool wants_cuda = is_cuda_caps(input);
  if (GstCaps* taken = peer ? gst_pad_query_caps(peer, nullptr) : nullptr) {
    if (!gst_caps_is_any(taken))
      for (guint i = 0; i < gst_caps_get_size(taken); ++i)
        if (names_feature(gst_caps_get_features(taken, i), cuda_memory_feature)) wants_cuda = true;
    gst_caps_unref(taken);
  }
  choices = gst_caps_make_writable(choices);
  for (guint i = 0; i < gst_caps_get_size(choices) && gst_caps_get_size(choices) > 1;) {
    if (names_feature(gst_caps_get_features(choices, i), cuda_memory_feature) == wants_cuda) {
      ++i;
      continue;
    }
    gst_caps_remove_structure(choices, i);
  }
  return choices;
}

}  // namespace cudavision
