// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernels/gaussian/gaussian.hpp"
#include "tests/kernels/reference/picture.hpp"

namespace cudavision::reference {

/// OpenCV's fixed-point weights, summing to 2^bits: exp(−x²/2σ²) normalised, then rounded from the ends inwards, each
/// rounding error carried to the next weight; the middle takes what is left. All `taps` of them.
std::vector<std::int64_t> gaussian_weights(int taps, double sigma, int bits);

/// What make_gaussian()'s filter must give.
Picture apply(const GaussianParams& params, const Picture& src, const Region& region = {}, Layout layout = {});

}  // namespace cudavision::reference
