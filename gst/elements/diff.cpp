// SPDX-License-Identifier: LGPL-2.1-or-later
// cudadiff: frame differencing and motion (docs/elements/cudadiff.md).
#include "kernels/diff/diff.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "gst/base/filter/filter_element.hpp"
#include "gst/base/frame.hpp"
#include "gst/base/shapes.hpp"
#include "gst/elements/diff_processor.hpp"
#include "gst/elements/elements.hpp"

namespace cudavision {
namespace {

constexpr Choice references[] = {
    {diff::Reference::previous, "previous", "An earlier frame; interval is the distance"},
    {diff::Reference::first, "first", "The first frame"},
    {diff::Reference::background, "background", "The running average of the earlier frames, see learning-rate"},
    {diff::Reference::mog2, "mog2", "A mixture of Gaussians for each pixel"},
    {diff::Reference::median, "median", "The running median of the earlier frames, see learning-rate"}};
constexpr Choice outputs[] = {
    {diff::Output::difference, "difference", "The difference from the reference"},
    {diff::Output::mask, "mask", "Changed pixels are white, others black"},
    {diff::Output::overlay, "overlay", "The input with changed pixels tinted and a box around each moving region"},
    {diff::Output::none, "passthrough", "The unchanged input"}};
constexpr Choice modes[] = {
    {diff::Mode::absolute, "absolute", "The absolute difference"},
    {diff::Mode::signed_, "signed", "The signed difference, added to mid-gray"},
    {diff::Mode::squared, "squared", "The square of the difference, divided by the largest sample value"}};
constexpr Choice shadow_choices[] = {{false, "keep", "A pixel in shadow has changed"},
                                     {true, "drop", "A pixel in shadow has not changed"}};

enum class Preset { custom, indoor, outdoor, low_light, road };
constexpr Choice presets[] = {
    {Preset::custom, "custom", "The defaults of all properties"},
    {Preset::indoor, "indoor", "Rooms: lamps that are switched and flicker, shadows, people near the camera"},
    {Preset::outdoor, "outdoor", "Yards and streets: clouds, swaying trees, rain, shaking masts"},
    {Preset::low_light, "low-light", "Dark scenes with faint objects and noise of the sensor"},
    {Preset::road, "road", "Lanes on which vehicles follow each other all the time"}};

constexpr guint most_regions = 65536;  // the largest max-regions

/// A sentence about the first rectangle that is outside of the frame; empty if there is none.
std::string outside_frame(const std::vector<Shape>& mask_regions, const Geometry& frame) {
  for (const Shape& shape : mask_regions)
    if (shape.rectangle &&
        intersection(rect_in(shape, frame.width, frame.height), {0, 0, frame.width, frame.height}).empty())
      return "mask-regions has " + shape.text + ", which masks nothing: it lies outside of the frame of " +
             size_text(frame.width, frame.height);
  return {};
}

/// Zones and lines in a frame. Errors: settings.
Result<NamedPlaces> places_in(const std::string& zones, const std::string& lines, const Geometry& frame,
                              ShapeFitting& fitting) {
  NamedPlaces result;
  for (const auto& [property, kind, text] :
       {std::tuple("zones", ShapeKind::zones, &zones), {"lines", ShapeKind::lines, &lines}}) {
    const auto written = parse_shapes(property, kind, *text);
    if (!written.ok()) return written.error();
    const auto shapes = fitting.accept(property, written.value());
    if (!shapes.ok()) return shapes.error();
    for (const Shape& shape : shapes.value()) {
      auto points = points_in(property, shape, frame.width, frame.height);
      if (!points.ok()) return points.error();
      if (kind == ShapeKind::zones) {
        result.zones.push_back(shape.name);
        result.places.zones.push_back(std::move(points.value()));
      } else {
        result.lines.push_back(shape.name);
        result.places.lines.push_back({points.value()[0], points.value()[1]});
      }
    }
  }
  return result;
}

struct DiffElement {
  static constexpr const char* type_name = "GstCudaDiff";
  static constexpr const char* element_name = "cudadiff";
  static constexpr const char* long_name = "Frame difference and motion";
  static constexpr const char* klass = "Filter/Analyzer/Video";
  static constexpr bool examines = true;
  static constexpr const char* description =
      "Compares video frames with earlier ones and finds moving regions, on the GPU or the processor";

