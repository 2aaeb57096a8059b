// SPDX-License-Identifier: LGPL-2.1-or-later
// Copies from global to shared memory that run while the thread continues (PTX: cp.async). Before Ampere (8.0), the
// thread copies by itself.
//
//   copy_async() …; commit();    a thread's copies since its last commit() are a batch
//   wait<N>();                   waits for all of the thread's batches except the N newest;
//                                after __syncthreads() the block can read them
#pragma once

#include <cstdint>

namespace cudavision::cuda {

template <int Bytes>
struct Unit;
template <>
struct Unit<4> {
  using type = std::uint32_t;
};
template <>
struct Unit<8> {
  using type = uint2;
};
template <>
struct Unit<16> {
  using type = uint4;
};

/// Copies Bytes bytes: 4, 8 or 16. Both addresses are aligned to Bytes. `to` points into shared memory.
template <int Bytes>
__device__ __forceinline__ void copy_async(void* to, const void* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  *static_cast<typename Unit<Bytes>::type*>(to) = *static_cast<const typename Unit<Bytes>::type*>(from);
#else
  const auto at = std::uint32_t(__cvta_generic_to_shared(to));
  if constexpr (Bytes == 16)  // bypasses L1
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(Bytes) : "memory");
#endif
}

__device__ __forceinline__ void commit() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int N>
__device__ __forceinline__ void wait() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

}  // namespace cudavision::cuda
