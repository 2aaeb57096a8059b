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

/// The settings that differ between presets; preset_values() has those that all presets share.
struct PresetRow {
  Preset preset;
  double noise_limit, shadow_threshold, cell_threshold;
  guint min_motion_frames;
  double gap;
};
constexpr PresetRow preset_rows[] = {
    {Preset::indoor, 0, 0.7, 0.5, 1, 2},  // lamps and walls brighten the shadows in a room
    {Preset::outdoor, 0, 0.5, 0.5, 2, 5},
    {Preset::low_light, 0, 0.5, 0.35, 1, 5},
    {Preset::road, 17, 0.5, 0.5, 2, 1}};  // a pixel that vehicles cover in every second frame is not noise

constexpr bool has_row(int preset) {
  for (const PresetRow& row : preset_rows)
    if (int(row.preset) == preset) return true;
  return false;
}
constexpr bool every_preset_has_a_row() {
  for (const Choice& preset : presets)
    if (preset.value != int(Preset::custom) && !has_row(preset.value)) return false;
  return true;
}
static_assert(every_preset_has_a_row());

constexpr guint most_regions = 65536;  // the largest max-regions

/// A sentence about the first rectangle outside the frame; empty if there is none.
std::string outside_frame(const std::vector<Shape>& mask_regions, const Geometry& frame) {
  for (const Shape& shape : mask_regions)
    if (shape.rectangle &&
        intersection(rect_in(shape, frame.width, frame.height), {0, 0, frame.width, frame.height}).empty())
      return "mask-regions has " + shape.text + ", which masks nothing: it lies outside the frame of " +
             size_text(frame.width, frame.height);
  return {};
}

