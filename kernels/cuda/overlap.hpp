// SPDX-License-Identifier: LGPL-2.1-or-later
// Overlapping launches: a kernel may start while the previous kernel ends, and load data that no launch writes (CUDA:
// programmatic dependent launch). Needs compute capability 9.0.
//
//   launch n          ▒▒▒ let_next_start() ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
//   launch n + 1                            ▒▒▒ wait_for_previous() ┄┄┄ ▒▒▒▒▒▒▒▒▒
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace cudavision::cuda {

/// Launches a kernel with one parameter in a row of blocks. `overlaps`: the kernel may start when all blocks of the
/// previous launch have called let_next_start() or have ended. Such a kernel calls wait_for_previous().
inline cudaError_t launch_overlapping(const void* kernel, int blocks, int threads, std::size_t shared_bytes,
                                      bool overlaps, void* params, cudaStream_t stream) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(unsigned(blocks));
  config.blockDim = dim3(unsigned(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = overlaps;
  void* arguments[] = {params};
  return cudaLaunchKernelExC(&config, kernel, arguments);
}

#ifdef __CUDACC__

/// Lets the next launch in the stream start while this one ends, if the next one was launched with `overlaps`. Its
/// blocks start as blocks of this launch end.
__device__ __forceinline__ void let_next_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// Waits until all earlier launches in the stream have ended and their results are visible.
__device__ __forceinline__ void wait_for_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif  // __CUDACC__

}  // namespace cudavision::cuda
