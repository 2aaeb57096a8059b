// SPDX-License-Identifier: LGPL-2.1-or-later
// One element between pads of our own, which watch what comes out of it.
#pragma once

#include <gst/video/video.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "random.hpp"

namespace cudavision::fuzz {

/// How downstream answers the element.
struct Downstream {
  std::string caps = "ANY";  ///< what it takes
  enum class Pool { none, strange_strides, plain, no_video_meta } pool = Pool::none;
  bool is_live = false;      ///< what upstream says of itself in a LATENCY query
  bool keeps_samples = false;
};
Downstream draw_downstream(Random& random, bool mixer);

class Rig;

/// A src pad of ours, linked to a sink pad of the element.
class Input {
 public:
  Input(Rig& rig, GstPad* target);
  ~Input();
  Input(const Input&) = delete;

  /// Sends stream-start, caps and a plain segment. False: the caps ended in an error; what followed would send them again.
  bool begin(const std::string& caps);
  bool send(GstEvent* event) { return gst_pad_push_event(pad_, event); }
  GstFlowReturn push(GstBuffer* buffer);
  bool query(GstQuery* query);
  GstPad* target() const { return target_; }
  /// The target leaves the element, which must be a mixer.
  void release();

 private:
  Rig& rig_;
  GstPad *pad_, *target_;
};

class Rig {
 public:
  Rig(const std::string& element, const std::string& backend, const Downstream& downstream);
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
  /// Error messages since the last set_state(GST_STATE_PLAYING). More than one for each input is a failure.
  int errors() const { return errors_; }

 private:
  friend class Input;
  static GstFlowReturn chain(GstPad*, GstObject*, GstBuffer*);
  static gboolean event(GstPad*, GstObject*, GstEvent*);
  static gboolean query(GstPad*, GstObject*, GstQuery*);
  static GstBusSyncReply message(GstBus*, GstMessage*, gpointer);
  void check(GstBuffer* buffer);
  void answer_allocation(GstQuery* query);
  /// Whether a frame has memory that we have pushed; what it says of itself is then ours.
  bool is_ours(GstBuffer* buffer);

  Downstream downstream_;
  GstElement* element_;
  GstPad* sink_;
  GstBus* bus_;
  std::atomic<int> errors_{0}, inputs_{0}, frames_{0};
  std::atomic<bool> eos_{false};
  std::shared_ptr<std::atomic<int>> alive_ = std::make_shared<std::atomic<int>>(1);  // the element, and frames that we pushed
  std::mutex mutex_;
  std::vector<const GstMemory*> pushed_;
  std::vector<std::string> outputs_;
};

/// Whether the element can leave NULL on this backend. `reason` is the element's own.
bool works(const std::string& element, const std::string& backend, std::string& reason);

}  // namespace cudavision::fuzz
