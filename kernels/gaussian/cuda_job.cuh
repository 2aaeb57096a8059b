// SPDX-License-Identifier: LGPL-2.1-or-later
// The parameters that the host passes to the Gaussian kernels, by value.
#pragma once

#include "kernels/cuda/rows.cuh"
#include "kernels/gaussian/cuda_arithmetic.cuh"
#include "kernels/gaussian/cuda_schedule.hpp"

namespace cudavision::gaussian {

using cuda::SetView;

/// The samples of a row that have even numbers, or odd numbers. The two kinds differ only in packed 4:2:2, where one is
/// luma and the other is chroma.
struct SampleParity {
  int set;        ///< the channel set whose weights across apply to these samples
  int stride;     ///< bytes from a sample to the next sample of its channel
  int width;      ///< width of the set's grid
  int x0, x1;     ///< bytes of a row that are written: [x0, x1)
  uint32_t pack;  ///< see pack_rule()
};

/// One channel set, or the two channel sets that share the plane of packed 4:2:2. Horizontal positions are bytes of a
/// row.
struct SetJob {
  SetView view;
  SampleParity kinds[2];  ///< the samples with even numbers, the samples with odd numbers
  /// For the whole plane. In packed 4:2:2 of odd width, the kinds end at different bytes: the first and the last one.
  int row_bytes, row_end;
  int x0, x1;            ///< bytes of a row that are written: [x0, x1)
  int origin;            ///< the byte where the first strip begins, a multiple of 32
  int reach;             ///< the radius in bytes
  int lead;              ///< bytes by which a strip's window begins before the strip: a multiple of 8, at least `reach`
  SetSchedule schedule;  ///< the blocks of the set
  int unit;              ///< alignment of source rows in bytes: 16, 8 or 4; 0: less than 4
  bool stores_8, stores_16;  ///< whether destination rows are aligned to 8 bytes; to 16 bytes
  uint32_t copied_bits[2];   ///< bits of 8 bytes that are copied from the source
  SampleRules rules;
};

struct KernelParams {
  SetJob jobs[max_sets];
  AxisWeights axes[max_sets][2];  ///< x, y
  int sets;
  int window_groups_x,
      window_groups_y;  ///< groups of rows in a window, for the kernel for large windows
};

using Kernel = void (*)(KernelParams);

/// The kernel for windows up to shape `shape` of elements of this size, which are kept in registers (cuda_strip.cu).
/// `channels`: for pixels, the number of computed channels.
Kernel strip_kernel(int element_bytes, int channels, int shape);
/// The kernel for windows of any size, which are kept in shared memory (cuda_large.cu).
Kernel large_kernel(int sample_bytes);

#ifdef __CUDACC__

/// The byte of the row that replaces a sample, or the complement of its border value.
__device__ __forceinline__ int source_byte(const SetJob& job, int sample, int sample_bytes) {
  const SampleParity& kind = job.kinds[sample & 1];
  const int mapped = cuda::source_sample(sample, kind.stride / sample_bytes, kind.width, job.view.border);
  return mapped < 0 ? ~int(cuda::border_sample(job.view, sample)) : mapped * sample_bytes;
}

/// The channel set that the block of this thread processes.
__device__ __forceinline__ int find_set(const KernelParams& params) {
  int set = 0;
  while (set + 1 < params.sets && int(blockIdx.x) >= params.jobs[set + 1].schedule.first_block) ++set;
  return set;
}

/// The segment that the thread's warp computes.
__device__ __forceinline__ Segment find_segment(const SetJob& job) {
  const int warps = blockDim.x / 32, warp = threadIdx.x / 32;
  Segment segment(job.schedule, blockIdx.x, warp, warps);
  segment.set_position(job.origin, job.view.y0, job.view.y1, strip_bytes);
  return segment;
}

#endif

}  // namespace cudavision::gaussian
