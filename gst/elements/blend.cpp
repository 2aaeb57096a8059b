// SPDX-License-Identifier: LGPL-2.1-or-later
// cudablend: blends and composes the frames of its pads (docs/elements/cudablend.md).
#include <algorithm>
#include <string>

#include "gst/base/caps.hpp"
#include "gst/base/frame.hpp"
#include "gst/base/mixer/mixer_element.hpp"
#include "gst/elements/elements.hpp"

namespace cudavision {
namespace {

constexpr Choice background_choices[] = {
    {blend::Background::Kind::checker, "checker", "Gray squares"},
    {blend::Background::Kind::black, "black", "Black"},
    {blend::Background::Kind::white, "white", "White"},
    {blend::Background::Kind::transparent, "transparent", "Transparent, or black if the output has no alpha"},
    {blend::Background::Kind::color, "color", "The colour of background-color"}};
enum Layout { LAYOUT_MANUAL, LAYOUT_GRID };
constexpr Choice layout_choices[] = {{LAYOUT_MANUAL, "manual", "Each pad has a position and a size of its own"},
                                     {LAYOUT_GRID, "grid", "Pads fill cells of equal size in order, row by row"}};
constexpr Choice interpolation_choices[] = {
    {blend::Interpolation::nearest, "nearest", "The nearest pixel"},
    {blend::Interpolation::bilinear, "bilinear", "Interpolates between the nearest pixels"},
    {blend::Interpolation::area, "area",
     "The mean of the pixels that an output pixel covers; bilinear when enlarging"}};
constexpr Choice operator_choices[] = {
    {blend::Operator::source, "source", "The pad replaces colour and alpha of the picture below"},
    {blend::Operator::over, "over", "The pad lies over the picture below"},
    {blend::Operator::add, "add", "As over, but the alpha of both is added"},
    {blend::Operator::subtract, "subtract", "The picture below minus the pad"},
    {blend::Operator::multiply, "multiply", "The product of both, which is darker than both"},
    {blend::Operator::screen, "screen", "The inverse of the product of the inverses, which is lighter than both"},
    {blend::Operator::difference, "difference", "The absolute difference of both"},
    {blend::Operator::min, "min", "The darker of both"},
    {blend::Operator::max, "max", "The lighter of both"},
    {blend::Operator::average, "average", "The mean of both, weighted with alpha and 1 - alpha"}};
constexpr Choice sizing_choices[] = {
    {blend::SizingPolicy::none, "none", "The picture is stretched to the box"},
    {blend::SizingPolicy::keep_aspect_ratio, "keep-aspect-ratio",
     "The picture is as large as fits into the box, in its middle"},
    {blend::SizingPolicy::fill, "fill", "The picture fills the box, and is cropped at two sides"}};
constexpr Choice key_choices[] = {
    {blend::Key::Mode::none, "none", "All pixels of the pad show"},
    {blend::Key::Mode::color, "color", "Pixels like key-color are transparent"},
    {blend::Key::Mode::first_pixel, "first-pixel", "Pixels like the top left pixel of the picture are transparent"}};

// GObject refuses values outside of the ranges of these properties, and all combinations of values are valid.

struct BlendPadProperties {
  static constexpr const char* type_name = "GstCudaBlendPad";

  struct Settings {
    int xpos = 0, ypos = 0, width = -1, height = -1;
    double alpha = 1;
    int op = int(blend::Operator::over);
    int sizing_policy = int(blend::SizingPolicy::none);
    int key = int(blend::Key::Mode::none);
    guint key_color = 0;
    double key_tolerance = 0, key_softness = 0;
  };

