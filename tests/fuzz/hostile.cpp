// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/fuzz/hostile.hpp"

#include <string>

namespace cudavision::fuzz {
namespace {

/// Draws a coordinate of a rectangle: a common value or one at the ends of guint's range.
guint coordinate(Random& random) {
  return random.pick<guint>({0, 0, 1, 2, 3, 7, 16, 33, 64, 1000, 16384, 65535, G_MAXINT, guint(G_MAXINT) + 1, G_MAXUINT,
                             G_MAXUINT - 1, guint(random.below(64))});
}

void add_regions(Random& random, GstBuffer* buffer) {
  for (int i = random.pick<int>({1, 1, 2, 5, random.one_in(10) ? 300 : 3}); i > 0; --i)
    gst_buffer_add_video_region_of_interest_meta(buffer, random.pick<const char*>({"face", "motion", "", "a type"}),
                                                 coordinate(random), coordinate(random), coordinate(random),
                                                 coordinate(random));
}

GstVideoMeta* meta_of(GstBuffer* buffer, const GstVideoInfo& video) {
  GstVideoMeta* meta = gst_buffer_get_video_meta(buffer);
  if (meta) return meta;
  gsize offset[GST_VIDEO_MAX_PLANES];
  gint stride[GST_VIDEO_MAX_PLANES];
  for (guint p = 0; p < GST_VIDEO_MAX_PLANES; ++p) offset[p] = video.offset[p], stride[p] = video.stride[p];
  return gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&video),
                                        guint(GST_VIDEO_INFO_WIDTH(&video)), guint(GST_VIDEO_INFO_HEIGHT(&video)),
                                        GST_VIDEO_INFO_N_PLANES(&video), offset, stride);
}

void spoil_stride(Random& random, GstVideoMeta* meta, const GstVideoInfo& video) {
  const int plane = random.below(int(GST_VIDEO_INFO_N_PLANES(&video)));
  const int row = int(plane_size(video, plane).row_bytes), rows = plane_size(video, plane).rows;
  meta->stride[plane] =
      random.pick<int>({0, 0, 1, 2, row - 1, row / 2, -1, -row, -row - 1, row + 1, 1 << 20, G_MAXINT, G_MAXINT - 3,
                        G_MININT, G_MININT + 1, 1 << 30, G_MAXINT / (rows + 1) * 2, row * rows});
}

void spoil_offset(Random& random, GstVideoMeta* meta, GstBuffer* buffer, const GstVideoInfo& video) {
  const int plane = random.below(int(GST_VIDEO_INFO_N_PLANES(&video)));
  const gsize size = gst_buffer_get_size(buffer);
  meta->offset[plane] =
      random.pick<gsize>({0, 1, size, size - 1, size + 1, size - plane_size(video, plane).row_bytes, G_MAXSIZE,
                          G_MAXSIZE - 1, gsize(G_MAXINT), gsize(G_MAXUINT), gsize(G_MAXSSIZE), gsize(G_MAXSSIZE) + 1,
                          G_MAXSIZE - size + 1, gsize(random.below(64)), meta->offset[plane] ^ 1});
}

void spoil_size(Random& random, GstVideoMeta* meta) {
  guint& side = random.one_in(2) ? meta->width : meta->height;
  side = random.pick<guint>({0, 1, side - 1, side + 1, side + 2, side * 2, 16384, 65536, G_MAXINT, G_MAXUINT});
}

void spoil_meta(Random& random, GstBuffer* buffer, const GstVideoInfo& video) {
  GstVideoMeta* meta = meta_of(buffer, video);
  for (int i = random.pick<int>({1, 1, 1, 2, 4}); i > 0; --i) {
    switch (random.below(9)) {
      case 0:
        spoil_size(random, meta);
        break;
      case 1:
        meta->n_planes = guint(random.between(0, GST_VIDEO_MAX_PLANES));
        break;
      case 2:
        meta->format =
            random.pick<GstVideoFormat>({GST_VIDEO_FORMAT_GRAY8, GST_VIDEO_FORMAT_NV12, GST_VIDEO_FORMAT_RGBA,
                                         GST_VIDEO_FORMAT_I420_10LE, GST_VIDEO_FORMAT_v210, GST_VIDEO_FORMAT_ENCODED});
        break;
      case 3:
      case 4:
        spoil_offset(random, meta, buffer, video);
        break;
      default:
        spoil_stride(random, meta, video);
    }
  }
}

