// SPDX-License-Identifier: LGPL-2.1-or-later
// Frames that a valid source can send: any picture, in any layout that GstVideoMeta can describe.
#pragma once

#include <gst/video/video.h>

#include <optional>
#include <string>

#include "tests/streams/memory.hpp"
#include "tests/streams/random.hpp"

namespace cudavision::streams {

/// A picture in GStreamer's default memory layout.
struct Picture {
  GstVideoInfo video;
  std::string bytes;
};

/// Draws a picture of zeros, ones, random bits, a gradient, or samples within the depth of the format.
Picture draw_picture(Random& random, const GstVideoInfo& video);

enum class Layout {
  tight,          ///< the default layout, without a GstVideoMeta
  padded,         ///< longer rows, gaps between the planes
  odd,            ///< odd strides and offsets: 16-bit samples are at odd addresses
  apart,          ///< each plane in its own memory
  many_memories,  ///< the default layout, split at random places into several memories
  cropped,        ///< part of a larger frame, with a GstVideoCropMeta
  bottom_up,      ///< negative strides
};
inline constexpr int layout_count = 7;
const char* name_of(Layout layout);

/// (transfer full) Makes a buffer with this picture in this layout.
GstBuffer* lay_out(Random& random, const Picture& picture, Layout layout);
/// Copies the picture into a writable buffer of this video. Returns false if the buffer cannot be mapped.
bool copy_into(GstBuffer* buffer, const Picture& picture);

/// The number of sample bytes in a row of a plane, without padding, and the number of rows.
struct PlaneSize {
  std::size_t row_bytes;
  int rows;
};
PlaneSize plane_size(const GstVideoInfo& video, int plane);

/// Returns every sample of the frame's picture as bytes, component by component. Applies a GstVideoCropMeta. No value:
/// the frame cannot be mapped.
std::optional<std::string> samples_of(GstBuffer* buffer, const GstVideoInfo& video);

}  // namespace cudavision::streams
