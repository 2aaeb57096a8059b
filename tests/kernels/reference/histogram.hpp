// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernels/histogram/histogram.hpp"
#include "kernels/histogram/sharpness.hpp"
#include "tests/kernels/reference/picture.hpp"

namespace cudavision::reference {

/// The expected counts of a Histogram.
histogram::Counts count(const histogram::Params& params, const Picture& src, const Region& region = {});

/// The expected sums of Sharpness. `before`: the picture to compare with, or nullptr.
histogram::LumaSums luma_sums(LumaMatrix matrix, const Picture& src, const Region& region = {},
                              const Picture* before = nullptr);

/// The result that the filter of histogram::make_equalize() must give.
Picture equalize(LumaMatrix matrix, const Picture& src, const Region& region = {}, Layout layout = {});

void draw(const histogram::OverlayParams& params, const histogram::Counts& counts, Picture& picture);

/// Statistics computed from the sorted samples themselves.
histogram::Statistics statistics(const std::vector<std::uint64_t>& counts, int depth);

}  // namespace cudavision::reference
