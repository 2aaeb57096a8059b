// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/track/pieces.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/diff/motion.hpp"
#include "kernels/track/parts.hpp"

namespace cudavision::track {
namespace {

// Chosen with people at eye level (TUD-Campus of MOT15) and the scene `lane` of tests/bench/motion_world.py.
constexpr double stacked_share = 0.15;   ///< smallest overlap of the widths, as a share of the narrower one
constexpr double largest_gap = 0.35;     ///< between the boxes, as a share of the height of the box around both
constexpr int least_cells = 4;           ///< smallest height of the box around both: smaller objects have no pieces
constexpr double largest_upright = 0.6;  ///< height of an upright piece ÷ height of another upright piece
constexpr double least_ratio = 1.3;      ///< smallest height ÷ width of the box around both
/// The time in ns for which they may be apart.
constexpr std::uint64_t longest_break = 300'000'000;
/// The younger object must be stacked within this time after its first frame. Otherwise it is an approaching object.
constexpr std::uint64_t longest_alone = 500'000'000;
// In widths of the box around both:
constexpr double least_speed = 0.1;    ///< per second, for a speed that has a direction
constexpr double least_way = 0.05;     ///< smallest distance that both move to the same side
constexpr double largest_stray = 0.5;  ///< largest change of the vector between their centres
constexpr double steepest = 2;         ///< largest vertical distance, relative to the horizontal distance

}  // namespace

bool are_stacked(const Rect& a, const Rect& b, int cell) {
  const Offset offset = offset_of(a, b);
  const Rect both = diff::around(a, b);
  return offset.gap <= std::max<double>(cell, largest_gap * both.height) &&
         offset.overlap >= stacked_share * std::min(a.width, b.width) && both.height >= least_cells * cell &&
         both.height >= least_ratio * both.width &&
         (!(upright(a) && upright(b)) ||
          std::min(a.height, b.height) <= largest_upright * std::max(a.height, b.height));
}

bool may_be_one(const Speed& whole, const Speed& piece, int width) {
  const double least = least_speed * width, down = std::abs(piece.y);
  const bool goes_down = down > least && down > steepest * std::abs(piece.x);
  return whole.x * piece.x >= -least * least && !goes_down;
}

bool Companion::are_one(std::uint64_t whole, const Centres& centres, int width, std::uint64_t now, std::uint64_t born) {
  const double whole_x = centres.whole_x - first_.whole_x, whole_y = centres.whole_y - first_.whole_y;
  const double piece_x = centres.piece_x - first_.piece_x, piece_y = centres.piece_y - first_.piece_y;
  const bool strays = std::hypot(whole_x - piece_x, whole_y - piece_y) > largest_stray * width;
  if (now - std::exchange(last_, now) > longest_break || whole != whole_ || strays) {
    whole_ = whole, since_ = now, first_ = centres;
    return false;
  }
  const double way = whole_x > 0 ? std::min(whole_x, piece_x) : -std::max(whole_x, piece_x);
  return since_ - born <= longest_alone && way >= least_way * width &&
         std::abs(whole_y) <= steepest * std::abs(whole_x);
}

}  // namespace cudavision::track
