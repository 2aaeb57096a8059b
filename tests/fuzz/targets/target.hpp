// SPDX-License-Identifier: LGPL-2.1-or-later
// The interface of all targets. A target is one function that accepts any bytes. libFuzzer calls it in a build with
// -Dfuzzers=enabled, and replay.cpp in every other build.
#pragma once

#include "tests/streams/random.hpp"

namespace cudavision::fuzz {

/// Runs one case. Complains (complaints.hpp) or crashes if something is wrong.
void run_target(streams::Random random);

}  // namespace cudavision::fuzz
