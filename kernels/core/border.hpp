// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <cstdint>

#include "kernels/core/format.hpp"

#ifdef __CUDACC__
#define CUDAVISION_HOST_DEVICE __host__ __device__
#else
#define CUDAVISION_HOST_DEVICE
#endif

namespace cudavision {

/// What lies beyond the frame. The first five have OpenCV's names and meaning (cv::BorderTypes).
enum class Border : std::uint8_t {
  constant,     ///< iii|abcd|iii, i = the border value
  replicate,    ///< aaa|abcd|ddd
  reflect,      ///< cba|abcd|dcb
  wrap,         ///< bcd|abcd|abc
  reflect_101,  ///< dcb|abcd|cba
  fill,         ///< a pixel whose window leaves the frame becomes the border value
  copy,         ///< a pixel whose window leaves the frame keeps its input
};

struct BorderInfo {
  Border border;
  const char* nick;  ///< as users write it
  const char* blurb;
};
/// The one table of borders; filters that always compute use the first five rows.
extern const std::array<BorderInfo, 7> borders;
inline constexpr int extrapolating_borders = 5;

/// Sample values beyond the frame, by Role, in the format's own range.
using BorderValue = std::array<std::uint16_t, role_count>;

/// Maps any index to one inside [0, n); −1 stands for the border value. Equals cv::borderInterpolate,
/// also for windows much larger than the frame; n ≥ 1.
CUDAVISION_HOST_DEVICE inline int border_index(int i, int n, Border border) {
  if (unsigned(i) < unsigned(n)) return i;
  switch (border) {
    case Border::replicate:
      return i < 0 ? 0 : n - 1;
    case Border::wrap: {
      const int m = i % n;
      return m < 0 ? m + n : m;
    }
    case Border::reflect: {
      const int period = 2 * n;
      int m = i % period;
      if (m < 0) m += period;
      return m < n ? m : period - 1 - m;
    }
    case Border::reflect_101: {
      if (n == 1) return 0;
      const int period = 2 * n - 2;
      int m = i % period;
      if (m < 0) m += period;
      return m < n ? m : period - m;
    }
    default:
      return -1;
  }
}

}  // namespace cudavision
