// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/convolve/convolve.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>

#include "kernels/convolve/plan.hpp"
#include "kernels/core/backend.hpp"
#include "kernels/core/guard.hpp"
#include "kernels/core/packing.hpp"

namespace cudavision::convolve {
namespace {

std::string times(int a, int b) { return std::to_string(a) + " × " + std::to_string(b); }

/// The size of a custom kernel. Errors: settings.
Result<KernelSize> resolve_size(const Params& params) {
  const int count = int(params.weights.size());
  if (count == 0)
    return Status::settings(
        "weights is empty: a custom kernel needs kernel-width × kernel-height weights, or choose a preset");
  int width = params.kernel_width, height = params.kernel_height;
  for (const auto& [name, side] : {std::pair{"kernel-width", width}, std::pair{"kernel-height", height}})
    if (side < 0 || side > max_side)
      return Status::settings(std::string(name) + " is " + std::to_string(side) + ": it must be 1 to " +
                              std::to_string(max_side) + ", or 0 to follow from weights");
  if (width == 0 && height == 0) {
    width = height = int(std::lround(std::sqrt(double(count))));
    if (width * height != count)
      return Status::settings(
          "weights has " + std::to_string(count) +
          " values: without kernel-width and kernel-height, the number must be a square (1, 4, 9, … " +
          std::to_string(max_side * max_side) + ")");
  } else if (width == 0 || height == 0) {
    const int known = std::max(width, height);
    (width == 0 ? width : height) = count / known;
  }
  if (width > max_side || height > max_side)
    return Status::settings("weights has " + std::to_string(count) + " values, a kernel of " + times(width, height) +
                            ": each side must be 1 to " + std::to_string(max_side));
  if (width * height != count)
    return Status::settings("weights has " + std::to_string(count) + " values, but kernel-width × kernel-height is " +
                            times(width, height));
  return KernelSize{width, height};
}

Status check_anchor(const char* name, int anchor, const char* side_name, int side) {
  if (anchor >= -1 && anchor < side) return {};
  return Status::settings(std::string(name) + " is " + std::to_string(anchor) +
                          ": it must be −1 (the middle) or 0 to " + std::to_string(side - 1) + ", inside the " +
                          side_name + " of " + std::to_string(side));
}

bool is_integer(double value) { return value == std::nearbyint(value) && std::abs(value) < 0x1p52; }

double absolute_sum(const std::vector<double>& weights) {
  return std::accumulate(weights.begin(), weights.end(), 0.0, [](double sum, double w) { return sum + std::abs(w); });
}

/// Finds a column and a row with weights = column·rowᵀ; leaves both empty if the rank is above 1. Integers are split
/// into integers (the row is divided by its greatest common divisor), so that two passes are exact.
void split(Plan& plan, bool integers) {
  const int width = plan.width, height = plan.height;
  if (width == 1 || height == 1) return;
  const auto pivot = std::max_element(plan.weights.begin(), plan.weights.end(),
                                      [](double a, double b) { return std::abs(a) < std::abs(b); });
  const int pivot_index = int(pivot - plan.weights.begin()), px = pivot_index % width, py = pivot_index / width;
  if (*pivot == 0) return;

  std::vector<double> row(plan.weights.begin() + py * width, plan.weights.begin() + (py + 1) * width);
  if (integers) {
    std::int64_t divisor = 0;
    for (double w : row) divisor = std::gcd(divisor, std::int64_t(w));
    for (double& w : row) w /= double(divisor);
  } else {
    for (double& w : row) w /= *pivot;
  }
  std::vector<double> column(height);
  for (int y = 0; y < height; ++y) column[y] = plan.weights[y * width + px] / row[px];

  const double tolerance = integers ? 0 : 1e-9 * std::abs(*pivot);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      if (std::abs(column[y] * row[x] - plan.weights[y * width + x]) > tolerance) return;
  plan.row = std::move(row);
  plan.column = std::move(column);
}

}  // namespace

const std::vector<PresetInfo>& presets() {
  static const std::vector<double> sobel_x{-1, 0, 1, -2, 0, 2, -1, 0, 1}, sobel_y{-1, -2, -1, 0, 0, 0, 1, 2, 1};
  // clang-format off
  static const std::vector<PresetInfo> table{
      {Preset::custom, "custom", "the kernel in weights", 0, 0, 0, {}, {}},
      {Preset::identity, "identity", "the picture itself", 1, 1, 1, {1}, {}},
      {Preset::box, "box", "mean of 3×3", 3, 3, 9, {1, 1, 1, 1, 1, 1, 1, 1, 1}, {}},
      {Preset::sharpen, "sharpen", "strong 3×3 sharpening", 3, 3, 1, {-5, 3, -5, 3, 9, 3, -5, 3, -5}, {}},
      {Preset::sharpen_5, "sharpen-5", "5×5 sharpening that brightens (the weights sum to 2)", 5, 5, 1,
       {0, -1, 1, -1, 0, -1, 1, -1, 1, -1, 0, -1, 8, -1, 0, -1, 1, -1, 1, -1, 0, -1, 1, -1, 0}, {}},
      {Preset::unsharp, "unsharp", "5×5 unsharp mask, divisor 256", 5, 5, 256,
       {-1, -4, -6, -4, -1, -4, -16, -24, -16, -4, -6, -24, 476, -24, -6, -4, -16, -24, -16, -4, -1, -4, -6, -4, -1},
       {}},
      {Preset::laplacian, "laplacian", "second derivative, 4 neighbours", 3, 3, 1, {0, 1, 0, 1, -4, 1, 0, 1, 0}, {}},
      {Preset::laplacian_8, "laplacian-8", "second derivative, 8 neighbours", 3, 3, 1,
       {1, 1, 1, 1, -8, 1, 1, 1, 1}, {}},
      {Preset::sobel_x, "sobel-x", "horizontal derivative", 3, 3, 1, sobel_x, {}},
      {Preset::sobel_y, "sobel-y", "vertical derivative", 3, 3, 1, sobel_y, {}},
      {Preset::scharr_x, "scharr-x", "horizontal derivative, Scharr's weights", 3, 3, 1,
       {-3, 0, 3, -10, 0, 10, -3, 0, 3}, {}},
      {Preset::scharr_y, "scharr-y", "vertical derivative, Scharr's weights", 3, 3, 1,
       {-3, -10, -3, 0, 0, 0, 3, 10, 3}, {}},
      {Preset::prewitt_x, "prewitt-x", "horizontal derivative, equal weights", 3, 3, 1,
       {-1, 0, 1, -1, 0, 1, -1, 0, 1}, {}},
      {Preset::prewitt_y, "prewitt-y", "vertical derivative, equal weights", 3, 3, 1,
       {-1, -1, -1, 0, 0, 0, 1, 1, 1}, {}},
      {Preset::emboss, "emboss", "relief lit from the top left", 3, 3, 1, {-2, -1, 0, -1, 1, 1, 0, 1, 2}, {}},
      {Preset::gradient, "gradient", "magnitude of sobel-x and sobel-y, in one pass", 3, 3, 1, sobel_x, sobel_y},
  };
  // clang-format on
  return table;
}

Status validate(const Params& params) {
  if (params.preset == Preset::custom) {
    if (auto size = resolve_size(params); !size.ok()) return size.error();
    for (std::size_t i = 0; i < params.weights.size(); ++i)
      if (!(std::abs(params.weights[i]) <= max_number))
        return Status::settings("weight " + std::to_string(i + 1) + " of weights is " + number_text(params.weights[i]) +
                                ": every weight must be a finite number, at most 1e30 in size");
  }
  const KernelSize size = kernel_size(params);
  if (Status status = check_anchor("anchor-x", params.anchor_x, "kernel width", size.width); !status.ok())
    return status;
  if (Status status = check_anchor("anchor-y", params.anchor_y, "kernel height", size.height); !status.ok())
    return status;
  const double divisor = std::abs(params.divisor);
  if (!(divisor <= max_number) || (divisor > 0 && divisor < 1 / max_number))
    return Status::settings("divisor is " + number_text(params.divisor) +
                            ": it must be 1e-30 to 1e30 in size, or 0 for the sum of the weights");
  return check_range("bias", params.bias, -max_bias, max_bias);
}

KernelSize kernel_size(const Params& params) {
  if (params.preset == Preset::custom) return resolve_size(params).value();
  const PresetInfo& preset = presets()[std::size_t(params.preset)];
  return {preset.width, preset.height};
}

Result<Plan> resolve(const Params& params, const Geometry& geometry) {
  if (Status status = validate(params); !status.ok()) return status;
  Plan plan;
  plan.geometry = geometry;

  const KernelSize size = kernel_size(params);
  plan.width = size.width;
  plan.height = size.height;
  double divisor = params.divisor;
  if (params.preset == Preset::custom) {
    plan.weights = params.weights;
    if (divisor == 0) divisor = std::accumulate(plan.weights.begin(), plan.weights.end(), 0.0);
    if (std::abs(divisor) <= 1e-12 * absolute_sum(plan.weights)) divisor = 1;  // the sum is 0, except for rounding
  } else {
    const PresetInfo& preset = presets()[std::size_t(params.preset)];
    plan.weights = preset.weights;
    plan.vertical = preset.vertical;
    if (divisor == 0) divisor = preset.divisor;
  }
  plan.anchor_x = params.anchor_x < 0 ? plan.width / 2 : params.anchor_x;
  plan.anchor_y = params.anchor_y < 0 ? plan.height / 2 : params.anchor_y;
  if (params.flip) {
    std::reverse(plan.weights.begin(), plan.weights.end());
    std::reverse(plan.vertical.begin(), plan.vertical.end());
    plan.anchor_x = plan.width - 1 - plan.anchor_x;
    plan.anchor_y = plan.height - 1 - plan.anchor_y;
  }

  // Integer weights are summed exactly and divided at the end. Other weights are divided first.
  const bool integers = std::all_of(plan.weights.begin(), plan.weights.end(), is_integer);
  plan.scale = 1 / divisor;
  if (!integers) {
    for (double& weight : plan.weights) weight /= divisor;
    plan.scale = 1;
  }

  const FormatInfo& format = info(geometry.format);
  const double largest_sum = absolute_sum(plan.weights) * format.max_value();
  // float32 holds integers up to 2^24. A sum of real weights has an error of up to 2^-24 of the largest sum for each
  // term. For sums below 2^20 (8 bits), this is far less than one step.
  plan.wide = integers ? largest_sum > 0x1p24 : largest_sum > 0x1p20 * (1 << (format.depth - 8));
  if (plan.gradient())
    plan.scale = std::abs(plan.scale);
  else
    split(plan, integers);

  const double sum = std::accumulate(plan.weights.begin(), plan.weights.end(), 0.0) * plan.scale;
  plan.before.fill(plan.gradient() ? 0 : params.bias);
  plan.after.fill(plan.gradient() ? params.bias : 0);
  for (Role chroma : {Role::cb, Role::cr}) {
    plan.before[std::size_t(chroma)] = -format.neutral_chroma() * sum;
    plan.after[std::size_t(chroma)] = format.neutral_chroma();
  }
  plan.absolute = params.absolute;
  plan.border = params.border;
  plan.border_value = params.border_value;
  plan.filter_alpha = params.filter_alpha;
  return plan;
}

Result<std::unique_ptr<Filter>> make(const Params& params, const Geometry& geometry, Backend backend) {
  return guarded([&]() -> Result<std::unique_ptr<Filter>> {
    auto plan = resolve(params, unpacked(geometry));
    if (!plan.ok()) return plan.error();
    return on_backend(
        backend, [&]() { return make_cuda(std::move(plan.value())); },
        [&]() { return make_cpu(std::move(plan.value())); });
  });
}

}  // namespace cudavision::convolve
