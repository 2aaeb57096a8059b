// SPDX-License-Identifier: LGPL-2.1-or-later
// The command line of the soak.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "tests/soak/lane.hpp"

namespace cudavision::soak {

struct Arguments {
  Options options;
  Run run;
  Recorded recorded;  ///< what to repeat
  bool replays = false;
  double seconds = 600;
  long actions = std::numeric_limits<long>::max();  ///< of each pipeline
  std::vector<int> only;                            ///< numbers of the pipelines to run; empty: all
  std::string journal;                              ///< its file

  bool runs(int pipeline) const;
};

/// Throws std::runtime_error that says what is wrong.
Arguments parse_arguments(int argc, char** argv);

}  // namespace cudavision::soak
