// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernels/histogram/histogram.hpp"
#include "tests/kernels/reference/picture.hpp"

namespace cudavision::reference {

/// What a Histogram must count.
HistogramCounts count(const HistogramParams& params, const Picture& src, const Region& region = {});

/// What the filter of make_equalize() must give.
Picture equalize(LumaMatrix matrix, const Picture& src, const Region& region = {}, Layout layout = {});

/// What must be drawn into a picture of these counts.
void draw(const HistogramOverlayParams& params, const HistogramCounts& counts, Picture& picture);

/// From the samples themselves, put in order.
HistogramStatistics statistics(const std::vector<std::uint64_t>& counts, int depth);

}  // namespace cudavision::reference
