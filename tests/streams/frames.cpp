// SPDX-License-Identifier: LGPL-2.1-or-later
#include "tests/streams/frames.hpp"

#include <algorithm>
#include <cstring>

namespace cudavision::streams {
namespace {

int planes_of(const GstVideoInfo& video) { return int(GST_VIDEO_INFO_N_PLANES(&video)); }

int sample_bytes(const GstVideoInfo& video, int component) {
  return GST_VIDEO_INFO_COMP_DEPTH(&video, component) > 8 ? 2 : 1;
}

/// Whether the samples are bits of words: v210, six pixels in 16 bytes.
bool is_v210(const GstVideoInfo& video) { return GST_VIDEO_INFO_FORMAT(&video) == GST_VIDEO_FORMAT_v210; }
constexpr int v210_pixels = 6, v210_bytes = 16;

/// Bytes from the start of a row to the samples of pixel x, which begins a group of pixels.
int bytes_before(const GstVideoInfo& video, guint component, int x) {
  if (is_v210(video)) return x / v210_pixels * v210_bytes;
  return GST_VIDEO_FORMAT_INFO_SCALE_WIDTH(video.finfo, component, x) * GST_VIDEO_INFO_COMP_PSTRIDE(&video, component);
}

/// Appends the samples of a row of a component of v210.
void append_v210(const char* row, guint component, int width, std::string& samples) {
  constexpr char order[] = "102010201020";  // components of a group, three per word, lowest bits first
  for (int field = 0, x = 0; x < width; ++field) {
    if (order[field % 12] - '0' != int(component)) continue;
    guint32 word;
    std::memcpy(&word, row + field / 12 * v210_bytes + field % 12 / 3 * 4, 4);
    const guint16 sample = guint16(GUINT32_FROM_LE(word) >> field % 3 * 10 & 1023);
    samples.append(reinterpret_cast<const char*>(&sample), 2);
    ++x;
  }
}

void fill_within_depth(Random& random, std::string& bytes, const GstVideoInfo& video) {
  const int depth = GST_VIDEO_INFO_COMP_DEPTH(&video, 0), shift = GST_VIDEO_FORMAT_INFO_SHIFT(video.finfo, 0);
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const guint16 word = guint16(random.below(1 << depth) << shift);
    std::memcpy(&bytes[i], &word, 2);
  }
}

void copy_rows(const PlaneSize& size, const void* from, std::ptrdiff_t from_stride, void* to,
               std::ptrdiff_t to_stride) {
  for (std::ptrdiff_t y = 0; y < size.rows; ++y)
    std::memcpy(static_cast<char*>(to) + y * to_stride, static_cast<const char*>(from) + y * from_stride,
                size.row_bytes);
}

/// The start of a plane of the picture.
const char* plane_of(const Picture& picture, int plane) {
  return &picture.bytes[GST_VIDEO_INFO_PLANE_OFFSET(&picture.video, plane)];
}

/// A picture in memory: its bytes, and the offset and stride of each plane.
struct Laid {
  std::string bytes;
  gsize offset[GST_VIDEO_MAX_PLANES]{};
  gint stride[GST_VIDEO_MAX_PLANES]{};
};

/// Lays out a picture with `row_slack` bytes after each row and `plane_slack` bytes before each plane.
template <typename RowSlack, typename PlaneSlack>
Laid place(const Picture& picture, RowSlack&& row_slack, PlaneSlack&& plane_slack, bool upwards) {
  Laid laid;
  std::size_t end = 0;
  for (int p = 0; p < planes_of(picture.video); ++p) {
    const PlaneSize size = plane_size(picture.video, p);
    const std::size_t stride = size.row_bytes + std::size_t(row_slack());
    const std::size_t begin = end + std::size_t(plane_slack());
    end = begin + stride * std::size_t(size.rows - 1) + size.row_bytes;
    laid.offset[p] = upwards ? end - size.row_bytes : begin;
    laid.stride[p] = upwards ? -gint(stride) : gint(stride);
  }
  laid.bytes.assign(end, '\xa5');
  for (int p = 0; p < planes_of(picture.video); ++p)
    copy_rows(plane_size(picture.video, p), plane_of(picture, p), GST_VIDEO_INFO_PLANE_STRIDE(&picture.video, p),
              &laid.bytes[laid.offset[p]], laid.stride[p]);
  return laid;
}

void add_meta(GstBuffer* buffer, const GstVideoInfo& video, Laid& laid) {
  gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&video),
                                 guint(GST_VIDEO_INFO_WIDTH(&video)), guint(GST_VIDEO_INFO_HEIGHT(&video)),
                                 guint(planes_of(video)), laid.offset, laid.stride);
}

