// SPDX-License-Identifier: LGPL-2.1-or-later
// Attributes of functions that both the host and the device compile.
#pragma once

#ifdef __CUDACC__
#define CUDAVISION_HOST_DEVICE __host__ __device__
#define CUDAVISION_FORMULA __host__ __device__ __forceinline__  // see rounded.hpp
#else
#define CUDAVISION_HOST_DEVICE
#define CUDAVISION_FORMULA inline __attribute__((always_inline))
#endif

// Before a loop over modes or over channels, which stay in registers.
#ifdef __CUDA_ARCH__
#define CUDAVISION_UNROLL _Pragma("unroll")
#define CUDAVISION_CHANNELS _Pragma("unroll")
#else
#define CUDAVISION_UNROLL
#ifdef __CUDACC__
#define CUDAVISION_CHANNELS  // the host's pass knows neither
#else
#define CUDAVISION_CHANNELS _Pragma("GCC unroll 3")
#endif
#endif
