// SPDX-License-Identifier: LGPL-2.1-or-later
// The functions of frames.h: checks, errors, and frames that become arrays.
#include "gst/frames/frames.h"

#include <gst/video/video.h>

#include <iterator>
#include <string>

#include "gst/base/cuda/gpu.hpp"
#include "gst/base/frame.hpp"
#include "gst/frames/maker.hpp"
#include "gst/frames/owner.hpp"
#include "kernels/core/backend.hpp"
#include "kernels/core/guard.hpp"

namespace cudavision::frames {

static_assert(std::size(CudavisionFrame{}.planes) == max_planes);

CudavisionArray plane_array(const Geometry& geometry, int plane, std::ptrdiff_t pitch) {
  const FormatInfo& format = info(geometry.format);
  const PlaneExtent bytes = extent(geometry, plane);
  int channels = 1, bytes_of = format.sample_bytes();
  if (const Packing* packing = format.packing) {
    bytes_of = packing->word_bytes;
    if (packing->words % packing->pixels == 0) channels = packing->words / packing->pixels;
  } else {
    for (int i = format.set_count - 1; i >= 0; --i)  // the first set of a plane decides: luma in packed 4:2:2
      if (format.sets[i].plane == plane) channels = format.sets[i].channels;
  }
  CudavisionArray array{};
  array.code = 1;
  array.bits = 8 * bytes_of;
  array.dimensions = channels == 1 ? 2 : 3;
  array.shape[0] = bytes.rows;
  array.shape[1] = std::int64_t(bytes.row_bytes) / (channels * bytes_of);
  array.shape[2] = channels;
  array.strides[0] = pitch;
  array.strides[1] = std::int64_t(channels) * bytes_of;
  array.strides[2] = bytes_of;
  return array;
}

int report(const Status& status, char* error, std::size_t room) {
  if (!status.ok()) g_strlcpy(error, status.message().c_str(), room);
  return int(status.code());  // the numbers of frames.h
}

namespace {

/// How long to wait until a frame to be written has no other users. Elements that passed it on or read it may be about
/// to drop their references.
constexpr int writable_wait_ms = 1000;

struct MappedMemory {
  MappedMemory(GstMemory* mapped, GstMapFlags flags)
      : memory(gst_memory_ref(mapped)), ok(gst_memory_map(mapped, &map, flags)) {}
  ~MappedMemory() {
    if (ok) gst_memory_unmap(memory.get(), &map);
  }
  const Owned<GstMemory> memory;
  GstMapInfo map;
  const bool ok;
};

/// The flags that map a memory for reading, as CUDA consumers require.
GstMapFlags read_flags(GstMemory* memory) {
  return GstMapFlags(GST_MAP_READ | (is_cuda_memory(memory) ? Gpu::map_flag() : GstMapFlags(0)));
}

/// Reads the format and size of a frame from its caps, or from its GstVideoMeta and GstVideoCropMeta. Errors: frame.
Status describe(GstBuffer* buffer, const GstCaps* caps, GstVideoInfo& video) {
  if (caps) {
    if (!gst_caps_is_fixed(caps) || !video_from_caps(video, caps))
      return Status::frame("the caps do not describe raw video");
  } else {
    const GstVideoMeta* meta = gst_buffer_get_video_meta(buffer);
    if (!meta)
      return Status::frame("the buffer does not describe its content: pass the caps too, or the sample of the appsink");
    // The meta describes the whole frame. Caps would give the size of its picture, which a crop makes smaller.
    const GstVideoCropMeta* crop = gst_buffer_get_video_crop_meta(buffer);
    const guint width = crop ? crop->width : meta->width, height = crop ? crop->height : meta->height;
    if (crop && (width == 0 || height == 0)) return Status::frame("the buffer's GstVideoCropMeta is empty");
    if (width == 0 || height == 0 || !gst_video_info_set_format(&video, meta->format, width, height))
      return Status::frame(std::string("the buffer's ") + (crop ? "GstVideoCropMeta" : "GstVideoMeta") +
                           " is not of a picture");
  }
  const char* name = gst_video_format_to_string(GST_VIDEO_INFO_FORMAT(&video));
  if (!find_format(name)) return Status::frame(std::string("frames of the format ") + name + " are not supported");
  return {};
}

/// Checks that nobody else uses a buffer. Errors: frame.
Status check_alone(GstBuffer* buffer, int most_refs) {
  const auto references = [&] { return GST_MINI_OBJECT_REFCOUNT_VALUE(buffer); };
  for (int waited = 0; references() > most_refs && waited < writable_wait_ms; ++waited) g_usleep(1000);
  if (references() > most_refs)
    return Status::frame(
        "the frame cannot be written, because others also use its buffer (it has " + std::to_string(references()) +
        " references): take samples with frames.pull(appsink), set enable-last-sample=false there, drop other frames "
        "and variables of this buffer, and put no tee before it; or write to a copy");
  for (guint i = 0; i < gst_buffer_n_memory(buffer); ++i) {
    // Not gst_memory_is_writable(), which would check that the buffer has only one reference.
    GstMemory* memory = gst_buffer_peek_memory(buffer, i);
    if (GST_MINI_OBJECT_REFCOUNT_VALUE(memory) > 1)
      return Status::frame("the frame cannot be written, because another buffer has the same memory: write to a copy");
    if (GST_MEMORY_IS_READONLY(memory))
      return Status::frame("the frame cannot be written, because its memory is read-only: write to a copy");
  }
  return {};
}

Status check_alignment(const CudavisionArray& array, int plane) {
  if (aligned_to(array.data, array.strides[0], array.bits / 8)) return {};
  return Status::frame("rows of plane " + std::to_string(plane) +
                       " begin at odd addresses, where no array of 16-bit samples can be: convert the frame first");
}

/// The use of the memory by CUDA consumers, or nothing for system memory. Sets the device of the arrays. Errors:
/// resource.
Result<std::unique_ptr<CudaUse>> open_cuda_use(GstMemory* memory, CudavisionArray* arrays, int count) {
  const bool cuda = is_cuda_memory(memory);
  std::unique_ptr<CudaUse> use;
  if (cuda) {
    auto made = CudaUse::make(memory);
    if (!made.ok()) return made.error();
    use = std::move(made.value());
  }
  for (int i = 0; i < count; ++i) {
    arrays[i].device_type = cuda ? 2 : 1;
    if (!cuda) continue;
    arrays[i].device_id = use->device_id();
    const auto address = use->address(arrays[i].data);
    if (!address.ok()) return address.error();
    arrays[i].data = address.value();
  }
  return use;
}

Result<Owner*> open_frame(GstBuffer* buffer, const GstCaps* caps, int most_refs, CudavisionFrame& frame) {
  GstVideoInfo video;
  if (Status status = describe(buffer, caps, video); !status.ok()) return status;
  if (gst_buffer_n_memory(buffer) == 0) return Status::frame("the buffer is empty");
  if (most_refs)
    if (Status status = check_alone(buffer, most_refs); !status.ok()) return status;
  GstMemory* memory = gst_buffer_peek_memory(buffer, 0);
  // Always mapped for reading, because bindings hold references, which prevent mapping the buffer for writing.
  auto mapped = std::make_shared<MappedFrame>(buffer, video, read_flags(memory));
  if (!mapped->status().ok()) return mapped->status();
  if (most_refs && mapped->has_copies())
    return Status::frame(
        "the frame cannot be written, because its rows overlap or run backwards, or its crop begins "
        "inside a pair of pixels: write to a copy");
  if (mapped->shifted())
    return Status::frame(
        "the crop of the frame in CUDA memory begins inside a pair of pixels: convert the frame first");

  const Image& image = mapped->image();
  const FormatInfo& format = info(image.geometry.format);
  frame = {};
  g_strlcpy(frame.format, format.name, sizeof frame.format);
  frame.width = image.geometry.width;
  frame.height = image.geometry.height;
  frame.n_planes = format.planes;
  for (int i = 0; i < format.planes; ++i) {
    frame.planes[i] = plane_array(image.geometry, i, image.planes[i].pitch);
    frame.planes[i].data = image.planes[i].data;
    frame.planes[i].writable = most_refs > 0;
    if (Status status = check_alignment(frame.planes[i], i); !status.ok()) return status;
  }
  auto use = open_cuda_use(memory, frame.planes, frame.n_planes);
  if (!use.ok()) return use.error();
  if (use.value() && most_refs) use.value()->mark_written();
  return new Owner(buffer, std::move(mapped), std::move(use.value()));
}

Result<Owner*> open_memory(GstBuffer* buffer, GstMemory* memory, std::size_t bytes, CudavisionArray& array) {
  auto mapped = std::make_shared<MappedMemory>(memory, read_flags(memory));
  if (!mapped->ok) return Status::frame("the memory cannot be mapped");
  if (mapped->map.size < bytes) return Status::frame("the memory is smaller than its data");
  array.data = mapped->map.data;
  array.writable = 0;
  auto use = open_cuda_use(memory, &array, 1);
  if (!use.ok()) return use.error();
  return new Owner(buffer, std::move(mapped), std::move(use.value()));
}

/// Stores an owner, or reports the error.
int store_owner(Result<Owner*>&& opened, Owner** owner, char* error, std::size_t room) {
  if (!opened.ok()) return report(opened.error(), error, room);
  *owner = opened.value();
  return 0;
}

}  // namespace
}  // namespace cudavision::frames

