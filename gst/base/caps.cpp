// SPDX-License-Identifier: LGPL-2.1-or-later
#include "caps.hpp"

#include <string>

#include "compat.hpp"

namespace cudavision {

const char* const cuda_memory_feature = "memory:CUDAMemory";

namespace {

constexpr const char* any_height = "[ 1, 16384 ]";
constexpr const char* even_height = "[ 2, 16384, 2 ]";

std::string caps_string(const char* feature, const char* height, bool (*include)(const FormatInfo&)) {
  std::string names;
  for (const FormatInfo& format : formats())
    if (include(format)) names += (names.empty() ? "" : ", ") + std::string(format.name);
  return "video/x-raw" + (feature ? "(" + std::string(feature) + ")" : std::string()) + ", format=(string){ " + names +
         " }, width=(int)[ 1, 16384 ], height=(int)" + height + ", framerate=(fraction)[ 0/1, max ]";
}

/// (transfer full) What CUDA memory can hold, or NULL.
GstCaps* cuda_template_caps() {
  if (!built_with(Backend::cuda)) return nullptr;
  const auto any = [](const FormatInfo& format) { return compat::cuda_allocates(format) && !compat::cuda_fails_odd_heights(format); };
  const auto even = [](const FormatInfo& format) { return compat::cuda_allocates(format) && compat::cuda_fails_odd_heights(format); };
  return gst_caps_from_string((caps_string(cuda_memory_feature, any_height, any) + "; " + caps_string(cuda_memory_feature, even_height, even)).c_str());
}

/// Whether a structure has these features by name, and not because it takes any.
bool names_feature(const GstCapsFeatures* features, const char* name) {
  return !gst_caps_features_is_any(features) && gst_caps_features_contains(features, name);
}

bool is_usable_memory(const GstCapsFeatures* features, bool with_cuda) {
  return gst_caps_features_is_any(features) || gst_caps_features_is_equal(features, GST_CAPS_FEATURES_MEMORY_SYSTEM_MEMORY) ||
         (with_cuda && gst_caps_features_get_size(features) == 1 && gst_caps_features_contains(features, cuda_memory_feature));
}

/// Appends the structures of `caps` whose memory an element may use, with their features replaced (NULL: system memory).
void append_with_feature(GstCaps* result, GstCaps* caps, bool with_cuda, const char* feature) {
  for (guint i = 0; i < gst_caps_get_size(caps); ++i)
    if (is_usable_memory(gst_caps_get_features(caps, i), with_cuda))
      gst_caps_append_structure_full(result, gst_structure_copy(gst_caps_get_structure(caps, i)),
                                     feature ? gst_caps_features_new(feature, nullptr) : nullptr);
}

}  // namespace

GstCaps* video_template_caps() {
  GstCaps* caps = cuda_template_caps();
  GstCaps* system = gst_caps_from_string(caps_string(nullptr, any_height, [](const FormatInfo&) { return true; }).c_str());
  if (!caps) return system;
  gst_caps_append(caps, system);
  return caps;
}

GstCaps* any_memory_caps(GstCaps* caps, bool with_cuda) {
  GstCaps* result = gst_caps_new_empty();
  if (GstCaps* cuda = with_cuda ? cuda_template_caps() : nullptr) {
    append_with_feature(result, caps, with_cuda, cuda_memory_feature);
    GstCaps* allocatable = gst_caps_intersect_full(result, cuda, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref(cuda);
    gst_caps_unref(result);
    result = allocatable;
  }
  append_with_feature(result, caps, with_cuda, nullptr);
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
