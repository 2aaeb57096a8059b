// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>
#include <gst/video/video.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "gst/base/owned.hpp"
#include "kernels/core/image.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

/// The CUDA device of an element: the shared GstCudaContext, its own stream, pools and copies. Only this class and
/// pinned.hpp use libgstcuda. In a build without CUDA, open() fails (gpu_none.cpp). All functions require a successful
/// open(), except the static ones, offer_context() and answer_context_query().
class Gpu {
 public:
  Gpu();
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  /// Takes the CUDA context from a GstContext that the application or another element offers, if it is for this device.
  void offer_context(GstElement* element, GstContext* context, int device_id);
  /// Answers GST_QUERY_CONTEXT. Returns false if it asks for another kind of context. May be called while closed.
  bool answer_context_query(GstElement* element, GstQuery* query) const;

  /// Finds a context (offered earlier, or by a neighbour or the application) or makes one on `device_id` (−1: any), and
  /// makes a stream. Errors: resource.
  Status open(GstElement* element, int device_id);
  void close();
  bool is_open() const;

  /// Makes the context current for the lifetime of this object. All functions below, and all kernel plans, need this.
  class Scope {
   public:
    explicit Scope(const Gpu& gpu);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    /// Errors: resource. A closed Gpu gives no error, because there is no context to make current.
    Status status() const { return failed_ ? Status::resource("the CUDA context cannot be made current") : Status(); }

   private:
    bool pushed_, failed_;
  };

  Queue queue() const;
  /// Call these before and after the work of a frame is submitted. For tests: if the environment variable
  /// CUDAVISION_DELAY_STREAMS is set to N, the GPU pauses for up to N ms before the work of some frames, so that
  /// wrongly ordered work gives wrong frames.
  void begin_frame();
  void end_frame();
  /// Waits until all submitted work is done. Errors: resource, with CUDA's text, if some of it failed.
  Status finish();
  /// Whether work was handed over that finish() has not yet waited for.
  bool has_unfinished_work() const;

  /// Allocates a picture in device memory. Errors: resource.
  Result<std::shared_ptr<const Image>> allocate(const Geometry& geometry) const;
  /// Page-locks the memory of a buffer in place if it has arrived several times. Call it before the buffer is mapped
  /// with `access`.
  void page_lock_recurring(GstBuffer* buffer, GstMapFlags access) const;
  /// Copies a frame to a picture of Staging, while kernels of earlier frames run. Later work of this frame waits for
  /// the copy. `host` must live until the copy is done: call wait_for_uploads() or keep_until_uploaded(). Errors:
  /// resource.
  Status upload(const Image& host, const Image& device);
  /// Whether a copy from or to this picture in system memory runs while the host continues. If not, call
  /// wait_for_uploads().
  static bool copies_by_itself(const Image& host);
  Status wait_for_uploads();
  /// Keeps a reference to a buffer until the uploads submitted so far are done. Returns false if that is not possible.
  bool keep_until_uploaded(GstBuffer* buffer);
  /// Copies a frame to the memory of a device buffer, in the stream of the kernels, and waits. Errors: resource.
  Status fill(const Image& host, const Image& device);
  /// Makes later work of this frame wait for the download of the Staging picture that it writes.
  void acquire_staging();
  /// Copies a picture to system memory after this frame's work so far, while later frames are processed. Errors:
  /// resource.
  Status download(const Image& device, const Image& host);
  Status download(const void* device, void* host, gsize bytes) const;

  static bool is_device_buffer(GstBuffer* buffer);
  /// The flag that maps device memory as a device pointer.
  static GstMapFlags map_flag();
  // Hand-over of device buffers between elements. The host does not wait:
  //
  //   acquire_to_read(in)   later work here waits for the writer of `in`, on the device
  //   acquire_to_write(out) later work here waits for the readers of the former content of `out` …kernels…
  //   hand_over(out)        readers of `out` wait for the work submitted here so far
  //   keep_inputs()         `in` does not return to its pool before the work submitted here so far is done
  //   progress(), wait_for()   whether that work is done
  void acquire_to_read(GstBuffer* buffer);
  void acquire_to_write(GstBuffer* buffer) const;
  /// Returns false if readers cannot detect when the work is done. Then finish() and release() are needed.
  bool hand_over(GstBuffer* buffer) const;
  /// Like hand_over(), for a device buffer that is pushed unchanged. May wait for the writer of the buffer.
  bool pass_on(GstBuffer* buffer) const;
  /// Whether downstream is known to accept device buffers before they are completely written.
  bool may_hand_over() const;
  /// For inputs that are pushed on, before keep_inputs(): makes their next writers wait for the work submitted here, if
  /// GStreamer supports it (since 1.24). No reference is then needed, which would make the buffers read-only.
  void hold_up_writers();
  /// Keeps a device buffer as keep_inputs() does, even if its next writer waits for our kernels: a download reads it
  /// after the kernels.
  void keep_for_download(GstBuffer* buffer);
  /// Keeps the buffers passed to acquire_to_read() since the last call. If `named`, returns a ticket for all work so
  /// far, including downloads. No value: no ticket is possible, and finish() is needed.
  std::optional<std::uint64_t> keep_inputs(bool named);
  enum class Progress { running, done, failed };
  Progress progress(std::uint64_t ticket) const;
  /// Waits until the work with this ticket is done. Errors: resource, with CUDA's text, if it failed.
  Status wait_for(std::uint64_t ticket) const;
  /// Marks device memory as completely written. Call this after finish().
  void release(GstMemory* memory) const;
  /// Whether a device buffer is in another CUDA context.
  bool is_foreign(GstBuffer* buffer) const;
  /// Whether a device buffer is in memory of another device.
  bool is_on_other_device(GstBuffer* buffer) const;
  /// Copies a device buffer of another CUDA context, mapped as `from`, to a picture of Staging; later work of this
  /// frame waits for the copy. Like acquire_to_read(), keeps the buffer until keep_inputs(). Errors: resource.
  Status copy_from_peer(GstBuffer* buffer, const Image& from, const Image& to);
  /// Switches to the CUDA context of a device buffer, with a new stream. Errors: resource.
  Status adopt(GstBuffer* buffer);

  /// (transfer full) A pool of device frames, configured for `caps`. `size` receives the size of its buffers. nullptr
  /// if that fails.
  GstBufferPool* new_device_pool(GstCaps* caps, guint min_buffers, guint max_buffers, guint* size) const;
  /// A device frame of `caps` from a separate pool; nullptr if that fails.
  Owned<GstBuffer> new_device_frame(GstCaps* caps) const;
  /// Whether the pool of a neighbour allocates in our context. If so, adopts its stream.
  bool follow_pool(GstBufferPool* pool);
  /// Adds to the answer to an allocation query that this element accepts buffers before they are completely written.
  static void offer_handover(GstQuery* query);
  /// Reads from an answered allocation query whether downstream accepts such buffers. nullptr: there is no answer, so
  /// it does not.
  void learn_handover(GstQuery* query);
  /// (transfer full) Contiguous device memory of at least `bytes` and at most 64 KiB more. Mapping it without
  /// map_flag() downloads it. nullptr if that fails.
  GstMemory* new_linear_memory(gsize bytes) const;
  /// (transfer full) An allocator of page-locked host memory, which is copied several times as fast as pageable memory.
  GstAllocator* new_pinned_allocator() const;

 private:
  bool open_stream();
  Status open_copies();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cudavision
