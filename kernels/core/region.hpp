// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernels/core/filter.hpp"

namespace cudavision {

/// Disjoint rectangles for each channel set of a format, in samples of that set's grid.
using SetPieces = std::array<std::vector<Rect>, max_sets>;

/// Splits the samples of a region into pieces, so that each sample is in exactly one piece even if the shapes overlap.
/// Filter computes the same samples. Inside: samples whose pixels all lie in one of the shapes (Coverage::inner).
/// Outside: samples with no pixel in any shape (Coverage::outer). An ellipse or a polygon needs a piece for almost
/// every row.
void region_pieces(const Geometry& geometry, const Region& region, SetPieces& pieces);

}  // namespace cudavision
