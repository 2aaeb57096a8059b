// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernels/core/filter.hpp"

namespace cudavision {

/// Disjoint rectangles for each channel set of a format, in samples of that set's grid.
using SetPieces = std::array<std::vector<Rect>, 3>;

/// The samples of a region, each in exactly one piece, however its rectangles overlap. Inside: a sample whose pixels all lie in one
/// of the rectangles (Coverage::inner); outside: one that has no pixel in any (Coverage::outer). What Filter works on, that is.
void region_pieces(const Geometry& geometry, const Region& region, SetPieces& pieces);

}  // namespace cudavision
