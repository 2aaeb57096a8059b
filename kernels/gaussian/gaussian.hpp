// SPDX-License-Identifier: LGPL-2.1-or-later
// Gaussian blur: the public contract.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/core/border.hpp"
#include "kernels/core/host.hpp"

namespace cudavision::gaussian {

inline constexpr int max_taps = 255;
inline constexpr double max_sigma = 1000;  ///< pixels; 255 taps have nearly equal weights at much smaller sigmas

struct Params {
  /// Taps in the full-size planes: odd, 1–255; 0: follows sigma by OpenCV's rule, up to 255.
  int kernel_width = 5, kernel_height = 5;
  double sigma_x = 0, sigma_y = 0;  ///< pixels of the full-size planes, 0–1000; 0: follows the taps by OpenCV's rule
  Border border = Border::reflect_101;  ///< one that extrapolates the frame
  BorderValue border_value{};           ///< samples outside the frame, for Border::constant
  bool filter_alpha = false;            ///< true: alpha and padding are blurred; false: they are copied
};

/// The number of taps in the full-size planes: `taps`, if it is not 0. Otherwise OpenCV's rule for this sigma, up to
/// max_taps: the kernel reaches 3 sigma for 8-bit samples and 4 sigma for deeper samples.
int taps_for(int taps, double sigma, int depth);
/// The share of a Gaussian that this number of taps covers, 0–1. `sigma`: in pixels, greater than 0.
double held_weight(int taps, double sigma);

/// Checks a number of taps. `name` is the name of the property, for the message. Errors: settings.
Status check_taps(const char* name, std::int64_t taps);
/// Checks the parameters that do not depend on the format. Errors: settings.
Status validate(const Params& params);

/// Makes a filter that blurs every plane, in OpenCV's fixed-point arithmetic: weights have 8 fractional bits (8-bit
/// formats) or 16 (deeper formats) and sum to one; the first pass is not rounded; the result is (Σ + ½) >> 16 or 32.
/// 8-bit planes equal the result of cv::GaussianBlur bit for bit. A plane that is subsampled by s (1 or 2) along an
/// axis uses sigma / s and 2·ceil(radius / s) + 1 taps along this axis.
/// Source: OpenCV, modules/imgproc/src/smooth.dispatch.cpp (getGaussianKernelFixedPoint_ED).
/// Errors: settings (bad parameters, or a backend that is not built in), resource.
Result<std::unique_ptr<Filter>> make(const Params& params, const Geometry& geometry, Backend backend);

}  // namespace cudavision::gaussian
