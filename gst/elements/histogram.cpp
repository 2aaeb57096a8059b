// SPDX-License-Identifier: LGPL-2.1-or-later
// cudahistogram: statistics of every frame (docs/elements/cudahistogram.md).
#include "kernels/histogram/histogram.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "gst/base/filter_element.hpp"
#include "gst/base/frame.hpp"
#include "gst/elements/elements.hpp"
#include "gst/meta/histogram_meta.h"

namespace cudavision {
namespace {

constexpr Choice channel_choices[] = {{"luma", "Luma"},
                                      {"components", "Each of R, G, B, or of Y, Cb, Cr"},
                                      {"all", "Luma, and each component"}};  // rows as HistogramChannels
constexpr Choice luma_choices[] = {{"auto", "By the colorimetry of the caps"},
                                   {"bt601", "0.299 R + 0.587 G + 0.114 B"},
                                   {"bt709", "0.2126 R + 0.7152 G + 0.0722 B"},
                                   {"bt2020", "0.2627 R + 0.678 G + 0.0593 B"}};  // from the second on rows as LumaMatrix

/// The matrix that RGB of these caps was, or would be, made with. Their own is always "RGB": primaries and transfer tell it, but
/// for those of sRGB, which say nothing.
LumaMatrix matrix_of(const GstVideoColorimetry& colorimetry) {
  if (colorimetry.primaries == GST_VIDEO_COLOR_PRIMARIES_BT2020) return LumaMatrix::bt2020;
  if (colorimetry.primaries == GST_VIDEO_COLOR_PRIMARIES_BT709 && colorimetry.transfer != GST_VIDEO_TRANSFER_SRGB)
    return LumaMatrix::bt709;
  return LumaMatrix::bt601;
}

/// Counts with what they say; `counts` stay the caller's.
std::vector<GstCudaVisionHistogramChannel> describe(const HistogramCounts& counts, int depth) {
  std::vector<GstCudaVisionHistogramChannel> channels;
  for (const ChannelCounts& channel : counts) {
    const HistogramStatistics s = statistics(channel.counts, depth);
    channels.push_back({channel.name,
                        channel.counts.data(),
                        s.count,
                        s.min,
                        s.max,
                        s.mean,
                        s.deviation,
                        s.median,
                        s.p01,
                        s.p99,
                        s.entropy,
                        s.saturated,
                        {}});
  }
  return channels;
}

/// The counts of frames that one message tells of.
struct Sum {
  int depth = 8;
  guint64 frames = 0;
  FrameTimes first;                                                     ///< of the first of them
  GstClockTime begin = GST_CLOCK_TIME_NONE, end = GST_CLOCK_TIME_NONE;  ///< what they cover, as timestamps
  HistogramCounts counts;

  void add(const Histogram& histogram, const FrameTimes& times) {
    if (frames++ == 0) {
      depth = info(histogram.geometry().format).depth;
      first = times;
    }
    histogram.add_result(counts);
    if (!GST_CLOCK_TIME_IS_VALID(times.timestamp)) return;
    const GstClockTime last = times.timestamp + (GST_CLOCK_TIME_IS_VALID(times.duration) ? times.duration : 0);
    begin = std::min(begin, times.timestamp);  // none is the largest of all
    end = GST_CLOCK_TIME_IS_VALID(end) ? std::max(end, last) : last;
  }

