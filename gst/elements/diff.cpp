// SPDX-License-Identifier: LGPL-2.1-or-later
// cudadiff: frame differencing and motion (docs/elements/cudadiff.md).
#include "kernels/diff/diff.hpp"

#include <optional>
#include <tuple>
#include <utility>

#include "gst/base/filter_element.hpp"
#include "gst/base/frame.hpp"
#include "gst/elements/elements.hpp"

namespace cudavision {
namespace {

constexpr Choice references[] = {{"previous", "An earlier frame; interval is the distance"},
                                 {"first", "The first frame"},
                                 {"background", "The running average of the earlier frames, see learning-rate"},
                                 {"mog2", "A mixture of Gaussians for each pixel"}};  // rows as diff::Reference
constexpr Choice outputs[] = {{"difference", "The difference from the reference"},
                              {"mask", "Changed pixels are white, others black"},
                              {"overlay", "The input with changed pixels tinted and a box around each moving region"},
                              {"passthrough", "The unchanged input"}};  // rows as diff::Output
constexpr Choice modes[] = {
    {"absolute", "The absolute difference"},
    {"signed", "The signed difference, added to mid-gray"},
    {"squared", "The square of the difference, divided by the largest sample value"}};  // rows as diff::Mode
constexpr Choice shadow_choices[] = {{"keep", "A pixel in shadow has changed"}, {"drop", "A pixel in shadow has not changed"}};

/// Reads "x,y,w,h;x,y,w,h;…". An empty text is a list of no rectangles; no value if the text is something else.
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

constexpr guint most_regions = 65536;  // the largest max-regions

/// A sentence about the first rectangle that is outside of the frame; empty if there is none.
std::string outside_frame(const std::vector<Rect>& mask_regions, const Geometry& frame) {
  const auto text = [](std::initializer_list<int> numbers) {
    std::string text;
    for (int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
    return text;
  };
  for (const auto& [x, y, width, height] : mask_regions)
    if (x >= frame.width || y >= frame.height || gint64(x) + width <= 0 || gint64(y) + height <= 0)
      return "mask-regions has " + text({x, y, width, height}) + ", which masks nothing: it lies outside of the frame of " +
             size_text(frame.width, frame.height);
  return {};
}

/// The result for one frame.
struct Finding {
  FrameTimes times;
  bool moves = false, light = false;
  double changed_ratio = 0, mean_difference = 0;
  diff::MotionRegions regions;
};

void set_regions(GstStructure* message, const diff::MotionRegions& regions) {
  std::vector<GstStructure*> list;
  for (const auto& [box, area, score] : regions.kept)
    list.push_back(gst_structure_new("region", "x", G_TYPE_INT, box.x, "y", G_TYPE_INT, box.y, "width", G_TYPE_INT, box.width,
                                     "height", G_TYPE_INT, box.height, "area", G_TYPE_UINT, guint(area), "score", G_TYPE_DOUBLE,
                                     score, nullptr));
  take_structures(message, "regions", list);
  gst_structure_set(message, "regions-left-out", G_TYPE_UINT, guint(regions.left_out), nullptr);
}

/// Attaches regions of interest, which are in pixels of the uncropped frame.
void attach_rois(GstBuffer* buffer, const std::vector<diff::MotionRegion>& regions) {
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
      "Compares video frames with earlier ones and finds moving regions, on the GPU or the processor";

  struct Settings {
    int reference = int(diff::Reference::previous), output = int(diff::Output::difference), mode = int(diff::Mode::absolute),
        shadows = 0;
    guint interval = 1, history = 500, analysis_scale = 1, threshold = 15, open_radius = 1, cell_size = 16, min_area = 1,
          max_regions = 256, min_motion_frames = 1;
    double learning_rate = -1, variance_threshold = 16, gain = 1, shadow_threshold = 0.5, light_change_ratio = 0.6,
           cell_threshold = 0.2, motion_threshold = 0.002, gap = 5;
    bool light_compensation = true, luma_only = false, post_messages = true, attach_roi = true;
    guint64 message_interval = 0;
    std::string mask_regions;
  };

  struct Readings {
    double changed_ratio = 0;
    bool motion = false;
  };

  static std::vector<Property<Settings>> properties() {
    const Settings initial;
    return {
        {enum_property("reference", "Reference", "The picture that frames are compared with",
                       enum_from_table("GstCudaDiffReference", references), initial.reference),
         &Settings::reference},
        {uint_property("interval", "Interval", "Compare with the frame this many frames earlier, {}, if reference=previous", 1,
                       diff::max_interval, initial.interval),
         &Settings::interval},
        {double_property(
             "learning-rate", "Learning rate",
             "Share of the new frame in the background, if reference is background or mog2; a negative value is automatic, {}", -1,
             1, initial.learning_rate),
         &Settings::learning_rate},
        {uint_property("history", "History", "Number of frames that decide an automatic learning rate, {}, if reference=mog2", 1,
                       diff::max_history, initial.history),
         &Settings::history},
        {double_property("variance-threshold", "Variance threshold",
                         "Squared distance from the background from which a pixel has changed, in variances, {}, if reference=mog2",
                         0, diff::max_variance_threshold, initial.variance_threshold),
         &Settings::variance_threshold},
        {enum_property("output", "Output", "The output picture", enum_from_table("GstCudaDiffOutput", outputs), initial.output),
         &Settings::output},
        {enum_property("mode", "Mode", "How the difference is displayed", enum_from_table("GstCudaDiffMode", modes), initial.mode),
         &Settings::mode},
        {uint_property(
             "analysis-scale", "Analysis scale",
             "Compare frames at 1/2, 1/4 or 1/8 of their size: 1, 2, 4 or 8. Outputs and boxes stay in pixels of the frame", 1, 8,
             initial.analysis_scale),
         &Settings::analysis_scale},
        {uint_property("threshold", "Threshold",
                       "A pixel has changed if its difference is greater, {} in 8-bit steps; 0 with reference=background is "
                       "automatic, from the "
                       "noise of each pixel; not used if reference=mog2",
                       0, 255, initial.threshold),
         &Settings::threshold},
        {bool_property("light-compensation", "Light compensation",
                       "Take changes of the light, such as clouds and flicker, out of the difference, if reference=background and "
                       "threshold=0",
                       initial.light_compensation),
         &Settings::light_compensation},
        {enum_property("shadows", "Shadows", "Whether pixels in shadow have changed, if reference is background or mog2",
                       enum_from_table("GstCudaDiffShadows", shadow_choices), initial.shadows),
         &Settings::shadows},
        {double_property("shadow-threshold", "Shadow threshold",
                         "Least brightness of a shadow, as share of the brightness of the background, {}, if shadows=drop", 0, 1,
                         initial.shadow_threshold),
         &Settings::shadow_threshold},
        {double_property("light-change-ratio", "Light change ratio",
                         "Share of pixels that change at once if light is switched or the scene cuts: no motion, and the reference "
                         "begins anew; 0 is off, {}",
                         0, 1, initial.light_change_ratio),
         &Settings::light_change_ratio},
        {double_property("gain", "Gain", "Factor for the displayed difference, {}", 0, diff::max_gain, initial.gain),
         &Settings::gain},
        {bool_property("luma-only", "Luma only",
                       "Compare and display luma only; otherwise a pixel has changed if one of its channels has",
                       initial.luma_only),
         &Settings::luma_only},
        {uint_property("open-radius", "Open radius",
                       "Remove specks of up to twice this size from the mask by erosion and dilation, in pixels, {}", 0,
                       diff::max_open_radius, initial.open_radius),
         &Settings::open_radius},
        {uint_property("cell-size", "Cell size", "Width and height of the cells in which changed pixels are counted, in pixels, {}",
                       diff::min_cell, diff::max_cell, initial.cell_size),
         &Settings::cell_size},
        {double_property("cell-threshold", "Cell threshold", "Share of changed pixels from which a cell moves, {}", 0, 1,
                         initial.cell_threshold),
         &Settings::cell_threshold},
        {uint_property("min-area", "Least area", "Size of the smallest region, in cells", 1, G_MAXINT, initial.min_area),
         &Settings::min_area},
        {uint_property(
             "max-regions", "Most regions",
             "Number of regions of a frame that are reported, attached and drawn; larger regions come first, then those of higher "
             "score",
             1, most_regions, initial.max_regions),
         &Settings::max_regions},
        {double_property("motion-threshold", "Motion threshold",
                         "Share of changed pixels of the frame from which there is motion, {}", 0, 1, initial.motion_threshold),
         &Settings::motion_threshold},
        {uint_property("min-motion-frames", "Least motion frames", "Number of consecutive frames with motion before motion begins",
                       1, G_MAXINT, initial.min_motion_frames),
         &Settings::min_motion_frames},
        {double_property("gap", "Gap", "Time without motion before motion ends, in seconds", 0, 1e6, initial.gap), &Settings::gap},
        {g_param_spec_string("mask-regions", "Masked regions", "Rectangles that are ignored, in pixels: \"x,y,w,h;x,y,w,h\"",
                             nullptr, uncontrolled_property),
         &Settings::mask_regions},
        {bool_property("post-messages", "Post messages", "Post element messages on the bus", initial.post_messages),
         &Settings::post_messages},
        {g_param_spec_uint64("message-interval", "Message interval",
                             "Time between messages while motion neither begins nor ends, in ns; 0 posts a message for each frame",
                             0, G_MAXUINT64, initial.message_interval, playing_property),
         &Settings::message_interval},
        {bool_property("attach-roi", "Attach ROI", "Attach a GstVideoRegionOfInterestMeta of type motion for each region",
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

  /// A sentence about the properties that have no effect with the chosen reference; empty if there are none.
  static std::string without_effect(const Settings& settings) {
    using diff::Reference;
    const auto reference = Reference(settings.reference);
    const bool mog2 = reference == Reference::mog2, adapts = mog2 || reference == Reference::background;
    const Settings initial;
    const std::tuple<const char*, bool, bool> rows[] = {
        // name, is set, has an effect
        {"interval", settings.interval != initial.interval, reference == Reference::previous},
        {"learning-rate", settings.learning_rate >= 0, adapts},
        {"history", settings.history != initial.history, mog2},
        {"variance-threshold", settings.variance_threshold != initial.variance_threshold, mog2},
        {"light-compensation", !settings.light_compensation, reference == Reference::background && settings.threshold == 0},
        {"shadows", settings.shadows != initial.shadows, adapts},
        {"shadow-threshold", settings.shadow_threshold != initial.shadow_threshold, adapts},
        {"threshold", settings.threshold != initial.threshold, !mog2}};
    std::string names;
    bool several = false;
    for (const auto& [name, is_set, has_effect] : rows) {
      if (!is_set || has_effect) continue;
      several = !names.empty();
      names += (several ? ", " : "") + std::string(name);
    }
    if (names.empty()) return {};
    return names + (several ? " have" : " has") + " no effect with reference=" + references[settings.reference].nick;
  }

 private:
  static diff::Params params_of(const Settings& settings) {
    diff::Params params;
    params.reference = diff::Reference(settings.reference);
    params.interval = int(settings.interval);
    params.learning_rate = settings.learning_rate;
    params.history = int(settings.history);
    params.variance_threshold = settings.variance_threshold;
    params.output = diff::Output(settings.output);
    params.mode = diff::Mode(settings.mode);
    params.analysis_scale = int(settings.analysis_scale);
    params.threshold = int(settings.threshold);
    params.light_compensation = settings.light_compensation;
    params.drop_shadows = settings.shadows == 1;
    params.shadow_threshold = settings.shadow_threshold;
    params.light_change_ratio = settings.light_change_ratio;
    params.gain = settings.gain;
    params.luma_only = settings.luma_only;
    params.open_radius = int(settings.open_radius);
    params.cell_size = int(settings.cell_size);
    params.mask_regions = parse_rects(settings.mask_regions).value_or(std::vector<Rect>());
    params.in_flight = results_in_flight;
    return params;
  }
};

/// Finds when motion begins and ends. Times are running times in ns.
struct Motion {
  bool on = false;
  guint frames = 0;                           ///< consecutive frames with motion
  GstClockTime still = 0;                     ///< time since the last frame with motion
  GstClockTime last = GST_CLOCK_TIME_NONE;    ///< running time of the last frame
  GstClockTime unsaid = GST_CLOCK_TIME_NONE;  ///< time since the last message; NONE: no message yet

  /// Goes on to the next frame. `step` is the duration of frames without times. Returns the event of the message.
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
  DiffProcessor(std::unique_ptr<diff::Diff> diff, const DiffElement::Settings& settings, const GstVideoInfo& video)
      : diff_(std::move(diff)), settings_(settings) {
    const int rate_n = GST_VIDEO_INFO_FPS_N(&video), rate_d = GST_VIDEO_INFO_FPS_D(&video);
    frame_duration_ = rate_n > 0 ? gst_util_uint64_scale(GST_SECOND, guint64(rate_d), guint64(rate_n)) : GST_SECOND / 25;
  }

  /// Takes over the reference, if possible, and the state of motion.
  void continue_from(DiffProcessor& previous) {
    diff_->continue_from(*previous.diff_);
    motion_ = previous.motion_;
    found_ = std::move(previous.found_);
  }

  bool passes_through() const override { return output() == diff::Output::none; }
  bool adds_metas() const override { return settings_.attach_roi; }
  bool reads_results() const override { return output() != diff::Output::overlay; }  // then submit() has read them
  int results_kept() const override { return results_in_flight; }

  Status submit(const FrameJob& job) override {
    Status status = diff_->submit(job.src, job.dst ? *job.dst : Image{}, job.queue);
    tickets_[job.number % results_in_flight] = diff_->ticket();
    if (!status.ok() || output() != diff::Output::overlay) return status;
    if (status = job.wait(); !status.ok()) return status;
    measure(job.number);
    return diff_->draw_boxes(*job.dst, found_.regions.kept, job.queue);
  }

  void finished(const FrameReport& report) override {
    if (output() != diff::Output::overlay) measure(report.number);
    found_.times = report.times;
    if (settings_.attach_roi) attach_rois(report.buffer, found_.regions.kept);
    const bool was_on = motion_.on;
    const char* event = motion_.advance(found_.moves, report.times, frame_duration_, settings_);
    publish(report.element, was_on);
    if (found_.light) post(report.element, "light");
    if (motion_.on != was_on || !(motion_.unsaid < settings_.message_interval)) {
      motion_.unsaid = 0;
      post(report.element, event);
    }
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
  diff::Output output() const { return diff::Output(settings_.output); }

  /// Reads the result of the frame with this number from the plan.
  void measure(std::uint64_t number) {
    const diff::FrameResult result = diff_->result(tickets_[number % results_in_flight]);
    found_ = {{},
              result.changed > 0 && result.changed_ratio >= settings_.motion_threshold,
              result.light,
              result.changed_ratio,
              result.mean_difference,
              result.changed > 0
                  ? diff::find_regions(result.cells, settings_.cell_threshold, int(settings_.min_area), settings_.max_regions)
                  : diff::MotionRegions()};
  }

  void publish(GstElement* element, bool was_on) const {
    FilterElement<DiffElement>::publish(element, {found_.changed_ratio, motion_.on});
    if (motion_.on != was_on) g_object_notify(G_OBJECT(element), "motion");
  }

  void post(GstElement* element, const char* event) {
    if (!settings_.post_messages) return;
    GstStructure* message = new_message(DiffElement::element_name, found_.times);
    gst_structure_set(message, "event", G_TYPE_STRING, event, "changed-ratio", G_TYPE_DOUBLE, found_.changed_ratio,
                      "mean-difference", G_TYPE_DOUBLE, found_.mean_difference, nullptr);
    set_regions(message, found_.regions);
    post_message(element, message);
  }

  const std::unique_ptr<diff::Diff> diff_;
  const DiffElement::Settings settings_;
  GstClockTime frame_duration_;
  Motion motion_;
  Finding found_;                                  ///< the result for the last frame that was reported
  std::uint64_t tickets_[results_in_flight] = {};  ///< of the last frames, by their numbers
};

Result<FilterPlan> DiffElement::make_plan(const Settings& settings, const PlanContext& context) {
  if (context.region != Region::Mode::frame)
    return Status::settings(std::string("region is ") + region_name(context.region) +
                            ": cudadiff looks at the whole frame; use mask-regions to leave parts out");
  const diff::Params params = params_of(settings);
  const Geometry geometry = geometry_of(context.video);
  auto diff = diff::make(params, geometry, context.backend);
  if (!diff.ok()) return diff.error();
  auto processor = std::make_unique<DiffProcessor>(std::move(diff.value()), settings, context.video);
  if (context.previous) processor->continue_from(static_cast<DiffProcessor&>(*context.previous));
  std::string advice = outside_frame(params.mask_regions, geometry);
  if (const std::string text = without_effect(settings); !text.empty()) advice += (advice.empty() ? "" : "; ") + text;
  return FilterPlan{std::move(processor), std::move(advice)};
}

}  // namespace

bool register_diff(GstPlugin* plugin) { return FilterElement<DiffElement>::register_in(plugin); }

}  // namespace cudavision
