// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/video_mixer.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#if HAVE_ORC
#include <orc/orc.h>
#endif

#include "gst/base/caps.hpp"
#include "gst/base/frame.hpp"
#include "gst/base/vfunc.hpp"

GST_DEBUG_CATEGORY_STATIC(cudavision_mixer_debug);
#define GST_CAT_DEFAULT cudavision_mixer_debug

namespace cudavision {

struct MixerState {
  explicit MixerState(GstElement* element) : host(element) {}

  Host host;
  // Of the streaming thread:
  std::unique_ptr<Blend> plan;  // for the negotiated output
  std::unique_ptr<DeviceImage> device_output;
};

struct MixerPadState {
  // Of the streaming thread: a frame in system memory, and what it is on the device.
  GstBuffer* uploaded = nullptr;
  std::unique_ptr<DeviceImage> image;
  bool misfits = false;              // the last frame did not fit the caps
  std::atomic<bool> flushed{false};  // set by upstream: the frame that is shown must go
  bool endless = false;              // of the thread of upstream: the last frame ended beyond all times
  // Under the pad's object lock: where its frames are shown, and what of them.
  Rect place, crop;

  void show(CudaVisionMixerPad* pad, const Rect& where, const Rect& what) {
    ObjectLock lock(pad);
    place = where;
    crop = what;
  }
  void forget() { gst_clear_buffer(&uploaded); }
};

static void child_proxy_init(gpointer interface, gpointer);

G_DEFINE_ABSTRACT_TYPE_WITH_CODE(CudaVisionMixer, cudavision_mixer, GST_TYPE_VIDEO_AGGREGATOR,
                                 G_IMPLEMENT_INTERFACE(GST_TYPE_CHILD_PROXY, child_proxy_init)
                                     GST_DEBUG_CATEGORY_INIT(cudavision_mixer_debug, "cudavision", 0, "cudavision elements"))
G_DEFINE_ABSTRACT_TYPE(CudaVisionMixerPad, cudavision_mixer_pad, GST_TYPE_VIDEO_AGGREGATOR_PAD)

namespace {

MixerState& state_of(gpointer object) { return *as_mixer(object)->state; }
CudaVisionMixerClass* class_of(gpointer object) { return as_mixer_class(G_OBJECT_GET_CLASS(object)); }
GstAggregatorClass* base_class() { return GST_AGGREGATOR_CLASS(cudavision_mixer_parent_class); }

bool is_set(const GstVideoInfo& video) { return video.finfo && GST_VIDEO_INFO_FORMAT(&video) != GST_VIDEO_FORMAT_UNKNOWN; }

struct Unref {
  void operator()(gpointer object) const { gst_object_unref(object); }
};

/// The sink pads, which stay alive as long as this object. For the streaming thread.
class Inputs {
 public:
  explicit Inputs(CudaVisionMixer* self) {
    for_each_sink_pad(self, [this](CudaVisionMixerPad* pad) {
      GstVideoInfo video = GST_VIDEO_AGGREGATOR_PAD(pad)->info;
      replace_meaningless_numbers(video);
      // gst_aggregator_pad_is_inactive() aborts if the pad has no parent. A pad loses its parent after it has left the element's
      // list, so it has one here, under the object lock.
      const bool inactive = gst_aggregator_pad_is_inactive(GST_AGGREGATOR_PAD(pad));
      held_.emplace_back(static_cast<GstObject*>(gst_object_ref(pad)));
      list_.push_back({pad, video, is_set(video), inactive});
    });
  }
  const std::vector<MixerInput>& list() const { return list_; }