  /// (transfer full)
  GstStructure* message() const {
    FrameTimes times = first;
    if (frames > 1) times.duration = GST_CLOCK_TIME_IS_VALID(end) ? end - begin : GST_CLOCK_TIME_NONE;
    GstStructure* structure = new_message("cudahistogram", times);
    gst_structure_set(structure, "frames", G_TYPE_UINT64, frames, "bins", G_TYPE_UINT, guint(counts[0].counts.size()), "depth",
                      G_TYPE_UINT, guint(depth), nullptr);
    std::vector<GstStructure*> channels;
    for (const GstCudaVisionHistogramChannel& channel : describe(counts, depth)) {
      GstStructure* fields = gst_structure_new(
          "channel", "name", G_TYPE_STRING, channel.name, "count", G_TYPE_UINT64, channel.count, "min", G_TYPE_DOUBLE, channel.min,
          "max", G_TYPE_DOUBLE, channel.max, "mean", G_TYPE_DOUBLE, channel.mean, "deviation", G_TYPE_DOUBLE, channel.deviation,
          "median", G_TYPE_DOUBLE, channel.median, "p01", G_TYPE_DOUBLE, channel.p01, "p99", G_TYPE_DOUBLE, channel.p99, "entropy",
          G_TYPE_DOUBLE, channel.entropy, "saturated", G_TYPE_DOUBLE, channel.saturated, nullptr);
      GValue array = G_VALUE_INIT;
      gst_value_array_init(&array, guint(counts[0].counts.size()));
      for (std::size_t bin = 0; bin < counts[0].counts.size(); ++bin) {
        GValue count = G_VALUE_INIT;
        g_value_init(&count, G_TYPE_UINT64);
        g_value_set_uint64(&count, channel.counts[bin]);
        gst_value_array_append_and_take_value(&array, &count);
      }
      gst_structure_take_value(fields, "counts", &array);
      channels.push_back(fields);
    }
    take_structures(structure, "channels", channels);
    return structure;
  }
};

/// Posts the sum, if there is one, and begins a new one.
void post(Sum& sum, GstElement* element) {
  if (sum.frames) post_message(element, sum.message());
  sum = {};
}

/// Says of the times of frames which of them are summed up together: those of one interval. Intervals follow each other from the
/// first frame on.
class Intervals {
 public:
  explicit Intervals(GstClockTime length) : length_(length) {}

  /// Whether a frame belongs to another interval than those before.
  bool begins(const FrameTimes& frame) {
    const GstClockTime now = time(frame);
    if (!GST_CLOCK_TIME_IS_VALID(now)) return false;
    if (!GST_CLOCK_TIME_IS_VALID(begin_) || now < begin_) {
      const bool back = GST_CLOCK_TIME_IS_VALID(begin_);
      begin_ = now;
      return back;
    }
    if (length_ == 0 || now - begin_ < length_) return false;
    begin_ += (now - begin_) / length_ * length_;
    return true;
  }

  /// Whether no more frames are to be expected in the interval of this frame, the last there was.
  bool ends(const FrameTimes& frame) {
    if (length_ == 0) return true;
    const GstClockTime now = time(frame), before = std::exchange(last_, now);
    if (!GST_CLOCK_TIME_IS_VALID(now) || !GST_CLOCK_TIME_IS_VALID(frame.duration)) return false;
    // Played faster than normal, frames come sooner than their durations say.
    const GstClockTime step = before < now ? std::min(now - before, frame.duration) : frame.duration;
    return now + step - begin_ >= length_;
  }

  Intervals with_length(GstClockTime length) const {
    Intervals other = *this;
    other.length_ = length;
    return other;
  }
  void restart() { begin_ = last_ = GST_CLOCK_TIME_NONE; }

 private:
  static GstClockTime time(const FrameTimes& frame) {
    return GST_CLOCK_TIME_IS_VALID(frame.running_time) ? frame.running_time : frame.timestamp;
  }

