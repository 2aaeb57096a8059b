// SPDX-License-Identifier: LGPL-2.1-or-later
// The window of a sample along one axis, for both backends. Private.
//
//   sliding, radius 2:       ├──── x ────┤                     around each sample; cut at the edges of the frame
//   blocks of 5 pixels:   │▒▒▒▒▒▒▒▒▒▒│▒▒▒▒▒▒▒▒▒▒│▒▒▒▒▒▒▒▒▒▒│   from the origin on; the block in which the sample lies
//                         origin                              (a subsampled sample lies where its first pixel lies)
#pragma once

#include "kernels/core/border.hpp"

namespace cudavision::local {

struct Axis {
  int radius = 0;  ///< of a sliding window, in samples
  int side = 0;    ///< of a block, in pixels; 0: windows slide
  int origin = 0;  ///< of the blocks, in pixels; may lie outside of the frame
  int shift = 0;   ///< log2 of the subsampling

  /// Sets [begin, end), the window of sample x of `length` samples. It is never empty.
  CUDAVISION_HOST_DEVICE void window(int x, int length, int& begin, int& end) const {
    begin = x - radius;
    end = x + radius + 1;
    if (side > 0) {
      const int first = origin + ((x << shift) - origin) / side * side, last_bit = (1 << shift) - 1;
      begin = (first + last_bit) >> shift;
      end = (first + side + last_bit) >> shift;
    }
    begin = begin > 0 ? begin : 0;
    end = end < length ? end : length;
  }
};

/// The windows of a channel set.
struct Window {
  Axis x, y;
};

}  // namespace cudavision::local