  struct Settings : MotionSettings {
    int preset = 0, reference = int(diff::Params().reference), mode = int(diff::Params().mode),
        shadows = diff::Params().drop_shadows;
    guint interval = guint(diff::Params().interval), history = guint(diff::Params().history),
          analysis_scale = guint(diff::Params().analysis_scale), threshold = guint(diff::Params().threshold),
          open_radius = guint(diff::Params().open_radius), cell_size = guint(diff::Params().cell_size);
    double learning_rate = diff::Params().learning_rate, variance_threshold = diff::Params().variance_threshold,
           gain = diff::Params().gain, shadow_threshold = diff::Params().shadow_threshold,
           light_change_ratio = diff::Params().light_change_ratio, noise_limit = diff::Params().noise_limit;
    bool light_compensation = diff::Params().light_compensation, luma_only = diff::Params().luma_only;
    std::string mask_regions, zones, lines;
  };
  using Readings = MotionReadings;

  static std::vector<Property<Settings>> reference_properties(const Settings& initial) {
    return {
        {enum_property(
             "preset", "Preset",
             "Values for the properties of motion detection with a fixed camera; those that are set by hand stay",
             enum_from_table("GstCudaDiffPreset", presets), initial.preset),
         &Settings::preset, nullptr, nullptr, preset_values},
        {enum_property("reference", "Reference", "The picture that frames are compared with",
                       enum_from_table("GstCudaDiffReference", references), initial.reference),
         &Settings::reference},
        {uint_property("interval", "Interval",
                       "Compare with the frame this many frames earlier, {}, if reference=previous", 1,
                       diff::max_interval, initial.interval),
         &Settings::interval},
        {double_property(
             "learning-rate", "Learning rate",
             "Share of the new frame in the background, if reference is background or mog2; if it is median, how far "
             "the background moves in a frame at most, in 8-bit steps. A negative value is automatic, {}",
             -1, 1, initial.learning_rate),
         &Settings::learning_rate},
        {uint_property("history", "History",
                       "Number of frames that decide an automatic learning rate, {}, if reference=mog2", 1,
                       diff::max_history, initial.history),
         &Settings::history},
        {double_property(
             "variance-threshold", "Variance threshold",
             "Squared distance from the background from which a pixel has changed, in variances, {}, if reference=mog2",
             0, diff::max_variance_threshold, initial.variance_threshold),
         &Settings::variance_threshold},
    };
  }

  static std::vector<Property<Settings>> comparison_properties(const Settings& initial) {
    return {
        {enum_property("output", "Output", "The output picture", enum_from_table("GstCudaDiffOutput", outputs),
                       initial.output),
         &Settings::output},
        {enum_property("mode", "Mode", "How the difference is displayed", enum_from_table("GstCudaDiffMode", modes),
                       initial.mode),
         &Settings::mode},
        {uint_property("analysis-scale", "Analysis scale",
                       "Compare frames at 1/2, 1/4 or 1/8 of their size: 1, 2, 4 or 8, others count as the next lower; "
                       "0 follows the size. Outputs and boxes stay in pixels of the frame",
                       0, 8, initial.analysis_scale),
         &Settings::analysis_scale},
        {uint_property("threshold", "Threshold",
                       "A pixel has changed if its difference is greater, {} in 8-bit steps; 0 with "
                       "reference=background is automatic, from the noise of each pixel; not used if reference=mog2",
                       0, 255, initial.threshold),
         &Settings::threshold},
        {bool_property("light-compensation", "Light compensation",
                       "Take changes of the light, such as clouds and flicker, out of the difference, if "
                       "reference=background and threshold=0",
                       initial.light_compensation),
         &Settings::light_compensation},
        {double_property("noise-limit", "Noise limit",
                         "Largest standard deviation of the noise of a pixel, {} in 8-bit steps, if "
                         "reference=background and threshold=0; 0 is no limit",
                         0, 255, initial.noise_limit),
         &Settings::noise_limit},
        {enum_property("shadows", "Shadows",
                       "Whether pixels in shadow have changed, if reference is background, mog2 or median",
                       enum_from_table("GstCudaDiffShadows", shadow_choices), initial.shadows),
         &Settings::shadows},
        {double_property(
             "shadow-threshold", "Shadow threshold",
             "Least brightness of a shadow, as share of the brightness of the background, {}, if shadows=drop", 0, 1,
             initial.shadow_threshold),
         &Settings::shadow_threshold},
        {double_property("light-change-ratio", "Light change ratio",
                         "Share of pixels that change at once if light is switched or the scene cuts: no motion, and "
                         "the reference begins anew; 0 is off, {}",
                         0, 1, initial.light_change_ratio),
         &Settings::light_change_ratio},
        {double_property("gain", "Gain", "Factor for the displayed difference, {}", 0, diff::max_gain, initial.gain),
         &Settings::gain},
        {bool_property("luma-only", "Luma only",
                       "Compare and display luma only; otherwise a pixel has changed if one of its channels has",
                       initial.luma_only),
         &Settings::luma_only},
    };
  }

