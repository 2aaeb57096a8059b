// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernels that cuda.cu launches.
#pragma once

#include "kernels/integral/cuda_params.hpp"

namespace cudavision::integral {

/// The kernel for these samples and sums, launched with `threads` threads and KernelParams. `rows`: of a warp, as make_schedule() chose them.
const void* tables_kernel(int sample_bytes, bool squared, SumType type, int rows);

}  // namespace cudavision::integral
