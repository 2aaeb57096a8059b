// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::adaptive on the device, for the plan in cuda.cpp.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/core/status.hpp"
#include "kernels/diff/adaptive.hpp"
#include "kernels/diff/cuda_params.cuh"

namespace cudavision::diff {

/// The arrays of the channels of a Job, each by its own pointer: a lane then finds the address of a number with one
/// multiplication.
struct AdaptiveArrays {
  const std::int16_t* frame[3];
  const float *mean[3], *variance[3];
  float *next_mean[3], *next_variance[3];

  explicit AdaptiveArrays(const adaptive::Job& job) {
    for (int c = 0; c < 3; ++c) {
      const std::size_t first = std::size_t(c) * job.pixels();
      frame[c] = job.frame + first, mean[c] = job.mean + first, variance[c] = job.variance + first;
      next_mean[c] = job.next_mean + first, next_variance[c] = job.next_variance + first;
    }
  }
};
/// The parameters of both kernels. The first uses the job and the state.
struct AdaptiveChange {
  adaptive::Job job;
  AdaptiveArrays arrays;
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
