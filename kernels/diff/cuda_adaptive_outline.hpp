// SPDX-License-Identifier: LGPL-2.1-or-later
// The outline of the mask (adaptive_outline.hpp) on the device, for the plan in cuda.cpp.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/core/status.hpp"
#include "kernels/diff/adaptive.hpp"

namespace cudavision::diff {

/// Masks are bits, the leftmost pixel lowest; the size of a row is a multiple of 4 bytes.
struct Outlining {
  adaptive::Job job;
  const unsigned char* mask;      ///< mask of the analysis
  const unsigned char* unmasked;  ///< counted blocks of the analysis; null: all blocks are counted
  std::ptrdiff_t pitch;           ///< pitch of mask and unmasked
  unsigned char* refined;         ///< refined mask of the frame
  std::ptrdiff_t refined_pitch;
};

/// Loads the kernel. Errors: resource.
Status load_outlining(bool bytes);
/// Launches the kernel. `bytes`: whether samples have 8 bits. Errors: resource.
Status launch_outlining(const Outlining& outlining, bool bytes, cudaStream_t stream);

}  // namespace cudavision::diff
