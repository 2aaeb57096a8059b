// SPDX-License-Identifier: LGPL-2.1-or-later
// cudablend: blends and composes the frames of its pads (docs/elements/cudablend.md).
#include <algorithm>
#include <string>

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
constexpr Choice layout_choices[] = {{LAYOUT_MANUAL, "manual", "Each pad has its own position and size"},
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
     "The picture is scaled to fit into the box, and centred"},
    {blend::SizingPolicy::fill, "fill", "The picture fills the box, and is cropped at two sides"}};
constexpr Choice key_choices[] = {{blend::Key::Mode::none, "none", "All pixels of the pad are visible"},
                                  {blend::Key::Mode::color, "color", "Pixels that match key-color are transparent"},
                                  {blend::Key::Mode::first_pixel, "first-pixel",
                                   "Pixels that match the top left pixel of the picture are transparent"}};

// GObject rejects values outside the ranges of these properties, and all combinations of values are valid.

struct BlendPadProperties : NoReadings {
  static constexpr const char* type_name = "GstCudaBlendPad";

  struct Settings {
    int xpos = 0, ypos = 0, width = -1, height = -1;
    double alpha = 1;
    blend::Operator op = blend::Operator::over;
    blend::SizingPolicy sizing_policy = blend::SizingPolicy::none;
    blend::Key::Mode key = blend::Key::Mode::none;
    guint key_color = 0;
    double key_tolerance = 0, key_softness = 0;
  };
  using Row = Property<Settings>;

  static std::vector<Row> properties() {
    const auto pixels = [](const char* name, const char* nick, int Settings::*member, int least, int most,
                           const char* blurb) {
      return Row(g_param_spec_int(name, nick, blurb, least, most, Settings().*member, playing_property), member);
    };
    const auto number = [](const char* name, const char* nick, double Settings::*member, double most,
                           const char* blurb) {
      return Row(g_param_spec_double(name, nick, blurb, 0, most, Settings().*member, playing_property), member);
    };
    return {
        pixels("xpos", "X position", &Settings::xpos, -blend::max_position, blend::max_position,
               "Position of the left edge in the output, in pixels"),
        pixels("ypos", "Y position", &Settings::ypos, -blend::max_position, blend::max_position,
               "Position of the top edge in the output, in pixels"),
        pixels("width", "Width", &Settings::width, -1, blend::max_side,
               "Width in the output, in pixels; -1 is the width of the picture; for 0 see zero-size-is-unscaled"),
        pixels("height", "Height", &Settings::height, -1, blend::max_side,
               "Height in the output, in pixels; -1 is the height of the picture; for 0 see zero-size-is-unscaled"),
        number("alpha", "Alpha", &Settings::alpha, 1, "Opacity of the picture"),
        Row::choice("operator", "Operator", &Settings::op, enum_from_table("GstCudaBlendOperator", operator_choices),
                    "How the pad is blended with the picture below"),
        Row::choice("sizing-policy", "Sizing policy", &Settings::sizing_policy,
                    enum_from_table("GstCudaBlendSizingPolicy", sizing_choices),
                    "How the picture is fitted into its box"),
        Row::choice("key", "Key", &Settings::key, enum_from_table("GstCudaBlendKey", key_choices),
                    "Which pixels of the pad are transparent"),
        Row::color("key-color", "Key colour", &Settings::key_color, 0xffffff,
                   "Colour that is transparent, as 0xRRGGBB, if key=color"),
        number("key-tolerance", "Key tolerance", &Settings::key_tolerance, 255,
               "A pixel matches the key if no channel differs by more than this"),
        number("key-softness", "Key softness", &Settings::key_softness, 255,
               "Over this range of differences beyond key-tolerance, pixels change from transparent to opaque"),
    };
  }
};

struct BlendElement : NoReadings {
  static constexpr const char* type_name = "GstCudaBlend";
  static constexpr const char* element_name = "cudablend";
  static constexpr const char* long_name = "Blending and composing";
  static constexpr const char* klass = "Filter/Editor/Video/Compositor";
  static constexpr const char* description =
      "Converts, scales, keys and blends video of any formats and sizes into one, on the GPU or the processor";

  using Pad = BlendPadProperties;
  using Inputs = std::vector<SettledInput<Pad::Settings>>;

  struct Settings {
    blend::Background::Kind background = blend::Background::Kind::checker;
    guint background_color = 0xff000000;
    Layout layout = LAYOUT_MANUAL;
    guint columns = 0, rows = 0, gap = 0;
    blend::Interpolation interpolation = blend::Interpolation::bilinear;
    bool zero_size_is_unscaled = true;
    bool ignore_inactive_pads = false;
  };
  using Row = Property<Settings>;

