// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <memory>
#include <vector>

#include "kernels/core/border.hpp"
#include "kernels/core/filter.hpp"

namespace cudavision {

inline constexpr int convolve_max_side = 63;
/// Of a weight or a divisor, in size; a divisor is not below its reciprocal either.
inline constexpr double convolve_max_number = 1e30;
inline constexpr double convolve_max_bias = 1e6;  ///< in size, in sample values

// clang-format off
enum class Preset {
  custom, identity, box, sharpen, sharpen_5, unsharp, laplacian, laplacian_8, sobel_x, sobel_y,
  scharr_x, scharr_y, prewitt_x, prewitt_y, emboss, gradient,
};
// clang-format on

struct PresetInfo {
  Preset preset;
  const char* nick;  ///< as users write it
  const char* blurb;
  int width, height;
  double divisor;                ///< what divisor 0 means for this preset
  std::vector<double> weights;   ///< row-major, width × height
  std::vector<double> vertical;  ///< gradient only: the second kernel
};
/// The one table of presets, in the order of the enum; `custom` has no weights.
const std::vector<PresetInfo>& presets();

struct ConvolveParams {
  Preset preset = Preset::custom;
  std::vector<double> weights;              ///< row-major, for Preset::custom: kernel_width × kernel_height of them
  int kernel_width = 0, kernel_height = 0;  ///< 1–63, for Preset::custom; 0: the square root of the number of weights, or
                                            ///< what the other side leaves
  double divisor = 0;                       ///< 0: the preset's; for custom the sum of the weights, or 1 where that is 0
  double bias = 0;                          ///< in sample values, added after the division to all but chroma
  bool absolute = false;                    ///< absolute value before saturating
  int anchor_x = -1, anchor_y = -1;         ///< the kernel's sample that lies on the output; −1: the middle (size / 2)
  bool flip = false;                        ///< false: correlation; true: mathematical convolution
  Border border = Border::reflect_101;
  BorderValue border_value{};  ///< for Border::constant and Border::fill
  bool filter_alpha = false;   ///< filter alpha and padding too, instead of copying them
};

/// Says what is wrong with parameters, whatever the format.
Status validate(const ConvolveParams& params);

struct KernelSize {
  int width, height;
};
/// The sides of the kernel that valid parameters describe.
KernelSize kernel_size(const ConvolveParams& params);

/// Any K×K kernel on every plane: out = saturate(round(v)), rounded half to even, with v = Σ w·p / divisor + bias; or |v| where
/// `absolute`; or √(Σx² + Σy²) / |divisor| + bias for Preset::gradient.
/// Chroma is filtered about its neutral value n: out = n + Σ w·(p − n) / divisor, with no bias and, as it has a sign by nature, no
/// absolute value; a gradient, which has none, leaves it neutral. Subsampled chroma sees the same kernel on its own samples.
/// Integer weights are summed exactly. Kernels of rank 1 run as two passes, but where one is measured to be faster (CUDA, 8 bit, to 15×15).
/// Errors: settings (bad parameters, or a backend not built in), resource.
Result<std::unique_ptr<Filter>> make_convolve(const ConvolveParams& params, const Geometry& geometry, Backend backend);

namespace detail {

/// Parameters resolved for a geometry: what a backend computes. For a sample of role r, with s = Σ weights·p over the window
/// (correlation; p integer samples):
///   v = s·scale + before[r], then |v| where `absolute` and r is no chroma;
///   for a gradient v = √(s² + t²)·scale, t = Σ vertical·p, and 0 for chroma;
///   out = saturate(rint(v + after[r])).
struct ConvolvePlan {
  Geometry geometry;
  int width = 1, height = 1;        ///< of the kernel
  int anchor_x = 0, anchor_y = 0;   ///< the window of pixel x is [x − anchor_x, x − anchor_x + width)
  std::vector<double> weights;      ///< row-major, already flipped
  std::vector<double> vertical;     ///< gradient: the second kernel, of the same size; else empty
  std::vector<double> row, column;  ///< rank 1: weights[y][x] = column[y]·row[x]; empty otherwise, and for gradient
  bool wide = false;                ///< float32 could neither hold the sums exactly (integers) nor to tolerance: sum in float64
  double scale = 1;                 ///< 1 / divisor
  std::array<double, role_count> before{};  ///< after scaling, before the absolute value
  std::array<double, role_count> after{};   ///< last
  bool absolute = false;
  Border border = Border::reflect_101;
  BorderValue border_value{};
  bool filter_alpha = false;

  bool gradient() const { return !vertical.empty(); }
  bool separable() const { return !row.empty(); }
};

Result<ConvolvePlan> resolve(const ConvolveParams& params, const Geometry& geometry);

Result<std::unique_ptr<Filter>> make_convolve_cuda(ConvolvePlan plan);
Result<std::unique_ptr<Filter>> make_convolve_cpu(ConvolvePlan plan);

}  // namespace detail
}  // namespace cudavision
