// SPDX-License-Identifier: LGPL-2.1-or-later
// Private to the tracker: the regions of a frame as it takes them,
// where those of several people side by side are divided.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/diff/motion.hpp"

namespace cudavision::track {

/// A cell of a part.
struct PartCell {
  int x, y;
  Rect box;  ///< around its changed pixels and those beside it, see MotionRegions::boxes; in pixels of the frame
  const diff::CellLooks* looks;  ///< nullptr: not known, or those of two parts
};

/// A region, or a part of one.
struct Part : diff::MotionRegion {
  std::vector<PartCell> cells;  ///< row by row; each cell of a region is in one part
};

/// Whether a box is as that of somebody who stands or walks.
bool upright(const Rect& box);
/// Whether two upright boxes stand side by side: none is above the other.
bool beside(const Rect& a, const Rect& b);

/// The parts of the first `most` regions, in the order of the regions; those of a region from left to right.
///
/// Cells link what is up to a cell apart, so people who walk side by side are one region. A region is divided where few
/// of the rows of its cells have changed pixels in a column, if all its parts are upright and stand beside each other:
/// nothing else has such parts for long. The boxes of parts reach at most to the middle between them; up and down, a
/// cell that two parts have counts for both. A region without looks is one part. Pointers into `found` stay.
std::vector<Part> find_parts(const diff::MotionRegions& found, const diff::Cells& cells, std::size_t most);

}  // namespace cudavision::track
