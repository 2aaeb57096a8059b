// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernels/convolve/convolve.hpp"
#include "tests/kernels/reference/picture.hpp"

namespace cudavision::reference {

/// What convolve::make()'s filter must give, within tolerance().
Picture apply(const convolve::Params& params, const Picture& src, const Region& region = {}, Layout layout = {});

/// 0 for integer weights and divisor 1, else 1 in 8 bit, and 1 in 2¹² of a deeper range.
int tolerance(const convolve::Params& params, Format format);

}  // namespace cudavision::reference
