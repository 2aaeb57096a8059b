// SPDX-License-Identifier: LGPL-2.1-or-later
// cudahistogram: statistics of each frame (docs/elements/cudahistogram.md).
#include "kernels/histogram/histogram.hpp"

#include <optional>
#include <utility>

#include "gst/base/filter/filter_element.hpp"
#include "gst/elements/elements.hpp"
#include "gst/elements/histogram_messages.hpp"

namespace cudavision {
namespace {

constexpr Choice channel_choices[] = {{histogram::Channels::luma, "luma", "Luma"},
                                      {histogram::Channels::components, "components", "R, G and B, or Y, Cb and Cr"},
                                      {histogram::Channels::all, "all", "Luma and each component"}};
enum Luma { LUMA_AUTO, LUMA_MATRIX };  // values from LUMA_MATRIX on: LUMA_MATRIX plus a LumaMatrix
constexpr Choice luma_choices[] = {
    {LUMA_AUTO, "auto", "The matrix of the colorimetry in the caps"},
    {LUMA_MATRIX + int(LumaMatrix::bt601), "bt601", "0.299 R + 0.587 G + 0.114 B"},
    {LUMA_MATRIX + int(LumaMatrix::bt709), "bt709", "0.2126 R + 0.7152 G + 0.0722 B"},
    {LUMA_MATRIX + int(LumaMatrix::bt2020), "bt2020", "0.2627 R + 0.678 G + 0.0593 B"},
    {LUMA_MATRIX + int(LumaMatrix::smpte240m), "smpte240m", "0.212 R + 0.701 G + 0.087 B"}};

/// The matrix for converting RGB with this colorimetry to YUV. The matrix of the colorimetry itself is always "RGB", so
/// primaries and transfer function determine the result. sRGB determines none.
LumaMatrix matrix_of(const GstVideoColorimetry& colorimetry) {
  if (colorimetry.primaries == GST_VIDEO_COLOR_PRIMARIES_BT2020) return LumaMatrix::bt2020;
  if (colorimetry.primaries == GST_VIDEO_COLOR_PRIMARIES_BT709 && colorimetry.transfer != GST_VIDEO_TRANSFER_SRGB)
    return LumaMatrix::bt709;
  if (colorimetry.primaries == GST_VIDEO_COLOR_PRIMARIES_SMPTE240M) return LumaMatrix::smpte240m;
  return LumaMatrix::bt601;
}

struct HistogramSettings {
  guint bins = guint(histogram::Params().bins);
  histogram::Channels channels = histogram::Params().channels;
  int luma = LUMA_AUTO;
  guint64 interval = 0;
  bool post_messages = true, add_meta = false, overlay = false;
  std::string overlay_position = "16,16,256,100";
  double overlay_opacity = histogram::OverlayParams{}.opacity;
  bool overlay_log = false, equalize = false;
  bool sharpness = false, watch = false;
  double watch_time = histogram::WatchParams{}.frozen_time;