  static std::vector<Row> properties() {
    const auto count = [](const char* name, const char* nick, guint Settings::*member, const char* blurb) {
      return Row(g_param_spec_uint(name, nick, blurb, 0, max_frame_side, Settings().*member, playing_property), member);
    };
    return {
        Row::choice("background", "Background", &Settings::background,
                    enum_from_table("GstCudaBlendBackground", background_choices), "The picture below all pads"),
        Row::color("background-color", "Background colour", &Settings::background_color, G_MAXUINT32,
                   "Colour of the background, as 0xAARRGGBB, if background=color"),
        Row::choice("layout", "Layout", &Settings::layout, enum_from_table("GstCudaBlendLayout", layout_choices),
                    "How pads are placed in the output"),
        count("columns", "Columns", &Settings::columns,
              "Number of columns of the grid; 0 makes the grid nearly square"),
        count("rows", "Rows", &Settings::rows, "Number of rows of the grid; 0 makes the grid nearly square"),
        count("gap", "Gap", &Settings::gap, "Distance between the cells of the grid, in pixels"),
        Row::choice("interpolation", "Interpolation", &Settings::interpolation,
                    enum_from_table("GstCudaBlendInterpolation", interpolation_choices), "How pictures are scaled"),
        Row::flag("zero-size-is-unscaled", "Zero size is unscaled", &Settings::zero_size_is_unscaled,
                  "Show a pad with width or height 0 at the size of its picture, instead of hiding it and its cell"),
        Row::flag("ignore-inactive-pads", "Ignore inactive pads", &Settings::ignore_inactive_pads,
                  "In live pipelines, do not wait for pads that have not received any data yet"),
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

// Layout --------------------------------------------------------------------------------------------------------------

blend::Pad to_blend(const PadSettings& settings) {
  blend::Pad pad;
  pad.alpha = settings.alpha;
  pad.op = settings.op;
  pad.key.mode = settings.key;
  for (int c = 0; c < 3; ++c) pad.key.color[std::size_t(c)] = (settings.key_color >> (16 - 8 * c) & 0xff) / 255.0;
  pad.key.tolerance = settings.key_tolerance;
  pad.key.softness = settings.key_softness;
  return pad;
}

/// The size that a pad requests in the output, for pixels of this aspect ratio, by the rules of compositor. 0 × 0: the
/// pad is hidden.
PictureSize box_size(const Settings& settings, const PadSettings& pad, const GstVideoInfo& video, int par_n,
                     int par_d) {
  const auto side = [&](int wanted, int own) {
    return wanted > 0 ? wanted : wanted < 0 || settings.zero_size_is_unscaled ? own : 0;
  };
  int width = side(pad.width, GST_VIDEO_INFO_WIDTH(&video)), height = side(pad.height, GST_VIDEO_INFO_HEIGHT(&video));
  if (width == 0 || height == 0) return {0, 0};
  if (pad.sizing_policy == blend::SizingPolicy::none) {
    guint n, d;
    if (!gst_video_calculate_display_ratio(&n, &d, guint(width), guint(height), guint(GST_VIDEO_INFO_PAR_N(&video)),
                                           guint(GST_VIDEO_INFO_PAR_D(&video)), guint(par_n), guint(par_d)))
      return {0, 0};
    // Keeps the side for which the other side is a whole number; the height if this is true for both or neither.
    if (height % int(n) != 0 && width % int(d) == 0)
      height = int(std::min<guint64>(gst_util_uint64_scale_int(guint64(width), int(d), int(n)), blend::max_side));
    else
      width = int(std::min<guint64>(gst_util_uint64_scale_int(guint64(height), int(n), int(d)), blend::max_side));
  }
  return {width, height};
}

/// Whether a pad takes part in the layout. In the grid, a pad that is hidden by its size leaves its cell to the next
/// pad.
bool takes_part(const Settings& settings, const SettledInput<PadSettings>& input) {
  const auto hides = [&](int side) {
    return settings.layout == LAYOUT_GRID && side == 0 && !settings.zero_size_is_unscaled;
  };
  return !input.inactive && !hides(input.settings.width) && !hides(input.settings.height);
}

PictureSize BlendElement::natural_size(const Settings& settings, const Inputs& inputs, int par_n, int par_d) {
  const bool grid = settings.layout == LAYOUT_GRID;
  PictureSize size{0, 0};
  int count = 0;
  for (const auto& input : inputs) {
    const PadSettings& pad = input.settings;
    if (!takes_part(settings, input)) continue;
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

/// A sentence about pads that have no cell in the grid; empty if every pad has one. Also empty if the gap leaves no
/// room for any cell, because a controller may drive the gap to such a value.
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
  layout.background = {settings.background, settings.background_color};
  std::vector<Rect> cells;
  std::size_t cell = 0;
  if (settings.layout == LAYOUT_GRID)
    cells = blend::grid_layout(int(std::count_if(inputs.begin(), inputs.end(),
                                                 [&](const auto& input) { return takes_part(settings, input); })),
                               int(settings.columns), int(settings.rows), int(settings.gap),
                               GST_VIDEO_INFO_WIDTH(&output), GST_VIDEO_INFO_HEIGHT(&output));
  layout.advice = without_cell(cells, settings);
  for (const auto& input : inputs) {
    const PadSettings& wanted = input.settings;
    blend::Pad& pad = layout.pads.emplace_back(to_blend(wanted));
    pad.interpolation = settings.interpolation;
    if (!takes_part(settings, input)) continue;
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
    // When centred in its box, the picture may lie beyond the largest position. It is outside the output in either
    // case.
    pad.place.x = std::min(pad.place.x, blend::max_position);
    pad.place.y = std::min(pad.place.y, blend::max_position);
  }
  return layout;
}

}  // namespace

bool register_blend(GstPlugin* plugin) { return MixerElement<BlendElement>::register_in(plugin); }

}  // namespace cudavision
