// SPDX-License-Identifier: LGPL-2.1-or-later
// The mixture of Gaussians on the device, for the plan in cuda.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/core/status.hpp"
#include "kernels/diff/cuda_params.cuh"
#include "kernels/diff/mog2.hpp"

namespace cudavision::diff {

/// Loads the kernel. Errors: resource.
Status load_mog2(int sample_bytes, int channels);
/// Updates the mixtures of a frame. Bit x of a row of `foreground` becomes 1 if the pixel is foreground. Rows are
/// `pitch` bytes apart (whole blocks of 512 pixels). Errors: resource.
/// `anew`: restarts the mixtures with the frame if light was switched.
Status launch_mog2(const mog2::Job& job, int sample_bytes, int channels, unsigned char* foreground, int pitch,
                   const State* state, bool anew, cudaStream_t stream);

}  // namespace cudavision::diff
