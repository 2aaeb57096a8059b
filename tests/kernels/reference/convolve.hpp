// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernels/convolve/convolve.hpp"
#include "tests/kernels/reference/picture.hpp"

namespace cudavision::reference {

/// The result that the filter of convolve::make() must give, within tolerance().
Picture apply(const convolve::Params& params, const Picture& src, const Region& region = {}, Layout layout = {});

/// 0 for integer weights and divisor 1. Otherwise 1 for 8 bits, and 2⁻¹² of the range for deeper formats.
int tolerance(const convolve::Params& params, Format format);

}  // namespace cudavision::reference
