// SPDX-License-Identifier: LGPL-2.1-or-later
// A case is one element, one or several streams into it, and what other threads do meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/stream.hpp"

namespace cudavision::fuzz {

struct Case {
  streams::Random random;  ///< draws everything that the other fields do not hold
  std::string element{}, backend{};
  enum class Kind {
    stream,   ///< random streams, valid or not: the element must survive them
    layouts,  ///< the same frames in two layouts: both outputs must be identical, bit for bit
  } kind = Kind::stream;
  StreamPlan plan{};
  bool changed_meanwhile = false;  ///< another thread sets properties while frames flow
  bool pads_come_and_go = false;   ///< another thread requests and releases pads of the mixer
};

/// Draws a case for one of the elements. Whatever reads its numbers from bytes repeats exactly: then no other threads
/// act by chance.
Case draw_case(streams::Random random, const std::vector<std::string>& elements, const std::string& backend);
/// Returns a description of the case in one line.
std::string describe(const Case& c);
/// Runs a case. take_complaints() returns what went wrong.
void run_case(const Case& c);

}  // namespace cudavision::fuzz
