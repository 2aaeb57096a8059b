// SPDX-License-Identifier: LGPL-2.1-or-later
// What is before the element.
#pragma once

#include <gst/gst.h>

#include <string>

namespace cudavision::fuzz {

class Rig;

/// A src pad of ours, linked to a sink pad of the element.
class Input {
 public:
  /// Takes `target`. A live input says so when the element asks for its latency.
  Input(Rig& rig, GstPad* target, bool is_live);
  ~Input();
  Input(const Input&) = delete;

  /// Sends stream-start, caps and a plain segment. False: the caps ended in an error; what followed would send them again.
  bool begin(const std::string& caps);
  bool send(GstEvent* event);
  GstFlowReturn push(GstBuffer* buffer);
  bool query(GstQuery* query);
  GstPad* target() const { return target_; }
  /// The target leaves the element, which must be a mixer.
  void release();

 private:
  Rig& rig_;
  GstPad *pad_, *target_;
};

}  // namespace cudavision::fuzz
