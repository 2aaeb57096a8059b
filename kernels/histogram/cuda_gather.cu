// SPDX-License-Identifier: LGPL-2.1-or-later
// The kernel that gathers many entries: a grid of threads, one bin each (see cuda_gather.cuh). If there are few
// entries, the last block of the counting launch gathers them instead.
#include "kernels/cuda/overlap.hpp"
#include "kernels/histogram/cuda_gather.cuh"

namespace cudavision::histogram {
namespace {

__global__ void __launch_bounds__(tuning.gather_threads) gather_all(const __grid_constant__ Gather gather) {
  cuda::wait_for_previous();
  gather_entries_of(gather, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}

}  // namespace

const void* gather_kernel() { return reinterpret_cast<const void*>(&gather_all); }

}  // namespace cudavision::histogram
