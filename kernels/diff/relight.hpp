// SPDX-License-Identifier: LGPL-2.1-or-later
// How a change of the light affects the means of Reference::adaptive; see adaptive_relight.hpp.
#pragma once

#include "kernels/core/rounded.hpp"

namespace cudavision::diff::adaptive {

/// The effect of a change of the light on means.
struct Relight {
  static constexpr int bins = 32, width = 256 / bins;  ///< width: of a bin, in 8-bit steps
  /// Chroma becomes to + slope · (chroma − from).
  struct Line {
    float from, to, slope;
  };
  float change[bins];  ///< change of luma, at the middle of each bin
  Line lines[2];       ///< of Cb and Cr

  /// The mean of a channel in the new light.
  CUDAVISION_HOST_DEVICE float apply(int channel, float mean) const {
    if (channel > 0) {
      const Line& line = lines[channel - 1];
      return add(line.to, mul(line.slope, sub(mean, line.from)));
    }
    const float place = most(0, least(sub(mul(mean, 1.0f / width), 0.5f), bins - 1));
    const int first = int(place), second = first + 1 < bins ? first + 1 : first;
    return most(-3, add(mean, add(change[first], mul(sub(place, float(first)), sub(change[second], change[first])))));
  }
};

}  // namespace cudavision::diff::adaptive
