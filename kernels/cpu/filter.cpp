// SPDX-License-Identifier: LGPL-2.1-or-later
#include "filter.hpp"

#include <cstring>

namespace cudavision::cpu {
namespace {

/// Copies whole pixels of a set, all channels of them.
void copy_pixels(const Image& src, const Image& dst, const ChannelSet& set, const Rect& rect, std::size_t pixel_bytes) {
  const Plane &from = src.planes[set.plane], &to = dst.planes[set.plane];
  for (int y = rect.y; y < rect.y + rect.height; ++y)
    std::memcpy(static_cast<char*>(to.data) + y * to.pitch + rect.x * pixel_bytes,
                static_cast<const char*>(from.data) + y * from.pitch + rect.x * pixel_bytes, rect.width * pixel_bytes);
}

/// Copies the channels that belong to the set, one byte each (packed 4:2:2 is 8-bit).
void copy_own_channels(const Image& src, const Image& dst, const ChannelSet& set, const Rect& rect) {
  const Plane &from = src.planes[set.plane], &to = dst.planes[set.plane];
  for (int y = rect.y; y < rect.y + rect.height; ++y)
    for (int x = rect.x; x < rect.x + rect.width; ++x)
      for (int c = 0; c < set.channels; ++c)
        if (set.roles[c] != Role::other) {
          const std::ptrdiff_t at = std::ptrdiff_t(x) * set.channels + c;
          static_cast<char*>(to.data)[y * to.pitch + at] = static_cast<const char*>(from.data)[y * from.pitch + at];
        }
}

}  // namespace

Status CpuFilter::copy_frame(const Image& src, const Image& dst, Queue queue) {
  return copy_rects(src, dst, whole_frame(geometry()), queue);
}

Status CpuFilter::copy_rects(const Image& src, const Image& dst, const SetRects& rects, Queue) {
  const FormatInfo& format = info(geometry().format);
  for (int i = 0; i < format.set_count; ++i) {
    const ChannelSet& set = format.sets[i];
    if (rects[i].empty()) continue;
    if (set.shares_plane())
      copy_own_channels(src, dst, set, rects[i]);
    else
      copy_pixels(src, dst, set, rects[i], std::size_t(set.channels) * format.sample_bytes());
  }
  return {};
}

cv::Mat set_mat(const Image& image, const ChannelSet& set) {
  const Rect grid = image.geometry.grid(set);
  const int depth = info(image.geometry.format).sample_bytes() == 1 ? CV_8U : CV_16U;
  const Plane& plane = image.planes[set.plane];
  return cv::Mat(grid.height, grid.width, CV_MAKETYPE(depth, set.channels), plane.data, std::size_t(plane.pitch));
}

}  // namespace cudavision::cpu
