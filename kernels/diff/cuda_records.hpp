// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads the results of the kernels for a frame, see Schedule::verdict_offset().
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/diff/cuda_schedule.hpp"

namespace cudavision::diff {

/// Adds the changed pixels of each cell to `changed`. record: record of the frame; stamp: its KernelParams::stamp.
FrameCounts collect_records(const Plan& plan, const Schedule& schedule, const unsigned char* record,
                            std::uint32_t stamp, std::vector<std::uint32_t>& changed);

}  // namespace cudavision::diff
