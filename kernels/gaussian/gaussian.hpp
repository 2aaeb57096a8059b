// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/core/border.hpp"
#include "kernels/core/filter.hpp"

namespace cudavision {

inline constexpr int gaussian_max_taps = 255;
inline constexpr double gaussian_max_sigma = 1000;  ///< pixels; weights of 255 taps are nearly equal long before

struct GaussianParams {
  int kernel_width = 5, kernel_height = 5;  ///< taps of the full-size planes, odd, 1–255; 0: from sigma by OpenCV's rule
  double sigma_x = 0, sigma_y = 0;          ///< pixels of the full-size planes, 0–1000; 0: from the taps by OpenCV's rule
  Border border = Border::reflect_101;      ///< one of the five extrapolating ones
  BorderValue border_value{};               ///< for Border::constant
  bool filter_alpha = false;                ///< blur alpha and padding too, instead of copying them
};

/// What is wrong with a number of taps that the user knows by this name.
Status check_gaussian_taps(const char* name, std::int64_t taps);
/// Says what is wrong with parameters, whatever the format.
Status validate(const GaussianParams& params);

/// Gaussian blur of every plane, in OpenCV's fixed point: weights of 8 (8 bit) or 16 fractional bits (deeper formats) that
/// sum to one, no rounding between the passes, (Σ + ½) >> 16 or 32. 8-bit planes equal cv::GaussianBlur bit for bit.
/// Subsampled chroma is blurred by sigma / s and 2·ceil(radius / s) + 1 taps, s its subsampling (1, 2).
/// Source: OpenCV modules/imgproc/src/smooth.dispatch.cpp (getGaussianKernelFixedPoint_ED).
/// Errors: settings (bad parameters, or a backend not built in), resource.
Result<std::unique_ptr<Filter>> make_gaussian(const GaussianParams& params, const Geometry& geometry, Backend backend);

namespace detail {

/// One axis of the separable kernel, symmetric.
struct GaussianAxis {
  int taps = 1;                        ///< odd, as asked for
  double sigma = 0;                    ///< as asked for: 0 by OpenCV's rule
  std::vector<std::uint32_t> weights;  ///< fixed point, sum to 1 << fraction bits; zeros at both ends trimmed, so
                                       ///< weights.size() is odd and ≤ taps; {1 << bits} is the identity
  int radius() const { return int(weights.size()) / 2; }
};

/// Parameters resolved for a geometry: what a backend computes.
struct GaussianPlan {
  Geometry geometry;
  int fraction_bits = 8;  ///< of the weights: 8 for 8-bit samples, else 16
  struct Axes {
    GaussianAxis x, y;
  };
  std::array<Axes, 3> sets;  ///< one for each channel set of the format
  Border border = Border::reflect_101;
  BorderValue border_value{};
  bool filter_alpha = false;
};

Result<GaussianPlan> resolve(const GaussianParams& params, const Geometry& geometry);

/// OpenCV's fixed-point Gaussian weights (bit-exact kernel, error diffusion), n odd.
GaussianAxis gaussian_axis(int taps, double sigma, int fraction_bits);

Result<std::unique_ptr<Filter>> make_gaussian_cuda(GaussianPlan plan);
Result<std::unique_ptr<Filter>> make_gaussian_cpu(GaussianPlan plan);

}  // namespace detail
}  // namespace cudavision