 private:
  std::vector<std::unique_ptr<GstObject, Unref>> held_;
  std::vector<MixerInput> list_;
};

/// What a pad shows now, or NULL.
GstBuffer* frame_of(const MixerInput& input) {
  if (input.inactive || !input.has_caps) return nullptr;
  GstBuffer* buffer = gst_video_aggregator_pad_get_current_buffer(GST_VIDEO_AGGREGATOR_PAD(input.pad));
  return buffer && gst_buffer_get_size(buffer) > 0 ? buffer : nullptr;  // a gap has nothing to show
}

BlendColor color_of(const GstVideoInfo& video) {
  const GstVideoColorMatrix matrix = video.colorimetry.matrix;
  const bool bt709 = matrix == GST_VIDEO_COLOR_MATRIX_BT709 || matrix == GST_VIDEO_COLOR_MATRIX_SMPTE240M;
  return {bt709                                     ? LumaMatrix::bt709
          : matrix == GST_VIDEO_COLOR_MATRIX_BT2020 ? LumaMatrix::bt2020
                                                    : LumaMatrix::bt601,
          range_of(video) == GST_VIDEO_COLOR_RANGE_16_235};
}

/// How GStreamer's compositor divides by 255 on this machine. It uses ORC's opcode div255w, which rounds to the nearest before ORC
/// 0.4.39 and down since then; so ORC is asked for 128 / 255. (Without ORC compositor rounds to the nearest.)
BlendDivision compositor_division() {
#if HAVE_ORC
  static const BlendDivision division = [] {
    constexpr int count = 64;  // enough for the vectorised part of the compiled loop
    alignas(64) gint16 dividends[count], quotients[count];
    std::fill_n(dividends, count, gint16(128));
    std::fill_n(quotients, count, gint16(1));
    OrcProgram* program = orc_program_new_ds(sizeof *quotients, sizeof *dividends);
    orc_program_append_ds_str(program, "div255w", "d1", "s1");
    orc_program_compile(program);
    OrcExecutor* executor = orc_executor_new(program);
    orc_executor_set_n(executor, count);
    orc_executor_set_array_str(executor, "d1", quotients);
    orc_executor_set_array_str(executor, "s1", dividends);
    orc_executor_run(executor);
    orc_executor_free(executor);
    orc_program_free(program);
    return quotients[0] == 0 ? BlendDivision::down : BlendDivision::nearest;
  }();
  return division;
#else
  return BlendDivision::nearest;
#endif
}

// Backend -----------------------------------------------------------------------------------------------------------------------

GstStateChangeReturn change_state(GstElement* element, GstStateChange transition) {
  return state_of(element).host.change_state(GST_ELEMENT_CLASS(cudavision_mixer_parent_class), transition);
}

void set_context(GstElement* element, GstContext* context) {
  state_of(element).host.set_context(context);
  GST_ELEMENT_CLASS(cudavision_mixer_parent_class)->set_context(element, context);
}

/// Lets go of all that is of one CUDA context.
void drop_device_state(CudaVisionMixer* self) {
  MixerState& state = *self->state;
  const Inputs inputs(self);
  Gpu::Scope scope(state.host.gpu);
  state.plan.reset();
  state.device_output.reset();
  for (const MixerInput& input : inputs.list()) {
    input.pad->state->forget();
    input.pad->state->image.reset();
  }
}

gboolean stop(GstAggregator* agg) {
  const Status status = guarded([&] { drop_device_state(as_mixer(agg)); });
  if (!status.ok()) state_of(agg).host.post_error(status);
  return base_class()->stop(agg);
}

/// Makes the plan for the negotiated output.
Status make_plan(CudaVisionMixer* self, const GstVideoInfo& output) {
  MixerState& state = *self->state;
  const bool cuda = state.host.uses_cuda();
  Gpu::Scope scope(state.host.gpu);
  state.plan.reset();
  state.device_output.reset();
  if (cuda && !scope.ok()) return Status::resource("the CUDA context cannot be made current");
  auto plan = make_blend(geometry_of(output), color_of(output), cuda ? Backend::cuda : Backend::cpu, compositor_division());
  if (!plan.ok()) return plan.error();
  state.plan = std::move(plan.value());
  return {};
}

// Caps --------------------------------------------------------------------------------------------------------------------------

/// (transfer full) What a sink pad takes: everything.
GstCaps* sink_caps(CudaVisionMixer* self, GstPad* pad) {
  GstCaps* all = gst_pad_get_pad_template_caps(pad);
  GstCaps* caps = any_memory_caps(all, self->state->host.may_use_cuda());
  gst_caps_unref(all);
  return caps;
}

/// Whether the base class takes caps that are interlaced in this way: as the output, or where there is none yet, the other pads.
bool is_taken(CudaVisionMixer* self, GstVideoInterlaceMode mode) {
  const GstVideoInfo& output = GST_VIDEO_AGGREGATOR(self)->info;
  if (is_set(output)) return GST_VIDEO_INFO_INTERLACE_MODE(&output) == mode;
  bool taken = true;
  for_each_sink_pad(self, [&](CudaVisionMixerPad* other) {
    const GstVideoInfo& video = GST_VIDEO_AGGREGATOR_PAD(other)->info;
    taken = taken && (!is_set(video) || GST_VIDEO_INFO_INTERLACE_MODE(&video) == mode);
  });
  return taken;
}

/// The base class refuses caps that are not interlaced as the output or the other pads are. Here a frame is a frame: for as long as
/// it looks, the output is interlaced as the caps.
gboolean take_caps(GstAggregator* agg, GstAggregatorPad* pad, GstEvent* event) {
  GstCaps* caps;
  gst_event_parse_caps(event, &caps);
  GstVideoInfo video;
  if (!video_from_caps(video, caps) || is_taken(as_mixer(agg), GST_VIDEO_INFO_INTERLACE_MODE(&video)))
    return base_class()->sink_event(agg, pad, event);
  GstVideoInfo& output = GST_VIDEO_AGGREGATOR(agg)->info;
  const auto show = [&](const GstVideoFormatInfo* format, GstVideoInterlaceMode mode) {
    ObjectLock lock(agg);
    output.finfo = format;
    output.interlace_mode = mode;
  };
  const GstVideoInfo kept = output;
  show(is_set(output) ? output.finfo : video.finfo, video.interlace_mode);
  const gboolean taken = base_class()->sink_event(agg, pad, event);
  show(kept.finfo, kept.interlace_mode);
  return taken;
}

/// What the base class cannot place in time; it would abort. Empty: nothing.
std::string misplaced(const GstSegment& segment) {
  if (segment.format != GST_FORMAT_TIME)
    return std::string("a stream in ") + gst_format_get_name(segment.format) +
           " cannot be placed in time: its source must be one with format=time";
  if (segment.rate < 0 && !GST_CLOCK_TIME_IS_VALID(segment.stop))
    return "a segment that is played backwards cannot be placed in time without its end: its source must set stop";
  const guint64 most = G_MAXINT64;  // sums of these do not wrap around
  if (segment.start > most || segment.base > most || segment.offset > most || segment.time > most ||
      (GST_CLOCK_TIME_IS_VALID(segment.stop) && segment.stop > most))
    return "a segment beyond 2^63 ns cannot be placed in time: its source must set smaller times";
  return {};
}

/// A segment that begins where its running time is 0 or more, and says the same of all that follows. A negative pad offset makes
/// one whose first frames have a negative running time, by its field `offset`: at such a frame the base class aborts, but what lies
/// before a segment's start it leaves out.
GstSegment without_offset(GstSegment segment) {
  const guint64 offset = segment.offset;
  segment.offset = 0;
  if (segment.rate > 0) {
    segment.start += offset;
    segment.position = MAX(segment.position, segment.start);
    if (GST_CLOCK_TIME_IS_VALID(segment.stop)) segment.stop = MAX(segment.stop, segment.start);
    if (GST_CLOCK_TIME_IS_VALID(segment.time)) segment.time += guint64(double(offset) * ABS(segment.applied_rate));
  } else {
    segment.stop = MAX(segment.stop, segment.start + offset) - offset;
    segment.position = MIN(segment.position, segment.stop);
  }
  return segment;
}

/// (transfer full) A segment that the base class can place in time.
GstEvent* take_segment(CudaVisionMixer* self, CudaVisionMixerPad* pad, GstEvent* event) {
  const GstSegment* segment;
  gst_event_parse_segment(event, &segment);
  const std::string trouble = misplaced(*segment);
  if (trouble.empty() && segment->offset == 0) return event;
  GstSegment placed;
  if (trouble.empty()) {
    placed = without_offset(*segment);
  } else {
    GST_ELEMENT_ERROR(self, STREAM, FORMAT, ("%s: %s", GST_OBJECT_NAME(pad), trouble.c_str()), (nullptr));
    gst_segment_init(&placed, GST_FORMAT_TIME);
  }
  GstEvent* taken = gst_event_new_segment(&placed);
  gst_event_set_seqnum(taken, gst_event_get_seqnum(event));
  gst_event_set_running_time_offset(taken, gst_event_get_running_time_offset(event));
  gst_event_unref(event);
  return taken;
}

/// Every event as it comes, in the thread of upstream.
GstFlowReturn sink_event_pre_queue(GstAggregator* agg, GstAggregatorPad* pad, GstEvent* event) {
  if (GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT) event = take_segment(as_mixer(agg), as_mixer_pad(pad), event);
  return base_class()->sink_event_pre_queue(agg, pad, event);
}

gboolean sink_event(GstAggregator* agg, GstAggregatorPad* pad, GstEvent* event) {
  return GST_EVENT_TYPE(event) == GST_EVENT_CAPS ? take_caps(agg, pad, event) : base_class()->sink_event(agg, pad, event);
}

gboolean sink_query(GstAggregator* agg, GstAggregatorPad* pad, GstQuery* query) {
  // The base class would have sinks take but what downstream does: here all is converted.
  switch (GST_QUERY_TYPE(query)) {
    case GST_QUERY_CAPS: {
      GstCaps *filter, *caps = sink_caps(as_mixer(agg), GST_PAD(pad));
      gst_query_parse_caps(query, &filter);
      caps = filter_caps(caps, filter);
      gst_query_set_caps_result(query, caps);
      gst_caps_unref(caps);
      return TRUE;
    }
    case GST_QUERY_ACCEPT_CAPS: {
      GstCaps *asked, *caps = sink_caps(as_mixer(agg), GST_PAD(pad));
      gst_query_parse_accept_caps(query, &asked);
      gst_query_set_accept_caps_result(query, gst_caps_can_intersect(asked, caps));
      gst_caps_unref(caps);
      return TRUE;
    }
    case GST_QUERY_CONTEXT:
      if (state_of(agg).host.gpu.answer_context_query(GST_ELEMENT(agg), query)) return TRUE;
      [[fallthrough]];
    default:
      return base_class()->sink_query(agg, pad, query);
  }
}

/// Answers allocation queries at once, in the thread of upstream. The base class would queue them for the streaming thread; when the
/// pad is released meanwhile, upstream frees the query, and the streaming thread goes on with it.
gboolean sink_query_pre_queue(GstAggregator* agg, GstAggregatorPad* pad, GstQuery* query) {
  return GST_QUERY_TYPE(query) == GST_QUERY_ALLOCATION ? sink_query(agg, pad, query)
                                                       : base_class()->sink_query_pre_queue(agg, pad, query);
}

gboolean src_query(GstAggregator* agg, GstQuery* query) {
  if (GST_QUERY_TYPE(query) == GST_QUERY_CONTEXT && state_of(agg).host.gpu.answer_context_query(GST_ELEMENT(agg), query))
    return TRUE;
  return base_class()->src_query(agg, query);
}

/// Whether a seek asks for a range whose start is after its stop: GStreamer asserts that there is none.
bool seeks_past_its_stop(GstAggregator* agg, GstEvent* event) {
  GstSeekType start_type, stop_type;
  gint64 start, stop;
  gst_event_parse_seek(event, nullptr, nullptr, nullptr, &start_type, &start, &stop_type, &stop);
  const GstSegment& now = GST_AGGREGATOR_PAD(agg->srcpad)->segment;
  if (start_type == GST_SEEK_TYPE_NONE) start = gint64(now.start);
  if (stop_type == GST_SEEK_TYPE_NONE) stop = gint64(now.stop);
  return start_type != GST_SEEK_TYPE_END && stop_type != GST_SEEK_TYPE_END && stop >= 0 && start > stop;
}

/// Where the pointer is over a pad, it is told where in its own picture.
gboolean src_event(GstAggregator* agg, GstEvent* event) {
  // The base class divides by the framerate.
  if (GST_EVENT_TYPE(event) == GST_EVENT_QOS && GST_VIDEO_INFO_FPS_N(&GST_VIDEO_AGGREGATOR(agg)->info) <= 0) {
    gst_event_unref(event);
    return TRUE;
  }
  if (GST_EVENT_TYPE(event) == GST_EVENT_SEEK && seeks_past_its_stop(agg, event)) {
    gst_event_unref(event);
    return FALSE;
  }
  double x, y;
  if (GST_EVENT_TYPE(event) != GST_EVENT_NAVIGATION || !gst_navigation_event_get_coordinates(event, &x, &y))
    return base_class()->src_event(agg, event);
  std::vector<std::pair<std::unique_ptr<GstObject, Unref>, GstEvent*>> told;
  for_each_sink_pad(as_mixer(agg), [&](CudaVisionMixerPad* pad) {
    ObjectLock lock(pad);
    const Rect &place = pad->state->place, &crop = pad->state->crop;
    if (place.empty() || x < place.x || y < place.y || x >= place.x + place.width || y >= place.y + place.height) return;
    GstEvent* own = gst_event_new_navigation(gst_structure_copy(gst_event_get_structure(event)));
    gst_navigation_event_set_coordinates(own, crop.x + (x - place.x) * crop.width / place.width,
                                         crop.y + (y - place.y) * crop.height / place.height);
    told.emplace_back(static_cast<GstObject*>(gst_object_ref(pad)), own);
  });
  gst_event_unref(event);
  bool handled = false;
  for (const auto& [pad, own] : told) handled |= bool(gst_pad_push_event(GST_PAD(pad.get()), own));
  return handled;
}

/// The part of `caps`, which downstream takes, that this element can make, in the order that downstream likes.
GstCaps* update_caps(GstVideoAggregator* vagg, GstCaps* caps) {
  GstPad* src = GST_AGGREGATOR(vagg)->srcpad;
  // Intersected with the template, as the base class wants a subset of it: downstream may leave fields out (interlace: the framerate).
  GstCaps* all = gst_pad_get_pad_template_caps(src);
  GstCaps* possible = gst_caps_intersect_full(caps, all, GST_CAPS_INTERSECT_FIRST);
  gst_caps_unref(all);
  if (!state_of(vagg).host.uses_cuda()) {
    GstCaps* in_system_memory = any_memory_caps(possible, false);
    gst_caps_unref(std::exchange(possible, in_system_memory));
  }
  GstCaps* liked = gst_pad_peer_query_caps(src, nullptr);
  GstCaps* both = filter_caps(possible, liked);
  gst_caps_unref(liked);
  if (gst_caps_is_empty(both)) state_of(vagg).host.check_memory_of_peer(src);
  return both;
}

/// Narrows caps down to those with this value of a field, where there are any.
template <typename... Value>
bool prefer(GstCaps*& caps, const char* field, GType type, Value... value) {
  GstCaps* wish = gst_caps_new_simple("video/x-raw", field, type, value..., nullptr);
  gst_caps_set_features_simple(wish, gst_caps_features_new_any());
  GstCaps* both = gst_caps_intersect_full(caps, wish, GST_CAPS_INTERSECT_FIRST);
  gst_caps_unref(wish);
  const bool possible = !gst_caps_is_empty(both);
  gst_caps_unref(possible ? std::exchange(caps, both) : both);
  return possible;
}
bool prefer_text(GstCaps*& caps, const char* field, const char* value) {
  return value && prefer(caps, field, G_TYPE_STRING, value);
}

bool has_alpha(const GstVideoInfo& video) { return GST_VIDEO_INFO_HAS_ALPHA(&video); }
gint64 area(const GstVideoInfo& video) { return gint64(GST_VIDEO_INFO_WIDTH(&video)) * GST_VIDEO_INFO_HEIGHT(&video); }

/// The formats of the pads, the best first: where one has alpha, those with alpha, and then the one of the most pixels.
std::vector<GstVideoInfo> wanted_formats(const std::vector<MixerInput>& inputs) {
  std::vector<std::pair<gint64, GstVideoInfo>> found;
  for (const MixerInput& input : inputs) {
    if (!input.has_caps || input.inactive) continue;
    const auto same = [&](const auto& row) { return GST_VIDEO_INFO_FORMAT(&row.second) == GST_VIDEO_INFO_FORMAT(&input.video); };
    const auto row = std::find_if(found.begin(), found.end(), same);
    if (row == found.end())
      found.push_back({area(input.video), input.video});
    else
      row->first += area(input.video);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::pair(has_alpha(a.second), a.first) > std::pair(has_alpha(b.second), b.first);
  });
  std::vector<GstVideoInfo> formats;
  for (const auto& row : found) formats.push_back(row.second);
  return formats;
}

/// Settles on a format, the pads' where downstream takes it, and on the colours and fields that go with it.
void choose_format(GstCaps*& caps, const std::vector<MixerInput>& inputs) {
  const std::vector<GstVideoInfo> wanted = wanted_formats(inputs);
  std::vector<const char*> names;
  const auto add = [&](bool alpha) {
    for (const GstVideoInfo& video : wanted)
      if (has_alpha(video) == alpha) names.push_back(gst_video_format_to_string(GST_VIDEO_INFO_FORMAT(&video)));
  };
  add(true);
  if (!names.empty()) names.insert(names.end(), {"RGBA", "BGRA", "ARGB", "ABGR", "RGBA64_LE", "ARGB64_LE"});
  add(false);
  if (names.empty()) names.push_back("NV12");  // as nothing has come yet, what most things take
  for (const char* name : names)
    if (prefer_text(caps, "format", name)) break;
  if (wanted.empty()) return;

  // The first that downstream takes, where it takes none of ours.
  GstStructure* first = gst_structure_copy(gst_caps_get_structure(caps, 0));
  gst_structure_fixate_field(first, "format");
  const char* name = gst_structure_get_string(first, "format");
  prefer_text(caps, "format", name);
  const GstVideoFormatInfo* format = gst_video_format_get_info(gst_video_format_from_string(name));
  const auto alike = std::find_if(wanted.begin(), wanted.end(), [&](const GstVideoInfo& video) {
    return GST_VIDEO_FORMAT_INFO_IS_YUV(format) == GST_VIDEO_INFO_IS_YUV(&video) &&
           GST_VIDEO_FORMAT_INFO_IS_RGB(format) == GST_VIDEO_INFO_IS_RGB(&video);
  });
  gst_structure_free(first);
  if (alike != wanted.end()) {
    gchar* colorimetry = gst_video_colorimetry_to_string(&alike->colorimetry);
    prefer_text(caps, "colorimetry", colorimetry);
    g_free(colorimetry);
    if (alike->finfo == format) {
      gchar* site = gst_video_chroma_site_to_string(alike->chroma_site);
      prefer_text(caps, "chroma-site", site);
      g_free(site);
    }
  }
  // As the lowest pad, whose frames also say which field comes first.
  const GstVideoInfo& lowest =
      std::find_if(inputs.begin(), inputs.end(), [](const MixerInput& input) { return input.has_caps && !input.inactive; })->video;
  if (prefer_text(caps, "interlace-mode", gst_video_interlace_mode_to_string(GST_VIDEO_INFO_INTERLACE_MODE(&lowest))) &&
      GST_VIDEO_INFO_FIELD_ORDER(&lowest) != GST_VIDEO_FIELD_ORDER_UNKNOWN)
    prefer_text(caps, "field-order", gst_video_field_order_to_string(GST_VIDEO_INFO_FIELD_ORDER(&lowest)));
}

/// The greatest framerate of the pads; 25 where all vary.
std::pair<int, int> best_framerate(const std::vector<MixerInput>& inputs) {
  std::pair<int, int> best{0, 1};
  for (const MixerInput& input : inputs) {
    const int n = GST_VIDEO_INFO_FPS_N(&input.video), d = GST_VIDEO_INFO_FPS_D(&input.video);
    if (input.has_caps && !input.inactive && d > 0 && gst_util_fraction_compare(n, d, best.first, best.second) > 0) best = {n, d};
  }
  return best.first > 0 ? best : std::pair(25, 1);
}

/// Settles all fields of `caps` for which there is a wish.
void choose_src_caps(CudaVisionMixer* self, GstCaps*& caps) {
  const Inputs inputs(self);
  int par_n = 1, par_d = 1;
  if (!prefer(caps, "pixel-aspect-ratio", GST_TYPE_FRACTION, 1, 1)) {
    GstStructure* first = gst_structure_copy(gst_caps_get_structure(caps, 0));
    gst_structure_fixate_field_nearest_fraction(first, "pixel-aspect-ratio", 1, 1);
    gst_structure_get_fraction(first, "pixel-aspect-ratio", &par_n, &par_d);
    gst_structure_free(first);
    prefer(caps, "pixel-aspect-ratio", GST_TYPE_FRACTION, par_n, par_d);
    if (par_n <= 0 || par_d <= 0) par_n = par_d = 1;
  }
  choose_format(caps, inputs.list());

  PictureSize size = class_of(self)->natural_size(self, inputs.list(), par_n, par_d);
  if (size.width <= 0 || size.height <= 0) size = {320, 240};
  const auto [fps_n, fps_d] = best_framerate(inputs.list());
  prefer(caps, "width", G_TYPE_INT, size.width);
  prefer(caps, "height", G_TYPE_INT, size.height);
  prefer(caps, "framerate", GST_TYPE_FRACTION, fps_n, fps_d);

  // Where downstream takes any memory, frames stay where some already are.
  GstCaps* in_cuda = nullptr;
  for (const MixerInput& input : inputs.list()) {
    GstCaps* current = gst_pad_get_current_caps(GST_PAD(input.pad));
    if (is_cuda_caps(current)) gst_caps_replace(&in_cuda, current);
    gst_clear_caps(&current);
  }
  GstPad* peer = gst_pad_get_peer(GST_AGGREGATOR(self)->srcpad);
  caps = gst_caps_make_writable(gst_caps_truncate(choose_memory(caps, in_cuda, peer)));
  gst_clear_object(&peer);
  gst_clear_caps(&in_cuda);

  GstStructure* structure = gst_caps_get_structure(caps, 0);
  gst_structure_fixate_field_nearest_int(structure, "width", size.width);
  gst_structure_fixate_field_nearest_int(structure, "height", size.height);
  gst_structure_fixate_field_nearest_fraction(structure, "framerate", fps_n, fps_d);
}

GstCaps* fixate_src_caps(GstAggregator* agg, GstCaps* caps) {
  const Status status = guarded([&] { choose_src_caps(as_mixer(agg), caps); });
  if (!status.ok()) state_of(agg).host.post_error(status);
  return gst_caps_fixate(caps);
}

gboolean negotiated_src_caps(GstAggregator* agg, GstCaps* caps) {
  GstVideoInfo video;
  if (!video_from_caps(video, caps)) return FALSE;
  const Status status = make_plan(as_mixer(agg), video);
  if (status.ok()) return base_class()->negotiated_src_caps(agg, caps);
  state_of(agg).host.post_error(status);
  return FALSE;
}

// Allocation --------------------------------------------------------------------------------------------------------------------

gboolean propose_allocation(GstAggregator* agg, GstAggregatorPad* pad, GstQuery* decide_query, GstQuery* query) {
  GstCaps* caps;
  gboolean need_pool;
  gst_query_parse_allocation(query, &caps, &need_pool);
  if (!caps || !base_class()->propose_allocation(agg, pad, decide_query, query)) return FALSE;
  gst_query_add_allocation_meta(query, GST_VIDEO_CROP_META_API_TYPE, nullptr);
  return state_of(agg).host.propose_pool(query, caps, need_pool);
}

gboolean decide_allocation(GstAggregator* agg, GstQuery* query) {
  GstCaps* caps;
  gst_query_parse_allocation(query, &caps, nullptr);
  // (Not the base class's: that keeps a reference of our allocator for good.)
  return caps && state_of(agg).host.decide_pool(query, caps);
}

/// Where device frames are shown, and none is of our CUDA context: goes over to theirs. (Of frames of two contexts those of the
/// other are read through system memory.) True: it did, and the output must be negotiated anew.
Result<bool> follow_context(CudaVisionMixer* self) {
  Gpu& gpu = self->state->host.gpu;
  GstBuffer* foreign = nullptr;
  const Inputs inputs(self);
  for (const MixerInput& input : inputs.list()) {
    GstBuffer* buffer = frame_of(input);
    if (!buffer || !Gpu::is_device_buffer(buffer)) continue;
    if (!gpu.is_foreign(buffer)) return false;
    if (!foreign) foreign = buffer;
  }
  if (!foreign) return false;
  GST_INFO_OBJECT(self, "going over to the CUDA context of the incoming frames");
  drop_device_state(self);
  if (Status status = gpu.adopt(foreign); !status.ok()) return status;
  gst_pad_mark_reconfigure(GST_AGGREGATOR(self)->srcpad);
  return true;
}

GstFlowReturn create_output_buffer(GstVideoAggregator* vagg, GstBuffer** buffer) {
  MixerState& state = state_of(vagg);
  if (state.host.uses_cuda()) {
    const auto followed = follow_context(as_mixer(vagg));
    if (!followed.ok()) {
      state.host.post_error(followed.error());
      return GST_FLOW_ERROR;
    }
    if (followed.value()) return GST_AGGREGATOR_FLOW_NEED_DATA;
  }
  return GST_VIDEO_AGGREGATOR_CLASS(cudavision_mixer_parent_class)->create_output_buffer(vagg, buffer);
}

// Frames ------------------------------------------------------------------------------------------------------------------------

/// The base class maps nothing: frames are mapped where they are wanted.
gboolean prepare_frame(GstVideoAggregatorPad*, GstVideoAggregator*, GstBuffer*, GstVideoFrame*) { return TRUE; }
void clean_frame(GstVideoAggregatorPad*, GstVideoAggregator*, GstVideoFrame*) {}

/// Frames on their way to the output.
class Composition {
 public:
  Composition(CudaVisionMixer* self, bool cuda) : self_(self), state_(*self->state), cuda_(cuda) {}