  bool measures() const { return watch || (sharpness && (post_messages || add_meta)); }
};

class HistogramProcessor final : public Processor {
 public:
  /// Makes a processor that takes over the state of context.previous, as far as the settings allow. Errors: settings,
  /// resource.
  static Result<std::unique_ptr<Processor>> make(const HistogramSettings& settings, const histogram::Params& params,
                                                 const histogram::OverlayParams& overlay, const PlanContext& context) {
    auto* previous = static_cast<HistogramProcessor*>(context.previous);
    const Geometry geometry = geometry_of(context.video);
    std::unique_ptr<HistogramProcessor> made(new HistogramProcessor(settings, params, context.video));
    const bool same_luma = previous && previous->params_.luma == params.luma;
    const bool counts_on =
        same_luma && previous->params_.bins == params.bins && previous->params_.channels == params.channels;
    if (counts_on) {
      made->histogram_ = previous->histogram_;
    } else {
      auto histogram = histogram::make(params, geometry, context.backend);
      if (!histogram.ok()) return histogram.error();
      made->histogram_ = std::move(histogram.value());
    }
    if (Status status = made->measure(same_luma ? previous : nullptr, context.backend); !status.ok()) return status;
    const bool filters = settings.equalize || settings.overlay;
    if (filters && same_luma && previous->filter_ && previous->settings_.equalize == settings.equalize) {
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
    if (previous) made->watch_ = std::move(previous->watch_);
    if (previous && settings.post_messages) {
      HistogramSum& sum = counts_on || previous->sum_.empty() ? made->sum_ : made->ended_;
      made->intervals_ = previous->intervals_.with_length(settings.interval);
      made->ended_ = std::move(previous->ended_);
      sum = std::move(previous->sum_);
    }
    return std::unique_ptr<Processor>(std::move(made));
  }

  bool passes_through() const override { return !filter_; }
  bool adds_metas() const override { return settings_.add_meta; }
  bool reads_results() const override { return settings_.post_messages || settings_.add_meta || settings_.watch; }
  int results_kept() const override { return params_.history; }

  Status submit(const FrameJob& job) override {
    newest_ = job.number;
    if (settings_.post_messages || settings_.add_meta || overlay_)
      if (Status status = histogram_->submit(job.src, job.region, job.queue); !status.ok()) return status;
    if (sharpness_)
      if (Status status = sharpness_->submit(job.src, job.region, job.queue); !status.ok()) return status;
    if (!filter_) return {};
    Status status = filter_->submit(job.src, *job.dst, settings_.equalize ? job.region : Region(), job.queue);
    return status.ok() && overlay_ ? overlay_->submit(*job.dst, job.queue) : status;
  }

  void finished(const FrameReport& report) override {
    ended_.post(report.element);
    const int age = int(newest_ - report.number);
    std::optional<histogram::LumaSums> luma;
    if (sharpness_) luma = sharpness_->result(age);
    if (settings_.add_meta) add_meta(report.buffer, age, luma);
    if (settings_.post_messages) {
      if (intervals_.begins(report.times)) sum_.post(report.element);
      sum_.add(*histogram_, age, luma ? &*luma : nullptr, report.times);
      if (intervals_.ends(report.times)) sum_.post(report.element);
    }
    if (settings_.watch) watch_.update(*luma, video_, settings_.watch_time, report.times, report.element);
    // The watch may have been active with earlier settings.
    else
      watch_.end(report.element);
  }

  void interrupted(Interruption why, GstElement* element) override {
    if (why == Interruption::flush) {
      ended_ = {};
      sum_ = {};
    }
    ended_.post(element);
    sum_.post(element);
    intervals_.restart();
    if (sharpness_) sharpness_->reset();
    // Missing frames do not change the camera: conditions continue, and the usual values are still known.
    if (why != Interruption::discont) watch_.end(element);
  }

 private:
  HistogramProcessor(const HistogramSettings& settings, const histogram::Params& params, const GstVideoInfo& video)
      : params_(params), settings_(settings), video_(video), intervals_(settings.interval) {}

  /// Makes the plan that measures sharpness if the settings request it, or takes over the plan of a processor with the
  /// same luma.
  Status measure(const HistogramProcessor* previous, Backend backend) {
    if (!settings_.measures()) return {};
    if (previous && previous->sharpness_ && previous->settings_.watch == settings_.watch) {
      sharpness_ = previous->sharpness_;
      return {};
    }
    auto made =
        histogram::make_sharpness({params_.luma, settings_.watch, params_.history}, geometry_of(video_), backend);
    if (!made.ok()) return made.error();
    sharpness_ = std::move(made.value());
    return {};
  }

  void add_meta(GstBuffer* buffer, int age, const std::optional<histogram::LumaSums>& luma) const {
    const histogram::Counts counts = histogram_->result(age);
    const int depth = info(histogram_->geometry().format).depth;
    const auto channels = describe(counts, depth);
    auto* meta = gst_buffer_add_cuda_vision_histogram_meta(buffer, guint(params_.bins), guint(depth),
                                                           guint(channels.size()), channels.data());
    if (meta && luma) meta->sharpness = histogram::sharpness_of(*luma, depth);
  }

  const histogram::Params params_;
  const HistogramSettings settings_;
  const GstVideoInfo video_;
  std::shared_ptr<histogram::Histogram> histogram_;
  std::shared_ptr<histogram::Sharpness> sharpness_;  // nullptr if the settings do not request it
  std::shared_ptr<Filter> filter_;                   // nullptr if frames pass through
  std::unique_ptr<histogram::Overlay> overlay_;      // draws histogram_
  Intervals intervals_;
  std::uint64_t newest_ = 0;  // number of the last submitted frame
  HistogramSum sum_;
  HistogramSum ended_;  // the sum that ended when settings changed; posted with the next frame
  CameraWatch watch_;
};

struct HistogramElement : NoReadings {
  static constexpr const char* type_name = "GstCudaHistogram";
  static constexpr const char* element_name = "cudahistogram";
  static constexpr const char* long_name = "Histogram";
  static constexpr const char* klass = "Filter/Analyzer/Video";
  static constexpr bool examines = true, sends_data = false;
  static constexpr const char* description =
      "Computes histograms and statistics of video for messages and metas, draws and equalises histograms, on the GPU "
      "or the processor";

