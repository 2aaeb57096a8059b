// SPDX-License-Identifier: LGPL-2.1-or-later
// Makes buffers in CUDA memory from arrays. Arrays are ready on the maker's stream, which is the stream of its buffers
// since GStreamer 1.24.
//
//   wrapped (1.24)   the buffer's memory is the array. The sources are given back when the memory is freed and the GPU
//                    has done all work submitted before that, because the library that owns the array would reuse it
//                    immediately
//   copied           one copy on the device, into a buffer from a pool. The sources are given back after the copy
#include <string>

#include "gst/base/cuda/cuda_stream.hpp"
#include "gst/base/frame.hpp"
#include "gst/frames/maker.hpp"
#include "gst/frames/primary.hpp"
#include "kernels/cuda/device.hpp"

namespace cudavision::frames {
namespace {

using cuda::check;

void unref_sources(void* sources) { static_cast<Sources*>(sources)->unref(); }

/// The sources of a wrapped array, and the context in which its consumers work.
struct Wrapped {
  Sources* sources;
  Primary* primary;
};

class CudaMaker : public Maker {
 public:
  CudaMaker(const Geometry& geometry, Primary* primary)
      : geometry_(geometry), primary_(*primary), stream_(primary->context()) {}
  ~CudaMaker() override {
    if (pool_) gst_buffer_pool_set_active(pool_.get(), FALSE);
  }

  /// The context must be current. Errors: resource.
  Status open();
  std::intptr_t stream() const override { return reinterpret_cast<std::intptr_t>(stream_.handle()); }
  Status wait_for(std::intptr_t stream) override;
  Result<Made> buffer_of(const Image& arrays, Sources* sources, Copy copy, int milliseconds) override;

 private:
  GstBuffer* wrap(const Image& arrays, Sources* sources) const;
  Result<Made> copy(const Image& arrays, Sources* sources, int milliseconds);
  Status finish(GstBuffer* buffer, int milliseconds);

