// SPDX-License-Identifier: LGPL-2.1-or-later
// Private: the parameters of a backend, and the two backends.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/gaussian/gaussian.hpp"

namespace cudavision::gaussian {

/// The weights of the separable kernel along one axis, which are symmetric.
struct Axis {
  int taps = 1;      ///< odd, as requested
  double sigma = 0;  ///< as requested; 0: follows the taps by OpenCV's rule
  /// Fixed point; sum to 1 << fraction_bits. Zeros at both ends are removed, so the number of weights is odd and at
  /// most `taps`. {1 << fraction_bits} is the identity.
  std::vector<std::uint32_t> weights;
  int radius() const { return int(weights.size()) / 2; }
  bool is_identity() const { return radius() == 0; }
};

/// Parameters resolved for a geometry.
struct Plan {
  Geometry geometry;
  int fraction_bits = 8;  ///< fraction bits of the weights: 8 for 8-bit samples, 16 for deeper samples
  struct Axes {
    Axis x, y;
  };
  std::array<Axes, max_sets> sets;  ///< one for each channel set of the format
  Border border = Border::reflect_101;
  BorderValue border_value{};
  bool filter_alpha = false;
};

/// Checks the parameters and makes a plan. Errors: settings.
Result<Plan> resolve(const Params& params, const Geometry& geometry);

/// OpenCV's fixed-point weights (its bit-exact kernel with error diffusion). `taps` is odd.
Axis make_axis(int taps, double sigma, int fraction_bits);

/// Make the backends. Errors: resource.
Result<std::unique_ptr<Filter>> make_cuda(Plan plan);
Result<std::unique_ptr<Filter>> make_cpu(Plan plan);

}  // namespace cudavision::gaussian