/// Makes a buffer whose memories contain the bytes, split at the offsets `cuts`.
GstBuffer* in_memories(Random& random, const std::string& bytes, std::vector<std::size_t> cuts) {
  GstBuffer* buffer = gst_buffer_new();
  cuts.push_back(bytes.size());
  std::size_t begin = 0;
  for (const std::size_t end : cuts) {
    if (end <= begin) continue;
    const Fence fence = random.one_in(2) ? Fence::page : Fence::heap;
    gst_buffer_append_memory(buffer, new_fenced_memory(&bytes[begin], end - begin, fence, random.one_in(8)));
    begin = end;
  }
  return buffer;
}

/// Puts the picture into a larger one of noise. The margins are whole numbers of chroma samples and of groups of
/// pixels.
GstBuffer* cropped(Random& random, const Picture& picture) {
  const int group =
      is_v210(picture.video) ? v210_pixels : 1 << std::max(1, int(GST_VIDEO_FORMAT_INFO_W_SUB(picture.video.finfo, 1)));
  const int left = group * random.below(6), top = 2 * random.below(6);
  GstVideoInfo whole;
  gst_video_info_set_format(&whole, GST_VIDEO_INFO_FORMAT(&picture.video),
                            guint(GST_VIDEO_INFO_WIDTH(&picture.video) + left + random.below(9)),
                            guint(GST_VIDEO_INFO_HEIGHT(&picture.video) + top + random.below(9)));
  Picture around = draw_picture(random, whole);
  for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS(&whole); ++c) {
    const int p = GST_VIDEO_INFO_COMP_PLANE(&whole, c);
    PlaneSize size = plane_size(picture.video, p);
    const int x = bytes_before(whole, c, left);
    const int y = GST_VIDEO_FORMAT_INFO_SCALE_HEIGHT(whole.finfo, c, top);
    const gint stride = GST_VIDEO_INFO_PLANE_STRIDE(&whole, p);
    size.row_bytes = std::min(size.row_bytes, plane_size(whole, p).row_bytes - gsize(x));
    copy_rows(size, plane_of(picture, p), GST_VIDEO_INFO_PLANE_STRIDE(&picture.video, p),
              &around.bytes[GST_VIDEO_INFO_PLANE_OFFSET(&whole, p) + gsize(y) * gsize(stride) + gsize(x)], stride);
  }
  Laid laid = place(
      around, [] { return 0; }, [] { return 0; }, false);
  GstBuffer* buffer = in_memories(random, laid.bytes, {});
  add_meta(buffer, whole, laid);
  GstVideoCropMeta* crop = gst_buffer_add_video_crop_meta(buffer);
  crop->x = guint(left), crop->y = guint(top);
  crop->width = guint(GST_VIDEO_INFO_WIDTH(&picture.video)),
  crop->height = guint(GST_VIDEO_INFO_HEIGHT(&picture.video));
  return buffer;
}

}  // namespace

const char* name_of(Layout layout) {
  constexpr const char* names[layout_count] = {"tight",         "padded",  "odd",      "apart",
                                               "many memories", "cropped", "bottom up"};
  return names[int(layout)];
}

PlaneSize plane_size(const GstVideoInfo& video, int plane) {
  PlaneSize size{0, 0};
  for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS(&video); ++c) {
    if (int(GST_VIDEO_INFO_COMP_PLANE(&video, c)) != plane) continue;
    const int width = is_v210(video) ? (GST_VIDEO_INFO_WIDTH(&video) + v210_pixels - 1) / v210_pixels * v210_bytes
                                     : GST_VIDEO_INFO_COMP_WIDTH(&video, c) * GST_VIDEO_INFO_COMP_PSTRIDE(&video, c);
    size.row_bytes = std::max(size.row_bytes, std::size_t(width));
    size.rows = GST_VIDEO_INFO_COMP_HEIGHT(&video, c);
  }
  return size;
}

Picture draw_picture(Random& random, const GstVideoInfo& video) {
  Picture picture{video, std::string(GST_VIDEO_INFO_SIZE(&video), '\0')};
  Random noise(random.number(random.reads_bytes() ? 1 : 4));  // a few bytes of a fuzzing engine make a picture
  switch (random.below(6)) {
    case 0:
      break;
    case 1:
      std::fill(picture.bytes.begin(), picture.bytes.end(), '\xff');
      break;
    case 2:
      for (std::size_t i = 0; i < picture.bytes.size(); ++i) picture.bytes[i] = char(i * 3 / 2);
      break;
    case 3:
      if (sample_bytes(video, 0) == 2) {
        fill_within_depth(noise, picture.bytes, video);
        break;
      }
      [[fallthrough]];
    default:
      for (std::size_t i = 0; i < picture.bytes.size(); i += 8) {
        const std::uint64_t word = noise.bits();
        std::memcpy(&picture.bytes[i], &word, std::min<std::size_t>(8, picture.bytes.size() - i));
      }
  }
  return picture;
}

