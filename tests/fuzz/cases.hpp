// SPDX-License-Identifier: LGPL-2.1-or-later
// A case: one element, one or several streams into it, and what else happens meanwhile. All of it follows from a seed and a number.
#pragma once

#include <cstdint>
#include <string>

#include "stream.hpp"

namespace cudavision::fuzz {

inline constexpr const char* element_names[] = {"cudaintegral", "cudahistogram", "cudagaussian",
                                                "cudaconvolve", "cudablend",     "cudadiff"};

struct Case {
  std::uint64_t number;
  std::string element, backend;
  enum class Kind {
    stream,   ///< anything may come: nothing may break
    layouts,  ///< the same frames in two layouts: the output must be the same, bit for bit
  } kind;
  StreamPlan plan;
  bool changed_meanwhile;  ///< another thread sets properties while frames flow
  bool pads_come_and_go;   ///< another thread requests and releases pads of cudablend
  Random random;           ///< for the rest
};

Case draw_case(std::uint64_t seed, std::uint64_t number, const std::string& backend);
/// One line.
std::string describe(const Case& c);
/// Runs it; what goes wrong is in take_complaints().
void run_case(const Case& c);

}  // namespace cudavision::fuzz
