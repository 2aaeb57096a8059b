// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include "kernels/core/host_device.hpp"

namespace cudavision::histogram {

/// The units of a rectangle that one worker counts. Each row is `units` units wide. Units are numbered row by row; the
/// worker takes unit `first` and then every `stride`-th unit. The caller ends the walk when y reaches the height.
struct Walk {
  int x, y, step_x, step_y, width;

  CUDAVISION_HOST_DEVICE Walk(unsigned first, unsigned stride, unsigned units) : width(int(units)) {
    y = int(first / units);
    x = int(first - unsigned(y) * units);
    step_y = int(stride / units);
    step_x = int(stride - unsigned(step_y) * units);
  }
  CUDAVISION_HOST_DEVICE void next() {
    x += step_x;
    y += step_y;
    if (x >= width) {
      x -= width;
      ++y;
    }
  }
};

}  // namespace cudavision::histogram