  GstClockTime length_;
  GstClockTime begin_ = GST_CLOCK_TIME_NONE, last_ = GST_CLOCK_TIME_NONE;  // of the interval, and of the last frame
};

struct HistogramSettings {
  guint bins = 256;
  int channels = int(HistogramChannels::luma), luma = 0;
  guint64 interval = 0;
  bool post_messages = true, add_meta = false, overlay = false;
  std::string overlay_position = "16,16,256,100";
  double overlay_opacity = HistogramOverlayParams{}.opacity;
  bool overlay_log = false, equalize = false;
};

class HistogramProcessor final : public Processor {
 public:
  /// Goes on where `previous`, for the same video on the same backend, is now; NULL: there is none.
  static Result<std::unique_ptr<Processor>> make(const HistogramSettings& settings, const HistogramParams& params,
                                                 const HistogramOverlayParams& overlay, const PlanContext& context) {
    auto* previous = static_cast<HistogramProcessor*>(context.previous);
    const Geometry geometry = geometry_of(context.video);
    std::unique_ptr<HistogramProcessor> made(new HistogramProcessor(settings, params));
    const bool same_luma = previous && previous->params_.luma == params.luma;
    const bool counts_on = same_luma && previous->params_.bins == params.bins && previous->params_.channels == params.channels;
    if (counts_on) {
      made->histogram_ = previous->histogram_;
    } else {
      auto histogram = make_histogram(params, geometry, context.backend);
      if (!histogram.ok()) return histogram.error();
      made->histogram_ = std::move(histogram.value());
    }
    const bool filters = settings.equalize || settings.overlay;
    if (filters && same_luma && previous->filter_ && previous->equalizes_ == settings.equalize) {
      made->filter_ = previous->filter_;
    } else if (filters) {
      auto filter =
          settings.equalize ? make_equalize(params.luma, geometry, context.backend) : make_copy(geometry, context.backend);
      if (!filter.ok()) return filter.error();
      made->filter_ = std::move(filter.value());
    }
    if (settings.overlay) {
      auto drawn = make_histogram_overlay(overlay, *made->histogram_);
      if (!drawn.ok()) return drawn.error();
      made->overlay_ = std::move(drawn.value());
    }
    // Nothing can fail from here on: what the previous processor has may be taken.
    if (previous && settings.post_messages) {
      Sum& sum = counts_on || previous->sum_.frames == 0 ? made->sum_ : made->ended_;
      made->intervals_ = previous->intervals_.with_length(settings.interval);
      made->ended_ = std::move(previous->ended_);
      sum = std::move(previous->sum_);
    }
    return std::unique_ptr<Processor>(std::move(made));
  }

  bool passes_through() const override { return !filter_; }
  bool adds_metas() const override { return adds_meta_; }

  Status submit(const FrameJob& job) override {
    if (posts_ || adds_meta_ || overlay_)
      if (Status status = histogram_->submit(job.src, job.region, job.queue); !status.ok()) return status;
    if (!filter_) return {};
    Status status = filter_->submit(job.src, *job.dst, equalizes_ ? job.region : Region(), job.queue);
    return status.ok() && overlay_ ? overlay_->submit(*job.dst, job.queue) : status;
  }

  void finished(const FrameReport& report) override {
    post(ended_, report.element);
    if (adds_meta_) {
      const HistogramCounts counts = histogram_->result();
      const int depth = info(histogram_->geometry().format).depth;
      const auto channels = describe(counts, depth);
      gst_buffer_add_cuda_vision_histogram_meta(report.buffer, guint(params_.bins), guint(depth), guint(channels.size()),
                                                channels.data());
    }
    if (!posts_) return;
    if (intervals_.begins(report.times)) post(sum_, report.element);
    sum_.add(*histogram_, report.times);
    if (intervals_.ends(report.times)) post(sum_, report.element);
  }

  void interrupted(Interruption why, GstElement* element) override {
    if (why == Interruption::flush) {
      ended_ = {};
      sum_ = {};
    }
    post(ended_, element);
    post(sum_, element);
    intervals_.restart();
  }

 private:
  HistogramProcessor(const HistogramSettings& settings, const HistogramParams& params)
      : params_(params),
        posts_(settings.post_messages),
        adds_meta_(settings.add_meta),
        equalizes_(settings.equalize),
        intervals_(settings.interval) {}

  const HistogramParams params_;
  const bool posts_, adds_meta_, equalizes_;
  std::shared_ptr<Histogram> histogram_;
  std::shared_ptr<Filter> filter_;             // where frames do not pass through
  std::unique_ptr<HistogramOverlay> overlay_;  // of histogram_
  Intervals intervals_;
  Sum sum_;
  Sum ended_;  // by a change of settings; to be posted, which only the calls of the streaming thread may do
};

struct HistogramElement {
  static constexpr const char* type_name = "GstCudaHistogram";
  static constexpr const char* element_name = "cudahistogram";
  static constexpr const char* long_name = "Histogram";
  static constexpr const char* klass = "Filter/Analyzer/Video";
  static constexpr const char* description =
      "Counts and describes the values of video in messages and metas, draws histograms and equalises, on the GPU or the processor";

