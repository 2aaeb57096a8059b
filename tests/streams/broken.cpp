// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/streams/broken.hpp"

#include "tests/streams/frames.hpp"

namespace cudavision::streams {
namespace {

constexpr gsize most_bytes = 1 << 20;

/// Any format that GStreamer knows.
GstVideoFormat any_format(Random& random) {
  guint count;
  const GstVideoFormat* formats = gst_video_formats_raw(&count);
  return formats[random.below(int(count))];
}

/// `coordinate(near)` draws a number that may be close to the given one.
template <typename F>
void add_region(Random& random, GstBuffer* buffer, F&& coordinate) {
  static constexpr const char* types[] = {"face", "motion", "", "another"};
  const char* type = types[random.below(4)];
  const guint x = coordinate(2u), y = coordinate(2u), width = coordinate(5u), height = coordinate(5u);
  gst_buffer_add_video_region_of_interest_meta(buffer, type, x, y, width, height);
}

GstVideoMeta* meta_of(GstBuffer* buffer, GstVideoInfo video) {
  if (GstVideoMeta* meta = gst_buffer_get_video_meta(buffer)) return meta;
  return gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&video),
                                        guint(GST_VIDEO_INFO_WIDTH(&video)), guint(GST_VIDEO_INFO_HEIGHT(&video)),
                                        GST_VIDEO_INFO_N_PLANES(&video), video.offset, video.stride);
}

void spoil_meta(Random& random, GstBuffer* buffer, const GstVideoInfo& video) {
  GstVideoMeta* meta = meta_of(buffer, video);
  meta->n_planes = std::min<guint>(random.around(meta->n_planes), GST_VIDEO_MAX_PLANES);
  for (guint p = 0; p < meta->n_planes; ++p) {
    meta->offset[p] = random.around(meta->offset[p]);
    meta->stride[p] = random.around(meta->stride[p]);
  }
  meta->width = random.around(meta->width);
  meta->height = random.around(meta->height);
  if (random.byte() % 16 == 15) meta->format = any_format(random);
}

void spoil_crop(Random& random, GstBuffer* buffer, const GstVideoInfo& video) {
  GstVideoCropMeta* crop = gst_buffer_get_video_crop_meta(buffer);
  if (!crop) {
    crop = gst_buffer_add_video_crop_meta(buffer);
    crop->x = crop->y = 0;
    crop->width = guint(GST_VIDEO_INFO_WIDTH(&video)), crop->height = guint(GST_VIDEO_INFO_HEIGHT(&video));
  }
  for (guint* each : {&crop->x, &crop->y, &crop->width, &crop->height}) *each = random.around(*each);
}

/// Spoils the parts that the bits of `has` select.
void spoil(Random& random, GstBuffer* buffer, const GstVideoInfo& video, int has) {
  if (has & 1) spoil_meta(random, buffer, video);
  if (has & 2) spoil_crop(random, buffer, video);
  if (has & 4)
    for (int i = random.below(5); i > 0; --i)
      add_region(random, buffer, [&](guint near) { return random.around(near); });
  if (has & 8) GST_BUFFER_FLAG_SET(buffer, random.number(3) << 4 & ~(GST_MINI_OBJECT_FLAG_LAST - 1));
  if (has & 16) GST_BUFFER_PTS(buffer) = random.around(guint64(40000000));
  if (has & 32) GST_BUFFER_DURATION(buffer) = random.around(guint64(40000000));
  if (has & 64) GST_BUFFER_DTS(buffer) = random.around(guint64(40000000));
}

/// Adds memory with about the size of the picture, in one block or several, each followed by a fence.
void add_memories(Random& random, GstBuffer* buffer, const GstVideoInfo& video) {
  const gsize size = std::min(random.around(gsize(GST_VIDEO_INFO_SIZE(&video))), most_bytes);
  std::string samples(size, char(random.byte()));
  const int varied = random.below(17);
  for (gsize i = 0; varied > 0 && i < size; ++i) samples[i] = char(samples[i] + int(i) * varied + int(i >> 4) * 37);
  gsize at = 0;
  for (int left = random.byte() % 8 == 7 ? random.below(6) : 1; left > 0; --left) {
    const gsize end = left == 1 ? size : std::min<gsize>(size, at + random.number(2));
    const int kind = random.byte();
    gst_buffer_append_memory(
        buffer, new_fenced_memory(samples.data() + at, end - at, kind & 1 ? Fence::page : Fence::heap, kind & 2));
    at = end;
  }
}