/// The zones and lines in a frame. Errors: settings.
Result<NamedPlaces> places_in(const std::string& zones, const std::string& lines, const Geometry& frame,
                              ShapeFitting& fitting) {
  NamedPlaces result;
  for (const auto& [property, kind, text] :
       {std::tuple("zones", ShapeKind::zones, &zones), {"lines", ShapeKind::lines, &lines}}) {
    const auto shapes = fitting.accept(property, kind, *text);
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
  static constexpr bool examines = true, sends_data = false;
  static constexpr const char* description =
      "Compares video frames with earlier ones and finds moving regions, on the GPU or the processor";

  struct Settings : MotionSettings {
    Preset preset = Preset::custom;
    std::string masks, zones, lines;
  };
  using Readings = MotionReadings;
  using Row = Property<Settings>;

  static std::vector<Row> reference_properties() {
    return {
        Row::choice("preset", "Preset", &Settings::preset, enum_from_table("GstCudaDiffPreset", presets),
                    "Values for the properties of motion detection with a fixed camera; they do not override "
                    "properties that are set")
            .with_preset(preset_values),
        Row::choice("reference", "Reference", &Settings::reference, enum_from_table("GstCudaDiffReference", references),
                    "The picture that frames are compared with"),
        Row::count("interval", "Interval", &Settings::interval, 1, diff::max_interval,
                   "Compare with the frame this many frames earlier, {}, if reference=previous"),
        Row::number("learning-rate", "Learning rate", &Settings::learning_rate, -1, 1,
                    "Share of the new frame in the background, if reference is background or mog2; if it is median, "
                    "how far the background moves in a frame at most, in 8-bit steps. A negative value is automatic, "
                    "{}"),
        Row::count("history", "History", &Settings::history, 1, diff::max_history,
                   "Number of frames that decide an automatic learning rate, {}, if reference=mog2"),
        Row::number("variance-threshold", "Variance threshold", &Settings::variance_threshold, 0,
                    diff::max_variance_threshold,
                    "Squared distance from the background from which a pixel has changed, in variances, {}, if "
                    "reference=mog2"),
    };
  }

  static std::vector<Row> comparison_properties() {
    return {
        Row::choice("output", "Output", &Settings::output, enum_from_table("GstCudaDiffOutput", outputs),
                    "The output picture"),
        Row::choice("mode", "Mode", &Settings::mode, enum_from_table("GstCudaDiffMode", modes),
                    "How the difference is displayed"),
        Row::count("analysis-scale", "Analysis scale", &Settings::analysis_scale, 0, 8,
                   "Compare frames at 1/2, 1/4 or 1/8 of their size: 1, 2, 4 or 8, others count as the next lower one; "
                   "0 follows the size. Outputs and boxes stay in pixels of the frame"),
        Row::count("threshold", "Threshold", &Settings::threshold, 0, 255,
                   "A pixel has changed if its difference is greater, {} in 8-bit steps; 0 with reference=background "
                   "is adaptive: it follows the noise of each pixel; not used if reference=mog2"),
        Row::flag("light-compensation", "Light compensation", &Settings::light_compensation,
                  "Remove changes of the light, such as clouds and flicker, from the difference, if "
                  "reference=background and threshold=0"),
        Row::number("noise-limit", "Noise limit", &Settings::noise_limit, 0, 255,
                    "Largest standard deviation of the noise of a pixel, {} in 8-bit steps, if reference=background "
                    "and threshold=0; 0 is no limit, except 12 in lanes"),
        Row::choice("shadows", "Shadows", &Settings::drop_shadows,
                    enum_from_table("GstCudaDiffShadows", shadow_choices),
                    "Whether pixels in shadow have changed, if reference is background, mog2 or median"),
        Row::number(
            "shadow-threshold", "Shadow threshold", &Settings::shadow_threshold, 0, 1,
            "Lowest brightness of a shadow, as a share of the brightness of the background, {}, if shadows=drop"),
        Row::number("light-change-ratio", "Light change ratio", &Settings::light_change_ratio, 0, 1,
                    "Share of pixels that change at once if light is switched or the scene cuts: no motion, and the "
                    "reference restarts; 0 is off, {}"),
        Row::number("gain", "Gain", &Settings::gain, 0, diff::max_gain, "Factor for the displayed difference, {}"),
        Row::flag("luma-only", "Luma only", &Settings::luma_only,
                  "Compare and display luma only; otherwise a pixel has changed if one of its channels has"),
    };
  }

  static std::vector<Row> region_properties() {
    return {
        Row::count("open-radius", "Open radius", &Settings::open_radius, 0, diff::max_open_radius,
                   "Remove specks of up to twice this size from the mask by erosion and dilation, in pixels, {}"),
        Row::count("cell-size", "Cell size", &Settings::cell_size, 0, diff::max_cell,
                   "Width and height of the cells in which changed pixels are counted, in pixels: 4 to 1024 (less "
                   "counts as 4), or 0, which follows the size of the frame"),
        Row::number("cell-threshold", "Cell threshold", &Settings::cell_threshold, 0, 1,
                    "Smallest share of changed pixels in a moving cell, {}"),
        Row::count("min-area", "Least area", &Settings::min_area, 1, G_MAXINT,
                   "Size of the smallest region that counts, in cells"),
        Row::count(
            "max-area", "Largest area", &Settings::max_area, 1, G_MAXINT,
            "Size of the largest region that counts, in cells; larger objects do not count even where they enter and "
            "leave"),
        Row::count("region-distance", "Region distance", &Settings::region_distance, 1, diff::max_region_distance,
                   "Moving cells are one region if fewer cells than this lie between them, {}; 1 links cells that "
                   "touch"),
        Row::count("max-regions", "Most regions", &Settings::max_regions, 1, most_regions,
                   "Number of regions of a frame that are reported, attached and drawn; larger regions come first, "
                   "then regions with a higher score"),
        Row::number("motion-threshold", "Motion threshold", &Settings::motion_threshold, 0, 1,
                    "There is motion if a region is found and at least this share of the pixels changed, {}"),
        Row::count("min-motion-frames", "Least motion frames", &Settings::min_motion_frames, 1, G_MAXINT,
                   "Number of consecutive frames with motion before motion begins"),
        Row::number("gap", "Gap", &Settings::gap, 0, 1e6, "Time without motion before motion ends, in seconds"),
        Row::text("mask-regions", "Masked regions", &Settings::masks,
                  "Parts that are ignored: rectangles and polygons, \"x,y,w,h;x,y x,y x,y\""),
    };
  }

  static std::vector<Row> object_properties() {
    return {
        Row::flag("track", "Track", &Settings::track,
                  "Follow objects from frame to frame: regions of interest and messages have their ids"),
        Row::count("track-min-frames", "Minimum frames of an object", &Settings::track_min_frames, 1, G_MAXINT,
                   "Number of consecutive frames in which an object is seen before it is confirmed"),
        Row::number("track-hold", "Hold of an object", &Settings::track_hold, 0, 1e6,
                    "Time that an object stays without being seen, in seconds"),
        Row::number("still-time", "Still time", &Settings::still_time, 0, 86400,
                    "Time that an object stands still until it has stopped, in seconds: the messages stopped and "
                    "moving"),
        Row::number("absorb-time", "Absorb time", &Settings::absorb_time, 0, 86400,
                    "Time that an object stands still until it becomes background, in seconds, if "
                    "reference=background and threshold=0; 0 is never"),
        Row::number("forget-after", "Forget after", &Settings::forget_after, 0, 86400,
                    "Time without frames, in seconds, after which background and objects restart with the next frame; "
                    "0 is never. They continue after a shorter gap, such as lost frames"),
        Row::text("zones", "Zones", &Settings::zones,
                  "Polygons that objects enter and leave: \"NAME: x,y x,y x,y; NAME: …\""),
        Row::text("lines", "Lines", &Settings::lines, "Directed lines that objects cross: \"NAME: x,y x,y; NAME: …\""),
    };
  }

  static std::vector<Row> message_properties() {
    return {
        Row::flag("post-messages", "Post messages", &Settings::post_messages, "Post element messages on the bus"),
        Row::time("message-interval", "Message interval", &Settings::message_interval,
                  "Time whose frames a message sums up, in ns; 0 posts a message for each frame"),
        Row::flag("attach-roi", "Attach ROI", &Settings::attach_roi,
                  "Attach a GstVideoRegionOfInterestMeta of type motion for each region"),
    };
  }

  static std::vector<Row> properties() {
    std::vector<Row> all;
    for (const auto& part : {reference_properties(), comparison_properties(), region_properties(), object_properties(),
                             message_properties()})
      append(all, part);
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
    for (const auto& [property, kind, text] : {std::tuple("mask-regions", ShapeKind::areas, &settings.masks),
                                               {"zones", ShapeKind::zones, &settings.zones},
                                               {"lines", ShapeKind::lines, &settings.lines}})
      if (const auto shapes = parse_shapes(property, kind, *text); !shapes.ok()) return shapes.error();
    return {};
  }

  static Result<FilterPlan> make_plan(const Settings& settings, const PlanContext& context);

  /// Sentences about properties that are set but have no effect because of another property; empty if there are none.
  static std::string without_effect(const Settings& settings) {
    using diff::Reference;
    const Reference reference = settings.reference;
    const bool background = reference == Reference::background, mog2 = reference == Reference::mog2,
               adapts = mog2 || background || reference == Reference::median;
    const auto first_of = [](const std::string& a, const std::string& b) { return a.empty() ? b : a; };
    const std::string compared = std::string("reference=") + nick_of(settings.reference, references);
    const std::string without_model = unless(adapts, compared), without_mixture = unless(mog2, compared);
    const std::string not_shown =
        unless(settings.output == diff::Output::difference, std::string("output=") + nick_of(settings.output, outputs));
    const std::string not_adaptive =
        unless(is_adaptive(settings), background ? "threshold=" + std::to_string(settings.threshold) : compared);
    const std::string not_tracked = unless(settings.track, "track=false");
    const std::string not_posted = unless(settings.post_messages, "post-messages=false");
    const bool absorbed_first =
        not_adaptive.empty() && settings.absorb_time > 0 && settings.still_time >= settings.absorb_time;
    // Properties, and the settings that make them ineffective.
    const std::vector<Effect> rows{
        {"interval", unless(reference == Reference::previous, compared)},
        {"learning-rate", unless(settings.learning_rate < 0, without_model)},
        {"history", first_of(without_mixture, unless(settings.learning_rate < 0,
                                                     "learning-rate=" + number_text(settings.learning_rate)))},
        {"variance-threshold", without_mixture},
        {"mode", not_shown},
        {"threshold", unless(!mog2, compared)},
        {"light-compensation", not_adaptive},
        {"noise-limit", not_adaptive},
        {"shadows", without_model},
        {"shadow-threshold", first_of(without_model, unless(settings.drop_shadows, "shadows=keep"))},
        {"gain", not_shown},
        {"track-min-frames", not_tracked},
        {"track-hold", not_tracked},
        {"still-time",
         first_of(not_tracked, unless(!absorbed_first, "absorb-time=" + number_text(settings.absorb_time))),
         absorbed_first},
        {"absorb-time", first_of(not_tracked, not_adaptive)},
        {"zones", first_of(not_tracked,
                           unless(settings.attach_roi, not_posted.empty() ? "" : not_posted + " attach-roi=false"))},
        {"lines", first_of(not_tracked, not_posted)},
        {"message-interval", not_posted}};
    return cudavision::without_effect(FilterElement<DiffElement>::properties(), settings, preset_values(settings),
                                      rows);
  }

  /// Sentences about properties whose values exclude all results in frames of this size; empty if there are none. A
  /// controller may drive these properties, so the sentences do not name values.
  static std::string leaves_nothing(const Settings& settings, const diff::Params& params, const GstVideoInfo& video) {
    std::string text;
    const int cells = divide_up(GST_VIDEO_INFO_WIDTH(&video), params.cell_size) *
                      divide_up(GST_VIDEO_INFO_HEIGHT(&video), params.cell_size);
    if (settings.min_area > guint(cells))
      text = "min-area is more than the " + std::to_string(cells) + " cells of a frame: there are no regions";
    if (settings.light_change_ratio > 0 && settings.motion_threshold > settings.light_change_ratio)
      text = both(
          text, "motion-threshold is above light-change-ratio: a frame that changes so much does not count as motion");
    return text;
  }

 private:
  /// The settings of a preset, for a fixed camera.
  static Settings preset_values(const Settings& settings) {
    Settings values;
    values.preset = settings.preset;
    if (settings.preset == Preset::custom) return values;
    values.reference = diff::Reference::background;
    values.threshold = values.analysis_scale = values.cell_size = 0;
    values.drop_shadows = true;
    values.min_area = 3;
    for (const PresetRow& row : preset_rows)
      if (row.preset == settings.preset) {
        values.noise_limit = row.noise_limit;
        values.shadow_threshold = row.shadow_threshold;
        values.cell_threshold = row.cell_threshold;
        values.min_motion_frames = row.min_motion_frames;
        values.gap = row.gap;
      }
    return values;
  }

  /// analysis-scale=0: frames with a width of 320 pixels or more are compared at a width of about 320 pixels. Other
  /// values count as the next lower supported scale.
  static int scale_for(int wanted, int width) {
    if (wanted == 0) return width < 320 ? 1 : width < 960 ? 2 : width < 2560 ? 4 : 8;
    return wanted < 2 ? 1 : wanted < 4 ? 2 : wanted < 8 ? 4 : 8;
  }
  /// cell-size=0: 1/48 of the width, in whole compared pixels.
  static int cell_for(int width, int scale) {
    return std::clamp((width + 24 * scale) / (48 * scale) * scale, diff::min_cell, diff::max_cell);
  }

  /// What to measure in cells. Tracking needs all looks, to distinguish objects. Regions need extents for tight boxes,
  /// if the boxes are shown. An adaptive background needs extents, so that light does not become a region.
  static diff::Looks looks_for(const Settings& settings) {
    if (settings.track) return diff::Looks::all;
    const bool shown = settings.post_messages || settings.attach_roi || settings.output == diff::Output::overlay;
    return shown || is_adaptive(settings) ? diff::Looks::extents : diff::Looks::none;
  }

  /// `width`: the width of the frame, for values that depend on it.
  static diff::Params params_of(const Settings& settings, int width) {
    diff::Params params = settings;
    params.analysis_scale = scale_for(settings.analysis_scale, width);
    params.cell_size =
        settings.cell_size == 0 ? cell_for(width, params.analysis_scale) : std::max(settings.cell_size, diff::min_cell);
    params.looks = looks_for(settings);
    params.in_flight = results_in_flight;
    return params;
  }
};

Result<FilterPlan> DiffElement::make_plan(const Settings& settings, const PlanContext& context) {
  if (context.region != Region::Mode::frame)
    return Status::settings(std::string("region is ") + region_name(context.region) +
                            ": cudadiff looks at the whole frame; use mask-regions to exclude parts");
  const Geometry geometry = geometry_of(context.video);
  diff::Params params = params_of(settings, geometry.width);
  ShapeFitting fitting(context.fitted, geometry.width, geometry.height);
  const auto masked = fitting.accept("mask-regions", ShapeKind::areas, settings.masks);
  if (!masked.ok()) return masked.error();
  auto pixels = pixels_in("mask-regions", masked.value(), geometry.width, geometry.height);
  if (!pixels.ok()) return pixels.error();
  params.mask_regions = std::move(pixels.value());
  auto places = places_in(settings.zones, settings.lines, geometry, fitting);
  if (!places.ok()) return places.error();
  auto diff = diff::make(params, geometry, context.backend);
  if (!diff.ok()) return diff.error();
  if (!context.kept) context.kept = std::make_shared<RunCounts>();
  DiffContext rest{settings, std::move(places.value()), context.video,
                   std::static_pointer_cast<RunCounts>(context.kept), context.previous};
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
