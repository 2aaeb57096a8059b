// SPDX-License-Identifier: LGPL-2.1-or-later
// Queries the current device and loads kernels. All functions need a current CUDA context.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/core/status.hpp"

namespace cudavision::cuda {

/// Returns ok for cudaSuccess, otherwise a resource error "<what>: <CUDA's own text>".
Status check(cudaError_t error, const char* what);

/// The device properties that schedules depend on.
struct Device {
  int multiprocessors = 1;
  int shared_limit = 0;  ///< largest shared memory of a block, in bytes
  int major = 0;         ///< major version of the compute capability
};
Result<Device> current_device();

/// Loads a kernel's code when a plan is made. Otherwise the first launch would load the code and wait for the device.
/// `shared_bytes`: the largest dynamic shared memory that a launch uses. All plans of a context share this setting, so
/// pass the device's limit if plans differ. `what` is the start of the error message, for example "cannot load the
/// Gaussian kernel". Errors: resource.
Status load_kernel(const void* kernel, const char* what, int shared_bytes = 0);
template <typename... Arguments>
Status load_kernel(void (*kernel)(Arguments...), const char* what, int shared_bytes = 0) {
  return load_kernel(reinterpret_cast<const void*>(kernel), what, shared_bytes);
}

/// The number of blocks of a kernel that fit on a multiprocessor; 0: none fits. Errors: resource.
Result<int> resident_blocks(const void* kernel, int threads, int shared_bytes);
template <typename... Arguments>
Result<int> resident_blocks(void (*kernel)(Arguments...), int threads, int shared_bytes) {
  return resident_blocks(reinterpret_cast<const void*>(kernel), threads, shared_bytes);
}

}  // namespace cudavision::cuda
