// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

#include <memory>
#include <optional>
#include <string>

/// A place in a clip, or a length: a number of frames, or a time in ns.
struct Time {
  bool in_frames = false;
  guint64 value = 0;
};

/// The forms that time_of() reads, for messages.
constexpr const char* time_forms = "frames (250), seconds (10.0 or 10s) or hh:mm:ss (00:00:10.5)";
/// Reads a time as ../part.py does. Returns nothing if the text is not a time.
std::optional<Time> time_of(const std::string& text);

/// Frames per second, as a fraction.
struct Rate {
  guint64 frames, seconds;
};

/// The form that rate_of() reads, for messages.
constexpr const char* rate_form = "frames per second above 0, up to 1000, such as 25, 12.5 or 30000/1001";
/// Reads a frame rate as ../part.py does. Returns nothing if the text is not a frame rate.
std::optional<Rate> rate_of(const std::string& text);

/// The frames of a clip from `start` up to, but excluding, `end`, or for `duration`. After each selected frame, `skip`
/// frames are omitted. `rate` gives times to frames that have none. ../part.py does the same for Python programs.
struct Part {
  std::optional<Time> start, end, duration;
  guint64 skip = 0;
  std::optional<Rate> rate;

  bool is_all() const { return !start && !end && !duration && skip == 0; }
};

/// Explains why such a part is impossible; empty if it is possible.
std::string error_of(const Part& part);

/// Lets only the frames of a part pass a sink pad: drops the frames before the part and sends EOS at its end. If the
/// container has an index, seeks to the key frame before the part. Times refer to the whole clip.
class Gate {
 public:
  struct State;

  Gate(GstPad* pad, const Part& part);
  /// A sentence if the clip has frames, but the part has none; otherwise an empty text.
  std::string why_nothing() const;
  /// The stream time at which the part ended, if it did. Call it after the last frame.
  std::optional<GstClockTime> over() const;

 private:
  std::shared_ptr<State> state_;  ///< shared with the probes, which the pad may keep longer
};