  static std::vector<Property<Settings>> properties() {
    const auto position = [](const char* name, const char* nick, const char* blurb) {
      return g_param_spec_int(name, nick, blurb, -blend::max_position, blend::max_position, 0, playing_property);
    };
    const auto side = [](const char* name, const char* nick, const char* blurb) {
      return g_param_spec_int(name, nick, blurb, -1, blend::max_side, -1, playing_property);
    };
    const auto difference = [](const char* name, const char* nick, const char* blurb) {
      return g_param_spec_double(name, nick, blurb, 0, 255, 0, playing_property);
    };
    const Settings initial;
    return {
        {position("xpos", "X position", "Position of the left edge in the output, in pixels"), &Settings::xpos},
        {position("ypos", "Y position", "Position of the top edge in the output, in pixels"), &Settings::ypos},
        {side("width", "Width",
              "Width in the output, in pixels; -1 is the width of the picture; for 0 see zero-size-is-unscaled"),
         &Settings::width},
        {side("height", "Height",
              "Height in the output, in pixels; -1 is the height of the picture; for 0 see zero-size-is-unscaled"),
         &Settings::height},
        {g_param_spec_double("alpha", "Alpha", "Opacity of the picture", 0, 1, 1, playing_property), &Settings::alpha},
        {enum_property("operator", "Operator", "How the pad is blended with the picture below",
                       enum_from_table("GstCudaBlendOperator", operator_choices), initial.op),
         &Settings::op},
        {enum_property("sizing-policy", "Sizing policy", "How the picture is fitted into its box",
                       enum_from_table("GstCudaBlendSizingPolicy", sizing_choices), initial.sizing_policy),
         &Settings::sizing_policy},
        {enum_property("key", "Key", "Which pixels of the pad are transparent",
                       enum_from_table("GstCudaBlendKey", key_choices), initial.key),
         &Settings::key},
        {g_param_spec_uint("key-color", "Key colour", "Colour that is transparent, as 0xRRGGBB, if key=color", 0,
                           0xffffff, 0, playing_property),
         &Settings::key_color},
        {difference("key-tolerance", "Key tolerance",
                    "A pixel matches the key if no channel differs by more than this"),
         &Settings::key_tolerance},
        {difference("key-softness", "Key softness",
                    "Over this range of differences beyond key-tolerance, pixels change from transparent to opaque"),
         &Settings::key_softness},
    };
  }
};

struct BlendElement {
  static constexpr const char* type_name = "GstCudaBlend";
  static constexpr const char* element_name = "cudablend";
  static constexpr const char* long_name = "Blending and composing";
  static constexpr const char* klass = "Filter/Editor/Video/Compositor";
  static constexpr const char* description =
      "Converts, scales, keys and blends video of any formats and sizes into one, on the GPU or the processor";

  using Pad = BlendPadProperties;
  using Inputs = std::vector<SettledInput<Pad::Settings>>;

  struct Settings {
    int background = int(blend::Background::Kind::checker);
    guint background_color = 0xff000000;
    int layout = LAYOUT_MANUAL;
    guint columns = 0, rows = 0, gap = 0;
    int interpolation = int(blend::Interpolation::bilinear);
    bool zero_size_is_unscaled = true;
    bool ignore_inactive_pads = false;
  };

  static std::vector<Property<Settings>> properties() {
    const auto count = [](const char* name, const char* nick, const char* blurb) {
      return g_param_spec_uint(name, nick, blurb, 0, max_frame_side, 0, playing_property);
    };
    const Settings initial;
    return {
        {enum_property("background", "Background", "The picture below all pads",
                       enum_from_table("GstCudaBlendBackground", background_choices), initial.background),
         &Settings::background},
        {g_param_spec_uint("background-color", "Background colour",
                           "Colour of the background, as 0xAARRGGBB, if background=color", 0, G_MAXUINT32, 0xff000000,
                           playing_property),
         &Settings::background_color},
        {enum_property("layout", "Layout", "How pads are placed in the output",
                       enum_from_table("GstCudaBlendLayout", layout_choices), initial.layout),
         &Settings::layout},
        {count("columns", "Columns", "Number of columns of the grid; 0 makes the grid nearly square"),
         &Settings::columns},
        {count("rows", "Rows", "Number of rows of the grid; 0 makes the grid nearly square"), &Settings::rows},
        {count("gap", "Gap", "Distance between the cells of the grid, in pixels"), &Settings::gap},
        {enum_property("interpolation", "Interpolation", "How pictures are scaled",
                       enum_from_table("GstCudaBlendInterpolation", interpolation_choices), initial.interpolation),
         &Settings::interpolation},
        {bool_property("zero-size-is-unscaled", "Zero size is unscaled",
                       "Show a pad with width or height 0 at the size of its picture, instead of hiding it",
                       initial.zero_size_is_unscaled),
         &Settings::zero_size_is_unscaled},
        {bool_property("ignore-inactive-pads", "Ignore inactive pads",
                       "In live pipelines, do not wait for pads that have not received any data yet",
                       initial.ignore_inactive_pads),
         &Settings::ignore_inactive_pads},
    };
  }

