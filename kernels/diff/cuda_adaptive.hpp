// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::adaptive on the device, for the plan in cuda.cpp.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/core/status.hpp"
#include "kernels/diff/adaptive.hpp"
#include "kernels/diff/cuda_params.cuh"

namespace cudavision::diff {

/// The arrays of the channels of a Job, with a pointer for each channel: a lane then computes an address with one
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
/// The parameters of both kernels. The first kernel uses only the job and the state.
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
/// A kernel, and its launch configuration for an AdaptiveChange.
struct AdaptiveKernel {
  const void* function = nullptr;
  dim3 grid;
  int threads = 0;
};
/// The kernel that prepares the frame and measures the light. Width and height: of the analysis.
AdaptiveKernel adaptive_light_kernel(int sample_bytes, int channels, int log2_scale, int width, int height);
/// The kernel that finds the changed pixels, decides why many of them changed (camera.hpp), and learns. The blocks are
/// smaller if the frame has more blocks than can run at once.
AdaptiveKernel adaptive_change_kernel(int channels, int width, int height, int multiprocessors);

}  // namespace cudavision::diff
