// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/video/video.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/core/image.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

/// Reads caps of raw video, and replaces meaningless numbers. Returns false if the caps are not raw video, or describe
/// a picture without pixels.
bool video_from_caps(GstVideoInfo& video, const GstCaps* caps);
/// Replaces meaningless numbers, which gst_video_info_from_caps() accepts: in a colorimetry ("9:9:9:9") they become
/// "unknown", and a pixel aspect ratio of 0 becomes 1/1.
void replace_meaningless_numbers(GstVideoInfo& video);

/// The time between frames; GST_CLOCK_TIME_NONE if it is unknown, or longer than a minute.
GstClockTime time_between_frames(const GstVideoInfo& video);

/// A size as text for messages: "320×240".
std::string size_text(gint64 width, gint64 height);

/// The format and size of a GstVideoInfo. Its format must be in the table, which caps negotiation ensures.
Geometry geometry_of(const GstVideoInfo& video);

/// The range of the samples. Gray video is full-range if its caps have no range: GRAY8 is 0 to 255.
GstVideoColorRange range_of(const GstVideoInfo& video);

/// The pixel of the uncropped frame where the picture of a buffer begins, from its GstVideoCropMeta; otherwise (0, 0).
struct CropOrigin {
  int x = 0, y = 0;
};
CropOrigin crop_origin(GstBuffer* buffer);

/// Copies rows of bytes in system memory.
inline void copy_rows(const Plane& from, const Plane& to, std::size_t row_bytes, int rows) {
  for (std::ptrdiff_t y = 0; y < rows; ++y)
    std::memcpy(static_cast<char*>(to.data) + y * to.pitch, static_cast<const char*>(from.data) + y * from.pitch,
                row_bytes);
}

/// A buffer that is mapped for the lifetime of this object: the picture that the caps describe, with the layout of the
/// buffer's GstVideoMeta and the crop of its GstVideoCropMeta. If a crop begins inside a group of subsampled pixels,
/// luma begins at the crop and chroma at the group, as in GStreamer's videocrop.
///
/// The rows of image() never overlap, and their pitch is positive. Planes with another layout (rows that share memory,
/// bottom-up rows, packed pixels that begin inside a group) are copied if they are in system memory: before reading, or
/// after writing. In device memory such rows are rejected; for packed 4:2:2 see shifted().
class MappedFrame {
 public:
  /// `flags`: GST_MAP_READ or GST_MAP_WRITE, with Gpu::map_flag() for a device pointer. Check status() before use.
  /// Errors: frame, if the buffer does not hold the picture.
  MappedFrame(GstBuffer* buffer, const GstVideoInfo& video, GstMapFlags flags);
  ~MappedFrame();
  MappedFrame(const MappedFrame&) = delete;
  MappedFrame& operator=(const MappedFrame&) = delete;

  const Status& status() const { return status_; }
  const Image& image() const { return image_; }
  /// Whether planes of image() are copies.
  bool has_copies() const { return !copies_.empty(); }
  /// Whether the picture begins at the second pixel of the group at which image() begins. It must be copied by
  /// shift_groups(). Only in device memory.
  bool shifted() const { return shifted_; }

 private:
  /// A copy that replaces a plane with another layout.
  struct Copy {
    int plane;  // index of the plane
    Plane original;
    PlaneExtent extent;
    std::vector<guint8> bytes;
  };

  Status find_planes(CropOrigin origin);
  Status straighten(int plane, GstMapFlags flags);
  Status align_groups(GstMapFlags flags);
  Plane copy_plane(int plane, const PlaneExtent& bytes);

  GstVideoFrame frame_;
  Status status_;
  bool mapped_ = false;
  bool writes_ = false;
  bool shifted_ = false;
  int skipped_ = 0;  ///< pixels of the first group before the picture
  Image image_;
  std::vector<Copy> copies_;
};

}  // namespace cudavision
