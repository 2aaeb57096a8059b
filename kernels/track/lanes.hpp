// SPDX-License-Identifier: LGPL-2.1-or-later
// Finds where objects cross the frame repeatedly: lanes and paths. Each object disturbs the background there, like the
// leaves of a tree, but an object travels and a leaf does not. The background learns no large variance in a lane
// (Learning::steady), because it would soon find no objects there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/diff/learning.hpp"
#include "kernels/diff/motion.hpp"

namespace cudavision::track {

class LaneMap {
 public:
  /// Begins a frame with these cells, `seconds` after the last one.
  void begin_frame(const diff::Cells& cells, double seconds);
  /// Adds the box (in pixels, inside the frame) of an object that travels in this frame.
  void add(const Rect& box);

  /// Learning::steady for the cells of lanes, Learning::usual for others; empty if there is no lane.
  const std::vector<diff::Learning>& steady() const { return steady_; }

 private:
  struct Covered {
    float seconds = 0;        // how long objects have recently covered the cell
    std::uint32_t frame = 0;  // the last frame in which the cell was covered
  };

  Covered& covered(int x, int y) { return covered_[std::size_t(y) * std::size_t(width_) + std::size_t(x)]; }
  void find_lanes();

  int cell_size_ = 1, width_ = 0, height_ = 0;  // cells in a row and in a column
  double seconds_ = 0;                          // what a cell gains if an object covers it in this frame
  double pending_ = 0;                          // seconds since find_lanes()
  std::uint32_t frame_ = 0;
  std::vector<Covered> covered_;  // for each cell
  std::vector<diff::Learning> steady_;
};

}  // namespace cudavision::track