  static std::vector<Property<Settings>> region_properties(const Settings& initial) {
    return {
        {uint_property("open-radius", "Open radius",
                       "Remove specks of up to twice this size from the mask by erosion and dilation, in pixels, {}", 0,
                       diff::max_open_radius, initial.open_radius),
         &Settings::open_radius},
        {uint_property("cell-size", "Cell size",
                       "Width and height of the cells in which changed pixels are counted, in pixels: 4 to 1024 (less "
                       "counts as 4), or 0, which follows the size of the frame",
                       0, diff::max_cell, initial.cell_size),
         &Settings::cell_size},
        {double_property("cell-threshold", "Cell threshold", "Share of changed pixels from which a cell moves, {}", 0,
                         1, initial.cell_threshold),
         &Settings::cell_threshold},
        {uint_property("min-area", "Least area", "Size of the smallest region that counts, in cells", 1, G_MAXINT,
                       initial.min_area),
         &Settings::min_area},
        {uint_property("max-area", "Largest area", "Size of the largest region that counts, in cells", 1, G_MAXINT,
                       initial.max_area),
         &Settings::max_area},
        {uint_property(
             "region-distance", "Region distance",
             "Moving cells are one region if fewer cells than this lie between them, {}; 1 links cells that touch", 1,
             diff::max_region_distance, initial.region_distance),
         &Settings::region_distance},
        {uint_property("max-regions", "Most regions",
                       "Number of regions of a frame that are reported, attached and drawn; larger regions come first, "
                       "then those of higher score",
                       1, most_regions, initial.max_regions),
         &Settings::max_regions},
        {double_property("motion-threshold", "Motion threshold",
                         "There is motion if a region is found and at least this share of the pixels changed, {}", 0, 1,
                         initial.motion_threshold),
         &Settings::motion_threshold},
        {uint_property("min-motion-frames", "Least motion frames",
                       "Number of consecutive frames with motion before motion begins", 1, G_MAXINT,
                       initial.min_motion_frames),
         &Settings::min_motion_frames},
        {double_property("gap", "Gap", "Time without motion before motion ends, in seconds", 0, 1e6, initial.gap),
         &Settings::gap},
        {g_param_spec_string("mask-regions", "Masked regions",
                             "Parts that are ignored: rectangles and polygons, \"x,y,w,h;x,y x,y x,y\"", nullptr,
                             uncontrolled_property),
         &Settings::mask_regions},
    };
  }

  static std::vector<Property<Settings>> object_properties(const Settings& initial) {
    return {
        {bool_property("track", "Track",
                       "Follow objects from frame to frame: regions of interest and messages have their ids",
                       initial.track),
         &Settings::track},
        {uint_property("track-min-frames", "Least frames of an object",
                       "Number of consecutive frames in which an object is seen before it is confirmed", 1, G_MAXINT,
                       initial.track_min_frames),
         &Settings::track_min_frames},
        {double_property("track-hold", "Hold of an object", "Time that an object stays without being seen, in seconds",
                         0, 1e6, initial.track_hold),
         &Settings::track_hold},
        {double_property(
             "still-time", "Still time",
             "Time that an object stands still until it has stopped, in seconds: the messages stopped and moving", 0,
             86400, initial.still_time),
         &Settings::still_time},
        {double_property("absorb-time", "Absorb time",
                         "Time that an object stands still until it becomes background, in seconds, if "
                         "reference=background and threshold=0; 0 is never",
                         0, 86400, initial.absorb_time),
         &Settings::absorb_time},
        {double_property("forget-after", "Forget after",
                         "Time without frames, in seconds, after which background and objects begin anew with the next "
                         "one; 0 is never. After less, as when frames are lost, they go on",
                         0, 86400, initial.forget_after),
         &Settings::forget_after},
        {g_param_spec_string("zones", "Zones", "Polygons that objects enter and leave: \"NAME: x,y x,y x,y; NAME: …\"",
                             nullptr, uncontrolled_property),
         &Settings::zones},
        {g_param_spec_string("lines", "Lines", "Directed lines that objects cross: \"NAME: x,y x,y; NAME: …\"", nullptr,
                             uncontrolled_property),
         &Settings::lines},
    };
  }

