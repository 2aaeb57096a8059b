// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cuda_runtime_api.h>

#include "filter.hpp"

namespace cudavision::cuda {

/// Memory that a plan owns; made and given back with the plan's context current.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  ~DeviceMemory() { cudaFree(data_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// Once. No bytes: no memory.
  Status allocate(std::size_t bytes) {
    return bytes == 0 ? Status() : check(cudaMalloc(&data_, bytes), "cannot allocate device memory");
  }
  unsigned char* data() const { return static_cast<unsigned char*>(data_); }

 private:
  void* data_ = nullptr;
};

/// The same in page-locked host memory, which kernels can write to at the same address.
class HostMemory {
 public:
  HostMemory() = default;
  ~HostMemory() { cudaFreeHost(data_); }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  Status allocate(std::size_t bytes) {
    return bytes == 0 ? Status()
                      : check(cudaHostAlloc(&data_, bytes, cudaHostAllocMapped | cudaHostAllocPortable), "cannot allocate page-locked memory");
  }
  unsigned char* data() const { return static_cast<unsigned char*>(data_); }

 private:
  void* data_ = nullptr;
};

}  // namespace cudavision::cuda
