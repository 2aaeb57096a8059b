// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <gst/gst.h>

#include <string>

/// `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(const std::string& text);

/// The shortest decimal number that reads back as `value`, whatever the locale; null where it is not finite.
std::string json_number(double value);

/// A message of cudadiff as one line of JSON, newline included:
///   {"input": …, "event": …, "time": seconds or null, "changed_ratio": …, "mean_difference": …,
///    "regions": [{"x": …, "y": …, "width": …, "height": …, "area": cells, "score": …}, …]}
/// and, where the message has these fields of type string, "at" (when it was seen) and "snapshot" (a file).
std::string json_line(const std::string& input, const GstStructure* message);

/// The stream time of a message of cudadiff, else its running time, in ns; GST_CLOCK_TIME_NONE where it has neither.
GstClockTime event_time(const GstStructure* message);
