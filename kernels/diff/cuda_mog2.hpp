// SPDX-License-Identifier: LGPL-2.1-or-later
// The mixture of Gaussians on the device, for the plan in diff.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/core/status.hpp"
#include "kernels/diff/mog2.hpp"

namespace cudavision::cuda::diff {

/// Loads the kernel's code.
Status load_mog2(int sample_bytes, int channels);
/// Updates the mixtures of a frame; bit x of a row of `foreground` (rows `pitch` bytes apart, a multiple of 64 pixels) becomes 1
/// where the pixel is foreground.
Status launch_mog2(const cudavision::detail::mog2::Job& job, int sample_bytes, int channels, unsigned char* foreground, int pitch,
                   cudaStream_t stream);

}  // namespace cudavision::cuda::diff
