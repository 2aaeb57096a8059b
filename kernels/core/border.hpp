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

/// The pixels beyond the edges of the frame. The first five have OpenCV's names and meaning (cv::BorderTypes).
enum class Border : std::uint8_t {
  constant,     ///< iii|abcd|iii, i = the border value
  replicate,    ///< aaa|abcd|ddd
  reflect,      ///< cba|abcd|dcb
  wrap,         ///< bcd|abcd|abc
  reflect_101,  ///< dcb|abcd|cba
  fill,         ///< the result is the border value if the window leaves the frame
  copy,         ///< the result is the input pixel if the window leaves the frame
};

struct BorderInfo {
  Border border;
  const char* nick;  ///< the name in properties
  const char* blurb;
};
/// All borders. Filters that cannot fill or copy use the first five rows.
extern const std::array<BorderInfo, 7> borders;
inline constexpr int extrapolating_borders = 5;

/// The value of Border::constant and Border::fill for each Role, in the format's own range.
using BorderValue = std::array<std::uint16_t, role_count>;

/// Maps any index to an index inside [0, n), n ≥ 1, or to −1 for the border value. Gives the same result as cv::borderInterpolate,
/// also far outside the frame.
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
