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
                                      {"components", "R, G and B, or Y, Cb and Cr"},
                                      {"all", "Luma and each component"}};  // rows as histogram::Channels
constexpr Choice luma_choices[] = {{"auto", "The matrix of the colorimetry in the caps"},
                                   {"bt601", "0.299 R + 0.587 G + 0.114 B"},
                                   {"bt709", "0.2126 R + 0.7152 G + 0.0722 B"},
                                   {"bt2020", "0.2627 R + 0.678 G + 0.0593 B"}};  // rows as LumaMatrix, after the first

/// The matrix for converting RGB of this colorimetry to YUV. The colorimetry's own matrix is always "RGB", so primaries and
/// transfer determine it. sRGB determines none.
LumaMatrix matrix_of(const GstVideoColorimetry& colorimetry) {
  if (colorimetry.primaries == GST_VIDEO_COLOR_PRIMARIES_BT2020) return LumaMatrix::bt2020;
  if (colorimetry.primaries == GST_VIDEO_COLOR_PRIMARIES_BT709 && colorimetry.transfer != GST_VIDEO_TRANSFER_SRGB)
    return LumaMatrix::bt709;
  return LumaMatrix::bt601;
}

/// Counts with their statistics. The result points into `counts`.
std::vector<GstCudaVisionHistogramChannel> describe(const histogram::Counts& counts, int depth) {
  std::vector<GstCudaVisionHistogramChannel> channels;
  for (const histogram::ChannelCounts& channel : counts) {
    const histogram::Statistics s = histogram::statistics(channel.counts, depth);
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

/// The sum of the counts of the frames for one message.
struct Sum {
  int depth = 8;
  guint64 frames = 0;
  FrameTimes first;                                                     ///< times of the first frame
  GstClockTime begin = GST_CLOCK_TIME_NONE, end = GST_CLOCK_TIME_NONE;  ///< timestamps of the first begin and the last end
  histogram::Counts counts;

  /// Adds the counts of the frame that was submitted `age` submits ago.
  void add(const histogram::Histogram& histogram, int age, const FrameTimes& times) {
    if (frames++ == 0) {
      depth = info(histogram.geometry().format).depth;
      first = times;
    }
    histogram.add_result(counts, age);
    if (!GST_CLOCK_TIME_IS_VALID(times.timestamp)) return;
    const GstClockTime last = times.timestamp + (GST_CLOCK_TIME_IS_VALID(times.duration) ? times.duration : 0);
    begin = std::min(begin, times.timestamp);  // GST_CLOCK_TIME_NONE is the largest value
    end = GST_CLOCK_TIME_IS_VALID(end) ? std::max(end, last) : last;
  }

  /// (transfer full) The structure of the message.
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

/// Posts a message if frames were added, and starts a new sum.
void post(Sum& sum, GstElement* element) {
  if (sum.frames) post_message(element, sum.message());
  sum = {};
}

/// Divides time into intervals that follow each other from the first frame on. The frames of an interval are added up.
class Intervals {
 public:
  explicit Intervals(GstClockTime length) : length_(length) {}

  /// Whether a frame is the first one of an interval, except for the first interval.
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

  /// Whether this frame, the newest, is probably the last one of its interval.
  bool ends(const FrameTimes& frame) {
    if (length_ == 0) return true;
    const GstClockTime now = time(frame), before = std::exchange(last_, now);
    if (!GST_CLOCK_TIME_IS_VALID(now) || !GST_CLOCK_TIME_IS_VALID(frame.duration)) return false;
    // In fast playback frames follow each other sooner than their durations tell.
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
  GstClockTime begin_ = GST_CLOCK_TIME_NONE, last_ = GST_CLOCK_TIME_NONE;  // of the interval; of the last frame
};

struct HistogramSettings {
  guint bins = 256;
  int channels = int(histogram::Channels::luma), luma = 0;
  guint64 interval = 0;
  bool post_messages = true, add_meta = false, overlay = false;
  std::string overlay_position = "16,16,256,100";
  double overlay_opacity = histogram::OverlayParams{}.opacity;
  bool overlay_log = false, equalize = false;
};

class HistogramProcessor final : public Processor {
 public:
  /// Makes a processor that takes over the state of context.previous, as far as the settings allow it. Errors: settings, resource.
  static Result<std::unique_ptr<Processor>> make(const HistogramSettings& settings, const histogram::Params& params,
                                                 const histogram::OverlayParams& overlay, const PlanContext& context) {
    auto* previous = static_cast<HistogramProcessor*>(context.previous);
    const Geometry geometry = geometry_of(context.video);
    std::unique_ptr<HistogramProcessor> made(new HistogramProcessor(settings, params));
    const bool same_luma = previous && previous->params_.luma == params.luma;
    const bool counts_on = same_luma && previous->params_.bins == params.bins && previous->params_.channels == params.channels;
    if (counts_on) {
      made->histogram_ = previous->histogram_;
    } else {
      auto histogram = histogram::make(params, geometry, context.backend);
      if (!histogram.ok()) return histogram.error();
      made->histogram_ = std::move(histogram.value());
    }
    const bool filters = settings.equalize || settings.overlay;
    if (filters && same_luma && previous->filter_ && previous->equalizes_ == settings.equalize) {
      made->filter_ = previous->filter_;
    } else if (filters) {
      auto filter = settings.equalize ? histogram::make_equalize(params.luma, geometry, context.backend)
                                      : make_copy(geometry, context.backend);
      if (!filter.ok()) return filter.error();
      made->filter_ = std::move(filter.value());
    }
    if (settings.overlay) {
      auto drawn = histogram::make_overlay(overlay, *made->histogram_);
      if (!drawn.ok()) return drawn.error();
      made->overlay_ = std::move(drawn.value());
    }
    // Nothing can fail from here on, so the state of the previous processor can be moved.
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
  bool reads_results() const override { return posts_ || adds_meta_; }
  int results_kept() const override { return params_.history; }

  Status submit(const FrameJob& job) override {
    newest_ = job.number;
    if (posts_ || adds_meta_ || overlay_)
      if (Status status = histogram_->submit(job.src, job.region, job.queue); !status.ok()) return status;
    if (!filter_) return {};
    Status status = filter_->submit(job.src, *job.dst, equalizes_ ? job.region : Region(), job.queue);
    return status.ok() && overlay_ ? overlay_->submit(*job.dst, job.queue) : status;
  }

  void finished(const FrameReport& report) override {
    post(ended_, report.element);
    const int age = int(newest_ - report.number);
    if (adds_meta_) {
      const histogram::Counts counts = histogram_->result(age);
      const int depth = info(histogram_->geometry().format).depth;
      const auto channels = describe(counts, depth);
      gst_buffer_add_cuda_vision_histogram_meta(report.buffer, guint(params_.bins), guint(depth), guint(channels.size()),
                                                channels.data());
    }
    if (!posts_) return;
    if (intervals_.begins(report.times)) post(sum_, report.element);
    sum_.add(*histogram_, age, report.times);
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
  HistogramProcessor(const HistogramSettings& settings, const histogram::Params& params)
      : params_(params),
        posts_(settings.post_messages),
        adds_meta_(settings.add_meta),
        equalizes_(settings.equalize),
        intervals_(settings.interval) {}

  const histogram::Params params_;
  const bool posts_, adds_meta_, equalizes_;
  std::shared_ptr<histogram::Histogram> histogram_;
  std::shared_ptr<Filter> filter_;               // nullptr if frames pass through
  std::unique_ptr<histogram::Overlay> overlay_;  // draws histogram_
  Intervals intervals_;
  std::uint64_t newest_ = 0;  // the number of the last submitted frame
  Sum sum_;
  Sum ended_;  // the sum that a change of settings ended; posted with the next frame
};

struct HistogramElement {
  static constexpr const char* type_name = "GstCudaHistogram";
  static constexpr const char* element_name = "cudahistogram";
  static constexpr const char* long_name = "Histogram";
  static constexpr const char* klass = "Filter/Analyzer/Video";
  static constexpr const char* description =
      "Computes histograms and statistics of video for messages and metas, draws and equalises histograms, on the GPU or the "
      "processor";

  using Settings = HistogramSettings;

  static std::vector<Property<Settings>> properties() {
    const Settings initial;
    return {
        {uint_property("bins", "Bins", "Number of bins of equal width for the range of the format, {}", 2, histogram::max_bins,
                       initial.bins),
         &Settings::bins},
        {enum_property("channels", "Channels", "The channels that are counted",
                       enum_from_table("GstCudaHistogramChannels", channel_choices), initial.channels),
         &Settings::channels},
        {enum_property("luma", "Luma", "The matrix that computes luma from RGB",
                       enum_from_table("GstCudaHistogramLuma", luma_choices), initial.luma),
         &Settings::luma},
        {g_param_spec_uint64("interval", "Interval", "Time that each message covers, in ns; 0 posts a message for each frame", 0,
                             G_MAXUINT64, initial.interval, playing_property),
         &Settings::interval},
        {bool_property("post-messages", "Post messages", "Post element messages on the bus", initial.post_messages),
         &Settings::post_messages},
        {bool_property("add-meta", "Add meta", "Add a GstCudaVisionHistogramMeta to each frame", initial.add_meta),
         &Settings::add_meta},
        {bool_property("overlay", "Overlay", "Draw the histogram on the picture", initial.overlay), &Settings::overlay},
        {g_param_spec_string("overlay-position", "Overlay position", "Where the histogram is drawn: x,y,width,height in pixels",
                             initial.overlay_position.c_str(), uncontrolled_property),
         &Settings::overlay_position},
        {double_property("overlay-opacity", "Overlay opacity", "Opacity of the drawn histogram, {}", 0, 1, initial.overlay_opacity),
         &Settings::overlay_opacity},
        {bool_property("overlay-log", "Overlay log", "Draw the logarithm of the counts instead of the counts", initial.overlay_log),
         &Settings::overlay_log},
        {bool_property("equalize", "Equalize", "Equalise the histogram of luma; counts are those of the incoming frame",
                       initial.equalize),
         &Settings::equalize},
    };
  }

  static Status check(const Settings& settings) {
    const auto overlay = overlay_of(settings);
    return overlay.ok() ? validate(overlay.value()) : overlay.error();
  }

  static Result<FilterPlan> make_plan(const Settings& settings, const PlanContext& context) {
    histogram::Params params;
    params.bins = int(settings.bins);
    params.channels = histogram::Channels(settings.channels);
    params.history = results_in_flight;
    params.luma = settings.luma ? LumaMatrix(settings.luma - 1) : matrix_of(context.video.colorimetry);
    auto processor = HistogramProcessor::make(settings, params, overlay_of(settings).value(), context);
    if (!processor.ok()) return processor.error();
    return FilterPlan{std::move(processor.value()), {}};
  }

 private:
  static Result<histogram::OverlayParams> overlay_of(const Settings& settings) {
    const char *at = settings.overlay_position.data(), *const end = at + settings.overlay_position.size();
    const std::optional<Rect> position = read_rect(at, end);
    if (!position || at != end)
      return Status::settings("overlay-position is \"" + settings.overlay_position +
                              "\": it must be x,y,width,height, four whole numbers of pixels");
    return histogram::OverlayParams{*position, settings.overlay_opacity, settings.overlay_log};
  }
};

}  // namespace

bool register_histogram(GstPlugin* plugin) { return FilterElement<HistogramElement>::register_in(plugin); }

}  // namespace cudavision
