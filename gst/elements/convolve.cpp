// SPDX-License-Identifier: LGPL-2.1-or-later
// cudaconvolve: convolution with any K×K kernel (docs/elements/cudaconvolve.md).
#include "kernels/convolve/convolve.hpp"

#include <algorithm>

#include "gst/base/filter/filter_element.hpp"
#include "gst/base/frame.hpp"
#include "gst/elements/elements.hpp"

namespace cudavision {
namespace {

struct Convolve : PictureFilter {
  static constexpr const char* type_name = "GstCudaConvolve";
  static constexpr const char* element_name = "cudaconvolve";
  static constexpr const char* long_name = "Convolution";
  static constexpr const char* klass = "Filter/Effect/Video";
  static constexpr const char* description = "Filters video with any kernel of weights, on the GPU or the processor";

  /// The parameters of the kernels. `list` holds their weights, and `border_color` determines their border_value.
  struct Settings : convolve::Params {
    NumberList list;
    guint border_color = 0;
  };
  using Row = Property<Settings>;

  static std::vector<Row> properties() {
    const auto side = [](const char* name, const char* nick, int convolve::Params::*member, const std::string& what) {
      const std::string range = ", 1 to " + std::to_string(convolve::max_side);
      return Row::count(name, nick, member, 0, convolve::max_side,
                        what + range + "; 0 is the square root of the number of weights");
    };
    const auto anchor = [](const char* name, const char* nick, int convolve::Params::*member, const char* blurb) {
      return Row::number(name, nick, member, -1, convolve::max_side - 1, blurb);
    };
    std::vector<Row> table{
        Row::choice("preset", "Preset", &Settings::preset,
                    enum_from_table("GstCudaConvolvePreset", convolve::presets(), convolve::presets().size()),
                    "Name of a kernel; setting weights sets custom"),
        Row(gst_param_spec_array("weights", "Weights",
                                 "Weights of the kernel, row by row: \"<0,-1,0,-1,5,-1,0,-1,0>\"; without weights the "
                                 "kernel is the identity",
                                 nullptr, uncontrolled_property),
            &Settings::list)
            .with_change([](Settings& settings) { settings.preset = convolve::Preset::custom; }, "preset"),
        side("kernel-width", "Kernel width", &Settings::kernel_width, "Number of weights in a row"),
        side("kernel-height", "Kernel height", &Settings::kernel_height, "Number of rows of weights"),
        Row::number("divisor", "Divisor", &Settings::divisor, -convolve::max_number, convolve::max_number,
                    "Divides the weighted sum; 0 is the divisor of the preset, or else the sum of the weights, or 1 if "
                    "the sum is 0"),
        Row::number("bias", "Bias", &Settings::bias, -convolve::max_bias, convolve::max_bias,
                    "Value that is added after the division, in sample values; it is not added to chroma"),
        Row::flag("absolute", "Absolute", &Settings::absolute, "Take the absolute value before saturation"),
        anchor("anchor-x", "Anchor X", &Settings::anchor_x,
               "Column of the kernel that lies on the computed pixel, at most the last one; -1 is the middle"),
        anchor("anchor-y", "Anchor Y", &Settings::anchor_y,
               "Row of the kernel that lies on the computed pixel, at most the last one; -1 is the middle"),
        Row::flag("flip", "Flip", &Settings::flip,
                  "Rotate the kernel by 180°: mathematical convolution instead of correlation"),
    };
    append(table, edge_properties<Settings>("GstCudaConvolveBorder", borders.size()));
    return table;
  }

  static Status check(const Settings& settings) {
    if (settings.preset == convolve::Preset::custom && settings.list.wrong_item > 0)
      return Status::settings("weight " + std::to_string(settings.list.wrong_item) + " of weights is " +
                              settings.list.wrong_text + ": every weight must be a number");
    return validate(params_of(settings));
  }

  static Result<FilterPlan> make_plan(const Settings& settings, const PlanContext& context) {
    convolve::Params params = params_of(settings);
    params.border_value = border_samples(settings.border_color, context.video);
    auto filter = convolve::make(params, geometry_of(context.video), context.backend);
    if (!filter.ok()) return filter.error();
    const convolve::KernelSize size = kernel_size(params);
    const std::string preset = "preset=" + std::string(convolve::presets()[std::size_t(settings.preset)].nick);
    const bool custom = settings.preset == convolve::Preset::custom;
    std::string advice =
        both(cudavision::without_effect(FilterElement<Convolve>::properties(), settings, Settings(),
                                        {{"weights", unless(custom, preset)}, effect_of_border_value(settings.border)}),
             without_effect(settings));
    for (const auto& [name, wanted, side, last] : {std::tuple("anchor-x", settings.anchor_x, size.width, "column"),
                                                   {"anchor-y", settings.anchor_y, size.height, "row"}})
      if (wanted >= side && !has_no_weights(settings))
        advice = both(advice, std::string(name) + " counts as " + std::to_string(side - 1) + ", the last " + last +
                                  " of the kernel");
    if (advice.empty()) advice = larger_than_frame(size.width, size.height, context.video);
    return FilterPlan{filter_processor(std::move(filter.value())), std::move(advice)};
  }

 private:
  /// Whether preset=custom is set without weights. The kernel is then the identity, so the sides and the anchor have no
  /// effect.
  static bool has_no_weights(const Settings& settings) {
    return settings.preset == convolve::Preset::custom && settings.list.values.empty();
  }

  /// A sentence about a setting that has no effect on the kernel in use; empty if all settings have an effect.
  static std::string without_effect(const Settings& settings) {
    const bool none = has_no_weights(settings);
    if (settings.preset == convolve::Preset::custom && !none) return {};
    const convolve::PresetInfo& preset = convolve::presets()[std::size_t(settings.preset)];
    const std::string why = none ? "without weights the kernel is the identity"
                                 : "the kernel of preset=" + std::string(preset.nick) + " has " +
                                       size_text(preset.width, preset.height) + " weights";
    const auto sentence = [&](const char* name, int value) {
      return std::string(name) + " is " + std::to_string(value) + ", but has no effect: " + why +
             "; set weights to choose another kernel";
    };
    if (settings.kernel_width > 0) return sentence("kernel-width", settings.kernel_width);
    if (settings.kernel_height > 0) return sentence("kernel-height", settings.kernel_height);
    if (none && settings.anchor_x >= 0) return sentence("anchor-x", settings.anchor_x);
    if (none && settings.anchor_y >= 0) return sentence("anchor-y", settings.anchor_y);
    return {};
  }

  static convolve::Params params_of(const Settings& settings) {
    convolve::Params params = settings;
    const bool identity = has_no_weights(settings);
    if (identity) params.preset = convolve::Preset::identity;
    params.weights = settings.list.values;
    params.anchor_x = params.anchor_y = -1;
    if (identity || !validate(params).ok()) return params;
    const convolve::KernelSize size = kernel_size(params);  // clamps an anchor beyond the kernel
    params.anchor_x = std::min(settings.anchor_x, size.width - 1);
    params.anchor_y = std::min(settings.anchor_y, size.height - 1);
    return params;
  }
};

}  // namespace

bool register_convolve(GstPlugin* plugin) { return FilterElement<Convolve>::register_in(plugin); }

}  // namespace cudavision
