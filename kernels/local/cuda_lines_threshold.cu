// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernels of cuda_lines_kernel.cuh that are compiled for the threshold.
#include "kernels/local/cuda_lines_kernel.cuh"

namespace cudavision::local {

static constexpr Operation operation = Operation::threshold;

LineKernels threshold_line_kernels(const LineShape& shape) {
  if (shape.sample_bytes == 2) {
    if (shape.planes) return {};  // uses tables
    if (shape.channels == 4)
      return shape.filtered == 7 ? kernels_for<operation, u16, 4, 7, u64>() : kernels_for<operation, u16, 4, 14, u64>();
    return kernels_for<operation, u16, 1, 1, u64>();
  }
  if (shape.wide) return {};
  if (shape.planes) return kernels_for<operation, u8, 1, 1, u32, true>();
  return shape.channels == 1 ? kernels_for<operation, u8, 1, 1, u32>() : kernels_for_bytes<operation>(shape);
}

}  // namespace cudavision::local
