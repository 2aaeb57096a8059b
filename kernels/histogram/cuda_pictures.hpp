// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>

#include "kernels/histogram/cuda_tuning.hpp"

namespace cudavision::histogram {

/// The threads of a block that alone makes a table or the heights of a channel's bars: 32 warps, so that one warp can
/// scan the sums of all warps.
inline constexpr int table_threads = 1024;

/// The blocks of the kernels that change pictures.
inline dim3 picture_block() { return dim3(64, tuning.picture_threads / 64); }
/// A grid of blocks with one thread for each of width × height positions, for each set. Threads continue further down
/// if the grid has too few rows.
inline dim3 picture_grid(int width, int height, int sets) {
  const dim3 block = picture_block();
  return {(width + block.x - 1) / block.x, std::min((height + block.y - 1) / block.y, 32768u), unsigned(sets)};
}

}  // namespace cudavision::histogram