  static std::vector<Property<Settings>> message_properties(const Settings& initial) {
    return {
        {bool_property("post-messages", "Post messages", "Post element messages on the bus", initial.post_messages),
         &Settings::post_messages},
        {g_param_spec_uint64("message-interval", "Message interval",
                             "Time whose frames a message sums up, in ns; 0 posts a message for each frame", 0,
                             G_MAXUINT64, initial.message_interval, playing_property),
         &Settings::message_interval},
        {bool_property("attach-roi", "Attach ROI",
                       "Attach a GstVideoRegionOfInterestMeta of type motion for each region", initial.attach_roi),
         &Settings::attach_roi},
    };
  }

  static std::vector<Property<Settings>> properties() {
    const Settings initial;
    std::vector<Property<Settings>> all;
    for (const auto& part : {reference_properties(initial), comparison_properties(initial), region_properties(initial),
                             object_properties(initial), message_properties(initial)})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }

  static std::vector<Property<Readings>> readings() {
    const auto flags = GParamFlags(G_PARAM_READABLE | G_PARAM_STATIC_STRINGS);
    return {{g_param_spec_double("changed-ratio", "Changed ratio", "Share of changed pixels in the last frame", 0, 1, 0,
                                 flags),
             &Readings::changed_ratio},
            {g_param_spec_boolean("motion", "Motion", "Whether there is motion", FALSE, flags), &Readings::motion}};
  }

  static Status check(const Settings& settings) {
    if (Status status = validate(params_of(settings, 0)); !status.ok()) return status;
    if (settings.max_area < settings.min_area)
      return Status::settings("max-area is " + std::to_string(settings.max_area) +
                              ": it must be at least min-area, which is " + std::to_string(settings.min_area));
    for (const auto& [property, kind, text] : {std::tuple("mask-regions", ShapeKind::areas, &settings.mask_regions),
                                               {"zones", ShapeKind::zones, &settings.zones},
                                               {"lines", ShapeKind::lines, &settings.lines}})
      if (const auto shapes = parse_shapes(property, kind, *text); !shapes.ok()) return shapes.error();
    return {};
  }

  static Result<FilterPlan> make_plan(const Settings& settings, const PlanContext& context);

