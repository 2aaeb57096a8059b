// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>
#include <gst/video/video.h>

#include <memory>

#include "kernels/core/image.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

/// A picture of one's own in device memory.
class DeviceImage {
 public:
  virtual ~DeviceImage() = default;
  virtual const Image& image() const = 0;
};

/// An element's hold on a CUDA device: the shared GstCudaContext, a stream of its own, pools and copies. All that knows libgstcuda
/// is behind this class; a build without CUDA has one whose open() says so (gpu_none.cpp).
/// Every call but the static ones and offer_context() needs open() to have succeeded.
class Gpu {
 public:
  Gpu();
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  /// Takes the context out of a GstContext that the application or another element offers, if its device suits.
  void offer_context(GstElement* element, GstContext* context, int device_id);
  /// Answers GST_QUERY_CONTEXT; false where this is not the one asked for. Works closed as well.
  bool answer_context_query(GstElement* element, GstQuery* query) const;

  /// Finds a context (offered, a neighbour's, the application's) or makes one on `device_id` (−1: any), and makes a stream.
  /// Errors: resource, with the reason.
  Status open(GstElement* element, int device_id);
  void close();
  bool is_open() const;

  /// Makes the context current for its lifetime. Everything below, and every kernel plan, needs that.
  class Scope {
   public:
    explicit Scope(const Gpu& gpu);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    /// Errors: resource. Always an error while the Gpu is closed.
    Status status() const { return pushed_ ? Status() : Status::resource("the CUDA context cannot be made current"); }

   private:
    bool pushed_;
  };

  Queue queue() const;
  /// Waits until the stream has done all that was submitted. Errors: resource, with CUDA's text for anything that failed on the way.
  Status finish() const;

  Result<std::unique_ptr<DeviceImage>> allocate(const Geometry& geometry) const;
  /// Copies all planes on the stream. Pageable host memory is staged by the driver.
  Status upload(const Image& host, const Image& device) const;
  Status download(const Image& device, const Image& host) const;
  Status download(const void* device, void* host, gsize bytes) const;

  static bool is_device_buffer(GstBuffer* buffer);
  /// GstMapFlags that give a device pointer.
  static GstMapFlags map_flag();
  /// Before reading a device buffer: waits where its writer may not be done.
  void acquire_to_read(GstBuffer* buffer) const;
  /// Before writing a device buffer out of a pool: waits where readers of what it held may not be done.
  void acquire_to_write(GstBuffer* buffer) const;
  /// Tells others that a device buffer, or memory, is finished, after finish().
  void release(GstBuffer* buffer) const;
  void release(GstMemory* memory) const;
  /// Whether a device buffer lies in another CUDA context than ours.
  bool is_foreign(GstBuffer* buffer) const;
  /// Goes over to the context of a device buffer, with a stream there.
  Status adopt(GstBuffer* buffer);

  /// (transfer full) A pool of device frames, configured for `caps`; `size` is what its buffers measure. NULL where that fails.
  GstBufferPool* new_device_pool(GstCaps* caps, guint min_buffers, guint max_buffers, guint* size) const;
  /// Whether a pool that a neighbour offers allocates in our context. If so, its stream becomes ours.
  bool follow_pool(GstBufferPool* pool);
  /// (transfer full) Device memory of `bytes` or up to 64 KiB more, in one piece; whoever maps it without map_flag() gets it
  /// downloaded. NULL where that fails.
  GstMemory* new_linear_memory(gsize bytes) const;
  /// (transfer full) Page-locked host memory, which crosses the bus several times as fast.
  GstAllocator* new_pinned_allocator() const;

 private:
  bool open_stream();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cudavision
