// SPDX-License-Identifier: LGPL-2.1-or-later
#include "kernels/cuda/device.hpp"

#include <string>

namespace cudavision::cuda {

Status check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // clears the error, so that the next check does not report it again
  return Status::resource(std::string(what) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")");
}

Result<Device> current_device() {
  Device device;
  int number = 0;
  cudaError_t error = cudaGetDevice(&number);
  const auto ask = [&](int& value, cudaDeviceAttr attribute) {
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&value, attribute, number);
  };
  ask(device.multiprocessors, cudaDevAttrMultiProcessorCount);
  ask(device.shared_limit, cudaDevAttrMaxSharedMemoryPerBlockOptin);
  ask(device.major, cudaDevAttrComputeCapabilityMajor);
  if (Status status = check(error, "cannot use the CUDA device"); !status.ok()) return status;
  return device;
}

Status load_kernel(const void* kernel, const char* what, int shared_bytes) {
  cudaFuncAttributes attributes;  // the query loads the code
  cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
  if (error == cudaSuccess && shared_bytes > 0)
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  return check(error, what);
}

Result<int> resident_blocks(const void* kernel, int threads, int shared_bytes) {
  int blocks = 0;
  const cudaError_t error =
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, std::size_t(shared_bytes));
  if (Status status = check(error, "cannot query a kernel"); !status.ok()) return status;
  return blocks;
}

}  // namespace cudavision::cuda
