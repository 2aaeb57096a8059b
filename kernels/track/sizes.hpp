// SPDX-License-Identifier: LGPL-2.1-or-later
// The usual size of objects at each height of the picture. Lower objects are nearer and look larger, so each band of
// rows has its own size. A box belongs to the band of its lower edge.
//
// The mask may show an object as several pieces, or objects that follow each other as one region. The usual size is a
// median, weighted by the pixels that a box travels times its width. So all pieces of an object together weigh as much
// as the whole object, and the median ignores both cases while most objects are whole.
#pragma once

#include <array>

#include "kernels/core/image.hpp"

namespace cudavision::track {

class SizeMap {
 public:
  /// Begins a frame of this height in pixels.
  void begin_frame(int frame_height);
  /// Adds the box (in pixels, inside the frame) of an object that has travelled `way` pixels since the last frame.
  void add(const Rect& box, double way);

  /// Whether a box may show a single object, because it is not larger than usual.
  bool fits(const Rect& box) const;
  /// The usual width of an object, in pixels, if a box is as wide as several objects in a row; otherwise 0.
  double width_in_row(const Rect& box) const;

 private:
  static constexpr int bands = 16;
  /// A histogram of side lengths, by their logarithm.
  struct Sides {
    static constexpr int steps = 64;
    std::array<float, steps> weights{};
    double sum = 0, median = 0;  // sum of the weights; median in pixels
    void add(int side, double weight);
    void forget();
  };
  struct Band {
    Sides widths, heights;
    /// How far objects travelled, in usual widths. Only if the median is known.
    double laps() const { return widths.sum / (widths.median * widths.median); }
  };

  int band_of(const Rect& box) const;
  /// The band of a box; nullptr before objects have travelled far enough in it.
  const Band* known(const Rect& box) const;

  int frame_height_ = 1;
  std::array<Band, bands> bands_;
};

}  // namespace cudavision::track
