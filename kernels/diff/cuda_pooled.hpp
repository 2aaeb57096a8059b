// SPDX-License-Identifier: LGPL-2.1-or-later
// The background of Reference::pooled on the device, for the plan in cuda.cu.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/core/status.hpp"
#include "kernels/diff/cuda_params.cuh"
#include "kernels/diff/pooled.hpp"

namespace cudavision::diff {

/// Takes pooled::Job and State*: prepares the frame, measures the light. Grid: the cells;
/// a lane for each pixel of a cell.
const void* pooled_light_kernel(int sample_bytes, int channels, int log2_scale);
inline constexpr int pooled_light_threads = pooled::cell * pooled::cell;

/// What the second kernel takes.
struct PooledChange {
  pooled::Job job;
  State* state;
  Verdict* verdict;
  const unsigned char* counted;  ///< bits; null: all pixels are counted
  unsigned char* changed;        ///< bits
  std::ptrdiff_t bits_pitch;
  camera::Rule rule;  ///< decides why many pixels changed
};
/// Takes PooledChange: finds the changed pixels, decides why they are so many (camera.hpp), learns. Grid:
/// pooled_tiles().
const void* pooled_change_kernel(int channels);
dim3 pooled_tiles(const pooled::Job& job);

}  // namespace cudavision::diff
