// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/core/format.hpp"

namespace cudavision {

/// The samples of a plane. `pitch` is the distance between rows in bytes. It is at least the size of a row (exception:
/// see copied_row), so rows neither overlap nor are stored bottom-up. `data` and `pitch` may have any alignment on both
/// backends; 16-bit samples at odd addresses need a copy.
struct Plane {
  void* data = nullptr;
  std::ptrdiff_t pitch = 0;
};

/// A rectangle in samples of a grid: [x, x + width) × [y, y + height).
struct Rect {
  int x = 0, y = 0, width = 0, height = 0;

  bool empty() const { return width <= 0 || height <= 0; }
};

/// The intersection of two rectangles, which may have any position and size. Empty if they do not overlap.
inline Rect intersection(const Rect& a, const Rect& b) {
  const auto end = [](int begin, int length) { return std::int64_t(begin) + length; };
  const int x = std::max(a.x, b.x), y = std::max(a.y, b.y);
  const std::int64_t right = std::min(end(a.x, a.width), end(b.x, b.width));
  const std::int64_t bottom = std::min(end(a.y, a.height), end(b.y, b.height));
  return {x, y, int(std::max<std::int64_t>(right - x, 0)), int(std::max<std::int64_t>(bottom - y, 0))};
}

inline constexpr int max_frame_side = 16384;  ///< width and height of a frame, in pixels

/// Format and size of a picture.
struct Geometry {
  Format format = Format::GRAY8;
  int width = 0, height = 0;  ///< size of the picture in pixels, 1–max_frame_side

  /// All samples of a channel set, as a rectangle.
  Rect grid(const ChannelSet& set) const {
    return {0, 0, subsampled(width, set.shift_x), subsampled(height, set.shift_y)};
  }
};

/// The size of a plane: `rows` rows of `row_bytes` bytes.
struct PlaneExtent {
  std::size_t row_bytes = 0;
  int rows = 0;
};
inline PlaneExtent extent(const Geometry& geometry, int plane) {
  const FormatInfo& format = info(geometry.format);
  if (format.packing)
    return {std::size_t(divide_up(geometry.width, format.packing->pixels)) * format.packing->group_bytes(),
            geometry.height};
  PlaneExtent extent;
  for (int i = 0; i < format.set_count; ++i) {
    if (format.sets[i].plane != plane) continue;
    const Rect grid = geometry.grid(format.sets[i]);
    extent.row_bytes = std::max(extent.row_bytes,
                                std::size_t(grid.width) * format.sets[i].channels * std::size_t(format.sample_bytes()));
    extent.rows = grid.height;
  }
  return extent;
}

/// The bytes to copy for each row between two planes: the whole row, unless a pitch is smaller. A smaller pitch is
/// possible in packed 4:2:2 of odd width, where the last byte of a row belongs to no pixel.
inline std::size_t copied_row(const PlaneExtent& extent, const Plane& from, const Plane& to) {
  return std::min({extent.row_bytes, std::size_t(from.pitch), std::size_t(to.pitch)});
}

/// Whether all rows of a plane start at multiples of `alignment` bytes, a power of two.
inline bool aligned_to(const void* data, std::ptrdiff_t pitch, int alignment) {
  return ((reinterpret_cast<std::uintptr_t>(data) | std::uintptr_t(pitch)) & (alignment - 1)) == 0;
}

/// A picture in host or device memory. Does not own it.
struct Image {
  Geometry geometry;
  std::array<Plane, max_planes> planes{};
};

}  // namespace cudavision
