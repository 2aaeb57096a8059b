// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernels of cuda_lines_kernel.cuh that are compiled for the deviation.
#include "kernels/local/cuda_lines_kernel.cuh"

namespace cudavision::local {

static constexpr Operation operation = Operation::deviation;

LineKernels deviation_line_kernels(const LineShape& shape) {
  if (shape.sample_bytes == 2) return {};  // tables are faster
  if (shape.channels == 1) return kernels_for<operation, u8, 1, 1, u64>();
  return shape.wide ? LineKernels{} : kernels_for_bytes<operation>(shape);
}

}  // namespace cudavision::local
