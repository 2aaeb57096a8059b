// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/video/video.h>

#include <vector>

#include "kernels/core/image.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

/// Reads caps of raw video, without meaningless numbers; false where they are not such caps.
bool video_from_caps(GstVideoInfo& video, const GstCaps* caps);
/// Replaces numbers that gst_video_info_from_caps() takes although they mean nothing: those of a colorimetry ("9:9:9:9") become
/// "unknown", a pixel aspect ratio of 0 becomes 1/1.
void replace_meaningless_numbers(GstVideoInfo& video);

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
///
/// The rows of image() never overlap and their pitch is positive. In system memory, planes with another layout (rows that share memory,
/// rows from the bottom up) are read from, or written through, a copy. In device memory such planes are refused.
class MappedFrame {
 public:
  /// `flags`: GST_MAP_READ or GST_MAP_WRITE, with Gpu::map_flag() for a device pointer. Check status() before use.
  /// Errors: frame, where the buffer does not hold the picture.
  MappedFrame(GstBuffer* buffer, const GstVideoInfo& video, GstMapFlags flags);
  ~MappedFrame();
  MappedFrame(const MappedFrame&) = delete;
  MappedFrame& operator=(const MappedFrame&) = delete;

  const Status& status() const { return status_; }
  const Image& image() const { return image_; }

 private:
  /// A plane that is worked on in a copy.
  struct Copy {
    Plane original;
    PlaneExtent extent;
    std::vector<guint8> bytes;
  };

  Status find_planes(CropOrigin origin);
  Status straighten(int plane, GstMapFlags flags);

  GstVideoFrame frame_;
  Status status_;
  bool mapped_ = false;
  bool writes_ = false;
  Image image_;
  std::vector<Copy> copies_;
};

}  // namespace cudavision
