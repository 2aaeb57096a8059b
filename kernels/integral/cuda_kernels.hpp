// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernels that cuda.cu launches.
#pragma once

#include "kernels/integral/cuda_params.hpp"

namespace cudavision::integral {

/// A kernel, launched with `threads` threads, `shared_bytes` of dynamic shared memory, and KernelParams.
struct TablesKernel {
  const void* kernel = nullptr;
  int shared_bytes = 0;
};

/// The kernel for these samples and sums. `rows`: of a warp, as make_schedule() chose them;
/// the largest number if not `together`.
/// `together`: each block sums a tile and writes it.
TablesKernel tables_kernel(int sample_bytes, bool squared, SumType type, int rows, bool together);

}  // namespace cudavision::integral
