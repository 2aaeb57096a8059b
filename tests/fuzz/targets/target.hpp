// SPDX-License-Identifier: LGPL-2.1-or-later
// What all targets share. A target is one function that takes any bytes. libFuzzer calls it in a build with
// -Dfuzzers=enabled, replay.cpp in every other build.
#pragma once

#include "tests/streams/random.hpp"

namespace cudavision::fuzz {

/// Runs one case. Complains (complaints.hpp) or crashes if something is wrong.
void run_target(streams::Random random);

}  // namespace cudavision::fuzz
