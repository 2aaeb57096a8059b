// SPDX-License-Identifier: LGPL-2.1-or-later
// The samples of a frame for Reference::adaptive on the CPU backend.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/diff/adaptive.hpp"

namespace cudavision::diff::adaptive {

/// The rows of one thread, kept between frames.
struct SampleRows {
  std::vector<std::uint32_t> sums;  ///< sums of a channel; uint16_t for bytes
  std::vector<float> values[3];     ///< means of samples, in 8-bit steps
};

/// Sets row y of Job::frame; if the means begin, also sets the means. Shows the mean if requested. `bytes`: samples
/// have 8 bits, otherwise 16.
void prepare_row(const Job& job, bool bytes, int y, SampleRows& rows);

}  // namespace cudavision::diff::adaptive
