// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/video/video.h>

#include "image.hpp"
#include "status.hpp"

namespace cudavision {

/// Format and size of a GstVideoInfo whose format is of the table (which caps negotiation sees to).
Geometry geometry_of(const GstVideoInfo& video);

/// The range of its samples. Gray that does not say is full-range: GRAY8 0 to 255.
GstVideoColorRange range_of(const GstVideoInfo& video);

/// Where the picture of a buffer begins within its planes: GstVideoCropMeta, or 0, 0.
struct CropOrigin {
  int x = 0, y = 0;
};
CropOrigin crop_origin(GstBuffer* buffer);

/// A buffer mapped for its lifetime, as the picture that the caps describe: GstVideoMeta and GstVideoCropMeta are honoured. A crop
/// that begins inside a group of subsampled pixels begins at the group's first.
class MappedFrame {
 public:
  /// `flags`: GST_MAP_READ or GST_MAP_WRITE, with Gpu::map_flag() for a device pointer. Check ok() before use.
  MappedFrame(GstBuffer* buffer, const GstVideoInfo& video, GstMapFlags flags);
  ~MappedFrame();
  MappedFrame(const MappedFrame&) = delete;
  MappedFrame& operator=(const MappedFrame&) = delete;

  const Status& status() const { return status_; }
  const Image& image() const { return image_; }

 private:
  GstVideoFrame frame_;
  Status status_;
  bool mapped_ = false;
  Image image_;
};

}  // namespace cudavision
