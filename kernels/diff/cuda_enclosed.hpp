// SPDX-License-Identifier: LGPL-2.1-or-later
// Filling on the device (enclosed.hpp), for the plan in cuda.cu.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/core/status.hpp"

namespace cudavision::diff {

/// Masks are bits, rows of words of 4 bytes. Bits beyond the width are 0.
struct Enclosing {
  const unsigned char*
      mask;  ///< mask of the frame: a square of 2^log2_scale bits a side for each pixel of the analysis
  std::ptrdiff_t mask_pitch;
  unsigned char* filled;                 ///< the resulting mask of the analysis; in other memory
  const unsigned char* unmasked;         ///< bits of the analysis where pixels may be added; null: everywhere
  std::ptrdiff_t pitch;                  ///< pitch of filled and unmasked
  int width, height, log2_scale, reach;  ///< properties of the analysis
};

/// Errors: resource.
Status load_enclosing();
Status launch_enclosing(const Enclosing& job, cudaStream_t stream);

}  // namespace cudavision::diff
