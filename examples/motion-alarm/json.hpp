// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

#include <string>

/// Converts `text` to a JSON string with quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(const std::string& text);

/// The shortest decimal number that reads back as `value`, in any locale. `null` if `value` is not finite.
std::string json_number(double value);

/// Converts a message of cudadiff to one line of JSON, including the newline:
///   {"input": …, "event": …, "time": seconds or null, "changed_ratio": …, "mean_difference": …,
///    "regions": [{"x": …, "y": …, "width": …, "height": …, "area": cells, "score": …}, …]}
/// or, if it is about an object,
///   {"input": …, "event": …, "time": …, "id": …, "x": …, "y": …, "width": …, "height": …}
/// with "zone", "line", "direction", "seconds", "path_length", "crossed_left", "crossed_right", "best_x" …
/// "best_height", the times "entered", "left", "since", "best_time" in seconds, and "zones" (a list), if the message
/// has them. The end of motion also has "began" and "last_motion" in seconds. If the message has them as strings, there
/// are also "at" (the time of the event) and "snapshot" (a file).
std::string json_line(const std::string& input, const GstStructure* message);

/// The stream time of a message of cudadiff in ns. Without one, its running time, or GST_CLOCK_TIME_NONE.
GstClockTime event_time(const GstStructure* message);