  Status compose(const std::vector<MixerInput>& inputs, GstBuffer* outbuf) {
    const Status status = guarded([&] { return submit(inputs, outbuf); });
    if (!cuda_) return status;
    // Always waited for: the frames go back to their owners, and whoever gets the output gets it finished.
    const Status finished = gpu().finish();
    if (Gpu::is_device_buffer(outbuf)) gpu().release(outbuf);
    return status.ok() ? finished : status;
  }

 private:
  Gpu& gpu() { return state_.host.gpu; }
  static GstMapFlags flags(GstMapFlags access, bool device) { return device ? GstMapFlags(access | Gpu::map_flag()) : access; }

  Status submit(const std::vector<MixerInput>& inputs, GstBuffer* outbuf) {
    GstVideoInfo video = GST_VIDEO_AGGREGATOR(self_)->info;
    replace_meaningless_numbers(video);
    if (!state_.plan)  // after an error
      if (Status status = make_plan(self_, video); !status.ok()) return status;
    MixerLayout layout = class_of(self_)->lay_out(self_, inputs, video);
    GstBuffer* lowest = nullptr;
    std::vector<Rect> opaque;                        // frames that hide what is below
    for (std::size_t i = inputs.size(); i-- > 0;) {  // from above to below
      CudaVisionMixerPad* const pad = inputs[i].pad;
      BlendPad& layer = layout.pads[i];
      pad->state->show(pad, layer.place, layer.crop);
      const Rect visible = intersection(layer.place, {0, 0, GST_VIDEO_INFO_WIDTH(&video), GST_VIDEO_INFO_HEIGHT(&video)});
      const bool shows = layer.alpha > 0 && !visible.empty() &&
                         std::none_of(opaque.begin(), opaque.end(), [&](const Rect& above) { return covers(above, visible); });
      GstBuffer* buffer = shows ? frame_of(inputs[i]) : nullptr;
      if (!buffer) {
        pad->state->forget();
        continue;
      }
      auto src = picture(inputs[i], buffer);
      if (!src.ok()) return src.error();
      if (!src.value()) continue;
      layer.src = *src.value();
      layer.color = color_of(inputs[i].video);
      if (is_opaque(layer, inputs[i].video)) opaque.push_back(layer.place);
      pads_.push_back(layer);
      lowest = buffer;
    }
    std::reverse(pads_.begin(), pads_.end());
    if (lowest && GST_VIDEO_INFO_IS_INTERLACED(&video))
      GST_BUFFER_FLAG_SET(outbuf, GST_BUFFER_FLAGS(lowest) & (GST_VIDEO_BUFFER_FLAG_INTERLACED | GST_VIDEO_BUFFER_FLAG_TFF));

    const bool device_out = cuda_ && Gpu::is_device_buffer(outbuf);
    const MappedFrame& out = mapped_.emplace_back(outbuf, video, flags(GST_MAP_WRITE, device_out));
    if (!out.status().ok()) return out.status();
    const Image* dst = &out.image();
    if (cuda_ && !device_out) {
      if (!state_.device_output) {
        auto made = gpu().allocate(geometry_of(video));
        if (!made.ok()) return made.error();
        state_.device_output = std::move(made.value());
      }
      dst = &state_.device_output->image();
    }
    if (device_out) gpu().acquire_to_write(outbuf);
    Status status = state_.plan->submit(*dst, layout.background, pads_, cuda_ ? gpu().queue() : Queue());
    if (status.ok() && cuda_ && !device_out) status = gpu().download(*dst, out.image());
    return status;
  }

