// SPDX-License-Identifier: LGPL-2.1-or-later
// The size that objects usually have at a place. What is lower in the picture is nearer and larger, so each band of
// rows has its own size; the lower edge of a box decides in which band it is.
//
// A mask may show an object in pieces, and objects that follow each other as one region. Both are rarer than whole
// objects if the pixels that boxes travel count by the width of the box. The usual size is the median.
#pragma once

#include <array>
#include <cstddef>

#include "kernels/core/image.hpp"

namespace cudavision::track {

class SizeMap {
 public:
  /// Begins a frame of this height in pixels.
  void begin_frame(int frame_height);
  /// Adds the box (in pixels, inside the frame) of an object that has travelled `way` pixels since the last frame.
  void add(const Rect& box, double way);

  /// Whether a box can show one object: it is not larger than usual.
  bool fits(const Rect& box) const;
  /// The usual width of an object, in pixels, if a box is as wide as several objects in a row; otherwise 0.
  double width_in_row(const Rect& box) const;

 private:
  static constexpr int bands = 16;
  /// A histogram of sides by their logarithm.
  struct Sides {
    static constexpr int steps = 64;
    std::array<float, steps> weights{};
    double sum = 0, median = 0;  // of the weights; in pixels
    void add(int side, double weight);
    void forget();
  };
  struct Band {
    Sides widths, heights;
    /// How far objects travelled, in usual widths.
    double laps() const { return widths.sum / (widths.median * widths.median); }
  };

  int band_of(const Rect& box) const;
  const Band* known(const Rect& box) const;

  int frame_height_ = 1;
  std::array<Band, bands> bands_;
};

}  // namespace cudavision::track
