// SPDX-License-Identifier: LGPL-2.1-or-later
// One element between pads of this program, which check its output.
#pragma once

#include <gst/video/video.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/streams/downstream.hpp"

namespace cudavision::streams {

class Rig {
 public:
  enum class Keep {
    nothing,  ///< frames are checked; outputs() counts them
    samples,  ///< frames are checked; outputs() returns their samples
    frames,   ///< frames are kept without being checked; take_frame() returns them
  };
  Rig(const std::string& element, const std::string& backend, const Downstream& downstream, Keep keep = Keep::nothing);
  /// Stops the element. Complains if the element or one of the frames pushed into it is never freed.
  ~Rig();
  Rig(const Rig&) = delete;

  GstElement* element() const { return element_; }
  /// Returns true if the element reached the state, false if it refused and posted an error.
  bool set_state(GstState state);
  void wait_for_eos(int milliseconds);
  void send_upstream(GstEvent* event);
  void query_upstream(GstQuery* query);

  /// Returns a string for each output frame: its samples if they are kept, otherwise an empty string.
  std::vector<std::string> outputs();
  /// (transfer full) Returns the next output frame if frames are kept and one has arrived, otherwise NULL.
  GstBuffer* take_frame();
  /// The number of error messages since the last set_state(GST_STATE_PLAYING). More errors than allow_error() permits
  /// are a failure.
  int errors() const { return errors_; }
  /// Whether the element has ever posted an error.
  bool has_posted_error() const { return has_posted_error_; }

  /// Permits one more error message. Call it for everything that may cause one, such as an input.
  void allow_error() { ++most_errors_; }
  /// Keeps flushes and changes of state apart: where they meet, GStreamer's mixer can wait forever
  /// (tests/soak/UPSTREAM.md).
  std::mutex& flushing() { return flushing_; }
  /// Registers a frame that is pushed into the element.
  void follow(GstBuffer* buffer);

 private:
  static GstFlowReturn chain(GstPad*, GstObject*, GstBuffer*);
  static gboolean event(GstPad*, GstObject*, GstEvent*);
  static GstBusSyncReply message(GstBus*, GstMessage*, gpointer);
  void check(GstBuffer* buffer);
  void keep(GstBuffer* buffer);
  /// Whether a frame has memory that this program pushed. Then this program also made its metas.
  bool is_ours(GstBuffer* buffer);

  const Downstream downstream_;
  const Keep keep_;
  GstElement* element_;
  GstPad* sink_;
  GstBus* bus_;
  std::atomic<int> errors_{0}, most_errors_{0}, count_{0};
  std::atomic<bool> eos_{false}, has_posted_error_{false};
  // the element, and the frames pushed into it
  std::shared_ptr<std::atomic<int>> alive_ = std::make_shared<std::atomic<int>>(1);
  std::mutex flushing_;
  std::mutex mutex_;  // guards the following members
  std::vector<const GstMemory*> pushed_;
  std::vector<std::string> outputs_;
  std::deque<GstBuffer*> frames_;
};

/// A src pad of this program, linked to a sink pad of the element.
class Input {
 public:
  /// Takes ownership of `target`. A live input reports that it is live when the element queries its latency.
  Input(Rig& rig, GstPad* target, bool is_live);
  ~Input();
  Input(const Input&) = delete;

  /// Sends stream-start, caps and a plain segment. Returns false if the caps caused an error. The caller must then
  /// stop, because anything that follows would send the caps again.
  bool begin(const std::string& caps);
  bool send(GstEvent* event);
  /// Sends FLUSH_START, FLUSH_STOP and a plain segment.
  void flush(bool reset_time);
  GstFlowReturn push(GstBuffer* buffer);
  bool query(GstQuery* query);
  GstPad* target() const { return target_; }
  /// Releases the target pad. The element must be a mixer.
  void release();

 private:
  bool send_segment();
  Rig& rig_;
  GstPad *pad_, *target_;
};

}  // namespace cudavision::streams
