// SPDX-License-Identifier: LGPL-2.1-or-later
// The team of camera.hpp on the device: the threads of one block.
#pragma once

#include "kernels/cuda/warp.cuh"
#include "kernels/diff/camera.hpp"

namespace cudavision::diff {

struct BlockTeam {
  __device__ bool first() const { return threadIdx.x == 0; }
  __device__ void wait() const { __syncthreads(); }
  /// Calls work(i, j) for each i below `across` and j below `down`, each in one thread.
  template <typename Work>
  __device__ void each(int across, int down, Work work) const {
    for (int at = int(threadIdx.x); at < across * down; at += int(blockDim.x)) {
      const int j = at / across;
      work(at - j * across, j);
    }
  }
  __device__ void add(std::uint32_t& to, std::uint32_t value) const { atomicAdd(&to, value); }
  /// The sums over all threads, in each of them.
  __device__ camera::Sums sum(camera::Sums own) const {
    __shared__ camera::Sums of_warps[32];
    own.both = cuda::warp_sum(own.both);
    own.frame = cuda::warp_sum(own.frame);
    own.expected = cuda::warp_sum(own.expected);
    __syncthreads();  // the previous sums have been read
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = own;
    __syncthreads();
    camera::Sums total{0, 0, 0};
    for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) {
      total.both += of_warps[warp].both;
      total.frame += of_warps[warp].frame;
      total.expected += of_warps[warp].expected;
    }
    return total;
  }
};

}  // namespace cudavision::diff
