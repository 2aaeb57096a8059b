// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/gaussian/gaussian.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/core/backend.hpp"
#include "kernels/core/guard.hpp"
#include "kernels/core/packing.hpp"
#include "kernels/gaussian/plan.hpp"

namespace cudavision::gaussian {
namespace {

/// The sigma that was given or, if it is 0, the sigma that OpenCV's rule gives for the taps.
double sigma_of(int taps, double sigma) { return sigma > 0 ? sigma : 0.15 * taps + 0.35; }

/// The axis of a plane that is subsampled by 2^shift.
Axis scaled_axis(int taps, double sigma, int shift, int fraction_bits) {
  if (shift == 0) return make_axis(taps, sigma, fraction_bits);
  const int radius = subsampled(taps / 2, shift);
  return make_axis(2 * radius + 1, sigma_of(taps, sigma) / (1 << shift), fraction_bits);
}

/// The exact weights from one end to the middle.
std::vector<double> half_weights(int taps, double sigma) {
  static constexpr double small[5][5] = {{1},
                                         {0.25, 0.5},
                                         {0.0625, 0.25, 0.375},
                                         {0.03125, 0.109375, 0.21875, 0.28125},
                                         {4 / 256., 13 / 256., 30 / 256., 51 / 256., 60 / 256.}};
  const int radius = taps / 2;
  if (sigma <= 0 && radius < 5) return {small[radius], small[radius] + radius + 1};
  std::vector<double> half(radius + 1);
  const double s = sigma_of(taps, sigma);
  const double scale = -0.5 / (s * s);
  double sum = 1;
  for (int i = 0; i < radius; ++i) {
    half[i] = std::exp(scale * double(radius - i) * (radius - i));
    sum += 2 * half[i];
  }
  half[radius] = 1;
  for (double& weight : half) weight /= sum;
  return half;
}

}  // namespace

int taps_for(int taps, double sigma, int depth) {
  if (taps > 0) return taps;
  return std::min(int(std::nearbyint(sigma * (depth > 8 ? 4 : 3) * 2 + 1)) | 1, max_taps);
}

double held_weight(int taps, double sigma) { return std::erf(taps / 2.0 / (sigma * std::sqrt(2.0))); }

Axis make_axis(int taps, double sigma, int fraction_bits) {
  const int radius = taps / 2;
  const std::vector<double> half = half_weights(taps, sigma);

  // Error diffusion: weights are rounded from the ends to the middle, and each rounding error is carried to the next
  // weight. The middle weight makes the sum exactly one.
  const std::int64_t one = std::int64_t(1) << fraction_bits;
  std::vector<std::uint32_t> fixed(taps);
  double error = 0;
  std::int64_t sum = 0;
  for (int i = 0; i < radius; ++i) {
    const double wanted = half[i] * double(one) + error;
    const auto weight = std::int64_t(std::nearbyint(wanted));
    error = wanted - double(weight);
    fixed[i] = fixed[taps - 1 - i] = std::uint32_t(weight);
    sum += 2 * weight;
  }
  fixed[radius] = std::uint32_t(one - sum);

  int zeros = 0;
  while (zeros < radius && fixed[zeros] == 0) ++zeros;
  return {taps, sigma, {fixed.begin() + zeros, fixed.end() - zeros}};
}

Result<Plan> resolve(const Params& params, const Geometry& geometry) {
  if (Status status = validate(params); !status.ok()) return status;
  const FormatInfo& format = info(geometry.format);
  const bool deep = format.depth > 8;
  const int width = taps_for(params.kernel_width, params.sigma_x, format.depth);
  const int height = taps_for(params.kernel_height, params.sigma_y, format.depth);

  Plan plan;
  plan.geometry = geometry;
  plan.fraction_bits = deep ? 16 : 8;
  for (int i = 0; i < format.set_count; ++i) {
    const ChannelSet& set = format.sets[i];
    plan.sets[i] = {scaled_axis(width, params.sigma_x, set.shift_x, plan.fraction_bits),
                    scaled_axis(height, params.sigma_y, set.shift_y, plan.fraction_bits)};
  }
  plan.border = params.border;
  plan.border_value = params.border_value;
  plan.filter_alpha = params.filter_alpha;
  return plan;
}

namespace {

/// Checks the taps and the sigma of one axis.
Status check_axis(const char* size_name, int taps, const char* sigma_name, double sigma) {
  Status status = check_taps(size_name, taps);
  if (status.ok()) status = check_range(sigma_name, sigma, 0, max_sigma);
  if (status.ok() && taps == 0 && sigma == 0)
    return Status::settings(std::string(size_name) + " is 0, to follow sigma, but " + sigma_name +
                            " is 0 too: one of them must be set");
  return status;
}

}  // namespace

Status check_taps(const char* name, std::int64_t taps) {
  if (taps == 0 || (taps >= 1 && taps <= max_taps && taps % 2 == 1)) return {};
  return Status::settings(std::string(name) + " is " + std::to_string(taps) + ": it must be odd, 1 to " +
                          std::to_string(max_taps) + ", or 0");
}

Status validate(const Params& params) {
  if (Status status = check_axis("kernel-width", params.kernel_width, "sigma-x", params.sigma_x); !status.ok())
    return status;
  if (Status status = check_axis("kernel-height", params.kernel_height, "sigma-y", params.sigma_y); !status.ok())
    return status;
  if (!extrapolates(params.border))
    return Status::settings("border must be constant, replicate, reflect, wrap or reflect-101 for a Gaussian");
  return {};
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

}  // namespace cudavision::gaussian
