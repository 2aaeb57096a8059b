// SPDX-License-Identifier: LGPL-2.1-or-later
// GstCudaVisionMixer: caps and other queries, allocation of frames, and their CUDA context.
#include <algorithm>
#include <utility>

#include "gst/base/caps.hpp"
#include "gst/base/mixer/video_mixer_private.hpp"

namespace cudavision::video_mixer {

// Queries -------------------------------------------------------------------------------------------------------------

namespace {

/// (transfer full) The template caps of a pad, in all memories that the element may use.
GstCaps* possible_caps(GstCudaVisionMixer* self, GstPad* pad) {
  return any_memory_caps(owned(gst_pad_get_pad_template_caps(pad)).get(), self->state->host.may_use_cuda());
}

}  // namespace

gboolean sink_query(GstAggregator* agg, GstAggregatorPad* pad, GstQuery* query) {
  if (state_of(agg).host.answers(query)) return TRUE;
  // The base class would accept only what downstream accepts, but this element converts formats itself.
  switch (GST_QUERY_TYPE(query)) {
    case GST_QUERY_CAPS: {
      GstCaps *filter, *caps = possible_caps(as_mixer(agg), GST_PAD(pad));
      gst_query_parse_caps(query, &filter);
      caps = filter_caps(caps, filter);
      if (filter && state_of(agg).host.uses_cuda()) caps = insist_on_cuda(caps, GST_PAD(pad));
      gst_query_set_caps_result(query, caps);
      gst_caps_unref(caps);
      return TRUE;
    }
    case GST_QUERY_ACCEPT_CAPS: {
      const auto caps = owned(possible_caps(as_mixer(agg), GST_PAD(pad)));
      GstCaps* asked;
      gst_query_parse_accept_caps(query, &asked);
      gst_query_set_accept_caps_result(query, gst_caps_can_intersect(asked, caps.get()));
      return TRUE;
    }
    default:
      return base_class()->sink_query(agg, pad, query);
  }
}

/// Answers allocation queries immediately, in the upstream thread. The base class would queue them for the streaming
/// thread, which would use a query that upstream has freed if the pad is released meanwhile. The base class also
/// refuses to answer before the streaming thread has taken the caps from the queue of the pad. The answer needs only
/// the caps in the query.
gboolean sink_query_pre_queue(GstAggregator* agg, GstAggregatorPad* pad, GstQuery* query) {
  if (GST_QUERY_TYPE(query) != GST_QUERY_ALLOCATION) return base_class()->sink_query_pre_queue(agg, pad, query);
  if (!state_of(agg).host.propose_pool(query)) return FALSE;
  state_of(agg).host.accept_frames(query);
  return TRUE;
}

gboolean src_query(GstAggregator* agg, GstQuery* query) {
  return state_of(agg).host.answers(query) || base_class()->src_query(agg, query);
}

// Output caps ---------------------------------------------------------------------------------------------------------

/// The caps that downstream accepts and this element can produce, in the order of downstream. They come from a separate
/// query, because the base class's caps are in the order of the template, and downstream may have changed its answer.
GstCaps* update_caps(GstVideoAggregator* vagg, GstCaps*) {
  GstPad* src = GST_AGGREGATOR(vagg)->srcpad;
  // Downstream may omit fields (the element interlace omits the framerate), and the base class wants a subset of the
  // template. So intersect with the template.
  const auto wanted = owned(gst_pad_peer_query_caps(src, nullptr));
  GstCaps* both = filter_caps(possible_caps(as_mixer(vagg), src), wanted.get());
  if (gst_caps_is_empty(both)) state_of(vagg).host.check_memory_of_peer(src);
  return both;
}

namespace {

/// Restricts caps to those with this value of a field, if there are any. Returns whether there are.
template <typename... Value>
bool prefer(GstCaps*& caps, const char* field, GType type, Value... value) {
  const auto wish = owned(gst_caps_new_simple("video/x-raw", field, type, value..., nullptr));
  gst_caps_set_features_simple(wish.get(), gst_caps_features_new_any());
  GstCaps* both = gst_caps_intersect_full(caps, wish.get(), GST_CAPS_INTERSECT_FIRST);
  const bool possible = !gst_caps_is_empty(both);
  gst_caps_unref(possible ? std::exchange(caps, both) : both);
  return possible;
}
bool prefer_text(GstCaps*& caps, const char* field, const char* value) {
  return value && prefer(caps, field, G_TYPE_STRING, value);
}

gint64 area(const GstVideoInfo& video) { return gint64(GST_VIDEO_INFO_WIDTH(&video)) * GST_VIDEO_INFO_HEIGHT(&video); }

/// The formats of the pads, the best first: formats with alpha precede others, then formats with more pixels.
std::vector<GstVideoInfo> wanted_formats(const std::vector<MixerInput>& inputs) {
  std::vector<std::pair<gint64, GstVideoInfo>> by_area;
  for (const MixerInput& input : inputs) {
    if (!input.has_caps || input.inactive) continue;
    const auto same = [&](const auto& row) {
      return GST_VIDEO_INFO_FORMAT(&row.second) == GST_VIDEO_INFO_FORMAT(&input.video);
    };
    const auto row = std::find_if(by_area.begin(), by_area.end(), same);
    if (row == by_area.end())
      by_area.push_back({area(input.video), input.video});
    else
      row->first += area(input.video);
  }
  std::stable_sort(by_area.begin(), by_area.end(), [](const auto& a, const auto& b) {
    return std::pair(has_alpha(a.second), a.first) > std::pair(has_alpha(b.second), b.first);
  });
  std::vector<GstVideoInfo> formats;
  for (const auto& row : by_area) formats.push_back(row.second);
  return formats;
}

/// Chooses a format, preferably one of the pads' formats, and the matching colorimetry, chroma site and interlacing.
void choose_format(GstCaps*& caps, const std::vector<MixerInput>& inputs) {
  const std::vector<GstVideoInfo> wanted = wanted_formats(inputs);
  std::vector<const char*> names;
  const auto add = [&](bool alpha) {
    for (const GstVideoInfo& video : wanted)
      if (has_alpha(video) == alpha) names.push_back(gst_video_format_to_string(GST_VIDEO_INFO_FORMAT(&video)));
  };
  add(true);
  if (!names.empty())
    for (const char* name : {"RGBA", "BGRA", "ARGB", "ABGR", "RGBA64_LE", "ARGB64_LE"}) names.push_back(name);
  add(false);
  if (names.empty()) names.push_back("NV12");  // no pad has caps yet: most elements accept NV12
  for (const char* name : names)
    if (prefer_text(caps, "format", name)) break;
  if (wanted.empty()) return;

  // If downstream accepts none of these formats, its first format is used.
  g_autoptr(GstStructure) first = gst_structure_copy(gst_caps_get_structure(caps, 0));
  gst_structure_fixate_field(first, "format");
  const char* name = gst_structure_get_string(first, "format");
  prefer_text(caps, "format", name);
  const GstVideoFormatInfo* format = gst_video_format_get_info(gst_video_format_from_string(name));
  const auto alike = std::find_if(wanted.begin(), wanted.end(), [&](const GstVideoInfo& video) {
    return GST_VIDEO_FORMAT_INFO_IS_YUV(format) == GST_VIDEO_INFO_IS_YUV(&video) &&
           GST_VIDEO_FORMAT_INFO_IS_RGB(format) == GST_VIDEO_INFO_IS_RGB(&video);
  });
  if (alike != wanted.end()) {
    g_autofree gchar* colorimetry = gst_video_colorimetry_to_string(&alike->colorimetry);
    prefer_text(caps, "colorimetry", colorimetry);
    if (alike->finfo == format) {
      g_autofree gchar* site = gst_video_chroma_site_to_string(alike->chroma_site);
      prefer_text(caps, "chroma-site", site);
    }
  }
  // Interlacing comes from the lowest pad, whose frames also tell which field comes first.
  const GstVideoInfo& lowest = std::find_if(inputs.begin(), inputs.end(), [](const MixerInput& input) {
                                 return input.has_caps && !input.inactive;
                               })->video;
  if (prefer_text(caps, "interlace-mode", gst_video_interlace_mode_to_string(GST_VIDEO_INFO_INTERLACE_MODE(&lowest))) &&
      GST_VIDEO_INFO_FIELD_ORDER(&lowest) != GST_VIDEO_FIELD_ORDER_UNKNOWN)
    prefer_text(caps, "field-order", gst_video_field_order_to_string(GST_VIDEO_INFO_FIELD_ORDER(&lowest)));
}

/// The highest framerate of the pads; 25/1 if all are variable.
std::pair<int, int> best_framerate(const std::vector<MixerInput>& inputs) {
  std::pair<int, int> best{0, 1};
  for (const MixerInput& input : inputs) {
    const int n = GST_VIDEO_INFO_FPS_N(&input.video), d = GST_VIDEO_INFO_FPS_D(&input.video);
    if (input.has_caps && !input.inactive && d > 0 && gst_util_fraction_compare(n, d, best.first, best.second) > 0)
      best = {n, d};
  }
  return best.first > 0 ? best : std::pair(25, 1);
}

/// Chooses values for those fields of `caps` for which the pads or the settings have a preference.
void choose_src_caps(GstCudaVisionMixer* self, GstCaps*& caps) {
  const Snapshot inputs(self);
  int par_n = 1, par_d = 1;
  if (!prefer(caps, "pixel-aspect-ratio", GST_TYPE_FRACTION, 1, 1)) {
    g_autoptr(GstStructure) first = gst_structure_copy(gst_caps_get_structure(caps, 0));
    gst_structure_fixate_field_nearest_fraction(first, "pixel-aspect-ratio", 1, 1);
    gst_structure_get_fraction(first, "pixel-aspect-ratio", &par_n, &par_d);
    prefer(caps, "pixel-aspect-ratio", GST_TYPE_FRACTION, par_n, par_d);
    if (par_n <= 0 || par_d <= 0) par_n = par_d = 1;
  }
  choose_format(caps, inputs.list());

  PictureSize size = inputs.settings().natural_size(par_n, par_d);
  if (size.width <= 0 || size.height <= 0) size = {320, 240};
  const auto [fps_n, fps_d] = best_framerate(inputs.list());
  prefer(caps, "framerate", GST_TYPE_FRACTION_RANGE, 1, G_MAXINT, G_MAXINT, 1);  // not variable
  prefer(caps, "width", G_TYPE_INT, size.width);
  prefer(caps, "height", G_TYPE_INT, size.height);
  prefer(caps, "framerate", GST_TYPE_FRACTION, fps_n, fps_d);

  // If downstream accepts any memory, the output is in CUDA memory if one of the inputs is.
  Owned<GstCaps> in_cuda;
  for (const MixerInput& input : inputs.list()) {
    auto current = owned(gst_pad_get_current_caps(GST_PAD(input.pad)));
    if (is_cuda_caps(current.get())) in_cuda = std::move(current);
  }
  const auto peer = owned(gst_pad_get_peer(GST_AGGREGATOR(self)->srcpad));
  caps = gst_caps_make_writable(gst_caps_truncate(choose_memory(caps, in_cuda.get(), peer.get())));

  GstStructure* structure = gst_caps_get_structure(caps, 0);
  gst_structure_fixate_field_nearest_int(structure, "width", size.width);
  gst_structure_fixate_field_nearest_int(structure, "height", size.height);
  gst_structure_fixate_field_nearest_fraction(structure, "framerate", fps_n, fps_d);
}

}  // namespace

GstCaps* fixate_src_caps(GstAggregator* agg, GstCaps* caps) {
  state_of(agg).host.guard([&] { choose_src_caps(as_mixer(agg), caps); });
  return gst_caps_fixate(caps);
}

gboolean negotiated_src_caps(GstAggregator* agg, GstCaps* caps) {
  GstVideoInfo video;
  if (!video_from_caps(video, caps)) return FALSE;
  if (GST_VIDEO_INFO_FPS_N(&video) == 0) {  // the base class would compose the same moment forever
    state_of(agg).host.post_error(
        Status::settings("the framerate downstream is 0/1 (variable): it must be a fixed one, because all pads are "
                         "composed at its frames"));
    return FALSE;
  }
  if (push_held(agg) == GST_FLOW_ERROR) return FALSE;  // before the new caps are sent
  state_of(agg).host.note_copies(agg->srcpad, caps);
  const Status status = make_plan(as_mixer(agg), video);
  if (status.ok()) {
    MixerState& state = state_of(agg);
    state.to_device = is_cuda_caps(caps);
    if (!base_class()->negotiated_src_caps(agg, caps)) return FALSE;
    state.depth = G_MAXUINT;  // the base class may have set its own latency
    update_latency(as_mixer(agg));
    return TRUE;
  }
  state_of(agg).host.post_error(status);
  return FALSE;
}

// Allocation ----------------------------------------------------------------------------------------------------------

gboolean decide_allocation(GstAggregator* agg, GstQuery* query) {
  // The base class is not called: it leaks a reference to our allocator.
  return state_of(agg).host.decide_pool(query, depth_of(as_mixer(agg)));
}

namespace {

/// Switches to the CUDA context of the incoming frames, if some are in CUDA memory and none of these is in our context.
/// (If frames are in several contexts, those in other contexts are copied.) Returns whether the context changed; the
/// output must then be negotiated again.
Result<bool> follow_context(GstCudaVisionMixer* self) {
  ElementBackend& host = self->state->host;
  GstBuffer* foreign = nullptr;
  const Inputs inputs(self);
  for (const MixerInput& input : inputs.list()) {
    GstBuffer* buffer = frame_of(input);
    if (!buffer || !Gpu::is_device_buffer(buffer)) continue;
    if (!host.gpu.is_foreign(buffer)) return false;
    if (!foreign && host.follows(buffer)) foreign = buffer;
  }
  if (!foreign) return false;
  drop_device_state(self);
  if (Status status = host.adopt(foreign); !status.ok()) return status;
  gst_pad_mark_reconfigure(GST_AGGREGATOR(self)->srcpad);
  return true;
}

}  // namespace

GstFlowReturn create_output_buffer(GstVideoAggregator* vagg, GstBuffer** buffer) {
  MixerState& state = state_of(vagg);
  state.collected = true;
  if (state.host.uses_cuda()) {
    const auto followed = follow_context(as_mixer(vagg));
    if (!followed.ok()) return state.host.failed(followed.error());
    if (followed.value()) return GST_AGGREGATOR_FLOW_NEED_DATA;
  }
  return GST_VIDEO_AGGREGATOR_CLASS(base_class())->create_output_buffer(vagg, buffer);
}

}  // namespace cudavision::video_mixer
