// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernels of cuda_lines_kernel.cuh that are compiled for the box mean.
#include "kernels/local/cuda_lines_kernel.cuh"

namespace cudavision::local {

static constexpr Operation operation = Operation::box_mean;

LineKernels mean_line_kernels(const LineShape& shape) {
  if (shape.sample_bytes == 2) {
    if (shape.channels == 4)
      return shape.filtered == 7 ? kernels_for<operation, u16, 4, 7, u64>() : kernels_for<operation, u16, 4, 14, u64>();
    if (shape.channels == 2)
      return shape.wide ? kernels_for<operation, u16, 2, 3, u64>() : kernels_for<operation, u16, 2, 3, u32>();
    return shape.wide ? kernels_for<operation, u16, 1, 1, u64>() : kernels_for<operation, u16, 1, 1, u32>();
  }
  if (shape.channels == 1)
    return shape.wide ? kernels_for<operation, u8, 1, 1, u64>() : kernels_for<operation, u8, 1, 1, u32>();
  if (shape.wide) return {};
  switch (shape.channels * 16 + shape.filtered) {
    case 0x23:
      return kernels_for<operation, u8, 2, 3, u32>();
    case 0x45:
      return kernels_for<operation, u8, 4, 5, u32>();
    case 0x4a:
      return kernels_for<operation, u8, 4, 10, u32>();
    default:
      return kernels_for_bytes<operation>(shape);
  }
}

}  // namespace cudavision::local
