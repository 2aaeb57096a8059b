// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::adaptive on the device, for the plan in cuda.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/core/status.hpp"
#include "kernels/diff/adaptive.hpp"
#include "kernels/diff/cuda_params.cuh"

namespace cudavision::diff {

/// Takes adaptive::Job and State*: prepares the frame, measures the light. Grid: the cells;
/// a lane for each pixel of a cell.
const void* adaptive_light_kernel(int sample_bytes, int channels, int log2_scale);
inline constexpr int adaptive_light_threads = adaptive::cell * adaptive::cell;

/// The parameters of the second kernel.
struct AdaptiveChange {
  adaptive::Job job;
  State* state;
  Verdict* verdict;
  const unsigned char* unmasked;  ///< bits; null: all pixels are counted
  unsigned char* changed;         ///< bits
  std::ptrdiff_t bits_pitch;
  camera::Rule rule;  ///< decides why many pixels changed
};
/// Takes AdaptiveChange: finds the changed pixels, decides why many of them changed (camera.hpp), and learns.
const void* adaptive_change_kernel(int channels);
/// Launches this kernel, with smaller blocks if the frame has more of them than run at once.
cudaError_t launch_adaptive_change(const void* kernel, AdaptiveChange& change, int multiprocessors,
                                   cudaStream_t stream);

}  // namespace cudavision::diff
