// SPDX-License-Identifier: LGPL-2.1-or-later
// The looks of cells on the CPU backend.
#pragma once

#include <cstdint>
#include <opencv2/core.hpp>
#include <vector>

#include "kernels/diff/looks.hpp"
#include "kernels/diff/motion.hpp"

namespace cudavision::diff {

/// Sets the looks of the cells that have changed pixels, as far as LooksJob asks for them; other looks stay unchanged.
/// `bytes`: stored words are bytes. `mask`: at the size of the analysis, not 0 where a pixel changed. `changed`: for
/// each cell, 0 if it has no changed pixels.
void measure_looks(const LooksJob& job, bool bytes, const cv::Mat& mask, const Cells& cells,
                   const std::vector<std::uint32_t>& changed, std::vector<CellLooks>& looks);

}  // namespace cudavision::diff
