// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/frame.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "kernels/core/packed.hpp"
#include "kernels/core/packing.hpp"

namespace cudavision {

bool video_from_caps(GstVideoInfo& video, const GstCaps* caps) {
  if (!gst_video_info_from_caps(&video, caps)) return false;
  if (GST_VIDEO_INFO_WIDTH(&video) <= 0 || GST_VIDEO_INFO_HEIGHT(&video) <= 0) return false;  // GStreamer accepts these
  replace_meaningless_numbers(video);
  return true;
}

void replace_meaningless_numbers(GstVideoInfo& video) {
  if (video.par_n <= 0 || video.par_d <= 0) video.par_n = video.par_d = 1;
  // Reads integers, because reading an enum that holds an undefined value is undefined behaviour.
  const auto drop = [](auto& field, auto last) {
    int value;
    static_assert(sizeof value == sizeof field);
    std::memcpy(&value, &field, sizeof value);
    if (value < 0 || value > int(last)) field = {};
  };
  drop(video.colorimetry.range, GST_VIDEO_COLOR_RANGE_16_235);
  drop(video.colorimetry.matrix, GST_VIDEO_COLOR_MATRIX_BT2020);
  drop(video.colorimetry.transfer, GST_VIDEO_TRANSFER_BT601);
  drop(video.colorimetry.primaries, GST_VIDEO_COLOR_PRIMARIES_EBU3213);
}

GstClockTime time_between_frames(const GstVideoInfo& video) {
  const int rate_n = GST_VIDEO_INFO_FPS_N(&video), rate_d = GST_VIDEO_INFO_FPS_D(&video);
  if (rate_n <= 0 || rate_d <= 0) return GST_CLOCK_TIME_NONE;
  const GstClockTime time = gst_util_uint64_scale(GST_SECOND, guint64(rate_d), guint64(rate_n));
  return time <= 60 * GST_SECOND ? time : GST_CLOCK_TIME_NONE;
}

std::string size_text(gint64 width, gint64 height) { return std::to_string(width) + "×" + std::to_string(height); }

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

/// The error in a buffer's description of its layout, which gst_video_frame_map() trusts; empty if there is none.
std::string wrong_layout(GstBuffer* buffer, const GstVideoInfo& video, CropOrigin origin) {
  guint64 width = guint64(GST_VIDEO_INFO_WIDTH(&video)), height = guint64(GST_VIDEO_INFO_HEIGHT(&video));
  const auto right = gint64(origin.x) + gint64(width), bottom = gint64(origin.y) + gint64(height);
  if (const GstVideoMeta* meta = gst_buffer_get_video_meta(buffer)) {
    if (meta->format != GST_VIDEO_INFO_FORMAT(&video))
      return std::string("its GstVideoMeta has another format than ") + GST_VIDEO_INFO_NAME(&video);
    if (meta->n_planes != GST_VIDEO_INFO_N_PLANES(&video))
      return "its GstVideoMeta has " + std::to_string(meta->n_planes) + " planes, its format " +
             std::to_string(GST_VIDEO_INFO_N_PLANES(&video));
    width = meta->width;
    height = meta->height;
  } else if (const gsize size = gst_buffer_get_size(buffer); size < GST_VIDEO_INFO_SIZE(&video)) {
    return "it has " + std::to_string(size) + " bytes and needs " + std::to_string(GST_VIDEO_INFO_SIZE(&video)) +
           ", in rows of " + std::to_string(GST_VIDEO_INFO_PLANE_STRIDE(&video, 0)) + " bytes";
  }
  if (origin.x < 0 || origin.y < 0 || right > gint64(width) || bottom > gint64(height))
    return "the picture of " + size_text(GST_VIDEO_INFO_WIDTH(&video), GST_VIDEO_INFO_HEIGHT(&video)) + " pixels at " +
           std::to_string(origin.x) + "," + std::to_string(origin.y) + " reaches beyond its frame of " +
           size_text(gint64(width), gint64(height)) + " pixels";
  return {};
}

}  // namespace

MappedFrame::MappedFrame(GstBuffer* buffer, const GstVideoInfo& video, GstMapFlags flags)
    : writes_(flags & GST_MAP_WRITE) {
  const CropOrigin origin = crop_origin(buffer);
  if (const std::string wrong = wrong_layout(buffer, video, origin); !wrong.empty()) {
    status_ = Status::frame("a video frame does not fit its caps: " + wrong);
    return;
  }
  // Takes no reference, so that metas can be added to the buffer while it is mapped.
  mapped_ = gst_video_frame_map(&frame_, &video, buffer, GstMapFlags(flags | GST_VIDEO_FRAME_MAP_FLAG_NO_REF));
  if (!mapped_) {
    status_ = Status::frame(
        "a video frame cannot be mapped: its memory is smaller than its GstVideoMeta says, or mapping it failed");
    return;
  }
  image_.geometry = geometry_of(video);
  status_ = find_planes(origin);
  if (status_.ok() && shifted_)
    status_ = align_groups(flags);
  else
    for (int i = 0; i < info(image_.geometry.format).planes && status_.ok(); ++i) status_ = straighten(i, flags);
}

