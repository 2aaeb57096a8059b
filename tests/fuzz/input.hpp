// SPDX-License-Identifier: LGPL-2.1-or-later
// The peer upstream of the element.
#pragma once

#include <gst/gst.h>

#include <string>

namespace cudavision::fuzz {

class Rig;

/// A src pad of this program, linked to a sink pad of the element.
class Input {
 public:
  /// Takes ownership of `target`. A live input reports that it is live when the element queries its latency.
  Input(Rig& rig, GstPad* target, bool is_live);
  ~Input();
  Input(const Input&) = delete;

  /// Sends stream-start, caps and a plain segment. Returns false if the caps caused an error. The caller must then
  /// stop, since anything that follows would send the caps again.
  bool begin(const std::string& caps);
  bool send(GstEvent* event);
  GstFlowReturn push(GstBuffer* buffer);
  bool query(GstQuery* query);
  GstPad* target() const { return target_; }
  /// Releases the target pad. The element must be a mixer.
  void release();

 private:
  Rig& rig_;
  GstPad *pad_, *target_;
};

}  // namespace cudavision::fuzz
