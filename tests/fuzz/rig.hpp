// SPDX-License-Identifier: LGPL-2.1-or-later
// One element between pads of our own, which watch what comes out of it.
#pragma once

#include <gst/video/video.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/fuzz/downstream.hpp"

namespace cudavision::fuzz {

class Rig {
 public:
  /// `keeps_samples`: outputs() has the samples of each frame.
  Rig(const std::string& element, const std::string& backend, const Downstream& downstream, bool keeps_samples = false);
  /// Stops the element; complains where something keeps it or one of its frames alive.
  ~Rig();
  Rig(const Rig&) = delete;

  GstElement* element() const { return element_; }
  /// True where the element reached the state. False: it refused, and posted an error.
  bool set_state(GstState state);
  /// Waits until EOS has come out.
  void wait_for_eos(int milliseconds);
  void send_upstream(GstEvent* event) { gst_pad_push_event(sink_, event); }
  void query_upstream(GstQuery* query);

  /// What came out: the samples of each frame, if they are kept, and else empty strings.
  std::vector<std::string> outputs();
  /// Error messages since the last set_state(GST_STATE_PLAYING). More than are allowed are a failure.
  int errors() const { return errors_; }
  /// Whether there ever was one.
  bool has_posted_error() const { return has_posted_error_; }

  /// Takes note of something that may end with an error message: an input, say.
  void allow_error() { ++most_errors_; }
  /// Takes note of a frame that goes into the element.
  void follow(GstBuffer* buffer);

 private:
  static GstFlowReturn chain(GstPad*, GstObject*, GstBuffer*);
  static gboolean event(GstPad*, GstObject*, GstEvent*);
  static GstBusSyncReply message(GstBus*, GstMessage*, gpointer);
  void check(GstBuffer* buffer);
  /// Whether a frame has memory that we have pushed; what it says of itself is then ours.
  bool is_ours(GstBuffer* buffer);

  const Downstream downstream_;
  const bool keeps_samples_;
  GstElement* element_;
  GstPad* sink_;
  GstBus* bus_;
  std::atomic<int> errors_{0}, most_errors_{0}, frames_{0};
  std::atomic<bool> eos_{false}, has_posted_error_{false};
  std::shared_ptr<std::atomic<int>> alive_ = std::make_shared<std::atomic<int>>(1);  // the element, and frames that we pushed
  std::mutex mutex_;
  std::vector<const GstMemory*> pushed_;
  std::vector<std::string> outputs_;
};

/// Whether the element can leave NULL on this backend. `reason` is the element's own.
bool works(const std::string& element, const std::string& backend, std::string& reason);

}  // namespace cudavision::fuzz
