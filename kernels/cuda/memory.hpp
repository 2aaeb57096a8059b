// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "filter.hpp"

namespace cudavision::cuda {

/// Device memory that a plan owns: zeros at first.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  ~DeviceMemory() { cudaFree(data_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// Once, with the context current; waits until the zeros are there. `purpose` ends "cannot allocate device memory".
  Status allocate(std::size_t bytes, const char* purpose) {
    const std::string what = std::string("cannot allocate device memory ") + purpose;
    if (Status status = check(cudaMalloc(&data_, bytes), what.c_str()); !status.ok()) {
      data_ = nullptr;
      return status;
    }
    cudaStream_t stream = nullptr;  // its own: the default stream belongs to nobody
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error == cudaSuccess) error = cudaMemsetAsync(data_, 0, bytes, stream);
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
    if (stream) cudaStreamDestroy(stream);
    return check(error, what.c_str());
  }

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

}  // namespace cudavision::cuda