  static bool covers(const Rect& above, const Rect& below) {
    return above.x <= below.x && above.y <= below.y && above.x + above.width >= below.x + below.width &&
           above.y + above.height >= below.y + below.height;
  }
  static bool is_opaque(const BlendPad& pad, const GstVideoInfo& video) {
    if (pad.key.mode != BlendKey::Mode::none || pad.alpha < 1) return false;
    const bool over = pad.op == BlendOperator::over || pad.op == BlendOperator::add;
    return pad.op == BlendOperator::source || pad.op == BlendOperator::average || (over && !has_alpha(video));
  }

  /// A pad's frame in the memory of the backend; nothing if the frame does not fit the pad's caps.
  Result<std::optional<Image>> picture(const MixerInput& input, GstBuffer* buffer) {
    MixerPadState& pad = *input.pad->state;
    const bool on_device = cuda_ && Gpu::is_device_buffer(buffer) && !gpu().is_foreign(buffer);
    if (cuda_ && !on_device && pad.uploaded == buffer) return {pad.image->image()};
    pad.forget();
    const MappedFrame& frame = mapped_.emplace_back(buffer, input.video, flags(GST_MAP_READ, on_device));
    const bool warned = std::exchange(pad.misfits, !frame.status().ok());
    if (!frame.status().ok()) {
      if (!warned)  // one warning for all such frames in a row
        GST_ELEMENT_WARNING(self_, STREAM, FORMAT,
                            ("%s: a frame is left out: %s", GST_OBJECT_NAME(input.pad), frame.status().message().c_str()),
                            (nullptr));
      mapped_.pop_back();
      return {std::nullopt};
    }
    if (on_device) gpu().acquire_to_read(buffer);
    if (!cuda_ || on_device) return {frame.image()};

    const Geometry wanted = geometry_of(input.video);
    const auto fits = [&](const Geometry& g) {
      return g.format == wanted.format && g.width == wanted.width && g.height == wanted.height;
    };
    if (!pad.image || !fits(pad.image->image().geometry)) {
      pad.image.reset();
      auto made = gpu().allocate(wanted);
      if (!made.ok()) return made.error();
      pad.image = std::move(made.value());
    }
    if (Status status = gpu().upload(frame.image(), pad.image->image()); !status.ok()) return status;
    pad.uploaded = gst_buffer_ref(buffer);
    return {pad.image->image()};
  }

