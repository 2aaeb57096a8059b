// SPDX-License-Identifier: LGPL-2.1-or-later
// Filling on the device (enclosed.hpp), for the plan in cuda.cu.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/core/status.hpp"

namespace cudavision::diff {

/// Masks are bits, rows of words of 4 bytes. Bits beyond the width are 0.
struct Enclosing {
  const unsigned char* mask;  ///< of the frame: a square of 2^log2_scale bits a side for each pixel of the analysis
  std::ptrdiff_t mask_pitch;
  unsigned char* filled;                 ///< the result, of the analysis; another place
  const unsigned char* unmasked;         ///< of the analysis: where pixels may be added; null: everywhere
  std::ptrdiff_t pitch;                  ///< of filled and counted
  int width, height, log2_scale, reach;  ///< of the analysis
};

/// Errors: resource.
Status load_enclosing();
Status launch_enclosing(const Enclosing& job, cudaStream_t stream);

}  // namespace cudavision::diff
