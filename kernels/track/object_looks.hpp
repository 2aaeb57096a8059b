// SPDX-License-Identifier: LGPL-2.1-or-later
// Private to the tracker: the looks of an object, and how much two looks differ.
#pragma once

#include <array>

#include "kernels/core/image.hpp"
#include "kernels/diff/looks.hpp"

namespace cudavision::track {

/// The looks of an object in a frame. For the upper and the lower half: the mean of luma, its standard deviation, and
/// the means of Cb and Cr; in 8-bit steps.
struct ObjectLooks {
  bool known = false;  ///< whether both halves have changed pixels
  std::array<double, 8> values{};
};

/// Adds up the cells of an object.
class ObjectLooksSums {
 public:
  /// `box`: the box of the object, in pixels of the frame.
  explicit ObjectLooksSums(const Rect& box) : middle_(box.y + box.height / 2.0) {}

  /// Adds a cell. A cell in the middle belongs to both halves, in proportion to the rows of its changed pixels (`box`)
  /// in each half.
  void add(const diff::CellLooks& looks, const Rect& box);
  ObjectLooks result() const;

 private:
  const double middle_;
  double sums_[2][5] = {};  ///< sums for each half: pixels, luma, squares of luma, Cb, Cr
};

/// The looks of an object over time.
class Portrait {
 public:
  bool known() const { return frames_ > 0; }
  void learn(const ObjectLooks& looks);
  /// The mean squared difference in units of the spread over time, 0–16. Both looks must be known.
  double unlikeness(const ObjectLooks& looks) const;

 private:
  int frames_ = 0;
  std::array<double, 8> mean_{}, variance_{};
};

}  // namespace cudavision::track