GstBuffer* lay_out(Random& random, const Picture& picture, Layout layout) {
  const auto none = [] { return 0; };
  const auto even = [&] { return 2 * random.below(20); };
  const auto odd = [&] { return 1 + 2 * random.below(9); };
  switch (layout) {
    case Layout::cropped:
      return cropped(random, picture);
    case Layout::tight:
      return in_memories(random, picture.bytes, {});
    case Layout::many_memories: {
      std::vector<std::size_t> cuts;
      for (int i = random.between(1, 20); i > 0; --i)
        cuts.push_back(std::size_t(random.below(int(picture.bytes.size()))));
      std::sort(cuts.begin(), cuts.end());
      return in_memories(random, picture.bytes, cuts);
    }
    default:
      break;
  }
  Laid laid = layout == Layout::apart ? place(picture, none, none, false)
              : layout == Layout::odd ? place(picture, odd, odd, random.one_in(4))
                                      : place(picture, even, even, layout == Layout::bottom_up);
  std::vector<std::size_t> cuts;
  if (layout == Layout::apart)
    for (int p = 1; p < planes_of(picture.video); ++p) cuts.push_back(laid.offset[p]);
  GstBuffer* buffer = in_memories(random, laid.bytes, cuts);
  add_meta(buffer, picture.video, laid);
  return buffer;
}

bool copy_into(GstBuffer* buffer, const Picture& picture) {
  GstVideoFrame frame;
  if (!gst_video_frame_map(&frame, &picture.video, buffer, GST_MAP_WRITE)) return false;
  // gst_video_frame_copy() omits the last chroma sample of packed 4:2:2 if the width is odd.
  for (int p = 0; p < planes_of(picture.video); ++p)
    copy_rows(plane_size(picture.video, p), plane_of(picture, p), GST_VIDEO_INFO_PLANE_STRIDE(&picture.video, p),
              GST_VIDEO_FRAME_PLANE_DATA(&frame, p), GST_VIDEO_FRAME_PLANE_STRIDE(&frame, p));
  gst_video_frame_unmap(&frame);
  return true;
}

std::optional<std::string> samples_of(GstBuffer* buffer, const GstVideoInfo& video) {
  GstVideoFrame frame;
  if (!gst_video_frame_map(&frame, &video, buffer, GST_MAP_READ)) return std::nullopt;
  const GstVideoCropMeta* crop = gst_buffer_get_video_crop_meta(buffer);
  std::string samples;
  for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS(&video); ++c) {
    const int step = GST_VIDEO_FRAME_COMP_PSTRIDE(&frame, c);
    // 10-bit samples are parts of a 4-byte word
    const bool words = GST_VIDEO_INFO_IS_RGB(&video) && GST_VIDEO_INFO_COMP_DEPTH(&video, 0) == 10 && step == 4;
    const int bytes = words ? 4 : sample_bytes(video, int(c));
    // GStreamer 1.22 reports an offset of one byte for V in P010 and P016.
    const int offset = (GST_VIDEO_FRAME_COMP_POFFSET(&frame, c) + bytes - 1) / bytes * bytes;
    const auto* plane =
        static_cast<const char*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, GST_VIDEO_FRAME_COMP_PLANE(&frame, c)));
    const int top = crop ? GST_VIDEO_FORMAT_INFO_SCALE_HEIGHT(video.finfo, c, int(crop->y)) : 0;
    for (int y = 0; y < GST_VIDEO_INFO_COMP_HEIGHT(&video, c); ++y) {
      const char* row = plane + std::ptrdiff_t(top + y) * GST_VIDEO_FRAME_COMP_STRIDE(&frame, c) +
                        bytes_before(video, c, crop ? int(crop->x) : 0) + offset;
      if (is_v210(video)) {
        append_v210(row, c, GST_VIDEO_INFO_COMP_WIDTH(&video, c), samples);
        continue;
      }
      for (int x = 0; x < GST_VIDEO_INFO_COMP_WIDTH(&video, c); ++x)
        samples.append(row + std::ptrdiff_t(x) * step, std::size_t(bytes));
    }
  }
  gst_video_frame_unmap(&frame);
  return samples;
}

}  // namespace cudavision::streams
