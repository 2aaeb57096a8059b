// SPDX-License-Identifier: LGPL-2.1-or-later
// The shapes of kernels: a Layout as a type. Plain C++, so that the shape of a format can be queried without a GPU.
#pragma once

#include <type_traits>

#include "kernels/diff/cuda_schedule.hpp"

namespace cudavision::diff {

/// A Layout as a type, and values that follow from it.
template <typename T_, int C0, int C1, int planes_, int SX, int SY>
struct Shape {
  using T = T_;
  static constexpr int channels0 = C0, channels1 = C1, planes = planes_, shift_x = SX, shift_y = SY;
  /// planar_rgb also includes Y'CbCr 4:4:4.
  static constexpr bool packed_422 = C0 == 2, packed_rgb = C0 >= 3, planar_rgb = planes_ == 3 && SX == 0;
  static constexpr bool maybe_rgb = packed_rgb || planar_rgb;
  /// NV12, I420, GRAY8, RGBA and P010 have a kernel for each output. Kernels for other shapes choose their output at
  /// run time.
  static constexpr bool common = sizeof(T) == 1 ? SY == 1 || C0 == 4 || (C0 == 1 && planes == 1) : SY == 1 && C1 == 2;
  static constexpr int rows = strip_rows(C0, sizeof(T), planes_, SY);  ///< rows of plane 0 that a lane has
  static constexpr int pixels = strip_pixels(C0, sizeof(T));           ///< pixels of a row that a lane has
  static constexpr int quads = pixels / 4;
  static constexpr int words0 = pixels * C0 * int(sizeof(T)) / 4;
  static constexpr int words1 = (pixels >> SX) * C1 * int(sizeof(T)) / 4;
  static constexpr int words_a_quad = int(sizeof(T));  ///< with one value for each pixel of a quad
  static constexpr int tile_width = 32 * pixels, tile_rows = tuning.tile_rows, threads = 32 * tile_rows / rows;

  static constexpr bool is(const Layout& l) {
    return l.sample_bytes == int(sizeof(T)) && l.channels0 == C0 && l.channels1 == C1 && l.planes == planes_ &&
           l.shift_x == SX && l.shift_y == SY;
  }
};

/// Calls f with the first shape that matches the layout, or with the last one. Returns the result of f.
template <typename First, typename... Others, typename F>
auto with_first_shape(const Layout& layout, F&& f) {
  if constexpr (sizeof...(Others) > 0)
    if (!First::is(layout)) return with_first_shape<Others...>(layout, f);
  return f(First{});
}

/// Calls f with the Shape of a layout, as a value. Returns the result of f. A format with another layout needs a Shape.
template <typename F>
auto with_shape(const Layout& layout, F&& f) {
  using u8 = std::uint8_t;
  using u16 = std::uint16_t;
  return with_first_shape<Shape<u8, 1, 2, 2, 1, 1>, Shape<u8, 1, 1, 3, 1, 1>, Shape<u8, 4, 1, 1, 0, 0>,  // NV12, I420
                          Shape<u8, 1, 1, 1, 0, 0>, Shape<u8, 3, 1, 1, 0, 0>, Shape<u8, 2, 1, 1, 0, 0>,
                          Shape<u8, 1, 1, 3, 0, 0>, Shape<u8, 1, 1, 3, 1, 0>, Shape<u8, 1, 1, 3, 2, 0>,  // Y444, Y41B
                          Shape<u8, 1, 2, 2, 1, 0>, Shape<u8, 1, 2, 2, 0, 0>,                            // NV16, NV24
                          Shape<u16, 1, 2, 2, 1, 1>, Shape<u16, 1, 1, 3, 1, 1>, Shape<u16, 4, 1, 1, 0, 0>,
                          Shape<u16, 1, 1, 1, 0, 0>, Shape<u16, 1, 1, 3, 0, 0>, Shape<u16, 1, 1, 3, 1, 0>>(layout, f);
}

}  // namespace cudavision::diff
