// SPDX-License-Identifier: LGPL-2.1-or-later
// Private to the tracker: the regions of a frame as the tracker uses them. Regions of several people who are side by
// side are divided.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/diff/motion.hpp"
#include "kernels/track/sizes.hpp"

namespace cudavision::track {

/// A cell of a part.
struct PartCell {
  int x, y;
  Rect box;  ///< around its changed pixels and the changed pixels beside it, see MotionRegions::boxes; in pixels of the
             ///< frame
  const diff::CellLooks* looks;  ///< nullptr: unknown, or shared by two parts
};

/// A region, or a part of a region.
struct Part : diff::MotionRegion {
  std::vector<PartCell> cells;  ///< row by row; each cell of a region is in one part
};

/// Whether a box has the shape of a person who stands or walks.
bool upright(const Rect& box);
/// The number of pixels by which two boxes overlap horizontally (negative: they are apart), and the vertical gap
/// between them (negative: they overlap).
struct Offset {
  int overlap, gap;
};
Offset offset_of(const Rect& a, const Rect& b);
/// Whether two upright boxes stand side by side: neither is above the other.
bool beside(const Rect& a, const Rect& b);

/// The parts of the first `most` regions, in the order of the regions. The parts of a region are ordered from left to
/// right.
///
/// Cells up to a cell apart are linked, so people who walk side by side are one region. A region is divided at columns
/// in which few rows of its cells have changed pixels, if all resulting parts are upright and beside each other: other
/// objects do not have such parts for long. A region that is as wide as several objects of the usual size (sizes.hpp)
/// is also divided, whatever its shape. The boxes of parts extend at most to the middle between them. A cell that two
/// parts share counts for the top and bottom of both boxes. A region without looks is one part. Pointers point into
/// `found`.
std::vector<Part> find_parts(const diff::MotionRegions& found, const diff::Cells& cells, std::size_t most,
                             const SizeMap& sizes);

}  // namespace cudavision::track