  CudaVisionMixer* self_;
  MixerState& state_;
  const bool cuda_;
  std::deque<MappedFrame> mapped_;
  std::vector<BlendPad> pads_;
};

GstFlowReturn aggregate_frames(GstVideoAggregator* vagg, GstBuffer* outbuf) {
  CudaVisionMixer* self = as_mixer(vagg);
  MixerState& state = *self->state;
  // (The base class does that for the pads.)
  const GstSegment& segment = GST_AGGREGATOR_PAD(GST_AGGREGATOR(vagg)->srcpad)->segment;
  const GstClockTime time = gst_segment_to_stream_time(&segment, GST_FORMAT_TIME, GST_BUFFER_PTS(outbuf));
  if (GST_CLOCK_TIME_IS_VALID(time)) gst_object_sync_values(GST_OBJECT(vagg), time);

  const bool cuda = state.host.uses_cuda();
  Status status;
  {
    const Inputs inputs(self);
    Gpu::Scope scope(state.host.gpu);
    if (cuda && !scope.ok())
      status = Status::resource("the CUDA context cannot be made current");
    else
      status = Composition(self, cuda).compose(inputs.list(), outbuf);
  }
  if (status.ok()) return GST_FLOW_OK;
  drop_device_state(self);
  state.host.post_error(status);
  return GST_FLOW_ERROR;
}

/// Comes from the thread of upstream, while the streaming thread may be using the pad's frame: that one lets go of it.
GstFlowReturn flush_pad(GstAggregatorPad* pad, GstAggregator*) {
  as_mixer_pad(pad)->state->flushed = true;
  return GST_FLOW_OK;
}

void flush_pads(GstAggregator* agg) {
  const Inputs inputs(as_mixer(agg));
  for (const MixerInput& input : inputs.list())
    if (input.pad->state->flushed.exchange(false))
      GST_AGGREGATOR_PAD_CLASS(cudavision_mixer_pad_parent_class)->flush(GST_AGGREGATOR_PAD(input.pad), agg);
}

/// The base class gives up where a frame has no time, and tells nobody.
GstFlowReturn aggregate(GstAggregator* agg, gboolean timeout) {
  flush_pads(agg);
  const GstFlowReturn flow = base_class()->aggregate(agg, timeout);
  if (flow != GST_FLOW_ERROR) return flow;
  const Inputs inputs(as_mixer(agg));
  for (const MixerInput& input : inputs.list()) {
    GstBuffer* next = gst_aggregator_pad_peek_buffer(GST_AGGREGATOR_PAD(input.pad));
    if (next && !GST_BUFFER_PTS_IS_VALID(next))
      GST_ELEMENT_ERROR(
          agg, STREAM, FORMAT,
          ("%s: a frame without a timestamp cannot be placed in time: its source must set one, as by do-timestamp=true",
           GST_OBJECT_NAME(input.pad)),
          (nullptr));
    gst_clear_buffer(&next);
  }
  return flow;
}

// Pads --------------------------------------------------------------------------------------------------------------------------

/// Leaves out a frame whose end is beyond what a time can say: the base class would abort. In the thread of upstream.
GstPadProbeReturn drop_endless(GstPad* pad, GstPadProbeInfo* info, gpointer) {
  const GstBuffer* buffer = GST_PAD_PROBE_INFO_BUFFER(info);
  const guint64 pts = GST_BUFFER_PTS(buffer), duration = GST_BUFFER_DURATION(buffer), most = G_MAXINT64;
  const bool endless = GST_CLOCK_TIME_IS_VALID(pts) && (pts > most || (GST_CLOCK_TIME_IS_VALID(duration) && duration > most - pts));
  GstElement* element = gst_pad_get_parent_element(pad);
  if (element && std::exchange(as_mixer_pad(pad)->state->endless, endless) < endless)  // one warning for all such frames in a row
    GST_ELEMENT_WARNING(element, STREAM, FORMAT, ("%s: a frame is left out: it ends beyond 2^63 ns", GST_OBJECT_NAME(pad)),
                        (nullptr));
  gst_clear_object(&element);
  return endless ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK;
}

GstPad* request_new_pad(GstElement* element, GstPadTemplate* templ, const gchar* name, const GstCaps* caps) {
  int count = 0;
  for_each_sink_pad(as_mixer(element), [&](CudaVisionMixerPad*) { ++count; });
  if (count >= blend_max_pads) {
    GST_ELEMENT_WARNING(element, CORE, PAD,
                        ("no sink pad is added to the %d there are: at most %d make a picture", count, blend_max_pads), (nullptr));
    return nullptr;
  }
  GstPad* pad = GST_ELEMENT_CLASS(cudavision_mixer_parent_class)->request_new_pad(element, templ, name, caps);
  if (!pad) return nullptr;
  gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, drop_endless, nullptr, nullptr);
  gst_child_proxy_child_added(GST_CHILD_PROXY(element), G_OBJECT(pad), GST_OBJECT_NAME(pad));
  return pad;
}

