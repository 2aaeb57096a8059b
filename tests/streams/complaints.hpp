// SPDX-License-Identifier: LGPL-2.1-or-later
// The failures of the case that is running.
#pragma once

#include <string>
#include <vector>

namespace cudavision::streams {

/// Adds a sentence to the failures of the case. Any thread may call it.
void complain(const std::string& what);
/// Returns the failures since the last call.
std::vector<std::string> take_complaints();

/// From this call on, every warning or critical message of GLib is a failure.
void watch_log();

}  // namespace cudavision::streams
