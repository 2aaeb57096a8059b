// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cuda_runtime_api.h>

#include <utility>

#include "kernels/cuda/device.hpp"

namespace cudavision::cuda {

/// Device memory that a plan owns. The plan's context must be current when it is allocated and freed.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  ~DeviceMemory() { cudaFree(data_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// Call at most once. 0 bytes: allocates nothing. Errors: resource.
  Status allocate(std::size_t bytes) {
    return bytes == 0 ? Status() : check(cudaMalloc(&data_, bytes), "cannot allocate device memory");
  }
  template <typename T = unsigned char>
  T* data() const {
    return static_cast<T*>(data_);
  }
  void swap(DeviceMemory& other) { std::swap(data_, other.data_); }

 private:
  void* data_ = nullptr;
};

/// Fills a plan's memory on a separate stream, because other streams do not wait for the default stream. finish() waits
/// until all work is done, and returns the first error.
class FillStream {
 public:
  FillStream() { note(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~FillStream() {
    if (stream_) cudaStreamDestroy(stream_);
  }
  FillStream(const FillStream&) = delete;
  FillStream& operator=(const FillStream&) = delete;

  void clear(void* to, std::size_t bytes) { note(cudaMemsetAsync(to, 0, bytes, stream_)); }
  void upload(void* to, const void* from, std::size_t bytes) {
    note(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
  }
  Status finish() {
    note(cudaStreamSynchronize(stream_));
    return check(error_, "cannot fill device memory");
  }

 private:
  void note(cudaError_t error) {
    if (error_ == cudaSuccess) error_ = error;
  }

  cudaStream_t stream_ = nullptr;
  cudaError_t error_ = cudaSuccess;
};

/// Page-locked host memory that a plan owns. Kernels write to it at the same address.
class HostMemory {
 public:
  HostMemory() = default;
  ~HostMemory() { cudaFreeHost(data_); }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  Status allocate(std::size_t bytes) {
    return bytes == 0 ? Status()
                      : check(cudaHostAlloc(&data_, bytes, cudaHostAllocMapped | cudaHostAllocPortable),
                              "cannot allocate page-locked memory");
  }
  template <typename T = unsigned char>
  T* data() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

}  // namespace cudavision::cuda
