// SPDX-License-Identifier: LGPL-2.1-or-later
// cudagaussian: Gaussian blur (docs/elements/cudagaussian.md).
#include "kernels/gaussian/gaussian.hpp"

#include "gst/base/filter_element.hpp"
#include "gst/base/frame.hpp"
#include "gst/elements/elements.hpp"

namespace cudavision {
namespace {

struct Gaussian {
  static constexpr const char* type_name = "GstCudaGaussian";
  static constexpr const char* element_name = "cudagaussian";
  static constexpr const char* long_name = "Gaussian blur";
  static constexpr const char* klass = "Filter/Effect/Video";
  static constexpr const char* description = "Blurs video with a Gaussian kernel, on the GPU or the processor";

  struct Settings : EdgeSettings {
    guint kernel_size = 5, kernel_width = 0, kernel_height = 0;
    double sigma = 0, sigma_x = 0, sigma_y = 0;
  };

  static std::vector<Property<Settings>> properties() {
    const auto taps = [](const char* name, const char* nick, guint initial, const char* what, const char* zero) {
      return uint_property(name, nick, what + (", odd, 1 to " + std::to_string(gaussian::max_taps)) + "; " + zero, 0,
                           gaussian::max_taps, initial);
    };
    const auto sigma = [](const char* name, const char* nick, const char* blurb) {
      return double_property(name, nick, blurb, 0, gaussian::max_sigma, 0);
    };
    std::vector<Property<Settings>> table{
        {taps("kernel-size", "Kernel size", 5, "Number of taps in both directions",
              "0 chooses it from sigma, or does not blur if sigma is 0 too"),
         &Settings::kernel_size},
        {taps("kernel-width", "Kernel width", 0, "Number of taps in horizontal direction", "0 uses kernel-size"),
         &Settings::kernel_width},
        {taps("kernel-height", "Kernel height", 0, "Number of taps in vertical direction", "0 uses kernel-size"),
         &Settings::kernel_height},
        {sigma("sigma", "Sigma", "Standard deviation in pixels, {}; 0 chooses it from the kernel size"),
         &Settings::sigma},
        {sigma("sigma-x", "Sigma X", "Standard deviation in horizontal direction, in pixels, {}; 0 uses sigma"),
         &Settings::sigma_x},
        {sigma("sigma-y", "Sigma Y", "Standard deviation in vertical direction, in pixels, {}; 0 uses sigma"),
         &Settings::sigma_y},
    };
    append_properties(table, edge_properties("GstCudaGaussianBorder", extrapolating_borders));
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
    params.border_value = border_samples(settings.border_value, context.video);
    auto filter = gaussian::make(params, geometry_of(context.video), context.backend);
    if (!filter.ok()) return filter.error();
    return FilterPlan{filter_processor(std::move(filter.value())),
                      larger_than_frame(params.kernel_width, params.kernel_height, context.video)};
  }

 private:
  static gaussian::Params params_of(const Settings& settings) {
    gaussian::Params params;
    params.kernel_width = int(settings.kernel_width ? settings.kernel_width : settings.kernel_size);
    params.kernel_height = int(settings.kernel_height ? settings.kernel_height : settings.kernel_size);
    params.sigma_x = settings.sigma_x > 0 ? settings.sigma_x : settings.sigma;
    params.sigma_y = settings.sigma_y > 0 ? settings.sigma_y : settings.sigma;
    // Without a size the kernel follows sigma; a sigma of 0 needs one tap.
    if (params.kernel_width == 0 && params.sigma_x == 0) params.kernel_width = 1;
    if (params.kernel_height == 0 && params.sigma_y == 0) params.kernel_height = 1;
    params.border = Border(settings.border);
    params.filter_alpha = settings.filter_alpha;
    return params;
  }
};

}  // namespace

bool register_gaussian(GstPlugin* plugin) { return FilterElement<Gaussian>::register_in(plugin); }

}  // namespace cudavision
