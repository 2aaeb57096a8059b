// SPDX-License-Identifier: LGPL-2.1-or-later
// cudagaussian: Gaussian blur (docs/elements/cudagaussian.md).
#include "kernels/gaussian/gaussian.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "gst/base/filter/filter_element.hpp"
#include "gst/base/frame.hpp"
#include "gst/elements/elements.hpp"

namespace cudavision {
namespace {

struct Gaussian : PictureFilter {
  static constexpr const char* type_name = "GstCudaGaussian";
  static constexpr const char* element_name = "cudagaussian";
  static constexpr const char* long_name = "Gaussian blur";
  static constexpr const char* klass = "Filter/Effect/Video";
  static constexpr const char* description = "Blurs video with a Gaussian kernel, on the GPU or the processor";

  static constexpr guint default_size = 5;
  /// If a kernel holds less than this share of its Gaussian, the blur is weaker than sigma requests.
  static constexpr double enough = 0.95;

  struct Settings {
    guint kernel_size = default_size, kernel_width = 0, kernel_height = 0;
    double sigma = 0, sigma_x = 0, sigma_y = 0;
    bool size_is_set = false;  ///< whether kernel_size was set; otherwise it follows sigma, as its property shows
    Border border = gaussian::Params().border;
    guint border_color = 0;
    bool filter_alpha = gaussian::Params().filter_alpha;
  };
  using Row = Property<Settings>;

  static std::vector<Row> properties() {
    const auto taps = [](const char* name, const char* nick, guint Settings::*member, const char* what,
                         const char* zero) {
      return Row::count(name, nick, member, 0, gaussian::max_taps,
                        what + (", odd, 1 to " + std::to_string(gaussian::max_taps)) + "; " + zero);
    };
    const auto sigma = [](const char* name, const char* nick, double Settings::*member, const char* blurb) {
      return Row::number(name, nick, member, 0, gaussian::max_sigma, blurb).with_preset(with_size);
    };
    std::vector<Row> table{
        taps("kernel-size", "Kernel size", &Settings::kernel_size, "Number of taps in both directions",
             "0 chooses it from sigma, or does not blur if sigma is also 0; becomes 0 if sigma is set and this is not")
            .with_change([](Settings& settings) { settings.size_is_set = true; }),
        taps("kernel-width", "Kernel width", &Settings::kernel_width, "Number of taps in the horizontal direction",
             "0 uses kernel-size"),
        taps("kernel-height", "Kernel height", &Settings::kernel_height, "Number of taps in the vertical direction",
             "0 uses kernel-size"),
        sigma("sigma", "Sigma", &Settings::sigma,
              "Standard deviation in pixels, {}; 0 chooses it from the kernel size"),
        sigma("sigma-x", "Sigma X", &Settings::sigma_x,
              "Standard deviation in the horizontal direction, in pixels, {}; 0 uses sigma"),
        sigma("sigma-y", "Sigma Y", &Settings::sigma_y,
              "Standard deviation in the vertical direction, in pixels, {}; 0 uses sigma"),
    };
    append(table, edge_properties<Settings>("GstCudaGaussianBorder", extrapolating_borders));
    return table;
  }

  static Status check(const Settings& settings) {
    for (const auto& [name, taps] : {std::pair{"kernel-size", settings.kernel_size},
                                     {"kernel-width", settings.kernel_width},
                                     {"kernel-height", settings.kernel_height}})
      if (Status status = gaussian::check_taps(name, taps); !status.ok()) return status;
    return validate(params_of(settings));
  }

  static Result<FilterPlan> make_plan(const Settings& settings, const PlanContext& context) {
    gaussian::Params params = params_of(settings);
    params.border_value = border_samples(settings.border_color, context.video);
    const Geometry geometry = geometry_of(context.video);
    auto filter = gaussian::make(params, geometry, context.backend);
    if (!filter.ok()) return filter.error();
    std::string advice = both(without_effect(FilterElement<Gaussian>::properties(), settings, Settings(),
                                             {effect_of_border_value(settings.border)}),
                              cut_short(settings, params, info(geometry.format).depth));
    if (advice.empty()) advice = larger_than_frame(params.kernel_width, params.kernel_height, context.video);
    return FilterPlan{filter_processor(std::move(filter.value())), std::move(advice)};
  }

 private:
  /// For the sigma properties: setting sigma changes kernel-size to 0, unless kernel-size was set explicitly.
  static Settings with_size(const Settings& settings) {
    Settings values = settings;
    values.kernel_size = settings.sigma > 0 || settings.sigma_x > 0 || settings.sigma_y > 0 ? 0 : default_size;
    return values;
  }

  /// The number of taps in a direction. `own` is the size set for this direction; 0: the size follows sigma.
  static int taps_of(const Settings& settings, guint own, double sigma) {
    if (own == 0 && !settings.size_is_set) return sigma > 0 ? 0 : default_size;
    const guint taps = own > 0 ? own : settings.kernel_size;
    return taps == 0 && sigma == 0 ? 1 : int(taps);  // a sigma of 0 needs one tap
  }

  /// A sentence about each direction in which the kernel omits much of the requested Gaussian; empty if there is none.
  static std::string cut_short(const Settings& settings, const gaussian::Params& params, int depth) {
    const auto percent = [](double share) {
      const double value = share * 100;
      return number_text(value < 10 || value > 99 ? std::round(value * 10) / 10 : std::round(value)) + " %";
    };
    const auto sentence = [&](const char* size, int taps, const char* name, double sigma) -> std::string {
      if (sigma <= 0) return {};
      const int used = gaussian::taps_for(taps, sigma, depth);
      if (gaussian::held_weight(used, sigma) >= enough) return {};
      // A controller may drive sigma through all values above the limit, so this sentence is the same for all of them.
      if (taps == 0)
        return std::string(name) + " is so large that even " + std::to_string(used) +
               " taps, the maximum, hold less than " + percent(enough) + " of its weight";
      const int better = gaussian::taps_for(0, sigma, depth);
      std::string text = std::string(size) + "=" + std::to_string(used) + " holds " +
                         percent(gaussian::held_weight(used, sigma)) + " of the weight of " + name + "=" +
                         number_text(sigma);
      if (better > used)
        text += ": " + std::to_string(better) + " taps" + (better == gaussian::max_taps ? ", the maximum," : "") +
                " hold " + percent(gaussian::held_weight(better, sigma));
      return text;
    };
    const std::string across = sentence(settings.kernel_width ? "kernel-width" : "kernel-size", params.kernel_width,
                                        settings.sigma_x > 0 ? "sigma-x" : "sigma", params.sigma_x);
    const std::string down = sentence(settings.kernel_height ? "kernel-height" : "kernel-size", params.kernel_height,
                                      settings.sigma_y > 0 ? "sigma-y" : "sigma", params.sigma_y);
    return across.empty() || across == down ? down : down.empty() ? across : across + "; " + down;
  }

  static gaussian::Params params_of(const Settings& settings) {
    gaussian::Params params;
    params.sigma_x = settings.sigma_x > 0 ? settings.sigma_x : settings.sigma;
    params.sigma_y = settings.sigma_y > 0 ? settings.sigma_y : settings.sigma;
    params.kernel_width = taps_of(settings, settings.kernel_width, params.sigma_x);
    params.kernel_height = taps_of(settings, settings.kernel_height, params.sigma_y);
    params.border = settings.border;
    params.filter_alpha = settings.filter_alpha;
    return params;
  }
};

}  // namespace

bool register_gaussian(GstPlugin* plugin) { return FilterElement<Gaussian>::register_in(plugin); }

}  // namespace cudavision
