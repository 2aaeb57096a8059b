// SPDX-License-Identifier: LGPL-2.1-or-later
// The light of Reference::adaptive on the CPU backend.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/diff/adaptive_light.hpp"

namespace cudavision::diff::adaptive {

inline constexpr int unused = 16;  ///< padding after arrays of cells, which is read and written with the last cells

/// The memory of one thread for a row of cells, kept between frames.
struct LightRow {
  std::vector<std::int16_t> gains, offsets;  ///< bins of the pixels, row by row
  std::vector<unsigned> totals;              ///< for each cell: number of pixels that count
};

/// Measures the light in the cells of row `cell_y` (Job::light).
void measure_cells(const Job& job, int cell_y, LightRow& memory);
/// Fills empty cells. Sets `light` to the light of the cells, row by row, for each channel of the background.
void settle_light(const Job& job, std::vector<float> (&light)[3]);

}  // namespace cudavision::diff::adaptive