  /// Sentences about properties that are set but have no effect, because of another property; empty if there are none.
  static std::string without_effect(const Settings& settings) {
    using diff::Reference;
    const auto reference = Reference(settings.reference);
    const bool background = reference == Reference::background, mog2 = reference == Reference::mog2,
               adapts = mog2 || background || reference == Reference::median;
    const Settings initial = preset_values(settings);
    // The setting that takes the effect away; empty: the property has its effect.
    const auto unless = [](bool effect, const std::string& why) { return effect ? std::string() : why; };
    const auto first_of = [](const std::string& a, const std::string& b) { return a.empty() ? b : a; };
    const std::string compared = std::string("reference=") + nick_of(settings.reference, references);
    const std::string without_model = unless(adapts, compared), without_mixture = unless(mog2, compared);
    const std::string not_shown = unless(settings.output == int(diff::Output::difference),
                                         std::string("output=") + nick_of(settings.output, outputs));
    const std::string not_automatic =
        first_of(unless(background, compared),
                 unless(settings.threshold == 0, "threshold=" + std::to_string(settings.threshold)));
    const std::string not_tracked = unless(settings.track, "track=false");
    const std::string not_posted = unless(settings.post_messages, "post-messages=false");
    const bool absorbed_first =
        not_automatic.empty() && settings.absorb_time > 0 && settings.still_time >= settings.absorb_time;
    const std::vector<Effect> rows{
        // name, is set, what takes its effect away
        {"interval", settings.interval != initial.interval, unless(reference == Reference::previous, compared)},
        {"learning-rate", settings.learning_rate >= 0, without_model},
        {"history", settings.history != initial.history,
         first_of(without_mixture,
                  unless(settings.learning_rate < 0, "learning-rate=" + number_text(settings.learning_rate)))},
        {"variance-threshold", settings.variance_threshold != initial.variance_threshold, without_mixture},
        {"mode", settings.mode != initial.mode, not_shown},
        {"threshold", settings.threshold != initial.threshold, unless(!mog2, compared)},
        {"light-compensation", settings.light_compensation != initial.light_compensation, not_automatic},
        {"noise-limit", settings.noise_limit != initial.noise_limit, not_automatic},
        {"shadows", settings.shadows != initial.shadows, without_model},
        {"shadow-threshold", settings.shadow_threshold != initial.shadow_threshold,
         first_of(without_model, unless(settings.shadows == 1, "shadows=keep"))},
        {"gain", settings.gain != initial.gain, not_shown},
        {"track-min-frames", settings.track_min_frames != initial.track_min_frames, not_tracked},
        {"track-hold", settings.track_hold != initial.track_hold, not_tracked},
        {"still-time", settings.still_time != initial.still_time || absorbed_first,
         first_of(not_tracked, unless(!absorbed_first, "absorb-time=" + number_text(settings.absorb_time)))},
        {"absorb-time", settings.absorb_time != initial.absorb_time, first_of(not_tracked, not_automatic)},
        {"zones", !settings.zones.empty(),
         first_of(not_tracked,
                  unless(settings.attach_roi, not_posted.empty() ? "" : not_posted + " attach-roi=false"))},
        {"lines", !settings.lines.empty(), first_of(not_tracked, not_posted)},
        {"message-interval", settings.message_interval != initial.message_interval, not_posted}};
    return cudavision::without_effect(rows);
  }

  /// Sentences about properties that leave nothing for others to find in frames of this size; empty if there are
  /// none. A controller may drive these properties, so the sentences do not name their values.
  static std::string leaves_nothing(const Settings& settings, const diff::Params& params, const GstVideoInfo& video) {
    std::string text;
    const int cells = divide_up(GST_VIDEO_INFO_WIDTH(&video), params.cell_size) *
                      divide_up(GST_VIDEO_INFO_HEIGHT(&video), params.cell_size);
    if (settings.min_area > guint(cells))
      text = "min-area is more than the " + std::to_string(cells) + " cells of a frame: there are no regions";
    if (settings.light_change_ratio > 0 && settings.motion_threshold > settings.light_change_ratio)
      text = both(text, "motion-threshold is above light-change-ratio: a frame that changes so much is no motion");
    return text;
  }

 private:
  /// The settings of a preset, for a fixed camera.
  static Settings preset_values(const Settings& settings) {
    Settings values;
    values.preset = settings.preset;
    const auto preset = Preset(settings.preset);
    if (preset == Preset::custom) return values;
    const bool indoor = preset == Preset::indoor, road = preset == Preset::road;
    values.reference = int(diff::Reference::background);
    values.threshold = values.analysis_scale = values.cell_size = 0;
    values.shadows = 1;
    values.cell_threshold = preset == Preset::low_light ? 0.35 : 0.5;
    values.min_area = 3;
    values.min_motion_frames = preset == Preset::outdoor || road ? 2 : 1;
    values.gap = indoor ? 2 : road ? 1 : values.gap;
    // A pixel that vehicles cover in every second frame is no noise.
    values.noise_limit = road ? 17 : values.noise_limit;
    values.shadow_threshold = indoor ? 0.7 : values.shadow_threshold;  // lamps and walls light the shadows of a room
    return values;
  }

