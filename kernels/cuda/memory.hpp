// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "filter.hpp"

namespace cudavision::cuda {

/// Device memory that a plan owns.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  ~DeviceMemory() { cudaFree(data_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// Once, with the context current. `purpose` ends "cannot allocate device memory".
  Status allocate(std::size_t bytes, const char* purpose) {
    const cudaError_t error = cudaMalloc(&data_, bytes);
    if (error == cudaSuccess) return {};
    data_ = nullptr;
    return check(error, (std::string("cannot allocate device memory ") + purpose).c_str());
  }

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

}  // namespace cudavision::cuda
