// SPDX-License-Identifier: LGPL-2.1-or-later
// What plans ask of the current device, and how they load kernels. The context is current in all of these.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/core/status.hpp"

namespace cudavision::cuda {

/// ok, or a resource error: "<what>: <CUDA's own text>".
Status check(cudaError_t error, const char* what);

/// The properties of a device that decide how kernels are launched.
struct Device {
  int multiprocessors = 1;
  int shared_limit = 0;  ///< bytes of shared memory that a block may ask for
  int major = 0;         ///< of the compute capability
};
Result<Device> current_device();

/// Loads a kernel's code, which a launch must not: it would wait for the device. `shared_bytes`: the most dynamic shared memory that
/// any launch asks for. All plans of a context share a kernel, so pass the device's limit where plans differ.
/// `what` begins the error, as in "cannot load the Gaussian kernel".
Status load_kernel(const void* kernel, const char* what, int shared_bytes = 0);
template <typename... Arguments>
Status load_kernel(void (*kernel)(Arguments...), const char* what, int shared_bytes = 0) {
  return load_kernel(reinterpret_cast<const void*>(kernel), what, shared_bytes);
}

/// How many blocks of a kernel share a multiprocessor; 0: a block does not fit.
Result<int> resident_blocks(const void* kernel, int threads, int shared_bytes);
template <typename... Arguments>
Result<int> resident_blocks(void (*kernel)(Arguments...), int threads, int shared_bytes) {
  return resident_blocks(reinterpret_cast<const void*>(kernel), threads, shared_bytes);
}

}  // namespace cudavision::cuda
