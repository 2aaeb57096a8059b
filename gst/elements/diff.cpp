// SPDX-License-Identifier: LGPL-2.1-or-later
// cudadiff: frame differencing and motion (docs/elements/cudadiff.md).
#include "kernels/diff/diff.hpp"

#include <optional>
#include <utility>

#include "gst/base/filter_element.hpp"
#include "gst/base/frame.hpp"
#include "gst/elements/elements.hpp"

namespace cudavision {
namespace {

constexpr Choice references[] = {{"previous", "The frame so many frames back as interval says"},
                                 {"first", "The first frame"},
                                 {"background", "The running average of the frames before, see learning-rate"},
                                 {"mog2", "A mixture of Gaussians for each pixel"}};  // rows as DiffReference
constexpr Choice outputs[] = {{"difference", "The difference from the reference"},
                              {"mask", "White where a pixel changed, else black"},
                              {"overlay", "The picture, with changed pixels tinted and a box around each region that moves"},
                              {"passthrough", "The input, untouched"}};  // rows as DiffOutput
constexpr Choice modes[] = {{"absolute", "The absolute difference"},
                            {"signed", "The difference about mid-gray"},
                            {"squared", "The square of the difference, over the greatest sample"}};  // rows as DiffMode

/// Reads "x,y,w,h;x,y,w,h;…"; nothing where it is not that. Empty: no rectangles.
std::optional<std::vector<Rect>> parse_rects(const std::string& text) {
  std::vector<Rect> rects;
  const char *at = text.data(), *const end = at + text.size();
  while (at != end) {
    const auto rect = read_rect(at, end);
    if (!rect || rect->empty()) return {};
    rects.push_back(*rect);
    if (at != end && (*at++ != ';' || at == end)) return {};
  }
  return rects;
}

constexpr guint most_regions = 65536;  // of max-regions

/// A sentence about the first rectangle that has no pixel of the frame; empty: there is none.
std::string outside_frame(const std::vector<Rect>& mask_regions, const Geometry& frame) {
  const auto text = [](std::initializer_list<int> numbers) {
    std::string text;
    for (int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
    return text;
  };
  for (const auto& [x, y, width, height] : mask_regions)
    if (x >= frame.width || y >= frame.height || gint64(x) + width <= 0 || gint64(y) + height <= 0)
      return "mask-regions has " + text({x, y, width, height}) + ", which masks nothing: it lies outside of the frame of " +
             std::to_string(frame.width) + "×" + std::to_string(frame.height);
  return {};
}

/// What was found in a frame, and when.
struct Finding {
  FrameTimes times;
  bool moves = false;
  double changed_ratio = 0, mean_difference = 0;
  MotionRegions regions;
};

void set_regions(GstStructure* message, const MotionRegions& regions) {
  std::vector<GstStructure*> list;
  for (const auto& [box, area, score] : regions.kept)
    list.push_back(gst_structure_new("region", "x", G_TYPE_INT, box.x, "y", G_TYPE_INT, box.y, "width", G_TYPE_INT, box.width,
                                     "height", G_TYPE_INT, box.height, "area", G_TYPE_UINT, guint(area), "score", G_TYPE_DOUBLE,
                                     score, nullptr));
  take_structures(message, "regions", list);
  gst_structure_set(message, "regions-left-out", G_TYPE_UINT, guint(regions.left_out), nullptr);
}

/// Regions of interest are in pixels of the uncropped frame.
void attach_rois(GstBuffer* buffer, const std::vector<MotionRegion>& regions) {
  const CropOrigin origin = crop_origin(buffer);
  for (const auto& [box, area, score] : regions) {
    auto* roi = gst_buffer_add_video_region_of_interest_meta(buffer, "motion", guint(origin.x + box.x), guint(origin.y + box.y),
                                                             guint(box.width), guint(box.height));
    gst_video_region_of_interest_meta_add_param(
        roi, gst_structure_new("motion", "score", G_TYPE_DOUBLE, score, "area", G_TYPE_UINT, guint(area), nullptr));
  }
}

struct DiffElement {
  static constexpr const char* type_name = "GstCudaDiff";
  static constexpr const char* element_name = "cudadiff";
  static constexpr const char* long_name = "Frame difference and motion";
  static constexpr const char* klass = "Filter/Analyzer/Video";
  static constexpr const char* description =
      "Compares video frames with earlier ones and finds what moves, on the GPU or the processor";

  struct Settings {
    int reference = int(DiffReference::previous), output = int(DiffOutput::difference), mode = int(DiffMode::absolute);
    guint interval = 1, threshold = 15, open_radius = 1, cell_size = 16, min_area = 1, max_regions = 256, min_motion_frames = 1;
    double learning_rate = 0.02, gain = 1, cell_threshold = 0.2, motion_threshold = 0.002, gap = 5;
    bool luma_only = false, post_messages = true, attach_roi = true;
    guint64 message_interval = 0;
    std::string mask_regions;
  };

  struct Readings {
    double changed_ratio = 0;
    bool motion = false;
  };

  static std::vector<Property<Settings>> properties() {
    const Settings initial;
    const auto choice = [](const char* name, const char* nick, const char* blurb, GType type, int value) {
      return g_param_spec_enum(name, nick, blurb, type, value, playing_property);
    };
    const auto flag = [](const char* name, const char* nick, const char* blurb, bool value) {
      return g_param_spec_boolean(name, nick, blurb, value, playing_property);
    };
    return {
        {choice("reference", "Reference", "What frames are compared with", enum_from_table("GstCudaDiffReference", references),
                initial.reference),
         &Settings::reference},
        {uint_property("interval", "Interval", "Compare with the frame this many frames back, 1 to 64 (reference=previous)", 1,
                       diff_max_interval, initial.interval),
         &Settings::interval},
        {double_property("learning-rate", "Learning rate",
                         "Share of the new frame in the background, 0 to 1 (reference=background)", 0, 1, initial.learning_rate),
         &Settings::learning_rate},
        {choice("output", "Output", "What goes out", enum_from_table("GstCudaDiffOutput", outputs), initial.output),
         &Settings::output},
        {choice("mode", "Mode", "How the difference is shown", enum_from_table("GstCudaDiffMode", modes), initial.mode),
         &Settings::mode},
        {uint_property("threshold", "Threshold",
                       "A pixel changed where its difference is greater, 0 to 255 in 8-bit steps (not for reference=mog2)", 0, 255,
                       initial.threshold),
         &Settings::threshold},
        {double_property("gain", "Gain", "On the difference shown, 0 to 256", 0, diff_max_gain, initial.gain), &Settings::gain},
        {flag("luma-only", "Luma only", "Compare and show luma alone; else a pixel changed if any of its channels did",
              initial.luma_only),
         &Settings::luma_only},
        {uint_property("open-radius", "Open radius",
                       "Removes specks from the mask (erodes, then dilates) of up to twice as many pixels, 0 to 16", 0,
                       diff_max_open_radius, initial.open_radius),
         &Settings::open_radius},
        {uint_property("cell-size", "Cell size", "Side of the cells in which motion is counted, in pixels, 4 to 1024",
                       diff_min_cell, diff_max_cell, initial.cell_size),
         &Settings::cell_size},
        {double_property("cell-threshold", "Cell threshold", "Share of changed pixels that makes a cell move, 0 to 1", 0, 1,
                         initial.cell_threshold),
         &Settings::cell_threshold},
        {uint_property("min-area", "Least area", "Smallest region, in cells", 1, G_MAXINT, initial.min_area), &Settings::min_area},
        {uint_property(
             "max-regions", "Most regions",
             "Regions of a frame that are reported, attached and drawn: the largest, and of equally large ones those of the "
             "highest score",
             1, most_regions, initial.max_regions),
         &Settings::max_regions},
        {double_property("motion-threshold", "Motion threshold",
                         "Share of changed pixels of the frame from which there is motion, 0 to 1", 0, 1, initial.motion_threshold),
         &Settings::motion_threshold},
        {uint_property("min-motion-frames", "Least motion frames", "Frames with motion in a row before motion begins", 1, G_MAXINT,
                       initial.min_motion_frames),
         &Settings::min_motion_frames},
        {double_property("gap", "Gap", "Seconds without motion before it ends", 0, 1e6, initial.gap), &Settings::gap},
        {g_param_spec_string("mask-regions", "Masked regions", "Rectangles that are left out, in pixels: \"x,y,w,h;x,y,w,h\"",
                             nullptr, uncontrolled_property),
         &Settings::mask_regions},
        {flag("post-messages", "Post messages", "Post element messages", initial.post_messages), &Settings::post_messages},
        {g_param_spec_uint64(
             "message-interval", "Message interval",
             "Nanoseconds between messages of frames in which motion neither begins nor ends; 0: each frame has one", 0,
             G_MAXUINT64, initial.message_interval, playing_property),
         &Settings::message_interval},
        {flag("attach-roi", "Attach ROI", "Attach a GstVideoRegionOfInterestMeta of type motion for each region",
              initial.attach_roi),
         &Settings::attach_roi},
    };
  }

  static std::vector<Property<Readings>> readings() {
    const auto flags = GParamFlags(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
    return {{g_param_spec_double("changed-ratio", "Changed ratio", "Share of changed pixels in the last frame", 0, 1, 0, flags),
             &Readings::changed_ratio},
            {g_param_spec_boolean("motion", "Motion", "Whether there is motion", FALSE, flags), &Readings::motion}};
  }

  static Status check(const Settings& settings) {
    Status status = validate(params_of(settings));
    if (status.ok() && !parse_rects(settings.mask_regions))
      status =
          Status::settings("mask-regions is \"" + settings.mask_regions +
                           "\": it must be rectangles x,y,w,h in whole pixels, of 1 pixel or more a side, with ; between them");
    return status;
  }

  static Result<FilterPlan> make_plan(const Settings& settings, const PlanContext& context);

 private:
  static DiffParams params_of(const Settings& settings) {
    DiffParams params;
    params.reference = DiffReference(settings.reference);
    params.interval = int(settings.interval);
    params.learning_rate = settings.learning_rate;
    params.output = DiffOutput(settings.output);
    params.mode = DiffMode(settings.mode);
    params.threshold = int(settings.threshold);
    params.gain = settings.gain;
    params.luma_only = settings.luma_only;
    params.open_radius = int(settings.open_radius);
    params.cell_size = int(settings.cell_size);
    params.mask_regions = parse_rects(settings.mask_regions).value_or(std::vector<Rect>());
    return params;
  }
};

/// When motion begins and ends. Time is counted in ns of running time.
struct Motion {
  bool on = false;
  guint frames = 0;                           ///< with motion in a row
  GstClockTime still = 0;                     ///< since the last frame with motion
  GstClockTime last = GST_CLOCK_TIME_NONE;    ///< running time of the last frame
  GstClockTime unsaid = GST_CLOCK_TIME_NONE;  ///< since the last message; none yet

  /// Goes on to a frame; `step` is how long frames without times last. Returns what happens in it.
  const char* advance(bool moves, const FrameTimes& times, GstClockTime step, const DiffElement::Settings& settings) {
    const GstClockTime now = times.running_time;
    if (GST_CLOCK_TIME_IS_VALID(now) && GST_CLOCK_TIME_IS_VALID(last) && now >= last) step = now - last;
    last = now;
    if (GST_CLOCK_TIME_IS_VALID(unsaid)) unsaid += step;
    still = moves ? 0 : still + step;
    frames = moves ? frames + (frames < settings.min_motion_frames) : 0;
    if (on) {
      if (moves || still < settings.gap * GST_SECOND) return "motion";
      on = false;
      return "end";
    }
    on = frames >= settings.min_motion_frames;
    return on ? "begin" : "none";
  }
};

class DiffProcessor : public Processor {
 public:
  DiffProcessor(std::unique_ptr<Diff> diff, const DiffElement::Settings& settings, const GstVideoInfo& video)
      : diff_(std::move(diff)), settings_(settings) {
    const int rate_n = GST_VIDEO_INFO_FPS_N(&video), rate_d = GST_VIDEO_INFO_FPS_D(&video);
    frame_duration_ = rate_n > 0 ? gst_util_uint64_scale(GST_SECOND, guint64(rate_d), guint64(rate_n)) : GST_SECOND / 25;
  }

  /// The next frame is compared, if it can be, with what it would have been compared with, and motion goes on.
  void continue_from(DiffProcessor& previous) {
    diff_->continue_from(*previous.diff_);
    motion_ = previous.motion_;
    found_ = std::move(previous.found_);
  }

  bool passes_through() const override { return output() == DiffOutput::none; }
  bool adds_metas() const override { return settings_.attach_roi; }

  Status submit(const FrameJob& job) override {
    Status status = diff_->submit(job.src, job.dst ? *job.dst : Image{}, job.queue);
    if (!status.ok() || output() != DiffOutput::overlay) return status;
    if (status = job.wait(); !status.ok()) return status;
    measure();
    return diff_->draw_boxes(*job.dst, found_.regions.kept, job.queue);
  }

  void finished(const FrameReport& report) override {
    if (output() != DiffOutput::overlay) measure();
    found_.times = report.times;
    if (settings_.attach_roi) attach_rois(report.buffer, found_.regions.kept);
    const bool was_on = motion_.on;
    const char* event = motion_.advance(found_.moves, report.times, frame_duration_, settings_);
    publish(report.element, was_on);
    if (motion_.on != was_on || !(motion_.unsaid < settings_.message_interval)) post(report.element, event);
  }

  void interrupted(Interruption, GstElement* element) override {
    diff_->reset();
    const bool was_on = std::exchange(motion_, {}).on;
    if (!was_on) return;
    publish(element, was_on);
    post(element, "end");
    motion_ = {};
  }

 private:
  DiffOutput output() const { return DiffOutput(settings_.output); }

  /// Takes what was found out of the plan, which is done with the frame.
  void measure() {
    const DiffResult result = diff_->result();
    found_ = {{},
              result.changed > 0 && result.changed_ratio >= settings_.motion_threshold,
              result.changed_ratio,
              result.mean_difference,
              find_regions(result.cells, settings_.cell_threshold, int(settings_.min_area), settings_.max_regions)};
  }

  void publish(GstElement* element, bool was_on) const {
    FilterElement<DiffElement>::publish(element, {found_.changed_ratio, motion_.on});
    if (motion_.on != was_on) g_object_notify(G_OBJECT(element), "motion");
  }

  void post(GstElement* element, const char* event) {
    motion_.unsaid = 0;
    if (!settings_.post_messages) return;
    GstStructure* message = new_message(DiffElement::element_name, found_.times);
    gst_structure_set(message, "event", G_TYPE_STRING, event, "changed-ratio", G_TYPE_DOUBLE, found_.changed_ratio,
                      "mean-difference", G_TYPE_DOUBLE, found_.mean_difference, nullptr);
    set_regions(message, found_.regions);
    post_message(element, message);
  }

  const std::unique_ptr<Diff> diff_;
  const DiffElement::Settings settings_;
  GstClockTime frame_duration_;
  Motion motion_;
  Finding found_;  ///< in the last frame
};

Result<FilterPlan> DiffElement::make_plan(const Settings& settings, const PlanContext& context) {
  if (context.region != Region::Mode::frame)
    return Status::settings(std::string("region is ") + (context.region == Region::Mode::inside ? "roi" : "outside-roi") +
                            ": cudadiff looks at the whole frame; use mask-regions to leave parts out");
  const DiffParams params = params_of(settings);
  const Geometry geometry = geometry_of(context.video);
  auto diff = make_diff(params, geometry, context.backend);
  if (!diff.ok()) return diff.error();
  auto processor = std::make_unique<DiffProcessor>(std::move(diff.value()), settings, context.video);
  if (context.previous) processor->continue_from(static_cast<DiffProcessor&>(*context.previous));
  return FilterPlan{std::move(processor), outside_frame(params.mask_regions, geometry)};
}

}  // namespace

bool register_diff(GstPlugin* plugin) { return FilterElement<DiffElement>::register_in(plugin); }

}  // namespace cudavision
