// SPDX-License-Identifier: LGPL-2.1-or-later
// Launches that follow each other: the second may start, and load samples, while the first ends (programmatic dependent launch).
#pragma once

#include <cuda_runtime_api.h>

namespace cudavision::histogram {

/// Launches a kernel with one parameter. `early`: it may start when all blocks of the launch before it have called
/// allow_next_launch(), or have ended; it then calls wait_for_last_launch(). Needs compute capability 9.0.
inline cudaError_t launch_after(const void* kernel, int blocks, int threads, bool early, void* params, cudaStream_t stream) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(unsigned(blocks));
  config.blockDim = dim3(unsigned(threads));
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = early;
  void* arguments[] = {params};
  return cudaLaunchKernelExC(&config, kernel, arguments);
}

#ifdef __CUDACC__

/// Called by all blocks of the first launch: the second may start.
__device__ __forceinline__ void allow_next_launch() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
/// Called by the second launch before it reads results of the first: waits for its end.
__device__ __forceinline__ void wait_for_last_launch() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif  // __CUDACC__

}  // namespace cudavision::histogram