/// Reduces the buffer to these bytes, followed by a fence.
void keep_bytes(Random& random, GstBuffer* buffer, gsize offset, gsize size) {
  std::string bytes(size, '\0');
  gst_buffer_extract(buffer, offset, bytes.data(), size);
  gst_buffer_replace_all_memory(
      buffer, new_fenced_memory(bytes.data(), size, random.one_in(2) ? Fence::page : Fence::heap, false));
}

}  // namespace

void spoil(Random& random, GstBuffer* buffer, const GstVideoInfo& video) {
  spoil(random, buffer, video, random.byte());
}

void shorten(Random& random, GstBuffer* buffer) {
  const gsize size = gst_buffer_get_size(buffer);
  if (random.one_in(5)) return gst_buffer_remove_all_memory(buffer);
  if (size == 0) return;
  const gsize begin = random.one_in(4) ? gsize(random.below(int(size))) : 0;
  const gsize end = random.pick<gsize>({begin, size - 1, size, begin + gsize(random.below(int(size - begin)))});
  keep_bytes(random, buffer, begin, end - begin);
}

void overlap_rows(Random& random, GstBuffer* buffer, const GstVideoInfo& video) {
  GstVideoMeta* meta = meta_of(buffer, video);
  gsize end = 0;
  for (int p = 0; p < int(GST_VIDEO_INFO_N_PLANES(&video)); ++p) {
    const PlaneSize size = plane_size(video, p);
    const int row = int(size.row_bytes);
    meta->stride[p] = random.pick<int>({0, 0, 1, row / 2, row - 1, row});
    meta->offset[p] = end;
    end += gsize(meta->stride[p]) * gsize(size.rows - 1) + size.row_bytes;
  }
  if (end <= gst_buffer_get_size(buffer)) keep_bytes(random, buffer, 0, end);
}

void decorate(Random& random, GstBuffer* buffer) {
  if (random.one_in(3))
    for (int i = random.pick<int>({1, 1, 2, 5, random.one_in(10) ? 300 : 3}); i > 0; --i)
      add_region(random, buffer, [&](guint near) { return random.one_in(3) ? near : guint(random.edge()); });
  if (random.one_in(10)) {
    constexpr GstBufferFlags flags[] = {GST_BUFFER_FLAG_GAP,       GST_BUFFER_FLAG_DISCONT, GST_BUFFER_FLAG_CORRUPTED,
                                        GST_BUFFER_FLAG_DROPPABLE, GST_BUFFER_FLAG_HEADER,  GST_BUFFER_FLAG_DELTA_UNIT};
    GST_BUFFER_FLAG_SET(buffer, flags[random.below(int(G_N_ELEMENTS(flags)))]);
  }
  if (random.one_in(20))
    GST_BUFFER_FLAG_SET(buffer, GST_VIDEO_BUFFER_FLAG_INTERLACED | (random.one_in(2) ? GST_VIDEO_BUFFER_FLAG_TFF : 0));
}

GstVideoInfo raw_video(Random& random, const std::vector<std::string>& formats, int most_pixels) {
  GstVideoInfo video;
  const std::string& format = random.pick(formats);
  const int width = std::clamp(int(random.around(guint16(16))), 1, most_pixels);
  const int height = std::clamp(int(random.around(guint16(8))), 1, std::max(1, most_pixels / width));
  gst_video_info_set_format(&video, gst_video_format_from_string(format.c_str()), guint(width), guint(height));
  return video;
}

GstBuffer* raw_frame(Random& random, const GstVideoInfo& video) {
  GstBuffer* buffer = gst_buffer_new();
  const int has = random.byte();
  add_memories(random, buffer, video);
  spoil(random, buffer, video, has);
  return buffer;
}

}  // namespace cudavision::streams