  using Settings = HistogramSettings;

  static std::vector<Property<Settings>> properties() {
    const auto flag = [](const char* name, const char* nick, bool initial, const char* blurb) {
      return g_param_spec_boolean(name, nick, blurb, initial, playing_property);
    };
    const auto choice = [](const char* name, const char* nick, GType type, const char* blurb) {
      return g_param_spec_enum(name, nick, blurb, type, 0, playing_property);
    };
    const Settings initial;
    return {
        {uint_property("bins", "Bins", "Bins that the range of the format is split into evenly, 2 to 65536", 2, histogram_max_bins,
                       initial.bins),
         &Settings::bins},
        {choice("channels", "Channels", enum_from_table("GstCudaHistogramChannels", channel_choices), "What is counted"),
         &Settings::channels},
        {choice("luma", "Luma", enum_from_table("GstCudaHistogramLuma", luma_choices), "How luma is made of RGB"), &Settings::luma},
        {g_param_spec_uint64("interval", "Interval", "Time that each message sums up, in ns (0: every frame has its own)", 0,
                             G_MAXUINT64, initial.interval, playing_property),
         &Settings::interval},
        {flag("post-messages", "Post messages", initial.post_messages, "Post element messages"), &Settings::post_messages},
        {flag("add-meta", "Add meta", initial.add_meta, "Add a GstCudaVisionHistogramMeta to each frame"), &Settings::add_meta},
        {flag("overlay", "Overlay", initial.overlay, "Draw the histogram into the picture"), &Settings::overlay},
        {g_param_spec_string("overlay-position", "Overlay position", "Where the histogram is drawn: x,y,width,height in pixels",
                             initial.overlay_position.c_str(), uncontrolled_property),
         &Settings::overlay_position},
        {double_property("overlay-opacity", "Overlay opacity", "Opacity of the drawn histogram, 0 to 1", 0, 1,
                         initial.overlay_opacity),
         &Settings::overlay_opacity},
        {flag("overlay-log", "Overlay log", initial.overlay_log, "Draw heights by the logarithm of the counts"),
         &Settings::overlay_log},
        {flag("equalize", "Equalize", initial.equalize,
              "Equalise the histogram of the luma; what is counted is the incoming frame"),
         &Settings::equalize},
    };
  }

  static Status check(const Settings& settings) {
    const auto overlay = overlay_of(settings);
    return overlay.ok() ? validate(overlay.value()) : overlay.error();
  }

  static Result<FilterPlan> make_plan(const Settings& settings, const PlanContext& context) {
    HistogramParams params;
    params.bins = int(settings.bins);
    params.channels = HistogramChannels(settings.channels);
    params.luma = settings.luma ? LumaMatrix(settings.luma - 1) : matrix_of(context.video.colorimetry);
    auto processor = HistogramProcessor::make(settings, params, overlay_of(settings).value(), context);
    if (!processor.ok()) return processor.error();
    return FilterPlan{std::move(processor.value()), {}};
  }

 private:
  static Result<HistogramOverlayParams> overlay_of(const Settings& settings) {
    const char *at = settings.overlay_position.data(), *const end = at + settings.overlay_position.size();
    const std::optional<Rect> position = read_rect(at, end);
    if (!position || at != end)
      return Status::settings("overlay-position is \"" + settings.overlay_position +
                              "\": it must be x,y,width,height, four whole numbers of pixels");
    return HistogramOverlayParams{*position, settings.overlay_opacity, settings.overlay_log};
  }
};

}  // namespace

bool register_histogram(GstPlugin* plugin) { return FilterElement<HistogramElement>::register_in(plugin); }

}  // namespace cudavision
