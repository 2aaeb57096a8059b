// SPDX-License-Identifier: LGPL-2.1-or-later
// What the host passes to the Gaussian kernels, by value. The order of the fields is part of the kernels' machine code.
#pragma once

#include <cstdint>

#include "kernels/cuda/rows.cuh"
#include "kernels/gaussian/cuda_schedule.hpp"
#include "kernels/gaussian/gaussian.hpp"

namespace cudavision::gaussian {

using cuda::SetView;
using std::uint16_t;
using std::uint32_t;
using std::uint8_t;

/// The weights of one axis by their distance from the middle. The identity's weight has too many bits; see SampleRules.
struct AxisWeights {
  int radius;
  uint16_t weights[max_taps / 2 + 1];
};

/// Finds the row that stands for row r: for r < 0 row `above` + sign · r, for r > last row `below` + sign · r, clamped to the frame.
///   border       above   below   sign
///   replicate     0       0        1
///   reflect      −1       2n − 1  −1
///   reflect_101   0       2n − 2  −1     n: rows of the frame
///   wrap          n      −n        1
struct RowMap {
  int above, below, sign;
  int last;   ///< the last row of the frame
  int pitch;  ///< bytes

  /// Byte offset of row `row`.
  __device__ std::int64_t operator()(int row) const {
    int mapped = row < 0 ? above + sign * row : row;
    mapped = row > last ? below + sign * row : mapped;
    return std::int64_t(min(max(mapped, 0), last)) * pitch;
  }
};

/// Numbers for the arithmetic of a sample type; see cuda_arithmetic.cuh.
/// An identity axis has the weight 1 (down, 16 bit: 2¹⁵), and the selectors, scales and shifts below make up for it.
struct SampleRules {
  uint32_t mask;            ///< 16 bit: significant bits of a source word (two samples)
  uint32_t most;            ///< 16 bit: the greatest samples of a source word, as stored; ~0: no stored word exceeds them
  uint32_t pack, out;       ///< 8 bit: __byte_perm selectors for row sums and for results
  uint32_t scale0, scale1;  ///< 16 bit: factors of the partial row sums
  /// 16 bit: half a unit of the result, added to each row sum (the weights down sum to one). 8 bit: not used: split() adds 128.
  uint32_t rounding;
  int final_shift;  ///< 16 bit: from the sum to the result
};

/// One channel set. Horizontal positions are bytes of a row.
struct SetJob {
  RowMap rows;
  SetView view;
  int row_bytes;              ///< of the whole plane
  int x0, x1;                 ///< to write: [x0, x1)
  int origin;                 ///< where the first strip begins, a multiple of 32
  int stride;                 ///< from a sample to the next one of its channel
  int reach;                  ///< the radius
  int lead;                   ///< by which a strip's window begins before the strip: a multiple of 8, at least `reach`
  SetSchedule schedule;       ///< its blocks
  bool aligned_4, aligned_8;  ///< source rows are aligned to 4 bytes; to 8 bytes
  bool stores_8;              ///< destination rows are aligned to 8 bytes, and source rows too where samples are copied from them
  bool one_fold;              ///< `rows` finds all rows that a window needs
  uint32_t copied_bits[2];    ///< bits of 8 bytes that are copied from the source
  uint32_t owned_bytes;       ///< 8 bit: bit k: byte k of 8 bytes is written
  SampleRules rules;
};

struct KernelParams {
  SetJob jobs[3];
  AxisWeights axes[3][2];  ///< x, y
  int sets;
  int gx, gy;  ///< groups of a window, for the kernel where they are not fixed at compile time
};

using Kernel = void (*)(KernelParams);

/// The kernel for windows of up to byte_shapes[shape] or word_shapes[shape], which are kept in registers (cuda_strip.cu).
Kernel strip_kernel(int sample_bytes, int shape);
/// The kernel for any window, which is kept in shared memory (cuda_large.cu).
Kernel large_kernel(int sample_bytes);

/// The channel set that the thread's block works on.
__device__ __forceinline__ int find_set(const KernelParams& params) {
  int set = 0;
  while (set + 1 < params.sets && int(blockIdx.x) >= params.jobs[set + 1].schedule.first_block) ++set;
  return set;
}

/// The segment that the thread's warp computes.
__device__ __forceinline__ Segment find_segment(const SetJob& job) {
  const int warps = blockDim.x / 32, warp = threadIdx.x / 32;
  Segment segment(job.schedule, blockIdx.x, warp, warps);
  segment.place(job.origin, job.view.y0, job.view.y1);
  return segment;
}

}  // namespace cudavision::gaussian
