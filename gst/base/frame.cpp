// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frame.hpp"

#include <algorithm>
#include <string>

namespace cudavision {

Geometry geometry_of(const GstVideoInfo& video) {
  const FormatInfo* format = find_format(gst_video_format_to_string(GST_VIDEO_INFO_FORMAT(&video)));
  g_return_val_if_fail(format, Geometry{});
  return {format->format, GST_VIDEO_INFO_WIDTH(&video), GST_VIDEO_INFO_HEIGHT(&video)};
}

GstVideoColorRange range_of(const GstVideoInfo& video) {
  if (video.colorimetry.range != GST_VIDEO_COLOR_RANGE_UNKNOWN) return video.colorimetry.range;
  return GST_VIDEO_INFO_IS_YUV(&video) ? GST_VIDEO_COLOR_RANGE_16_235 : GST_VIDEO_COLOR_RANGE_0_255;
}

CropOrigin crop_origin(GstBuffer* buffer) {
  const GstVideoCropMeta* crop = gst_buffer_get_video_crop_meta(buffer);
  return crop ? CropOrigin{int(crop->x), int(crop->y)} : CropOrigin{};
}

namespace {

/// Whether every row lies in what is mapped: of strides and offsets in a GstVideoMeta, gst_video_frame_map() checks little.
bool holds_its_planes(const GstVideoFrame& frame) {
  const Geometry whole{geometry_of(frame.info).format, GST_VIDEO_FRAME_WIDTH(&frame), GST_VIDEO_FRAME_HEIGHT(&frame)};
  for (int i = 0; i < info(whole.format).planes; ++i) {
    const GstMapInfo& map = frame.map[frame.meta ? i : 0];
    const PlaneExtent bytes = extent(whole, i);
    const std::ptrdiff_t begin = static_cast<guint8*>(frame.data[i]) - map.data, last = begin + std::ptrdiff_t(bytes.rows - 1) * frame.info.stride[i];
    if (std::min(begin, last) < 0 || std::max(begin, last) + std::ptrdiff_t(bytes.row_bytes) > std::ptrdiff_t(map.size)) return false;
  }
  return true;
}

}  // namespace

MappedFrame::MappedFrame(GstBuffer* buffer, const GstVideoInfo& video, GstMapFlags flags) {
  mapped_ = gst_video_frame_map(&frame_, &video, buffer, flags);
  if (!mapped_) {
    status_ = Status::resource("a video frame cannot be mapped: the buffer is smaller than its caps say, or its memory failed");
    return;
  }
  image_.geometry = geometry_of(video);
  const CropOrigin origin = crop_origin(buffer);
  const int whole_width = GST_VIDEO_FRAME_WIDTH(&frame_), whole_height = GST_VIDEO_FRAME_HEIGHT(&frame_);
  if (GST_VIDEO_FRAME_FORMAT(&frame_) != GST_VIDEO_INFO_FORMAT(&video) || origin.x < 0 || origin.y < 0 ||
      origin.x > whole_width - image_.geometry.width || origin.y > whole_height - image_.geometry.height) {
    status_ = Status::resource("a frame of " + std::to_string(whole_width) + "×" + std::to_string(whole_height) + " pixels (" +
                               gst_video_format_to_string(GST_VIDEO_FRAME_FORMAT(&frame_)) + ") does not hold the picture that its caps describe");
    return;
  }
  if (!holds_its_planes(frame_)) {
    status_ = Status::resource("a video frame's strides and offsets reach beyond its memory");
    return;
  }
  const FormatInfo& format = info(image_.geometry.format);
  for (int i = 0; i < format.set_count; ++i) {
    // Of the sets of a plane the coarsest, which is the last, says where a whole group of pixels begins.
    const ChannelSet& set = format.sets[i];
    Plane& plane = image_.planes[set.plane];
    plane.pitch = GST_VIDEO_FRAME_PLANE_STRIDE(&frame_, set.plane);
    plane.data = static_cast<guint8*>(GST_VIDEO_FRAME_PLANE_DATA(&frame_, set.plane)) + (origin.y >> set.shift_y) * plane.pitch +
                 std::ptrdiff_t(origin.x >> set.shift_x) * set.channels * format.sample_bytes();
  }
}

MappedFrame::~MappedFrame() {
  if (mapped_) gst_video_frame_unmap(&frame_);
}

}  // namespace cudavision