MappedFrame::~MappedFrame() {
  if (writes_ && status_.ok())
    for (const Copy& copy : copies_)
      copy_rows(image_.planes[copy.plane], copy.original, copy.extent.row_bytes, copy.extent.rows);
  if (mapped_) gst_video_frame_unmap(&frame_);
}

/// Sets the planes of image(). Checks that all rows of the picture are in mapped memory, because gst_video_frame_map()
/// checks the strides and offsets of a GstVideoMeta only partly.
Status MappedFrame::find_planes(CropOrigin origin) {
  const FormatInfo& format = info(image_.geometry.format);
  const int group_pixels = format.packing ? format.packing->pixels : is_packed_422(format) ? 2 : 1;
  skipped_ = origin.x % group_pixels;
  shifted_ = skipped_ > 0;
  // If sets share a plane, the last one is the coarsest. It determines where a whole group of pixels begins.
  std::array<const ChannelSet*, max_planes> coarsest{};
  for (int i = 0; i < format.set_count; ++i) coarsest[format.sets[i].plane] = &format.sets[i];
  for (int i = 0; i < format.planes; ++i) {
    const ChannelSet& set = *coarsest[std::size_t(i)];
    const GstMapInfo& map = frame_.map[frame_.meta ? i : 0];
    const gint64 pitch = GST_VIDEO_FRAME_PLANE_STRIDE(&frame_, i);
    PlaneExtent bytes = extent(image_.geometry, i);
    if (shifted_) {  // up to the group of the last pixel
      const Geometry whole{image_.geometry.format, image_.geometry.width + skipped_, image_.geometry.height};
      bytes.row_bytes = extent(whole, i).row_bytes;
    }
    const gint64 base = static_cast<guint8*>(GST_VIDEO_FRAME_PLANE_DATA(&frame_, i)) - map.data;
    const gint64 first = base + gint64(origin.y >> set.shift_y) * pitch +
                         (format.packing ? gint64(origin.x / group_pixels) * format.packing->group_bytes()
                                         : gint64(origin.x >> set.shift_x) * set.channels * format.sample_bytes());
    const gint64 last = first + gint64(bytes.rows - 1) * pitch;
    if (std::min(first, last) < 0 || std::max(first, last) + gint64(bytes.row_bytes) > gint64(map.size))
      return Status::frame("a video frame does not fit its caps: plane " + std::to_string(i) + " (offset " +
                           std::to_string(base) + ", stride " + std::to_string(pitch) +
                           ") reaches beyond its memory of " + std::to_string(map.size) + " bytes");
    image_.planes[std::size_t(i)] = {map.data + first, std::ptrdiff_t(pitch)};
  }
  return {};
}

/// Replaces a plane with memory of this object, and returns the original plane. Copies nothing yet.
Plane MappedFrame::copy_plane(int index, const PlaneExtent& bytes) {
  Plane& plane = image_.planes[std::size_t(index)];
  const Plane original = plane;
  Copy copy{index, original, bytes, std::vector<guint8>(bytes.row_bytes * std::size_t(bytes.rows))};
  plane = {copy.bytes.data(), std::ptrdiff_t(bytes.row_bytes)};
  copies_.push_back(std::move(copy));
  return original;
}

/// Gives a plane the layout that kernels need: rows in order, without overlap.
Status MappedFrame::straighten(int index, GstMapFlags flags) {
  Plane& plane = image_.planes[std::size_t(index)];
  const PlaneExtent bytes = extent(image_.geometry, index);
  if (plane.pitch >= std::ptrdiff_t(bytes.row_bytes)) return {};
  if (bytes.rows == 1) {
    plane.pitch = std::ptrdiff_t(bytes.row_bytes);
    return {};
  }
  const std::string layout = "a video frame's plane " + std::to_string(index) + " has a stride of " +
                             std::to_string(plane.pitch) + " bytes for rows of " + std::to_string(bytes.row_bytes);
  if (writes_ && std::abs(plane.pitch) < std::ptrdiff_t(bytes.row_bytes))
    return Status::frame(layout + ": rows that overlap cannot be written");
  if (flags & ~(GST_MAP_READ | GST_MAP_WRITE))
    return Status::frame(layout + ": in CUDA memory it must be at least a row");
  copy_rows(copy_plane(index, bytes), plane, bytes.row_bytes, bytes.rows);
  return {};
}

/// Copies a picture in system memory that begins inside a group of pixels, so that the copy begins with a group.
Status MappedFrame::align_groups(GstMapFlags flags) {
  if (writes_) return Status::frame("a frame whose crop begins inside a group of pixels cannot be written");
  if (flags & ~GST_MAP_READ) return {};  // in device memory
  shifted_ = false;
  const Image original{image_.geometry, {copy_plane(0, extent(image_.geometry, 0))}};
  if (!info(image_.geometry.format).packing) return shift_groups(Backend::cpu, original, image_, {});
  shift_packed(original, image_, skipped_);
  return {};
}

}  // namespace cudavision