  static void apply(GstAggregator* element, const Settings& settings) {
    gst_aggregator_set_ignore_inactive_pads(element, settings.ignore_inactive_pads);
  }

  static PictureSize natural_size(const Settings& settings, const Inputs& inputs, int par_n, int par_d);
  static MixerLayout lay_out(const Settings& settings, const Inputs& inputs, const GstVideoInfo& output);
};

using Settings = BlendElement::Settings;
using PadSettings = BlendElement::Pad::Settings;

// Layout
// ---------------------------------------------------------------------------------------------------------------------

blend::Pad to_blend(const PadSettings& settings) {
  blend::Pad pad;
  pad.alpha = settings.alpha;
  pad.op = blend::Operator(settings.op);
  pad.key.mode = blend::Key::Mode(settings.key);
  for (int c = 0; c < 3; ++c) pad.key.color[std::size_t(c)] = (settings.key_color >> (16 - 8 * c) & 0xff) / 255.0;
  pad.key.tolerance = settings.key_tolerance;
  pad.key.softness = settings.key_softness;
  return pad;
}

/// The size that a pad asks for in the output, for pixels of this aspect ratio, by the rules of compositor.
/// 0 × 0: the pad is hidden.
PictureSize box_size(const Settings& settings, const PadSettings& pad, const GstVideoInfo& video, int par_n,
                     int par_d) {
  const auto side = [&](int wanted, int own) {
    return wanted > 0 ? wanted : wanted < 0 || settings.zero_size_is_unscaled ? own : 0;
  };
  int width = side(pad.width, GST_VIDEO_INFO_WIDTH(&video)), height = side(pad.height, GST_VIDEO_INFO_HEIGHT(&video));
  if (width == 0 || height == 0) return {0, 0};
  if (blend::SizingPolicy(pad.sizing_policy) == blend::SizingPolicy::none) {
    guint n, d;
    if (!gst_video_calculate_display_ratio(&n, &d, guint(width), guint(height), guint(GST_VIDEO_INFO_PAR_N(&video)),
                                           guint(GST_VIDEO_INFO_PAR_D(&video)), guint(par_n), guint(par_d)))
      return {0, 0};
    // Keep the side that makes the other one a whole number; the height if both or none do.
    if (height % int(n) != 0 && width % int(d) == 0)
      height = int(std::min<guint64>(gst_util_uint64_scale_int(guint64(width), int(d), int(n)), blend::max_side));
    else
      width = int(std::min<guint64>(gst_util_uint64_scale_int(guint64(height), int(n), int(d)), blend::max_side));
  }
  return {width, height};
}

PictureSize BlendElement::natural_size(const Settings& settings, const Inputs& inputs, int par_n, int par_d) {
  const bool grid = settings.layout == LAYOUT_GRID;
  PictureSize size{0, 0};
  int count = 0;
  for (const auto& input : inputs) {
    const PadSettings& pad = input.settings;
    if (input.inactive) continue;
    ++count;
    if (!input.has_caps) continue;
    const PictureSize box = box_size(settings, grid ? PadSettings() : pad, input.video, par_n, par_d);
    if (box.width == 0) continue;
    size.width = std::max(size.width, box.width + (grid ? 0 : std::max(pad.xpos, 0)));
    size.height = std::max(size.height, box.height + (grid ? 0 : std::max(pad.ypos, 0)));
  }
  if (grid && size.width > 0) {
    // Cells have the size of the largest picture. They are scaled down if the output would be too large.
    const blend::GridShape shape = blend::grid_shape(count, int(settings.columns), int(settings.rows));
    const auto room = [&](int cells) { return double(max_frame_side - gint64(cells - 1) * settings.gap) / cells; };
    const double scale = std::min({1.0, room(shape.columns) / size.width, room(shape.rows) / size.height});
    const auto side = [&](int cell, int cells) {
      return std::max(int(cell * scale), 1) * gint64(cells) + gint64(cells - 1) * settings.gap;
    };
    return {int(CLAMP(side(size.width, shape.columns), 1, max_frame_side)),
            int(CLAMP(side(size.height, shape.rows), 1, max_frame_side))};
  }
  return {std::min(size.width, max_frame_side), std::min(size.height, max_frame_side)};
}

/// A sentence about pads that have no cell in the grid; empty if every pad has one. It is also empty if the gap leaves
/// no room for any cell, because a controller may drive the gap to that value.
std::string without_cell(const std::vector<Rect>& cells, const Settings& settings) {
  const auto shown = std::count_if(cells.begin(), cells.end(), [](const Rect& cell) { return !cell.empty(); });
  if (shown == 0 || std::size_t(shown) == cells.size()) return {};
  const blend::GridShape shape = blend::grid_shape(int(cells.size()), int(settings.columns), int(settings.rows));
  return "the grid of " + size_text(shape.columns, shape.rows) + " cells shows " + std::to_string(shown) + " of " +
         std::to_string(cells.size()) + " pads: set columns or rows to more, or to 0";
}

MixerLayout BlendElement::lay_out(const Settings& settings, const Inputs& inputs, const GstVideoInfo& output) {
  const int par_n = GST_VIDEO_INFO_PAR_N(&output), par_d = GST_VIDEO_INFO_PAR_D(&output);
  MixerLayout layout;
  layout.background = {blend::Background::Kind(settings.background), settings.background_color};
  std::vector<Rect> cells;
  std::size_t cell = 0;
  if (settings.layout == LAYOUT_GRID)
    cells = blend::grid_layout(
        int(std::count_if(inputs.begin(), inputs.end(), [](const auto& input) { return !input.inactive; })),
        int(settings.columns), int(settings.rows), int(settings.gap), GST_VIDEO_INFO_WIDTH(&output),
        GST_VIDEO_INFO_HEIGHT(&output));
  layout.advice = without_cell(cells, settings);
  for (const auto& input : inputs) {
    const PadSettings& wanted = input.settings;
    blend::Pad& pad = layout.pads.emplace_back(to_blend(wanted));
    pad.interpolation = blend::Interpolation(settings.interpolation);
    if (input.inactive) continue;
    Rect box;
    if (!cells.empty())
      box = cells[cell++];
    else if (input.has_caps) {
      const PictureSize size = box_size(settings, wanted, input.video, par_n, par_d);
      box = {wanted.xpos, wanted.ypos, size.width, size.height};
    }
    if (!input.has_caps) continue;
    const double pixel_aspect =
        double(GST_VIDEO_INFO_PAR_N(&input.video)) * par_d / (double(GST_VIDEO_INFO_PAR_D(&input.video)) * par_n);
    const blend::Fit fitted = fit(box, GST_VIDEO_INFO_WIDTH(&input.video), GST_VIDEO_INFO_HEIGHT(&input.video),
                                  pixel_aspect, blend::SizingPolicy(wanted.sizing_policy));
    pad.place = fitted.place;
    pad.crop = fitted.crop;
    // In the middle of its box the picture can lie beyond the largest position.
    // It is outside of the output at either place.
    pad.place.x = std::min(pad.place.x, blend::max_position);
    pad.place.y = std::min(pad.place.y, blend::max_position);
  }
  return layout;
}

}  // namespace

bool register_blend(GstPlugin* plugin) { return MixerElement<BlendElement>::register_in(plugin); }

}  // namespace cudavision
