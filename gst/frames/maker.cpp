// SPDX-License-Identifier: LGPL-2.1-or-later
// Turns arrays into buffers: the functions of frames.h, and buffers in system memory. cuda_maker.cpp makes buffers in
// CUDA memory.
#include "gst/frames/maker.hpp"

#include <string>

#include "gst/base/caps.hpp"
#include "gst/base/frame.hpp"
#include "gst/frames/owner.hpp"
#include "kernels/core/guard.hpp"

namespace cudavision::frames {

void describe_layout(GstBuffer* buffer, const Image& picture, const gsize* offsets) {
  const FormatInfo& format = info(picture.geometry.format);
  gsize all_offsets[GST_VIDEO_MAX_PLANES] = {};
  gint strides[GST_VIDEO_MAX_PLANES] = {};
  for (int i = 0; i < format.planes; ++i) {
    all_offsets[i] = offsets[i];
    strides[i] = gint(picture.planes[i].pitch);
  }
  gst_buffer_add_video_meta_full(buffer, GST_VIDEO_FRAME_FLAG_NONE, gst_video_format_from_string(format.name),
                                 guint(picture.geometry.width), guint(picture.geometry.height), format.planes,
                                 all_offsets, strides);
}

GstBuffer* system_buffer_of(const Image& arrays, Sources* sources) {
  GstBuffer* buffer = gst_buffer_new();
  gsize offsets[max_planes] = {}, offset = 0;
  for (int i = 0; i < info(arrays.geometry.format).planes; ++i) {
    const PlaneExtent bytes = extent(arrays.geometry, i);
    const gsize size = gsize(arrays.planes[i].pitch) * gsize(bytes.rows - 1) + bytes.row_bytes;
    gst_buffer_append_memory(
        buffer, gst_memory_new_wrapped(GST_MEMORY_FLAG_READONLY, arrays.planes[i].data, size, 0, size, sources->ref(),
                                       [](gpointer held_sources) { static_cast<Sources*>(held_sources)->unref(); }));
    offsets[i] = offset;
    offset += size;
  }
  describe_layout(buffer, arrays, offsets);
  return buffer;
}

namespace {

/// Reads the name and the size of a frame. Errors: settings.
Result<Geometry> geometry_of(const char* name, int width, int height) {
  const FormatInfo* format = find_format(name);
  if (!format || !is_known(*format)) return Status::settings(std::string("the format ") + name + " is not supported");
  for (const int side : {width, height})
    if (side < 1 || side > max_frame_side)
      return Status::settings("a frame is 1×1 to " + size_text(max_frame_side, max_frame_side) + " pixels, not " +
                              size_text(width, height));
  return Geometry{format->format, width, height};
}

/// The picture that the arrays of a frame form. Errors: settings, if rows overlap or an array has no memory.
Result<Image> image_of(const CudavisionFrame& frame) {
  auto geometry = geometry_of(frame.format, frame.width, frame.height);
  if (!geometry.ok()) return geometry.error();
  Image image{geometry.value(), {}};
  for (int i = 0; i < info(image.geometry.format).planes; ++i) {
    if (!frame.planes[i].data) return Status::settings("the array of plane " + std::to_string(i) + " is at address 0");
    const PlaneExtent bytes = extent(image.geometry, i);
    const std::int64_t pitch = bytes.rows == 1 ? std::int64_t(bytes.row_bytes) : frame.planes[i].strides[0];
    if (pitch < std::int64_t(bytes.row_bytes) || pitch > G_MAXINT)
      return Status::settings("the rows of plane " + std::to_string(i) + " are " + std::to_string(pitch) +
                              " bytes apart: a row has " + std::to_string(bytes.row_bytes) +
                              " bytes, and rows must not overlap");
    image.planes[i] = {frame.planes[i].data, std::ptrdiff_t(pitch)};
  }
  return image;
}

Result<Maker::Made> make_buffer(Maker* maker, const CudavisionFrame& frame, Sources* sources, Copy copy,
                                int milliseconds) {
  auto arrays = image_of(frame);
  if (!arrays.ok()) return arrays.error();
  if (maker) return maker->buffer_of(arrays.value(), sources, copy, milliseconds);
  return Maker::Made{system_buffer_of(arrays.value(), sources), false};
}

}  // namespace
}  // namespace cudavision::frames

using namespace cudavision;
using namespace cudavision::frames;

int cudavision_frame_layout(const char* format, int width, int height, CudavisionFrame* frame, char* error,
                            std::size_t room) {
  auto geometry = guarded([&] { return geometry_of(format, width, height); });
  if (!geometry.ok()) return report(geometry.error(), error, room);
  *frame = {};
  g_strlcpy(frame->format, format, sizeof frame->format);
  frame->width = width;
  frame->height = height;
  frame->n_planes = info(geometry.value().format).planes;
  for (int i = 0; i < frame->n_planes; ++i)
    frame->planes[i] = plane_array(geometry.value(), i, std::ptrdiff_t(extent(geometry.value(), i).row_bytes));
  return 0;
}

int cudavision_maker_new(const char* format, int width, int height, int device_id, CudavisionMaker** maker,
                         std::intptr_t* stream, char* error, std::size_t room) {
  auto made = guarded([&]() -> Result<std::unique_ptr<Maker>> {
    auto geometry = geometry_of(format, width, height);
    if (!geometry.ok()) return geometry.error();
    return Maker::make(geometry.value(), device_id);
  });
  if (!made.ok()) return report(made.error(), error, room);
  *stream = made.value()->stream();
  *maker = made.value().release();
  return 0;
}

void cudavision_maker_free(CudavisionMaker* maker) { delete maker; }

int cudavision_maker_wait(CudavisionMaker* maker, std::intptr_t stream, char* error, std::size_t room) {
  return report(guarded([&] { return maker->wait_for(stream); }), error, room);
}

int cudavision_maker_make(CudavisionMaker* maker, const CudavisionFrame* frame, const CudavisionSource* sources,
                          int n_sources, int copy, int milliseconds, GstBuffer** buffer, int* copied, char* error,
                          std::size_t room) {
  auto* held_sources = new Sources(sources, n_sources);
  auto made = guarded([&] { return make_buffer(maker, *frame, held_sources, Copy(copy), milliseconds); });
  held_sources->unref();
  if (!made.ok()) return report(made.error(), error, room);
  *buffer = made.value().buffer;
  *copied = made.value().copied;
  return 0;
}