using namespace cudavision;
using namespace cudavision::frames;

int cudavision_frames_abi() { return CUDAVISION_FRAMES_ABI; }

int cudavision_frame_open(GstBuffer* buffer, const GstCaps* caps, int most_refs, CudavisionFrame* frame,
                          CudavisionOwner** owner, char* error, std::size_t room) {
  return store_owner(guarded([&] { return open_frame(buffer, caps, most_refs, *frame); }), owner, error, room);
}

int cudavision_memory_open(GstBuffer* buffer, GstMemory* memory, std::size_t bytes, CudavisionArray* array,
                           CudavisionOwner** owner, char* error, std::size_t room) {
  return store_owner(guarded([&] { return open_memory(buffer, memory, bytes, *array); }), owner, error, room);
}

CudavisionOwner* cudavision_buffer_keep(GstBuffer* buffer) { return new Owner(buffer, nullptr, nullptr); }

void cudavision_owner_unref(CudavisionOwner* owner) { owner->unref(); }

int cudavision_owner_wait(CudavisionOwner* owner, std::intptr_t stream, char* error, std::size_t room) {
  if (!owner->cuda()) return 0;
  return report(guarded([&] { return owner->cuda()->wait_for_writer(stream); }), error, room);
}

int cudavision_owner_hand_back(CudavisionOwner* owner, std::intptr_t stream, int milliseconds, char* error,
                               std::size_t room) {
  if (!owner->cuda()) return 0;
  return report(guarded([&] { return owner->cuda()->hand_back(stream, milliseconds); }), error, room);
}

int cudavision_frames_drain(int milliseconds) { return drain(milliseconds); }

int cudavision_frames_context(int device_id, GstContext** context, char* error, std::size_t room) {
  auto made = guarded([&] { return primary_context(device_id); });
  if (!made.ok()) return report(made.error(), error, room);
  *context = made.value();
  return 0;
}
