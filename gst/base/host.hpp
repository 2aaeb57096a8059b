// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

#include <optional>
#include <string>

#include "gst/base/gpu.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/status.hpp"

/// The debug category of the plugin, "cudavision". Host::install_properties() initialises it.
GST_DEBUG_CATEGORY_EXTERN(cudavision_debug);

namespace cudavision {

/// Holds an object's lock.
class ObjectLock {
 public:
  explicit ObjectLock(gpointer object) : object_(GST_OBJECT(object)) { GST_OBJECT_LOCK(object_); }
  ~ObjectLock() { GST_OBJECT_UNLOCK(object_); }
  ObjectLock(const ObjectLock&) = delete;
  ObjectLock& operator=(const ObjectLock&) = delete;

 private:
  GstObject* object_;
};

/// Posts what an operation reports as an error message.
void post_error(GstElement* element, const Status& status);
/// The text of a message: valid UTF-8, also where it quotes a property that is not.
std::string message_text(const Status& status);

/// What all elements have in common, whatever GStreamer class they derive from: the choice of a backend with its properties, the
/// CUDA context, pools of frames, errors. Calls may come from any thread, unless said otherwise.
class Host {
 public:
  explicit Host(GstElement* element);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// Installs backend, active-backend and cuda-device-id, in this order, from id `first` on.
  static void install_properties(GObjectClass* klass, guint first);
  static constexpr guint property_count = 3;
  /// `index`: 0 – 2, in that order. Called under the object lock.
  void set_property(guint index, const GValue* value);
  void get_property(guint index, GValue* value) const;

  /// The element's change_state: has a backend from NULL→READY to READY→NULL. `base` is the class that the element derives from. Where
  /// no backend can be had, it posts why.
  GstStateChangeReturn change_state(GstElementClass* base, GstStateChange transition);
  void set_context(GstContext* context);

  /// From READY on. Called under the object lock.
  std::optional<Backend> backend() const { return backend_; }
  bool uses_cuda() const;
  /// Whether CUDA is used, or, before READY, may be.
  bool may_use_cuda() const;

  void post_error(const Status& status) const { cudavision::post_error(element_, status); }
  /// Called where nothing can be negotiated while frames are to flow. Posts an error, once a run, if the reason is that the peer of
  /// `src` takes CUDA memory only, and this element works without CUDA.
  void check_memory_of_peer(GstPad* src);

  /// Adds a pool of our own to an allocation query, with its allocator: page-locked where CUDA copies system memory.
  bool propose_pool(GstQuery* query, GstCaps* caps, bool need_pool) const;
  /// Settles on the pool of an answered allocation query: downstream's, where it will do, else one of our own. Posts what fails.
  bool decide_pool(GstQuery* query, GstCaps* caps);

  Gpu gpu;  ///< of the streaming thread, but for its context

 private:
  bool open();
  void close();
  /// Warns where the property that changed takes effect only when the element starts again. Called without the object lock.
  void warn_of_late_change(GParamSpec* changed) const;
  GstBufferPool* new_pool(GstCaps* caps, guint min_buffers, guint max_buffers, guint* size, GstAllocator** allocator) const;

  GstElement* const element_;
  struct Choices {
    int backend = 0;  // a row of the table of backends
    int device_id = -1;
  };
  Choices wanted_, opened_;  // what the properties say; what they said when backend_ was chosen
  std::optional<Backend> backend_;
  std::string no_cuda_;  // why CUDA is not in use; empty: nobody asked for it
  bool said_no_cuda_ = false;
};

}  // namespace cudavision
