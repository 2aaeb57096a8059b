// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <cstdint>

#include "../histogram.hpp"
#include "filter.hpp"

namespace cudavision::cuda {

/// Memory of the device, or page-locked memory of the host; of the context that is current.
template <bool OnDevice>
class Memory {
 public:
  Memory() = default;
  ~Memory() { OnDevice ? cudaFree(data_) : cudaFreeHost(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Allocates `words`, all zero.
  Status allocate(std::size_t words) {
    const std::size_t bytes = words * sizeof(std::uint32_t);
    if (OnDevice) {
      if (Status status = check(cudaMalloc(&data_, bytes), "cannot allocate device memory"); !status.ok()) return status;
      if (Status status = check(cudaMemsetAsync(data_, 0, bytes, cudaStreamPerThread), "cannot clear device memory"); !status.ok())
        return status;
      return check(cudaStreamSynchronize(cudaStreamPerThread), "cannot clear device memory");
    }
    return check(cudaHostAlloc(&data_, bytes, cudaHostAllocDefault), "cannot allocate page-locked memory");
  }
  std::uint32_t* words() const { return static_cast<std::uint32_t*>(data_); }

 private:
  void* data_ = nullptr;
};

}  // namespace cudavision::cuda
