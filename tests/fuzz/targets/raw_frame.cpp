// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/fuzz/targets/raw_frame.hpp"

#include <string>
#include <vector>

#include "tests/fuzz/memory.hpp"

namespace cudavision::fuzz {
namespace {

constexpr gsize most_bytes = 1 << 20;

/// Any format that GStreamer knows.
GstVideoFormat any_format(Bytes& bytes) {
  guint count;
  const GstVideoFormat* formats = gst_video_formats_raw(&count);
  return formats[bytes.below(int(count))];
}

/// Memory of the picture's size or near it, in one block or several, each with a fence behind it.
void add_memories(Bytes& bytes, GstBuffer* buffer, const GstVideoInfo& video) {
  gsize size = std::min(bytes.around(gsize(GST_VIDEO_INFO_SIZE(&video))), most_bytes);
  std::string samples(size, char(bytes.byte()));
  const int varied = bytes.below(17);
  for (gsize i = 0; varied > 0 && i < size; ++i) samples[i] = char(samples[i] + int(i) * varied + int(i >> 4) * 37);
  gsize at = 0;
  for (int left = bytes.byte() % 8 == 7 ? bytes.below(6) : 1; left > 0; --left) {
    const gsize end = left == 1 ? size : std::min(size, at + bytes.number(2));
    const int kind = bytes.byte();
    gst_buffer_append_memory(
        buffer, new_fenced_memory(samples.data() + at, end - at, kind & 1 ? Fence::page : Fence::heap, kind & 2));
    at = end;
  }
}

void add_meta(Bytes& bytes, GstBuffer* buffer, const GstVideoInfo& video) {
  gsize offset[GST_VIDEO_MAX_PLANES] = {};
  gint stride[GST_VIDEO_MAX_PLANES] = {};
  const guint planes = std::min<guint>(bytes.around(guint(GST_VIDEO_INFO_N_PLANES(&video))), GST_VIDEO_MAX_PLANES);
  for (guint p = 0; p < planes; ++p) {
    offset[p] = bytes.around(video.offset[p]);
    stride[p] = bytes.around(video.stride[p]);
  }
  const guint width = bytes.around(guint(GST_VIDEO_INFO_WIDTH(&video))),
              height = bytes.around(guint(GST_VIDEO_INFO_HEIGHT(&video)));
  const GstVideoFormat format = bytes.byte() % 16 == 15 ? any_format(bytes) : GST_VIDEO_INFO_FORMAT(&video);
  GstVideoMeta* meta = gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&video),
                                                      width, height, planes, offset, stride);
  meta->format = format;
}

void add_crop(Bytes& bytes, GstBuffer* buffer, const GstVideoInfo& video) {
  GstVideoCropMeta* crop = gst_buffer_add_video_crop_meta(buffer);
  crop->x = bytes.around(0u), crop->y = bytes.around(0u);
  crop->width = bytes.around(guint(GST_VIDEO_INFO_WIDTH(&video)));
  crop->height = bytes.around(guint(GST_VIDEO_INFO_HEIGHT(&video)));
}

void add_regions(Bytes& bytes, GstBuffer* buffer) {
  static constexpr const char* types[] = {"face", "motion", "", "another"};
  for (int i = bytes.below(5); i > 0; --i) {
    const char* type = types[bytes.below(4)];
    const guint x = bytes.around(2u), y = bytes.around(2u), width = bytes.around(5u), height = bytes.around(5u);
    gst_buffer_add_video_region_of_interest_meta(buffer, type, x, y, width, height);
  }
}

}  // namespace

GstVideoInfo raw_video(Bytes& bytes, const std::vector<std::string>& formats, int most_pixels) {
  GstVideoInfo video;
  const std::string& format = formats[std::size_t(bytes.below(int(formats.size())))];
  const int width = std::clamp(int(bytes.around(guint16(16))), 1, most_pixels);
  const int height = std::clamp(int(bytes.around(guint16(8))), 1, std::max(1, most_pixels / width));
  gst_video_info_set_format(&video, gst_video_format_from_string(format.c_str()), guint(width), guint(height));
  return video;
}

GstBuffer* raw_frame(Bytes& bytes, const GstVideoInfo& video) {
  GstBuffer* buffer = gst_buffer_new();
  const int has = bytes.byte();
  add_memories(bytes, buffer, video);
  if (has & 1) add_meta(bytes, buffer, video);
  if (has & 2) add_crop(bytes, buffer, video);
  if (has & 4) add_regions(bytes, buffer);
  if (has & 8) GST_BUFFER_FLAG_SET(buffer, bytes.number(3) << 4 & ~(GST_MINI_OBJECT_FLAG_LAST - 1));
  if (has & 16) GST_BUFFER_PTS(buffer) = bytes.around(guint64(40000000));
  if (has & 32) GST_BUFFER_DURATION(buffer) = bytes.around(guint64(40000000));
  return buffer;
}

}  // namespace cudavision::fuzz