  const Geometry geometry_;
  Primary& primary_;
  const Stream stream_;
  GstVideoInfo video_;
  Owned<GstBufferPool> pool_;
};

/// Whether elements that copy whole memories read these planes correctly. Such elements copy rows with the width and
/// the pitch of the first plane, from the start of the first plane to the end.
bool copies_as_a_whole(const Image& arrays, gsize offsets[max_planes], gsize& size) {
  const std::ptrdiff_t pitch = arrays.planes[0].pitch;
  const std::size_t width = extent(arrays.geometry, 0).row_bytes;
  size = 0;
  for (int i = 0; i < info(arrays.geometry.format).planes; ++i) {
    const PlaneExtent bytes = extent(arrays.geometry, i);
    const auto offset =
        static_cast<const char*>(arrays.planes[i].data) - static_cast<const char*>(arrays.planes[0].data);
    if (offset != std::ptrdiff_t(size) || arrays.planes[i].pitch != pitch || bytes.row_bytes > width) return false;
    offsets[i] = size;
    size += gsize(pitch) * gsize(bytes.rows);
  }
  return true;
}

Status CudaMaker::open() {
  if (!stream_.ok()) return Status::resource("a CUDA stream cannot be created");
  const FormatInfo& format = info(geometry_.format);
  if (!gst_video_info_set_format(&video_, gst_video_format_from_string(format.name), guint(geometry_.width),
                                 guint(geometry_.height)))
    return Status::resource("GStreamer does not know this format");
  GstCaps* caps = gst_video_info_to_caps(&video_);
  pool_.reset(gst_cuda_buffer_pool_new(primary_.context()));
  GstStructure* config = gst_buffer_pool_get_config(pool_.get());
  stream_.set_on(config);
  gst_buffer_pool_config_set_params(config, caps, guint(GST_VIDEO_INFO_SIZE(&video_)), 0, 0);
  gst_buffer_pool_config_add_option(config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  gst_caps_unref(caps);
  if (gst_buffer_pool_set_config(pool_.get(), config) && gst_buffer_pool_set_active(pool_.get(), TRUE)) return {};
  return Status::resource("a pool of frames in CUDA memory cannot be made");
}

Status CudaMaker::wait_for(std::intptr_t stream) {
  const CurrentContext current(primary_.context());
  const CudaEvent event(primary_.context());
  if (current && event.record(stream_of(stream)) && event.hold_up(stream_.handle())) return {};
  return Status::resource("cannot wait for the work on an array: its stream is not on the device, or CUDA failed");
}

/// Makes users of a buffer wait for this stream on the device, or waits on the host. Errors: resource, late.
Status CudaMaker::finish(GstBuffer* buffer, int milliseconds) {
  if (stream_.hand_over(GST_CUDA_MEMORY_CAST(gst_buffer_peek_memory(buffer, 0)), false)) return {};
  const CudaEvent event(primary_.context());
  if (!event.handle()) return check(cudaGetLastError(), "cannot create an event");
  if (!event.record(stream_.handle())) return check(cudaGetLastError(), "cannot record an event");
  return wait_for_event(event, milliseconds, "the GPU has not finished the work on the arrays in the given time");
}

/// Wraps arrays in a buffer; nullptr if that is not possible.
GstBuffer* CudaMaker::wrap(const Image& arrays, Sources* sources) const {
  gsize offsets[max_planes] = {}, size = 0;
  if (!copies_as_a_whole(arrays, offsets, size)) return nullptr;
  GstVideoInfo video = video_;
  video.size = size;
  for (int i = 0; i < info(arrays.geometry.format).planes; ++i) {
    video.stride[i] = gint(arrays.planes[i].pitch);
    video.offset[i] = offsets[i];
  }
  auto* wrapped = new Wrapped{sources->ref(), &primary_};
  GstMemory* memory = stream_.wrap(primary_.context(), video, arrays.planes[0].data, wrapped, [](gpointer data) {
    auto* done = static_cast<Wrapped*>(data);
    done->primary->after_all_work(unref_sources, done->sources);
    delete done;
  });
  if (!memory) {
    sources->unref();
    delete wrapped;
    return nullptr;
  }
  GstBuffer* buffer = gst_buffer_new();
  gst_buffer_append_memory(buffer, memory);
  describe_layout(buffer, arrays, offsets);
  return buffer;
}

Result<Maker::Made> CudaMaker::copy(const Image& arrays, Sources* sources, int milliseconds) {
  GstBuffer* buffer = nullptr;
  if (gst_buffer_pool_acquire_buffer(pool_.get(), &buffer, nullptr) != GST_FLOW_OK)
    return Status::resource("CUDA memory for a frame cannot be allocated");
  stream_.wait_for_readers(GST_CUDA_MEMORY_CAST(gst_buffer_peek_memory(buffer, 0)));
  Status status;
  {
    const MappedFrame mapped(buffer, video_, GstMapFlags(GST_MAP_WRITE | GST_MAP_CUDA));
    status = mapped.status();
    for (int i = 0; i < info(geometry_.format).planes && status.ok(); ++i) {
      const PlaneExtent bytes = extent(geometry_, i);
      const Plane &from = arrays.planes[i], &to = mapped.image().planes[i];
      status = check(cudaMemcpy2DAsync(to.data, std::size_t(to.pitch), from.data, std::size_t(from.pitch),
                                       copied_row(bytes, from, to), std::size_t(bytes.rows), cudaMemcpyDeviceToDevice,
                                       stream_.handle()),
                     "cannot copy an array");
    }
  }
  // This is also necessary after an error: copies of the first planes may still be running.
  primary_.after_work_of(stream_.handle(), unref_sources, sources->ref());
  if (status.ok()) status = finish(buffer, milliseconds);
  if (status.ok()) return Made{buffer, true};
  gst_buffer_unref(buffer);
  return status;
}

Result<Maker::Made> CudaMaker::buffer_of(const Image& arrays, Sources* sources, Copy copy, int milliseconds) {
  const CurrentContext current(primary_.context());
  if (!current) return Status::resource("the primary CUDA context cannot be made current");
  if (GstBuffer* buffer = copy == Copy::always ? nullptr : wrap(arrays, sources)) {
    const Status status = finish(buffer, milliseconds);
    if (status.ok()) return Made{buffer, false};
    gst_buffer_unref(buffer);
    return status;
  }
  if (copy == Copy::never)
    return Status::frame(
        can_wrap()
            ? "the arrays must be copied: without a copy, rows of all planes must have the same distance, and each "
              "plane must begin where the rows of the previous one end"
            : "the arrays must be copied: GStreamer can wrap external memory from version 1.24 on");
  return this->copy(arrays, sources, milliseconds);
}

}  // namespace

Result<std::unique_ptr<Maker>> Maker::make(const Geometry& geometry, int device_id) {
  const FormatInfo& format = info(geometry.format);
  if (!compat::cuda_allocates(format))
    return Status::settings(std::string("the installed libgstcuda has no frames of the format ") + format.name +
                            " in CUDA memory: make the buffer in system memory, or use another format");
  if (compat::cuda_fails_size(format, geometry.width, geometry.height))
    return Status::settings(std::string("the installed libgstcuda handles ") + format.name + " of " +
                            size_text(geometry.width, geometry.height) +
                            " pixels wrongly: use an even width and height");
  auto primary = Primary::of(device_id);
  if (!primary.ok()) return primary.error();
  gst_cuda_memory_init_once();
  const CurrentContext current(primary.value()->context());
  if (!current) return Status::resource("the primary CUDA context cannot be made current");
  auto maker = std::make_unique<CudaMaker>(geometry, primary.value());
  if (Status status = maker->open(); !status.ok()) return status;
  return std::unique_ptr<Maker>(std::move(maker));
}

}  // namespace cudavision::frames
