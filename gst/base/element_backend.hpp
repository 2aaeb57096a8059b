// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

#include <atomic>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gst/base/cuda/gpu.hpp"
#include "gst/base/owned.hpp"
#include "gst/base/settings/properties.hpp"
#include "kernels/core/guard.hpp"
#include "kernels/core/queue.hpp"
#include "kernels/core/status.hpp"

namespace cudavision {

/// Holds the lock of a GstObject.
class ObjectLock {
 public:
  explicit ObjectLock(gpointer object) : object_(GST_OBJECT(object)) { GST_OBJECT_LOCK(object_); }
  ~ObjectLock() { GST_OBJECT_UNLOCK(object_); }
  ObjectLock(const ObjectLock&) = delete;
  ObjectLock& operator=(const ObjectLock&) = delete;

 private:
  GstObject* object_;
};

/// A stream ends with an error after this many consecutive frames that do not match their caps. Fewer such frames are
/// dropped with a warning.
inline constexpr guint most_misfits = 30;
/// The error about such frames. `why`: why the last frame does not match.
Status too_many_misfits(guint count, const std::string& why);

/// Posts an error message.
void post_error(GstElement* element, const Status& status);
/// Posts a warning about settings, unless it is empty or equals `posted`, the previous warning.
void post_advice(GstElement* element, std::string advice, std::string& posted);
/// The text of a status as valid UTF-8. A status may quote a property whose value is not valid UTF-8.
std::string message_text(const Status& status);

/// The parts that all elements share, independent of their GStreamer base class: the choice of a backend and its
/// properties, the CUDA context, pools of frames, errors. For any thread, unless stated otherwise.
class ElementBackend {
 public:
  explicit ElementBackend(GstElement* element);
  ElementBackend(const ElementBackend&) = delete;
  ElementBackend& operator=(const ElementBackend&) = delete;

  /// Installs the properties backend, cuda-device-id, async-depth and active-backend, with ids starting at `first`.
  static void install_properties(GObjectClass* klass, guint first);
  static constexpr guint property_count = 4;
  /// `index`: 0 to 3, in this order. A value out of range is an error when the element leaves the state NULL. Later, it
  /// causes a warning, and the last good values stay. Takes the object lock, as get_property() does.
  void set_property(guint index, const GValue* value);
  void get_property(guint index, GValue* value) const;

  /// The element's change_state: opens a backend at NULL→READY and closes it at READY→NULL. `base` is the parent class
  /// of the element. Posts an error if no backend can be opened.
  GstStateChangeReturn change_state(GstElementClass* base, GstStateChange transition);
  /// The element's set_context. `base` is the parent class of the element.
  void set_context(GstElementClass* base, GstContext* context);
  /// Answers a query for the CUDA context. Returns false if the query is a different one, or has no answer.
  bool answers(GstQuery* query) const;

  bool uses_cuda() const { return uses_cuda_; }
  /// The backend in use since the state READY.
  Backend backend() const { return uses_cuda_ ? Backend::cuda : Backend::cpu; }
  /// Whether this element must change to the CUDA context of a device buffer from another context. If the user chose a
  /// different device, the element copies the frame instead.
  bool follows(GstBuffer* buffer) const;
  /// Switches to the CUDA context of a device buffer. No object of the former context may remain. Errors: resource.
  Status adopt(GstBuffer* buffer);
  /// The number of frames that may wait in the element for the GPU. `in_time`: whether frames may be late.
  guint async_depth(bool in_time) const { return in_time && uses_cuda() ? async_depth_.load() : 0; }
  /// Whether CUDA is in use or, in the state NULL, may be used later.
  bool may_use_cuda() const;

  void post_error(const Status& status) const { cudavision::post_error(element_, status); }
  /// Calls f, which returns nothing. Posts an error if it throws.
  template <typename F>
  void guard(F&& f) const {
    if (const Status status = guarded(f); !status.ok()) post_error(status);
  }
  /// Posts an error, and returns GST_FLOW_ERROR.
  GstFlowReturn failed(const Status& status) const;
  /// Call this if no caps can be negotiated. Posts an error, once between READY and NULL, if the reason is that the
  /// peer of `src` accepts only CUDA memory, and this element works without CUDA.
  void check_memory_of_peer(GstPad* src);
  /// Call this with the caps negotiated at a pad. Logs at level INFO, once per pad between READY and NULL, if frames
  /// are copied across the bus there although both sides could use CUDA memory.
  void note_copies(GstPad* pad, GstCaps* caps);

  /// Waits until the GPU has done the work that the element handed over. Errors: resource, if some of it failed; each
  /// failure is reported once. For the streaming thread.
  Status finish_work();
  /// Like finish_work(), but posts an error. Returns whether all work succeeded.
  bool finish_or_post_error();

  // element_backend_pools.cpp
  /// Answers an allocation query with a pool and its allocator. System memory is page-locked if CUDA is in use.
  bool propose_pool(GstQuery* query) const;
  /// Adds to the answer that this element accepts frames with a crop or other strides and, if CUDA is in use, buffers
  /// before they are completely written.
  void accept_frames(GstQuery* query) const;
  /// Chooses the pool in an answered allocation query: the pool of downstream if it is suitable, otherwise a new one.
  /// Posts errors. `held`: frames of the pool that wait in the element, in addition to those that downstream holds.
  bool decide_pool(GstQuery* query, guint held);

  Gpu gpu;  ///< for the streaming thread; its context for any thread

 private:
  bool open();
  void close();
  struct Settings {
    int backend = 0;  // a value of backend_choices
    int device_id = -1;
    guint async_depth = 0;
  };
  /// The table with new specs, to be installed in a class: a spec belongs to one class.
  static std::vector<Property<Settings>> new_properties();
  static const std::vector<Property<Settings>>& properties();
  /// Called after a property was set. Rejects a value out of range, and warns about a change that takes effect only
  /// when the element is restarted. Takes the object lock.
  void changed(const Property<Settings>& property);
  Owned<GstBufferPool> new_pool(GstCaps* caps, guint min_buffers, guint max_buffers, guint* size,
                                Owned<GstAllocator>& allocator) const;

  GstElement* const element_;
  Settings wanted_, good_, opened_;    // current settings; the last ones in range; the ones when backend_ was chosen
  std::atomic<guint> async_depth_{0};  // of good_; read for each frame, without the lock
  std::optional<Backend> backend_;
  std::atomic<bool> uses_cuda_{false};  // whether backend_ is CUDA; read for each frame, without the lock
  std::string no_cuda_;                 // why CUDA is not in use; empty if backend=cpu
  bool said_no_cuda_ = false;
  std::set<std::string> noted_copies_;  // names of pads
};

}  // namespace cudavision
