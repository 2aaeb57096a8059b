// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::adaptive on the device, for the plan in cuda.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/core/status.hpp"
#include "kernels/diff/adaptive.hpp"
#include "kernels/diff/cuda_params.cuh"

namespace cudavision::diff {

/// The parameters of both kernels. The first uses the job and the state.
struct AdaptiveChange {
  adaptive::Job job;
  State* state;
  Verdict* verdict;
  const unsigned char* unmasked;  ///< bits; null: all pixels are counted
  unsigned char* changed;         ///< bits
  std::ptrdiff_t bits_pitch;
  camera::Rule rule;  ///< decides why many pixels changed
};
/// A kernel, and how it is launched with an AdaptiveChange.
struct AdaptiveKernel {
  const void* function = nullptr;
  dim3 grid;
  int threads = 0;
};
/// Prepares the frame, measures the light. Width and height: of the analysis.
AdaptiveKernel adaptive_light_kernel(int sample_bytes, int channels, int log2_scale, int width, int height);
/// Finds the changed pixels, decides why many of them changed (camera.hpp), and learns. The blocks are smaller if the
/// frame has more of them than run at once.
AdaptiveKernel adaptive_change_kernel(int channels, int width, int height, int multiprocessors);

}  // namespace cudavision::diff
