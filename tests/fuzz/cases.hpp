// SPDX-License-Identifier: LGPL-2.1-or-later
// A case is one element, one or several streams into it, and what other threads do meanwhile.
// A seed and a number determine all of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/stream.hpp"

namespace cudavision::fuzz {

/// The names of the plugin's elements. Empty if the plugin is not loaded.
std::vector<std::string> element_names();
/// The formats that the element's sink template lists for this memory (NULL: system memory).
std::vector<std::string> formats_of(const std::string& element, const char* feature);
/// Whether the element has request sink pads.
bool is_mixer(const std::string& element);

struct Case {
  std::uint64_t number;
  Random random;  ///< draws everything that the other fields do not hold
  std::string element{}, backend{};
  enum class Kind {
    stream,   ///< random streams, valid or not: the element must survive them
    layouts,  ///< the same frames in two layouts: both outputs must be identical, bit for bit
  } kind = Kind::stream;
  StreamPlan plan{};
  bool changed_meanwhile = false;  ///< another thread sets properties while frames flow
  bool pads_come_and_go = false;   ///< another thread requests and releases pads of the mixer
};

/// Draws a case for `element`. An empty `element` stands for any element of the plugin.
Case draw_case(std::uint64_t seed, std::uint64_t number, const std::string& backend, const std::string& element);
/// Returns a description of the case in one line.
std::string describe(const Case& c);
/// Runs a case. take_complaints() returns what went wrong.
void run_case(const Case& c);

}  // namespace cudavision::fuzz
