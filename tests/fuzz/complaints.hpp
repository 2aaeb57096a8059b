// SPDX-License-Identifier: LGPL-2.1-or-later
// What went wrong in the case that runs.
#pragma once

#include <string>
#include <vector>

namespace cudavision::fuzz {

/// Adds a sentence to the failures of the case. Any thread may call it.
void complain(const std::string& what);
/// Returns the failures since the last call.
std::vector<std::string> take_complaints();

/// From here on every warning and critical of GLib is a failure.
void watch_log();

}  // namespace cudavision::fuzz