void release_pad(GstElement* element, GstPad* pad) {
  gst_child_proxy_child_removed(GST_CHILD_PROXY(element), G_OBJECT(pad), GST_OBJECT_NAME(pad));
  GST_ELEMENT_CLASS(cudavision_mixer_parent_class)->release_pad(element, pad);
}

GObject* get_child_by_index(GstChildProxy* proxy, guint index) {
  ObjectLock lock(proxy);
  gpointer pad = g_list_nth_data(GST_ELEMENT(proxy)->sinkpads, index);
  return pad ? G_OBJECT(gst_object_ref(pad)) : nullptr;
}

guint get_children_count(GstChildProxy* proxy) {
  ObjectLock lock(proxy);
  return GST_ELEMENT(proxy)->numsinkpads;
}

// Object ------------------------------------------------------------------------------------------------------------------------

enum { PROP_HOST = 1 };

void set_property(GObject* object, guint id, const GValue* value, GParamSpec*) {
  ObjectLock lock(object);
  state_of(object).host.set_property(id - PROP_HOST, value);
}

void get_property(GObject* object, guint id, GValue* value, GParamSpec*) {
  ObjectLock lock(object);
  state_of(object).host.get_property(id - PROP_HOST, value);
}

void finalize(GObject* object) {
  delete as_mixer(object)->state;
  G_OBJECT_CLASS(cudavision_mixer_parent_class)->finalize(object);
}

