// SPDX-License-Identifier: LGPL-2.1-or-later
// The failures of the current case.
#pragma once

#include <string>
#include <vector>

namespace cudavision::streams {

/// Adds a sentence to the failures of the case. May be called in any thread.
void complain(const std::string& what);
/// Returns the failures since the last call.
std::vector<std::string> take_complaints();

/// From this call on, every warning or critical message of GLib is a failure.
void watch_log();

}  // namespace cudavision::streams