  /// analysis-scale=0: frames of 320 pixels and more are compared at about 320 pixels of width. Other values count as
  /// the next lower scale that exists.
  static int scale_for(guint wanted, int width) {
    if (wanted == 0) return width < 320 ? 1 : width < 960 ? 2 : width < 2560 ? 4 : 8;
    return wanted < 2 ? 1 : wanted < 4 ? 2 : wanted < 8 ? 4 : 8;
  }
  /// cell-size=0: a 48th of the width, in whole compared pixels.
  static int cell_for(int width, int scale) {
    return std::clamp((width + 24 * scale) / (48 * scale) * scale, diff::min_cell, diff::max_cell);
  }

  /// What to measure in cells. Tracking needs all looks, to tell objects apart. Regions need extents for tight boxes if
  /// something shows their boxes. An adaptive background needs extents so that light is no region.
  static diff::Looks looks_for(const Settings& settings) {
    if (settings.track) return diff::Looks::all;
    const bool automatic = settings.reference == int(diff::Reference::background) && settings.threshold == 0;
    const bool shown = settings.post_messages || settings.attach_roi || settings.output == int(diff::Output::overlay);
    return shown || automatic ? diff::Looks::extents : diff::Looks::none;
  }

  /// `width`: of the frame, for values that follow it.
  static diff::Params params_of(const Settings& settings, int width) {
    diff::Params params;
    params.reference = diff::Reference(settings.reference);
    params.interval = int(settings.interval);
    params.learning_rate = settings.learning_rate;
    params.history = int(settings.history);
    params.variance_threshold = settings.variance_threshold;
    params.output = diff::Output(settings.output);
    params.mode = diff::Mode(settings.mode);
    params.analysis_scale = scale_for(settings.analysis_scale, width);
    params.threshold = int(settings.threshold);
    params.light_compensation = settings.light_compensation;
    params.noise_limit = settings.noise_limit;
    params.drop_shadows = settings.shadows == 1;
    params.shadow_threshold = settings.shadow_threshold;
    params.light_change_ratio = settings.light_change_ratio;
    params.gain = settings.gain;
    params.luma_only = settings.luma_only;
    params.open_radius = int(settings.open_radius);
    params.cell_size = settings.cell_size == 0 ? cell_for(width, params.analysis_scale)
                                               : std::max(int(settings.cell_size), diff::min_cell);
    params.looks = looks_for(settings);
    params.cell_threshold = settings.cell_threshold;
    params.in_flight = results_in_flight;
    return params;
  }
};

Result<FilterPlan> DiffElement::make_plan(const Settings& settings, const PlanContext& context) {
  if (context.region != Region::Mode::frame)
    return Status::settings(std::string("region is ") + region_name(context.region) +
                            ": cudadiff looks at the whole frame; use mask-regions to leave parts out");
  const Geometry geometry = geometry_of(context.video);
  diff::Params params = params_of(settings, geometry.width);
  ShapeFitting fitting(context.fitted, geometry.width, geometry.height);
  const auto written = parse_shapes("mask-regions", ShapeKind::areas, settings.mask_regions);
  if (!written.ok()) return written.error();
  const auto masked = fitting.accept("mask-regions", written.value());
  if (!masked.ok()) return masked.error();
  auto pixels = pixels_in("mask-regions", masked.value(), geometry.width, geometry.height);
  if (!pixels.ok()) return pixels.error();
  params.mask_regions = std::move(pixels.value());
  auto places = places_in(settings.zones, settings.lines, geometry, fitting);
  if (!places.ok()) return places.error();
  auto diff = diff::make(params, geometry, context.backend);
  if (!diff.ok()) return diff.error();
  if (!context.kept) context.kept = std::make_shared<RunCounts>();
  MotionSettings motion = settings;
  motion.absorbs = params.reference == diff::Reference::background && params.threshold == 0;
  DiffContext rest{motion, std::move(places.value()), context.video, std::static_pointer_cast<RunCounts>(context.kept),
                   context.previous};
  std::string advice = both(both(fitting.left_out(), outside_frame(masked.value(), geometry)),
                            both(without_effect(settings), leaves_nothing(settings, params, context.video)));
  return FilterPlan{diff_processor(std::move(diff.value()), std::move(rest)), std::move(advice)};
}

}  // namespace

void publish_readings(GstElement* element, const MotionReadings& readings) {
  FilterElement<DiffElement>::publish(element, readings);
}

bool register_diff(GstPlugin* plugin) { return FilterElement<DiffElement>::register_in(plugin); }

}  // namespace cudavision
