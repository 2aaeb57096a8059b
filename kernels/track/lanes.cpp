// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/track/lanes.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace cudavision::track {
namespace {

// Chosen with the scene `lane` of tests/bench/motion_world.py and with a swaying tree, alone and behind people: in 40
// seconds, branches that were mistaken for objects covered a cell for at most 0.3 seconds.
constexpr double memory = 40;     ///< seconds after which a lane is forgotten
constexpr double least = 0.8;     ///< seconds for which objects must have covered a cell of a lane
constexpr double longest = 0.25;  ///< the most seconds that the time between two frames can count
constexpr double interval = 1;    ///< seconds between searches
constexpr int margin = 2;         ///< cells around an object that belong to its lane

}  // namespace

void LaneMap::begin_frame(const diff::Cells& cells, double seconds) {
  const int size = cells.cell_size, width = divide_up(cells.frame_width, size),
            height = divide_up(cells.frame_height, size);
  if (size != cell_size_ || width != width_ || height != height_) {
    *this = {};
    cell_size_ = size, width_ = width, height_ = height;
    covered_.assign(std::size_t(width) * std::size_t(height), {});
  }
  ++frame_;
  seconds_ = std::min(seconds, longest);
  pending_ += seconds;
  if (pending_ >= interval) find_lanes();
}

void LaneMap::add(const Rect& box) {
  const int left = box.x / cell_size_, right = (box.x + box.width - 1) / cell_size_;
  const int top = box.y / cell_size_, bottom = (box.y + box.height - 1) / cell_size_;
  for (int y = top; y <= bottom; ++y)
    for (int x = left; x <= right; ++x) {
      Covered& cell = covered(x, y);
      if (cell.frame != frame_) cell.seconds += float(seconds_), cell.frame = frame_;
    }
}

void LaneMap::find_lanes() {
  const float kept = float(std::exp(-pending_ / memory));
  pending_ = 0;
  steady_.clear();
  for (int y = 0; y < height_; ++y)
    for (int x = 0; x < width_; ++x) {
      Covered& cell = covered(x, y);
      cell.seconds *= kept;
      if (cell.seconds < least) continue;
      steady_.resize(covered_.size(), diff::Learning::usual);
      const int left = std::max(0, x - margin), right = std::min(width_ - 1, x + margin);
      for (int row = std::max(0, y - margin); row <= std::min(height_ - 1, y + margin); ++row)
        std::fill_n(steady_.begin() + std::ptrdiff_t(row) * width_ + left, right - left + 1, diff::Learning::steady);
    }
}

}  // namespace cudavision::track
