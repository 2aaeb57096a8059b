// SPDX-License-Identifier: LGPL-2.1-or-later
// A case: one element, one or several streams into it, and what else happens meanwhile. All of it follows from a seed and a number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/stream.hpp"

namespace cudavision::fuzz {

/// The elements of the plugin, by name; none if it is not loaded.
std::vector<std::string> element_names();

struct Case {
  std::uint64_t number;
  Random random;  ///< for what is not said here
  std::string element{}, backend{};
  enum class Kind {
    stream,   ///< anything may come: nothing may break
    layouts,  ///< the same frames in two layouts: the output must be the same, bit for bit
  } kind = Kind::stream;
  StreamPlan plan{};
  bool changed_meanwhile = false;  ///< another thread sets properties while frames flow
  bool pads_come_and_go = false;   ///< another thread requests and releases pads of cudablend
};

/// `element`: what the case is about; empty: any element of the plugin.
Case draw_case(std::uint64_t seed, std::uint64_t number, const std::string& backend, const std::string& element);
/// One line.
std::string describe(const Case& c);
/// Runs it; what goes wrong is in take_complaints().
void run_case(const Case& c);

}  // namespace cudavision::fuzz
