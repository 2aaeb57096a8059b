// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>
#include <vector>

#include "kernels/core/border.hpp"
#include "kernels/core/filter.hpp"

namespace cudavision::convolve {

inline constexpr int max_side = 63;
/// The largest absolute value of a weight and of a divisor. The smallest absolute divisor is the reciprocal of this
/// number.
inline constexpr double max_number = 1e30;
inline constexpr double max_bias = 1e6;  ///< absolute, in sample values

/// Add new presets at the end, because applications may use the numbers, and add their rows to presets().
// clang-format off
enum class Preset {
  custom, identity, box, sharpen, sharpen_5, unsharp, laplacian, laplacian_8, sobel_x, sobel_y,
  scharr_x, scharr_y, prewitt_x, prewitt_y, emboss, gradient,
};
// clang-format on

struct PresetInfo {
  Preset value;
  const char* nick;  ///< the name in settings
  const char* blurb;
  int width, height;
  double divisor;                ///< the divisor for Params::divisor = 0
  std::vector<double> weights;   ///< row-major, width × height
  std::vector<double> vertical;  ///< gradient only: the second kernel
};
/// The table of presets, in the order of the enum; `custom` has no weights.
const std::vector<PresetInfo>& presets();

struct Params {
  Preset preset = Preset::custom;
  std::vector<double> weights;  ///< for Preset::custom: row-major, kernel_width × kernel_height values
  /// For Preset::custom: 1–63. 0: number of weights ÷ the other side; both 0: the square root of the number of weights.
  int kernel_width = 0, kernel_height = 0;
  /// 0: the divisor of the preset. Preset::custom uses the sum of the weights, or 1 if the sum is 0.
  double divisor = 0;
  double bias = 0;                   ///< added after the division, in sample values; not for chroma
  bool absolute = false;             ///< whether to take the absolute value before saturating
  int anchor_x = -1, anchor_y = -1;  ///< position of the output pixel's weight in the kernel; −1: the middle (side / 2)
  bool flip = false;                 ///< false: correlation; true: mathematical convolution
  Border border = Border::reflect_101;
  BorderValue border_value{};  ///< for Border::constant and Border::fill
  bool filter_alpha = false;   ///< whether alpha and padding are filtered; otherwise they are copied
};

/// Checks the parameters that do not depend on the format. Errors: settings.
Status validate(const Params& params);

struct KernelSize {
  int width, height;
};
/// The size of the kernel, for valid parameters.
KernelSize kernel_size(const Params& params);

/// Makes a filter that applies a kernel of up to 63 × 63 weights to every plane: out = saturate(round(v)), rounded half
/// to even. Here v = Σ w·p / divisor + bias, or |v| if `absolute` is set, or √(Σx² + Σy²) / |divisor| + bias for
/// Preset::gradient (Σx, Σy: the sums of its two kernels). Chroma has a sign, so it is filtered relative to its neutral
/// value n, without bias and absolute value: out = n + Σ w·(p − n) / divisor. A gradient has no sign, so its chroma
/// becomes n. Subsampled chroma uses the same kernel on its own samples. Integer weights are summed exactly. On CUDA, a
/// gradient of 16-bit samples may differ from the rounded root by 1. Kernels of rank 1 run in two passes, unless one
/// pass is faster. Errors: settings (bad parameters, or a backend not built in), resource.
Result<std::unique_ptr<Filter>> make(const Params& params, const Geometry& geometry, Backend backend);

}  // namespace cudavision::convolve
