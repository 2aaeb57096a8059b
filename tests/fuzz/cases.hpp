// SPDX-License-Identifier: LGPL-2.1-or-later
// A case consists of one element, one or several input streams, and the actions of other threads.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/stream.hpp"

namespace cudavision::fuzz {

struct Case {
  streams::Random random;  ///< draws everything that the other fields do not contain
  std::string element{}, backend{};
  enum class Kind {
    stream,   ///< random streams, valid or not: the element must survive them
    layouts,  ///< the same frames in two layouts: both outputs must be identical, bit for bit
  } kind = Kind::stream;
  StreamPlan plan{};
  bool changed_meanwhile = false;  ///< another thread sets properties while frames flow
  bool pads_come_and_go = false;   ///< another thread requests and releases pads of the mixer
};

/// Draws a case for one of the elements. A case with numbers from bytes must repeat exactly, so no other threads act at
/// random.
Case draw_case(streams::Random random, const std::vector<std::string>& elements, const std::string& backend);
std::string describe(const Case& c);
/// Runs a case. take_complaints() then returns the failures.
void run_case(const Case& c);

}  // namespace cudavision::fuzz
