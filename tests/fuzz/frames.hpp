// SPDX-License-Identifier: LGPL-2.1-or-later
// Frames as real sources make them: any picture, in any layout that GstVideoMeta can describe.
#pragma once

#include <gst/video/video.h>

#include <string>

#include "tests/fuzz/memory.hpp"
#include "tests/fuzz/random.hpp"

namespace cudavision::fuzz {

/// A picture in GStreamer's default layout.
struct Picture {
  GstVideoInfo video;
  std::string bytes;
};

/// All zeros, all ones, random bits, a gradient, or samples within the format's depth.
Picture draw_picture(Random& random, const GstVideoInfo& video);

enum class Layout {
  tight,          ///< the default layout, without a GstVideoMeta
  padded,         ///< longer rows, gaps between the planes
  odd,            ///< odd strides and offsets: samples of two bytes lie at odd addresses
  apart,          ///< each plane in a memory of its own
  many_memories,  ///< the default layout, cut anywhere into several memories
  cropped,        ///< within a larger frame, with a GstVideoCropMeta
  bottom_up,      ///< negative strides
};
inline constexpr int layout_count = 7;
const char* name_of(Layout layout);

/// (transfer full) A buffer with this picture.
GstBuffer* lay_out(Random& random, const Picture& picture, Layout layout);

/// Bytes of a row of a plane that hold samples, and its rows.
struct PlaneSize {
  std::size_t row_bytes;
  int rows;
};
PlaneSize plane_size(const GstVideoInfo& video, int plane);

/// Every sample of the picture in a frame (cropped, if it has a GstVideoCropMeta), as bytes, component by component.
std::string samples_of(GstBuffer* buffer, const GstVideoInfo& video, bool& mapped);

}  // namespace cudavision::fuzz
