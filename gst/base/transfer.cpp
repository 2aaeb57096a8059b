// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gst/base/transfer.hpp"

#include "kernels/core/packed.hpp"

namespace cudavision {

Result<const Image*> Staging::next(const Gpu& gpu, const Geometry& geometry) {
  current_ = 1 - current_;
  std::shared_ptr<const Image>& image = images_[current_];
  const auto fits = [&](const Geometry& g) {
    return g.format == geometry.format && g.width == geometry.width && g.height == geometry.height;
  };
  if (!image || !fits(image->geometry)) {
    image.reset();  // first, so that both need not fit into device memory
    auto made = gpu.allocate(geometry);
    if (!made.ok()) return made.error();
    image = std::move(made.value());
  }
  return image.get();
}

void Staging::reset() {
  for (auto& image : images_) image.reset();
}

FrameBuffer::FrameBuffer(const Transfer& transfer, GstBuffer* buffer, const GstVideoInfo& video, GstMapFlags access)
    : buffer_(buffer),
      on_device_(transfer.is_on_device(buffer)),
      on_peer_(access == GST_MAP_READ && transfer.is_on_peer(buffer)),
      mapped_(transfer.prepared(buffer, access), video,
              on_device_ || on_peer_ ? GstMapFlags(access | Gpu::map_flag()) : access),
      status_(on_peer_ && shifted()
                  ? Status::frame("the crop of a frame in another CUDA context begins inside a pair of "
                                  "pixels: crop it in the context of this element")
                  : mapped_.status()) {}

/// Prepares a buffer for mapping, and returns it.
GstBuffer* Transfer::prepared(GstBuffer* buffer, GstMapFlags access) const {
  if (gpu_ && !Gpu::is_device_buffer(buffer)) gpu_->page_lock_recurring(buffer, access);
  return buffer;
}

Result<const Image*> Transfer::fetch(const FrameBuffer& from, Staging& staging) {
  if (from.on_device_ || from.on_peer_) input_ = &from;
  if (from.on_device_) gpu_->acquire_to_read(from.buffer_);
  if (!copies(from)) return &from.image();
  auto picture = staging.next(*gpu_, from.image().geometry);
  if (!picture.ok()) return picture;
  if (from.on_device_ || from.on_peer_)
    gpu_->acquire_staging();  // frames that pass through are downloaded from there
  else
    uploaded_.push_back(&from);
  const Status copied = from.on_peer_     ? gpu_->copy_from_peer(from.buffer_, from.image(), *picture.value())
                        : from.on_device_ ? shift_groups(Backend::cuda, from.image(), *picture.value(), queue())
                                          : gpu_->upload(from.image(), *picture.value());
  if (!copied.ok()) return copied;
  return picture;
}

Result<const Image*> Transfer::target(const FrameBuffer& to, Staging& staging) {
  output_ = &to;
  if (to.on_device_) gpu_->acquire_to_write(to.buffer_);
  if (!gpu_ || to.on_device_) return &to.image();
  auto picture = staging.next(*gpu_, to.image().geometry);
  if (!picture.ok()) return picture;
  gpu_->acquire_staging();
  to_download_ = picture.value();
  return picture;
}

Result<const Image*> Transfer::carry(const FrameBuffer& from, const FrameBuffer& to, Staging& staging) {
  output_ = &to;
  if (!from.on_device_ && to.on_device_) {
    gpu_->acquire_to_write(to.buffer_);
    const Status copied = from.on_peer_ ? gpu_->copy_from_peer(from.buffer_, from.image(), to.image())
                                        : gpu_->fill(from.image(), to.image());
    if (!copied.ok()) return copied;
    return &to.image();
  }
  auto picture = fetch(from, staging);
  if (!picture.ok() || to.on_device_) return picture;
  if (from.on_device_) gpu_->keep_for_download(from.buffer_);
  to_download_ = picture.value();
  return picture;
}

Result<Transfer::State> Transfer::finish(const Frame& frame, Status submitted) {
  if (!gpu_) {
    if (!submitted.ok()) return submitted;
    return State::finished;
  }
  if (submitted.ok() && to_download_) submitted = gpu_->download(*to_download_, output_->image());
  gpu_->end_frame();
  if (submitted.ok()) submitted = release_uploads(frame);
  if (submitted.ok()) {
    const bool goes_on = !frame.complete && !to_download_ && hand_over();
    if (goes_on || frame.may_wait)
      if (const auto ticket = gpu_->keep_inputs(frame.named || !goes_on)) {
        ticket_ = *ticket;
        return goes_on ? State::handed_over : State::unfinished;
      }
  }
  const Status finished = wait();
  if (output_ && output_->on_device_) gpu_->release(gst_buffer_peek_memory(output_->buffer_, 0));
  if (!submitted.ok()) return submitted;
  if (!finished.ok()) return finished;
  return State::finished;
}

/// Ensures that uploaded frames live until their copies are done.
Status Transfer::release_uploads(const Frame& frame) {
  bool wait = false;
  for (const FrameBuffer* uploaded : uploaded_) {
    if (!Gpu::copies_by_itself(uploaded->image()))
      wait = true;
    else if (!frame.passes)
      wait |= !gpu_->keep_until_uploaded(uploaded->buffer_);
    else  // The caller holds the frame, or it is the output: another reference would make it read-only.
      wait |= !(frame.complete && frame.may_wait);
  }
  return wait ? gpu_->wait_for_uploads() : Status();
}

/// Passes on unfinished work, if the next element accepts it.
bool Transfer::hand_over() {
  if (output_) return gpu_->hand_over(output_->buffer_);
  if (input_ && !gpu_->pass_on(input_->buffer_)) return false;
  gpu_->hold_up_writers();
  return true;
}

}  // namespace cudavision
