// SPDX-License-Identifier: LGPL-2.1-or-later
// Filling rectangles with the colour of boxes on the device, for the plan in cuda.cu.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "kernels/core/status.hpp"
#include "kernels/diff/plan.hpp"

namespace cudavision::diff {

/// Loads the kernel. Errors: resource.
Status load_boxes(int sample_bytes);
/// Errors: resource.
Status launch_boxes(const Image& dst, const std::vector<Fill>& fills, cudaStream_t stream);

}  // namespace cudavision::diff