  using Settings = HistogramSettings;

  using Row = Property<Settings>;

  static std::vector<Row> properties() {
    return {
        Row::count("bins", "Bins", &Settings::bins, 2, histogram::max_bins,
                   "Number of bins of equal width for the range of the format, {}"),
        Row::choice("channels", "Channels", &Settings::channels,
                    enum_from_table("GstCudaHistogramChannels", channel_choices), "The channels that are counted"),
        Row::choice("luma", "Luma", &Settings::luma, enum_from_table("GstCudaHistogramLuma", luma_choices),
                    "The matrix that computes luma from RGB"),
        Row::time("interval", "Interval", &Settings::interval,
                  "Time that each message covers, in ns; 0 posts a message for each frame"),
        Row::flag("post-messages", "Post messages", &Settings::post_messages, "Post element messages on the bus"),
        Row::flag("add-meta", "Add meta", &Settings::add_meta, "Add a GstCudaVisionHistogramMeta to each frame"),
        Row::flag("overlay", "Overlay", &Settings::overlay, "Draw the histogram on the picture"),
        Row::text("overlay-position", "Overlay position", &Settings::overlay_position,
                  "Where the histogram is drawn: x,y,width,height in pixels"),
        Row::number("overlay-opacity", "Overlay opacity", &Settings::overlay_opacity, 0, 1,
                    "Opacity of the drawn histogram, {}"),
        Row::flag("overlay-log", "Overlay log", &Settings::overlay_log,
                  "Draw the logarithm of the counts instead of the counts"),
        Row::flag("equalize", "Equalize", &Settings::equalize,
                  "Equalise the histogram of luma; the incoming frame is counted"),
        Row::flag("sharpness", "Sharpness", &Settings::sharpness,
                  "Measure the sharpness of the luma, for messages and metas"),
        Row::flag("watch", "Watch", &Settings::watch,
                  "Post when the picture becomes dark, bright, covered, defocused or frozen, and when this ends"),
        Row::number("watch-time", "Watch time", &Settings::watch_time, 0, 1e6,
                    "Time without a change before the picture is frozen, in seconds"),
    };
  }

  static Status check(const Settings& settings) {
    const auto overlay = overlay_of(settings);
    return overlay.ok() ? validate(overlay.value()) : overlay.error();
  }

  static Result<FilterPlan> make_plan(const Settings& settings, const PlanContext& context) {
    histogram::Params params;
    params.bins = int(settings.bins);
    params.channels = settings.channels;
    params.history = results_in_flight;
    params.luma =
        settings.luma >= LUMA_MATRIX ? LumaMatrix(settings.luma - LUMA_MATRIX) : matrix_of(context.video.colorimetry);
    auto processor = HistogramProcessor::make(settings, params, overlay_of(settings).value(), context);
    if (!processor.ok()) return processor.error();
    return FilterPlan{std::move(processor.value()), advice(settings, context.video)};
  }

 private:
  static std::string advice(const Settings& settings, const GstVideoInfo& video) {
    const std::string not_drawn = unless(settings.overlay, "overlay=false"),
                      not_posted = unless(settings.post_messages, "post-messages=false"),
                      not_told =
                          unless(settings.post_messages || settings.add_meta, "post-messages=false add-meta=false"),
                      not_counted = unless(settings.overlay, not_told);
    std::string text = without_effect(FilterElement<HistogramElement>::properties(), settings, Settings(),
                                      {{"bins", not_counted},
                                       {"channels", not_counted},
                                       {"interval", not_posted},
                                       {"overlay-position", not_drawn},
                                       {"overlay-opacity", not_drawn},
                                       {"overlay-log", not_drawn},
                                       {"sharpness", not_told},
                                       {"watch-time", unless(settings.watch, "watch=false")}});
    const int width = GST_VIDEO_INFO_WIDTH(&video), height = GST_VIDEO_INFO_HEIGHT(&video);
    if (settings.overlay && intersection(overlay_of(settings).value().position, {0, 0, width, height}).empty())
      text = both(text, "overlay-position is " + settings.overlay_position +
                            ", where nothing is drawn: it lies outside " + "the frame of " + size_text(width, height));
    return text;
  }

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
