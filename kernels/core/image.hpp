// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/core/format.hpp"

namespace cudavision {

/// Where a plane's samples lie. `pitch` is the distance of rows in bytes: at least the bytes of a row (see copied_row for the one
/// exception), so that rows neither overlap nor run backwards. `data` and `pitch` have any alignment, on both backends: 16-bit
/// samples may lie at odd addresses, at the price of a copy.
struct Plane {
  void* data = nullptr;
  std::ptrdiff_t pitch = 0;
};

/// A rectangle in samples of some grid: [x, x + width) × [y, y + height).
struct Rect {
  int x = 0, y = 0, width = 0, height = 0;

  bool empty() const { return width <= 0 || height <= 0; }
};

/// What both have, of rectangles of any place and size; empty: nothing.
inline Rect intersection(const Rect& a, const Rect& b) {
  const auto end = [](int begin, int length) { return std::int64_t(begin) + length; };
  const int x = std::max(a.x, b.x), y = std::max(a.y, b.y);
  const std::int64_t right = std::min(end(a.x, a.width), end(b.x, b.width));
  const std::int64_t bottom = std::min(end(a.y, a.height), end(b.y, b.height));
  return {x, y, int(std::max<std::int64_t>(right - x, 0)), int(std::max<std::int64_t>(bottom - y, 0))};
}

/// Format and size of a picture.
struct Geometry {
  Format format = Format::GRAY8;
  int width = 0, height = 0;  ///< of the picture in pixels, 1–16384

  /// The whole grid of a channel set.
  Rect grid(const ChannelSet& set) const { return {0, 0, subsampled(width, set.shift_x), subsampled(height, set.shift_y)}; }
};

/// What a plane occupies: `rows` rows of `row_bytes` bytes.
struct PlaneExtent {
  std::size_t row_bytes = 0;
  int rows = 0;
};
inline PlaneExtent extent(const Geometry& geometry, int plane) {
  const FormatInfo& format = info(geometry.format);
  PlaneExtent extent;
  for (int i = 0; i < format.set_count; ++i) {
    if (format.sets[i].plane != plane) continue;
    const Rect grid = geometry.grid(format.sets[i]);
    extent.row_bytes =
        std::max(extent.row_bytes, std::size_t(grid.width) * format.sets[i].channels * std::size_t(format.sample_bytes()));
    extent.rows = grid.height;
  }
  return extent;
}

/// Bytes of a row to copy between two planes: the row, but for the byte in no picture at the end of packed 4:2:2 of odd width, which a
/// tight pitch has no room for.
inline std::size_t copied_row(const PlaneExtent& extent, const Plane& from, const Plane& to) {
  return std::min({extent.row_bytes, std::size_t(from.pitch), std::size_t(to.pitch)});
}

/// Whether all rows of a plane start at multiples of `alignment` bytes, a power of two.
inline bool aligned_to(const void* data, std::ptrdiff_t pitch, int alignment) {
  return ((reinterpret_cast<std::uintptr_t>(data) | std::uintptr_t(pitch)) & (alignment - 1)) == 0;
}

/// A picture somebody else owns, in host memory or in device memory.
struct Image {
  Geometry geometry;
  std::array<Plane, 3> planes{};
};

}  // namespace cudavision
