// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <array>
#include <cstdint>

#include "kernels/core/format.hpp"
#include "kernels/core/host_device.hpp"

namespace cudavision {

/// What a window reads beyond the edges of the frame. The first five have OpenCV's names, numbers and meaning
/// (cv::BorderTypes). "Walks" in CONTRIBUTING.md explains how to add one.
enum class Border : std::uint8_t {
  constant,     ///< iii|abcd|iii, i = the border value
  replicate,    ///< aaa|abcd|ddd
  reflect,      ///< cba|abcd|dcb
  wrap,         ///< bcd|abcd|abc
  reflect_101,  ///< dcb|abcd|cba
  fill,         ///< the result is the border value where the window leaves the frame
  copy,         ///< the result is the input pixel where the window leaves the frame
};

struct BorderInfo {
  Border value;
  const char* nick;  ///< the name in properties
  const char* blurb;
};
/// All borders, in the order of the enumeration. The borders that extrapolate the frame come first.
extern const std::array<BorderInfo, 7> borders;
inline constexpr int extrapolating_borders = 5;
/// Whether windows read samples outside the frame. Otherwise pixels whose window leaves the frame are not computed.
CUDAVISION_HOST_DEVICE constexpr bool extrapolates(Border border) { return int(border) < extrapolating_borders; }
static_assert(int(Border::fill) == extrapolating_borders && !extrapolates(Border::copy));

/// The value of Border::constant and Border::fill for each Role, in the format's own range.
using BorderValue = std::array<std::uint16_t, role_count>;

/// The number of samples after which the extrapolated row repeats; 0: it does not repeat.
CUDAVISION_HOST_DEVICE inline int border_period(int n, Border border) {
  switch (border) {
    case Border::reflect:
      return 2 * n;
    case Border::wrap:
      return n;
    case Border::reflect_101:
      return n == 1 ? 1 : 2 * n - 2;
    case Border::constant:
    case Border::replicate:
    case Border::fill:
    case Border::copy:
      break;
  }
  return 0;
}

/// border_index() without a division. The index is at most n − 1 samples outside the frame; it may have any value if
/// the border does not repeat the row.
CUDAVISION_HOST_DEVICE inline int near_border_index(int i, int n, Border border) {
  if (unsigned(i) < unsigned(n)) return i;
  switch (border) {
    case Border::replicate:
      return i < 0 ? 0 : n - 1;
    case Border::reflect:
      return i < 0 ? -1 - i : 2 * n - 1 - i;
    case Border::wrap:
      return i < 0 ? i + n : i - n;
    case Border::reflect_101:
      return i < 0 ? -i : 2 * n - 2 - i;
    case Border::constant:
    case Border::fill:
    case Border::copy:
      break;
  }
  return -1;
}

/// Maps any index to an index in [0, n), n ≥ 1, or to −1 for the border value. For OpenCV's borders the result equals
/// cv::borderInterpolate, even far outside the frame. Both backends use it: kernels (some call near_border_index()
/// directly), and SetAccess::extrapolate() in kernels/cpu/filter.cpp. cv::GaussianBlur extrapolates by itself
/// (kernels/gaussian/cpu.cpp).
CUDAVISION_HOST_DEVICE inline int border_index(int i, int n, Border border) {
  const bool is_near = unsigned(i) + unsigned(n - 1) < 3 * unsigned(n) - 2;
  if (const int period = is_near ? 0 : border_period(n, border)) {
    i %= period;
    if (i < 0) i += period;
  }
  return near_border_index(i, n, border);
}

}  // namespace cudavision
