// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gst/base/cuda/gpu.hpp"
#include "gst/base/frame.hpp"
#include "kernels/core/guard.hpp"

namespace cudavision {

/// Pictures in device memory for the frames of one pad that are in system memory. Two pictures are used alternately, so
/// that one can be copied while kernels use the other.
class Staging {
 public:
  /// The picture for the next frame, which is allocated if there is none of this geometry. Errors: resource.
  Result<const Image*> next(const Gpu& gpu, const Geometry& geometry);
  /// The picture of the last next() call, which must have succeeded.
  const Image& image() const { return *images_[current_]; }
  void reset();

 private:
  std::shared_ptr<const Image> images_[2];
  int current_ = 0;
};

class Transfer;

/// A buffer that is mapped while one frame is processed: on the device if it is in CUDA memory and the backend uses
/// CUDA, otherwise in system memory.
class FrameBuffer {
 public:
  /// `access`: GST_MAP_READ or GST_MAP_WRITE. Check status() before use.
  FrameBuffer(const Transfer& transfer, GstBuffer* buffer, const GstVideoInfo& video, GstMapFlags access);

  /// The result of mapping. Errors: frame, if the buffer does not hold the picture that the caps describe.
  const Status& status() const { return status_; }

 private:
  friend class Transfer;

  const Image& image() const { return mapped_.image(); }
  bool shifted() const { return mapped_.shifted(); }

  GstBuffer* const buffer_;
  const bool on_device_;  // kernels can use it directly
  const bool on_peer_;    // the buffer is in another CUDA context, and is copied from there
  const MappedFrame mapped_;
  const Status status_;
};

/// Connects buffers with the backend for one frame, for filters and mixers.
///
///  system memory:   buffer ──fetch(): upload──▶ Staging ─▶ kernels ─▶ Staging ──run(): download──▶ buffer
///  CUDA memory:     buffer ──fetch()──────────────────────▶ kernels ────────────────────target()─▶ buffer
///   (shifted)       buffer ──fetch(): copy────▶ Staging ─▶ kernels     (MappedFrame::shifted())
///  a peer's memory: buffer ──fetch(): copy────▶ Staging ─▶ kernels     (another CUDA context, often of another device)
///
/// run() submits all work to the queue and to the streams of the copies. It does not wait if the frame can be pushed
/// before the work is done, or if the caller holds the frame meanwhile. It keeps the inputs until the GPU has read them
/// (see Gpu). On the CPU backend all pictures are the mapped buffers themselves. For the streaming thread, with the
/// CUDA context current. Frame buffers must outlive run(). The output of an unfinished frame must outlive its work.
class Transfer {
 public:
  /// `gpu`: the device, or nullptr for the CPU backend.
  explicit Transfer(Gpu* gpu) : gpu_(gpu) {}
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  /// Whether fetch() copies a frame to Staging.
  bool copies(const FrameBuffer& frame) const { return gpu_ && (!frame.on_device_ || frame.shifted()); }

  /// What a frame requires.
  struct Frame {
    bool passes = false;    ///< the incoming buffer itself is pushed
    bool complete = false;  ///< the frame cannot be pushed before its results are available
    bool named = false;     ///< ticket() must name the work of the frame
    bool may_wait = false;  ///< the caller can hold the frame until its work is done
  };
  enum class State {
    finished,     ///< all work is done
    handed_over,  ///< the frame can be pushed; the GPU may not have finished the work
    unfinished,   ///< the frame cannot be pushed before the work of ticket() is done; only if `may_wait`
  };
  /// Calls submit(), which returns a Status and may call the functions below. Then downloads the picture that the
  /// kernels wrote to Staging, and hands over the output. Returns the first error; an exception also counts as an
  /// error.
  template <typename F>
  Result<State> run(const Frame& frame, F&& submit) {
    if (gpu_) gpu_->begin_frame();
    return finish(frame, guarded(submit));
  }

  /// The picture of an incoming frame, in the memory of the backend. Errors: resource.
  Result<const Image*> fetch(const FrameBuffer& from, Staging& staging);
  /// The picture that kernels write; `to` holds it when the work is done. At most one per frame. Errors: resource.
  Result<const Image*> target(const FrameBuffer& to, Staging& staging);
  /// The picture of an incoming frame. When the work is done, `to`, in the other kind of memory, holds this picture
  /// unchanged. Errors: resource.
  Result<const Image*> carry(const FrameBuffer& from, const FrameBuffer& to, Staging& staging);

  /// The queue to which kernels are submitted.
  Queue queue() const { return gpu_ ? gpu_->queue() : Queue(); }
  /// After run(), if the frame is named or unfinished: the ticket of its work.
  std::uint64_t ticket() const { return ticket_; }
  /// Waits until all submitted work is done. Errors: resource.
  Status wait() { return gpu_ ? gpu_->finish() : Status(); }

 private:
  friend class FrameBuffer;

  /// Whether kernels can use the memory of a buffer directly. They cannot if it belongs to another CUDA context.
  bool is_on_device(GstBuffer* buffer) const {
    return gpu_ && Gpu::is_device_buffer(buffer) && !gpu_->is_foreign(buffer);
  }
  bool is_on_peer(GstBuffer* buffer) const { return gpu_ && Gpu::is_device_buffer(buffer) && gpu_->is_foreign(buffer); }
  GstBuffer* prepared(GstBuffer* buffer, GstMapFlags access) const;
  Result<State> finish(const Frame& frame, Status submitted);
  Status release_uploads(const Frame& frame);
  bool hand_over();

  Gpu* const gpu_;
  std::vector<const FrameBuffer*> uploaded_;  // frames in system memory that are being uploaded
  std::uint64_t ticket_ = 0;
  const FrameBuffer* input_ = nullptr;  // the last input in CUDA memory
  const FrameBuffer* output_ = nullptr;
  const Image* to_download_ = nullptr;  // the picture to download to `output_`, or nullptr
};

}  // namespace cudavision
