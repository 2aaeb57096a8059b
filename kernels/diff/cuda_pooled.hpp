// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::pooled on the device, for the plan in cuda.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/core/status.hpp"
#include "kernels/diff/cuda_params.cuh"
#include "kernels/diff/pooled.hpp"

namespace cudavision::diff {

/// Takes pooled::Job and State*: prepares the frame, measures the light. Grid: the cells; a lane for each pixel of a cell.
const void* pooled_light_kernel(int sample_bytes);
/// Takes pooled::Job, const State*, the foreground and its pitch: finds the changes, and learns. Grid: pooled_tiles().
const void* pooled_change_kernel();
dim3 pooled_tiles(const pooled::Job& job);

inline constexpr int pooled_threads = pooled::cell * pooled::cell;  ///< of a block of both

}  // namespace cudavision::diff
