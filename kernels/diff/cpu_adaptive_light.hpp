// SPDX-License-Identifier: LGPL-2.1-or-later
// The light of Reference::adaptive on the CPU backend.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/diff/adaptive_light.hpp"

namespace cudavision::diff::adaptive {

inline constexpr int unused = 8;  ///< numbers behind arrays of cells, which are read and written with the last ones

/// Measures the light in the cells of row `cell_y` (Job::light). `memory`: of one thread, kept between frames.
void measure_cells(const Job& job, int cell_y, std::vector<std::int16_t>& memory);
/// Fills cells that are empty. Sets `light` to the light of the cells, row by row, for each channel of the background.
void settle_light(const Job& job, std::vector<float> (&light)[3]);

}  // namespace cudavision::diff::adaptive
