// SPDX-License-Identifier: LGPL-2.1-or-later
// Target: streams through elements. The bytes decide every part of a case: the element, its properties, the peers
// around it, caps, frames and events. FUZZ_MIXERS=1 tests the elements with several inputs, each fed by its own thread;
// FUZZ_MIXERS=0 tests the others.
#include "tests/fuzz/cases.hpp"
#include "tests/fuzz/targets/target.hpp"
#include "tests/streams/complaints.hpp"
#include "tests/streams/plugin.hpp"

namespace cudavision::fuzz {

void run_target(streams::Random random) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> chosen;
    for (const std::string& name : streams::element_names())
      if (streams::is_mixer(name) == bool(FUZZ_MIXERS)) chosen.push_back(name);
    return chosen;
  }();
  if (names.empty()) return streams::complain("the plugin was not found");
  run_case(draw_case(random, names, "cpu"));
}

}  // namespace cudavision::fuzz
