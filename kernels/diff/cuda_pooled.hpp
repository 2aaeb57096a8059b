// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::pooled on the device, for the plan in cuda.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/core/status.hpp"
#include "kernels/diff/cuda_params.cuh"
#include "kernels/diff/pooled.hpp"

namespace cudavision::diff {

/// Loads the kernels. Errors: resource.
Status load_pooled(int sample_bytes);
/// Updates the background of a frame. Bit x of a row of `foreground` becomes 1 if the pixel changed; rows are `pitch` bytes apart
/// (whole blocks of 512 pixels). Errors: resource.
Status launch_pooled(const pooled::Job& job, int sample_bytes, unsigned char* foreground, int pitch, const State* state,
                     cudaStream_t stream);
/// Lets the means begin with the frame of the last update, if light was switched. Errors: resource.
Status launch_pooled_anew(const pooled::Job& job, int sample_bytes, const State* state, cudaStream_t stream);

}  // namespace cudavision::diff
