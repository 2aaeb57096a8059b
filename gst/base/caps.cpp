// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/caps.hpp"

#include <gst/video/video.h>

#include <string>
#include <utility>
#include <vector>

#include "gst/base/compat.hpp"
#include "gst/base/owned.hpp"

namespace cudavision {

const char* const cuda_memory_feature = "memory:CUDAMemory";

bool is_known(const FormatInfo& format) {
  return gst_video_format_from_string(format.name) != GST_VIDEO_FORMAT_UNKNOWN;
}

namespace {

std::string caps_string(const char* feature, bool (*include)(const FormatInfo&)) {
  const std::string side = "(int)[ 1, " + std::to_string(max_frame_side) + " ]";
  std::string names;
  for (const FormatInfo& format : formats())
    if (is_known(format) && include(format)) names += (names.empty() ? "" : ", ") + std::string(format.name);
  return "video/x-raw" + (feature ? "(" + std::string(feature) + ")" : std::string()) + ", format=(string){ " + names +
         " }, width=" + side + ", height=" + side + ", framerate=(fraction)[ 0/1, max ]";
}

/// (transfer full) The template caps for CUDA memory, as one structure; nullptr in a build without CUDA.
GstCaps* cuda_template_caps() {
  if (!built_with(Backend::cuda)) return nullptr;
  return gst_caps_from_string(caps_string(cuda_memory_feature, compat::cuda_allocates).c_str());
}

/// Whether libgstcuda fails for fixed caps, so that the frames must be in system memory. (Template caps cannot express
/// this: GStreamer cannot exclude odd numbers from a range.)
bool fails_in_cuda(const GstStructure* structure) {
  const char* name = gst_structure_get_string(structure, "format");
  const FormatInfo* format = name ? find_format(name) : nullptr;
  int width, height;
  return format && gst_structure_get_int(structure, "width", &width) &&
         gst_structure_get_int(structure, "height", &height) && compat::cuda_fails_size(*format, width, height);
}

/// Whether `features` names this feature. ANY does not count.
bool names_feature(const GstCapsFeatures* features, const char* name) {
  return !gst_caps_features_is_any(features) && gst_caps_features_contains(features, name);
}

bool is_usable_memory(const GstCapsFeatures* features, bool with_cuda) {
  return gst_caps_features_is_any(features) ||
         gst_caps_features_is_equal(features, GST_CAPS_FEATURES_MEMORY_SYSTEM_MEMORY) ||
         (with_cuda && gst_caps_features_get_size(features) == 1 &&
          gst_caps_features_contains(features, cuda_memory_feature));
}

bool is_video(const GstStructure* structure) { return gst_structure_has_name(structure, "video/x-raw"); }

enum Media { DATA = 1, VIDEO = 2 };

/// Adds to `result` (taken) the structures of `caps` whose memory an element may use, except duplicates. `feature`
/// (nullptr: system memory) replaces their features. (gst_caps_simplify() would also merge structures, but it makes
/// nested lists of framerates, about which GStreamer warns.)
GstCaps* merge_with_feature(GstCaps* result, GstCaps* caps, bool with_cuda, const char* feature, int media) {
  for (guint i = 0; i < gst_caps_get_size(caps); ++i) {
    const GstStructure* structure = gst_caps_get_structure(caps, i);
    if (is_usable_memory(gst_caps_get_features(caps, i), with_cuda) && (media & (is_video(structure) ? VIDEO : DATA)))
      result = gst_caps_merge_structure_full(result, gst_structure_copy(structure),
                                             feature ? gst_caps_features_new(feature, nullptr) : nullptr);
  }
  return result;
}

bool in_cuda(const GstCaps* caps, guint index) {
  return names_feature(gst_caps_get_features(caps, index), cuda_memory_feature);
}

/// The structures that name CUDA memory, or all other structures.
Owned<GstCaps> memory_part(GstCaps* caps, bool cuda) {
  auto part = owned(gst_caps_new_empty());
  for (guint i = 0; i < gst_caps_get_size(caps); ++i)
    if (in_cuda(caps, i) == cuda)
      gst_caps_append_structure_full(part.get(), gst_structure_copy(gst_caps_get_structure(caps, i)),
                                     gst_caps_features_copy(gst_caps_get_features(caps, i)));
  return part;
}

/// Removes the structures whose unwanted(index) is true, unless it is true for all.
template <typename F>
void thin_out(GstCaps* caps, F&& unwanted) {
  const guint size = gst_caps_get_size(caps);
  guint count = 0;
  for (guint i = 0; i < size; ++i) count += unwanted(i);
  if (count == size) return;
  for (guint i = 0; i < gst_caps_get_size(caps);)
    if (unwanted(i))
      gst_caps_remove_structure(caps, i);
    else
      ++i;
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
    result = merge_with_feature(result, caps, with_cuda, cuda_memory_feature, VIDEO);
    GstCaps* allocatable = gst_caps_intersect_full(result, cuda, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref(cuda);
    gst_caps_unref(result);
    result = allocatable;
  }
  return merge_with_feature(result, caps, with_cuda, nullptr, VIDEO);
}

GstCaps* any_memory_data_caps(GstCaps* caps, bool with_cuda) {
  GstCaps* result = gst_caps_new_empty();
  if (with_cuda && built_with(Backend::cuda))
    result = merge_with_feature(result, caps, with_cuda, cuda_memory_feature, DATA);
  return merge_with_feature(result, caps, with_cuda, nullptr, DATA);
}

GstCaps* usable_caps(GstCaps* caps, bool with_cuda) {
  return merge_with_feature(gst_caps_new_empty(), caps, with_cuda, nullptr, VIDEO | DATA);
}

GstCaps* filter_caps(GstCaps* caps, GstCaps* filter) {
  if (!filter) return caps;
  GstCaps* both = gst_caps_intersect_full(filter, caps, GST_CAPS_INTERSECT_FIRST);
  gst_caps_unref(caps);
  return cuda_memory_first(both);
}

GstCaps* cuda_memory_first(GstCaps* caps) {
  if (gst_caps_is_any(caps)) return caps;
  GstCaps* sorted = memory_part(caps, true).release();
  gst_caps_append(sorted, memory_part(caps, false).release());
  gst_caps_unref(caps);
  return sorted;
}

bool is_video_caps(GstCaps* caps) { return gst_caps_get_size(caps) > 0 && is_video(gst_caps_get_structure(caps, 0)); }

bool is_cuda_caps(GstCaps* caps) {
  return caps && !gst_caps_is_any(caps) && gst_caps_get_size(caps) > 0 && in_cuda(caps, 0);
}

GstCaps* choose_memory(GstCaps* choices, GstCaps* input, GstPad* peer) {
  choices = gst_caps_make_writable(choices);
  const GQuark media = gst_structure_get_name_id(gst_caps_get_structure(choices, 0));
  const auto is_other = [media](GstCaps* caps, guint i) {
    return gst_structure_get_name_id(gst_caps_get_structure(caps, i)) != media;
  };
  thin_out(choices, [&](guint i) { return is_other(choices, i); });

  bool wants_cuda = is_cuda_caps(input);
  const auto taken = owned(peer ? gst_pad_query_caps(peer, nullptr) : nullptr);
  if (taken && !gst_caps_is_any(taken.get()))
    for (guint i = 0; i < gst_caps_get_size(taken.get()); ++i)
      if (!is_other(taken.get(), i) && in_cuda(taken.get(), i)) wants_cuda = true;
  if (fails_in_cuda(gst_caps_get_structure(choices, 0))) wants_cuda = false;
  thin_out(choices, [&](guint i) { return in_cuda(choices, i) != wants_cuda; });
  return choices;
}

// The path from upstream ----------------------------------------------------------------------------------------------

namespace {

/// The pads that a pad is linked to inside its element.
std::vector<Owned<GstPad>> linked_inside(GstPad* pad) {
  std::vector<Owned<GstPad>> pads;
  GstIterator* iterator = gst_pad_iterate_internal_links(pad);
  GValue item = G_VALUE_INIT;
  for (bool more = iterator; more;) {
    switch (gst_iterator_next(iterator, &item)) {
      case GST_ITERATOR_OK:
        pads.emplace_back(GST_PAD(g_value_dup_object(&item)));
        g_value_unset(&item);
        break;
      case GST_ITERATOR_RESYNC:
        gst_iterator_resync(iterator);
        pads.clear();
        break;
      default:
        more = false;
    }
  }
  if (iterator) gst_iterator_free(iterator);
  return pads;
}

/// Whether the pad belongs to an element of this plugin. Such elements convert between memories.
bool is_ours(GstPad* pad) {
  const auto element = owned(gst_pad_get_parent_element(pad));
  GstElementFactory* factory = element ? gst_element_get_factory(element.get()) : nullptr;
  return factory && g_strcmp0(gst_plugin_feature_get_plugin_name(GST_PLUGIN_FEATURE(factory)), "cudavision") == 0;
}

/// Set while this thread asks which memory other branches accept. Otherwise elements of this plugin in these branches
/// would repeat the question.
thread_local bool asks_branches = false;

/// Whether all branches of an element accept some of these caps.
bool branches_take(GstPad* sink, const Owned<GstCaps>& caps) {
  asks_branches = true;
  const Owned<GstCaps> taken(gst_pad_query_caps(sink, caps.get()));
  asks_branches = false;
  return !gst_caps_is_empty(taken.get());
}

/// Whether frames with the caps `cuda` (taken), in CUDA memory, can reach a sink pad without a conflict between
/// branches. The search goes upstream. At each element with several branches it asks whether all branches accept such
/// frames. If in doubt, it returns false: elements with several inputs may mix memories, and the search also asks
/// branches upstream of an element that makes CUDA memory. (A query does not show where CUDA memory begins, because it
/// ends at pads with fixed caps.)
bool way_takes_cuda(GstPad* sink, Owned<GstCaps> cuda) {
  for (guint i = 0; i < gst_caps_get_size(cuda.get()); ++i)
    gst_structure_remove_field(gst_caps_get_structure(cuda.get(), i),
                               "framerate");  // elements on the way may change it
  for (auto pad = new_reference(sink);;) {
    const auto before = owned(gst_pad_get_peer(pad.get()));
    if (!before || is_ours(before.get())) return true;
    std::vector<Owned<GstPad>> inputs = linked_inside(before.get());
    if (inputs.empty()) return true;
    if (inputs.size() > 1) return false;
    pad = std::move(inputs[0]);
    // The element is a decoder.
    if (!gst_caps_can_intersect(cuda.get(), owned(gst_pad_get_pad_template_caps(pad.get())).get())) return true;
    if (linked_inside(pad.get()).size() > 1 && !branches_take(pad.get(), cuda)) return false;
  }
}

}  // namespace

GstCaps* insist_on_cuda(GstCaps* caps, GstPad* sink) {
  if (asks_branches) return caps;
  const auto has_twin = [caps](guint i) {
    const GstStructure* structure = gst_caps_get_structure(caps, i);
    if (!gst_caps_features_is_equal(gst_caps_get_features(caps, i), GST_CAPS_FEATURES_MEMORY_SYSTEM_MEMORY) ||
        fails_in_cuda(structure))
      return false;
    for (guint j = 0; j < gst_caps_get_size(caps); ++j)
      if (in_cuda(caps, j) && gst_structure_is_subset(structure, gst_caps_get_structure(caps, j))) return true;
    return false;
  };
  std::vector<guint> twins;
  for (guint i = 0; i < gst_caps_get_size(caps); ++i)
    if (has_twin(i)) twins.push_back(i);
  if (twins.empty() || !way_takes_cuda(sink, memory_part(caps, true))) return caps;
  caps = gst_caps_make_writable(caps);
  for (auto twin = twins.rbegin(); twin != twins.rend(); ++twin) gst_caps_remove_structure(caps, *twin);
  return caps;
}

bool could_be_in_cuda(GstPad* pad, GstCaps* frames) {
  if (in_cuda(frames, 0) || fails_in_cuda(gst_caps_get_structure(frames, 0))) return false;
  Owned<GstCaps> wanted(gst_caps_copy(frames));
  gst_caps_set_features_simple(wanted.get(), gst_caps_features_new(cuda_memory_feature, nullptr));
  const Owned<GstCaps> of_pad(gst_pad_get_pad_template_caps(pad)), of_peer(gst_pad_peer_query_caps(pad, nullptr));
  return gst_caps_can_intersect(wanted.get(), of_pad.get()) &&
         gst_caps_can_intersect(wanted.get(), memory_part(of_peer.get(), true).get()) &&
         (GST_PAD_IS_SRC(pad) || way_takes_cuda(pad, std::move(wanted)));
}

}  // namespace cudavision
