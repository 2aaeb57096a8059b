// SPDX-License-Identifier: LGPL-2.1-or-later
// Kernels that follow each other in a stream without a gap (programmatic dependent launch, from compute capability 9.0 on).
//
//   without:  | kernel 1 | gap: blocks are launched, parameters are loaded | kernel 2 |
//   with:     | kernel 1 |kernel 2 |      the blocks of kernel 2 wait on the device
#pragma once

#include <cuda_runtime.h>

namespace cudavision::cuda {

/// Waits until the kernels before this one in the stream are done, and lets the next one get ready. A kernel that launch_following() launches
/// calls this first, in all threads, as does the kernel before it. No effect for kernels that are launched otherwise.
__device__ __forceinline__ void follow_previous() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

}  // namespace cudavision::cuda
