// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernels/gaussian/gaussian.hpp"
#include "tests/kernels/reference/picture.hpp"

namespace cudavision::reference {

/// OpenCV's fixed-point weights, which sum to 2^bits. exp(−x²/2σ²) is normalised and rounded from the ends to the
/// middle. Each rounding error is added to the next weight, and the middle weight makes the sum exact. Returns all
/// `taps` weights.
std::vector<std::int64_t> gaussian_weights(int taps, double sigma, int bits);

/// The result that the filter of gaussian::make() must give.
Picture apply(const gaussian::Params& params, const Picture& src, const Region& region = {}, Layout layout = {});

}  // namespace cudavision::reference
