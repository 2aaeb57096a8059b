// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gst/base/frame.hpp"
#include "gst/base/gpu.hpp"
#include "kernels/core/guard.hpp"

namespace cudavision {

/// A picture in device memory for the frames of one pad that are in system memory. The first such frame allocates it.
class Staging {
 public:
  /// The picture, which is allocated if there is none of this geometry. Errors: resource.
  Result<const Image*> prepare(const Gpu& gpu, const Geometry& geometry);
  /// The picture. prepare() must have succeeded.
  const Image& image() const { return image_->image(); }
  void reset() { image_.reset(); }

 private:
  std::unique_ptr<DeviceImage> image_;
};

class Transfer;

/// A buffer that is mapped while one frame is processed: on the device if the backend can use the buffer's memory there, else in
/// system memory.
class FrameBuffer {
 public:
  /// `access`: GST_MAP_READ or GST_MAP_WRITE. Check status() before use.
  FrameBuffer(const Transfer& transfer, GstBuffer* buffer, const GstVideoInfo& video, GstMapFlags access);

  /// Errors: frame, if the buffer does not hold the picture that the caps describe.
  const Status& status() const { return mapped_.status(); }

 private:
  friend class Transfer;

  const Image& image() const { return mapped_.image(); }

  GstBuffer* const buffer_;
  const bool on_device_;
  const MappedFrame mapped_;
};

/// The bridge between buffers and the backend for one frame, for filters and mixers.
///
///   system memory:  buffer ──fetch(): upload──▶ Staging ─▶ kernels ─▶ Staging ──run(): download──▶ buffer
///   CUDA memory:    buffer ──fetch()──────────────────────▶ kernels ────────────────────target()─▶ buffer
///
/// All work goes to the queue, which run() fills. If a frame crosses the bus, run() waits until the work is done. If all frames are
/// in CUDA memory, it does not wait: it hands the output over and keeps the inputs until the GPU has read them (see Gpu). On the
/// CPU backend all pictures are the mapped buffers themselves. For the streaming thread, with the CUDA context current.
/// Frame buffers must outlive run().
class Transfer {
 public:
  /// `gpu`: the device, or nullptr for the CPU backend.
  explicit Transfer(Gpu* gpu) : gpu_(gpu) {}
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  /// Whether fetch() copies a frame to Staging.
  bool uploads(const FrameBuffer& frame) const { return gpu_ && !frame.on_device_; }

  /// When run() returns.
  enum class Return {
    when_submitted,  ///< as soon as neighbours can take over; see above
    when_named,      ///< likewise, and ticket() names the work
    when_finished,   ///< when all work is done
  };
  /// Calls submit(), which returns a Status and may call the functions below. Then downloads what the kernels wrote to Staging, and
  /// hands the output over. Returns the first error; an exception is an error too.
  template <typename F>
  Status run(Return when, F&& submit) {
    if (gpu_) gpu_->delay_for_tests();
    return finish(when, guarded(submit));
  }

  /// The picture of an incoming frame, in the memory of the backend. Errors: resource.
  Result<const Image*> fetch(const FrameBuffer& from, Staging& staging);
  /// The picture for kernels to write; `to` holds it after run(). At most one for each frame. Errors: resource.
  Result<const Image*> target(const FrameBuffer& to, Staging& staging);
  /// The picture of an incoming frame, which `to`, in the other kind of memory, holds unchanged after run(). Errors: resource.
  Result<const Image*> carry(const FrameBuffer& from, const FrameBuffer& to, Staging& staging);

  /// Where to submit kernels.
  Queue queue() const { return gpu_ ? gpu_->queue() : Queue(); }
  /// After run(): the ticket of the work, if the GPU may not have done it yet. No value: all work is done.
  std::optional<std::uint64_t> ticket() const { return ticket_; }
  /// Waits until all submitted work is done. Errors: resource.
  Status wait() { return gpu_ ? gpu_->finish() : Status(); }

 private:
  friend class FrameBuffer;

  /// Whether kernels can use the memory of a buffer directly. They cannot if it lies in another CUDA context.
  bool is_on_device(GstBuffer* buffer) const { return gpu_ && Gpu::is_device_buffer(buffer) && !gpu_->is_foreign(buffer); }
  Status upload(const FrameBuffer& from, const Image& to);
  Status finish(Return when, Status submitted);
  bool hand_over(bool named);

  Gpu* const gpu_;
  bool uploaded_ = false;  // a frame in system memory is being read
  std::optional<std::uint64_t> ticket_;
  const FrameBuffer* output_ = nullptr;
  const Image* to_download_ = nullptr;  // the picture to download to `output_`, or nullptr
};

}  // namespace cudavision
