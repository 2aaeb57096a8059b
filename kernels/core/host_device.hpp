// SPDX-License-Identifier: LGPL-2.1-or-later
// Attributes for functions that are compiled for both the host and the device.
#pragma once

#ifdef __CUDACC__
#define CUDAVISION_HOST_DEVICE __host__ __device__
#define CUDAVISION_FORMULA __host__ __device__ __forceinline__  // see rounded.hpp
#else
#define CUDAVISION_HOST_DEVICE
#define CUDAVISION_FORMULA inline __attribute__((always_inline))
#endif

// For loops over modes or channels. Unrolling keeps their values in registers.
#ifdef __CUDA_ARCH__
#define CUDAVISION_UNROLL _Pragma("unroll")
#define CUDAVISION_CHANNELS _Pragma("unroll")
#else
#define CUDAVISION_UNROLL
#ifdef __CUDACC__
#define CUDAVISION_CHANNELS  // the host pass knows neither pragma
#else
#define CUDAVISION_CHANNELS _Pragma("GCC unroll 3")
#endif
#endif
