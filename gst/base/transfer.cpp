// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/transfer.hpp"

namespace cudavision {

Result<const Image*> Staging::prepare(const Gpu& gpu, const Geometry& geometry) {
  const auto fits = [&](const Geometry& g) {
    return g.format == geometry.format && g.width == geometry.width && g.height == geometry.height;
  };
  if (!image_ || !fits(image().geometry)) {
    image_.reset();  // first, so that both need not fit into device memory
    auto made = gpu.allocate(geometry);
    if (!made.ok()) return made.error();
    image_ = std::move(made.value());
  }
  return &image();
}

FrameBuffer::FrameBuffer(const Transfer& transfer, GstBuffer* buffer, const GstVideoInfo& video, GstMapFlags access)
    : buffer_(buffer),
      on_device_(transfer.is_on_device(buffer)),
      mapped_(buffer, video, on_device_ ? GstMapFlags(access | Gpu::map_flag()) : access) {}

Result<const Image*> Transfer::fetch(const FrameBuffer& from, Staging& staging) {
  if (from.on_device_) gpu_->acquire_to_read(from.buffer_);
  if (!uploads(from)) return &from.image();
  auto picture = staging.prepare(*gpu_, from.image().geometry);
  if (!picture.ok()) return picture;
  if (Status status = upload(from, *picture.value()); !status.ok()) return status;
  return picture;
}

Status Transfer::upload(const FrameBuffer& from, const Image& to) {
  uploaded_ = true;
  return gpu_->upload(from.image(), to);
}

Result<const Image*> Transfer::target(const FrameBuffer& to, Staging& staging) {
  output_ = &to;
  if (to.on_device_) gpu_->acquire_to_write(to.buffer_);
  if (!gpu_ || to.on_device_) return &to.image();
  auto picture = staging.prepare(*gpu_, to.image().geometry);
  if (picture.ok()) to_download_ = picture.value();
  return picture;
}

Result<const Image*> Transfer::carry(const FrameBuffer& from, const FrameBuffer& to, Staging& staging) {
  output_ = &to;
  if (!from.on_device_ && to.on_device_) {
    gpu_->acquire_to_write(to.buffer_);
    if (Status status = upload(from, to.image()); !status.ok()) return status;
    return &to.image();
  }
  auto picture = fetch(from, staging);
  if (picture.ok() && !to.on_device_) to_download_ = picture.value();
  return picture;
}

Status Transfer::finish(Return when, Status submitted) {
  if (!gpu_) return submitted;
  if (submitted.ok() && to_download_) submitted = gpu_->download(*to_download_, output_->image());
  const bool touches_system_memory = uploaded_ || to_download_;
  if (submitted.ok() && when != Return::when_finished && !touches_system_memory && hand_over(when == Return::when_named)) return {};
  const Status finished = wait();
  if (output_ && output_->on_device_) gpu_->release(output_->buffer_);
  return submitted.ok() ? finished : submitted;
}

/// Passes on unfinished work, if the next element can take it.
bool Transfer::hand_over(bool named) {
  if (output_ && !gpu_->hand_over(output_->buffer_)) return false;
  if (!output_) gpu_->hold_up_writers();
  ticket_ = gpu_->keep_inputs(named);
  return ticket_.has_value();
}

}  // namespace cudavision