void spoil_crop(Random& random, GstBuffer* buffer) {
  GstVideoCropMeta* crop = gst_buffer_get_video_crop_meta(buffer);
  if (!crop) crop = gst_buffer_add_video_crop_meta(buffer);
  crop->x = coordinate(random), crop->y = coordinate(random);
  crop->width = coordinate(random), crop->height = coordinate(random);
}

/// Reduces the buffer to these bytes, with a fence behind them.
void keep_bytes(Random& random, GstBuffer* buffer, gsize offset, gsize size) {
  std::string bytes(size, '\0');
  gst_buffer_extract(buffer, offset, bytes.data(), size);
  gst_buffer_replace_all_memory(
      buffer, new_fenced_memory(bytes.data(), size, random.one_in(2) ? Fence::page : Fence::heap, false));
}

/// Makes the buffer smaller than its caps require.
void shorten(Random& random, GstBuffer* buffer) {
  const gsize size = gst_buffer_get_size(buffer);
  if (size == 0) return;
  switch (random.below(5)) {
    case 0:
      gst_buffer_set_size(buffer, 0);
      break;
    case 1:
      gst_buffer_remove_all_memory(buffer);
      break;
    case 2:
      keep_bytes(random, buffer, 0, size - 1);
      break;
    case 3:
      keep_bytes(random, buffer, 0, gsize(random.below(int(size))));
      break;
    default: {
      const auto cut = gsize(random.below(int(size)));
      keep_bytes(random, buffer, cut, size - cut);
    }
  }
}

void spoil_time(Random& random, GstBuffer* buffer) {
  const auto time = [&] {
    return random.pick<GstClockTime>(
        {GST_CLOCK_TIME_NONE, 0, 1, 1000000000, GstClockTime(G_MAXINT64), G_MAXUINT64 - 1, G_MAXUINT64 / 2});
  };
  if (random.one_in(2)) GST_BUFFER_PTS(buffer) = time();
  if (random.one_in(2)) GST_BUFFER_DTS(buffer) = time();
  if (random.one_in(2)) GST_BUFFER_DURATION(buffer) = time();
}

}  // namespace

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

void spoil(Random& random, GstBuffer* buffer, const GstVideoInfo& video, bool resizable) {
  switch (random.below(10)) {
    case 0:
      spoil_crop(random, buffer);
      break;
    case 1:
      spoil_time(random, buffer);
      break;
    case 2:
      spoil_crop(random, buffer);
      spoil_meta(random, buffer, video);
      break;
    case 3:
      if (resizable) shorten(random, buffer);
      break;
    case 4:
    case 5:
      if (resizable) overlap_rows(random, buffer, video);
      break;
    default:
      spoil_meta(random, buffer, video);
  }
  if (resizable && random.one_in(8)) shorten(random, buffer);
}

void decorate(Random& random, GstBuffer* buffer) {
  if (random.one_in(3)) add_regions(random, buffer);
  if (random.one_in(10)) {
    constexpr GstBufferFlags flags[] = {GST_BUFFER_FLAG_GAP,       GST_BUFFER_FLAG_DISCONT, GST_BUFFER_FLAG_CORRUPTED,
                                        GST_BUFFER_FLAG_DROPPABLE, GST_BUFFER_FLAG_HEADER,  GST_BUFFER_FLAG_DELTA_UNIT};
    GST_BUFFER_FLAG_SET(buffer, flags[random.below(int(G_N_ELEMENTS(flags)))]);
  }
  if (random.one_in(20))
    GST_BUFFER_FLAG_SET(buffer, GST_VIDEO_BUFFER_FLAG_INTERLACED | (random.one_in(2) ? GST_VIDEO_BUFFER_FLAG_TFF : 0));
}

}  // namespace cudavision::fuzz