void finalize_pad(GObject* object) {
  MixerPadState* state = as_mixer_pad(object)->state;
  state->forget();
  delete state;
  G_OBJECT_CLASS(cudavision_mixer_pad_parent_class)->finalize(object);
}

void add_pad_template(GstElementClass* klass, const char* name, GstPadDirection direction, GstPadPresence presence, GType type) {
  GstCaps* caps = video_template_caps();
  gst_element_class_add_pad_template(klass, gst_pad_template_new_with_gtype(name, direction, presence, caps, type));
  gst_caps_unref(caps);
}

}  // namespace

void add_mixer_pads(GstElementClass* klass, GType sink_pad) {
  add_pad_template(klass, "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_TYPE_AGGREGATOR_PAD);
  add_pad_template(klass, "sink_%u", GST_PAD_SINK, GST_PAD_REQUEST, sink_pad);
}

static void child_proxy_init(gpointer interface, gpointer) {
  auto* proxy = static_cast<GstChildProxyInterface*>(interface);
  proxy->get_child_by_index = get_child_by_index;
  proxy->get_children_count = get_children_count;
}

static void cudavision_mixer_pad_init(CudaVisionMixerPad* self) { self->state = new MixerPadState; }

static void cudavision_mixer_pad_class_init(CudaVisionMixerPadClass* klass) {
  G_OBJECT_CLASS(klass)->finalize = finalize_pad;
  klass->parent_class.parent_class.flush = flush_pad;
  klass->parent_class.prepare_frame = prepare_frame;
  klass->parent_class.clean_frame = clean_frame;
}

static void cudavision_mixer_init(CudaVisionMixer* self) { self->state = new MixerState(GST_ELEMENT(self)); }

static void cudavision_mixer_class_init(CudaVisionMixerClass* klass) {
  GObjectClass* object = G_OBJECT_CLASS(klass);
  object->set_property = set_property;
  object->get_property = get_property;
  object->finalize = finalize;
  Host::install_properties(object, PROP_HOST);

  GstElementClass* element = GST_ELEMENT_CLASS(klass);
  element->change_state = vfunc<change_state, GST_STATE_CHANGE_FAILURE>;
  element->set_context = vfunc<set_context>;
  element->request_new_pad = vfunc<request_new_pad, nullptr>;
  element->release_pad = vfunc<release_pad>;

  GstAggregatorClass* aggregator = GST_AGGREGATOR_CLASS(klass);
  aggregator->stop = stop;
  aggregator->aggregate = vfunc<aggregate, GST_FLOW_ERROR>;
  aggregator->sink_query_pre_queue = vfunc<sink_query_pre_queue, FALSE>;
  aggregator->sink_query = vfunc<sink_query, FALSE>;
  aggregator->sink_event_pre_queue = vfunc<sink_event_pre_queue, GST_FLOW_ERROR>;
  aggregator->sink_event = vfunc<sink_event, FALSE>;
  aggregator->src_query = vfunc<src_query, FALSE>;
  aggregator->src_event = vfunc<src_event, FALSE>;
  aggregator->fixate_src_caps = fixate_src_caps;
  aggregator->negotiated_src_caps = vfunc<negotiated_src_caps, FALSE>;
  aggregator->propose_allocation = vfunc<propose_allocation, FALSE>;
  aggregator->decide_allocation = vfunc<decide_allocation, FALSE>;

  GstVideoAggregatorClass* mixer = GST_VIDEO_AGGREGATOR_CLASS(klass);
  mixer->update_caps = vfunc<update_caps, gst_caps_new_empty>;
  mixer->create_output_buffer = vfunc<create_output_buffer, GST_FLOW_ERROR>;
  mixer->aggregate_frames = vfunc<aggregate_frames, GST_FLOW_ERROR>;
}

}  // namespace cudavision
