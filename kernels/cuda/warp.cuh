// SPDX-License-Identifier: LGPL-2.1-or-later
// Functions that the 32 lanes of a warp compute together. All lanes must call them, except opaque_register().
#pragma once

#include <cstdint>

namespace cudavision::cuda {

/// Returns the sum of all lanes' values, in every lane. Value: an integer.
template <typename Value>
__device__ __forceinline__ Value warp_sum(Value value) {
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(Value) == 4) {
    value = __reduce_add_sync(~0u, value);
  } else
#endif
  {
#pragma unroll
    for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(~0u, value, d);
  }
  return value;
}

/// Replaces each of N values by its inclusive prefix sum over the lanes: lane i gets the sum of lanes 0 … i.
template <int N, typename Value>
__device__ __forceinline__ void warp_scan(Value (&values)[N], int lane) {
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {
    Value others[N];
#pragma unroll
    for (int n = 0; n < N; ++n) others[n] = __shfl_up_sync(~0u, values[n], d);
#pragma unroll
    for (int n = 0; n < N; ++n) values[n] += lane >= d ? others[n] : Value(0);
  }
}

/// Returns, through a shuffle, a value that is the same in all lanes. The compiler then keeps it in a register instead
/// of reading the kernel's parameters at every use. Costs one instruction.
template <typename V>
__device__ __forceinline__ V warp_uniform(V value) {
  return __shfl_sync(~0u, value, 0);
}

/// Has the same effect without an instruction, for a variable: hides the origin of its value from the compiler.
__device__ __forceinline__ void opaque_register(float& value) { asm("" : "+f"(value)); }
__device__ __forceinline__ void opaque_register(int& value) { asm("" : "+r"(value)); }
__device__ __forceinline__ void opaque_register(std::uint32_t& value) { asm("" : "+r"(value)); }
template <typename T>
__device__ __forceinline__ void opaque_register(const T*& pointer) {
  asm("" : "+l"(pointer));
}

}  // namespace cudavision::cuda
