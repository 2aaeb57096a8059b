// SPDX-License-Identifier: LGPL-2.1-or-later
// Matrix products of a warp on the tensor cores (PTX: mma.sync). Before Ampere (8.0), the shapes are smaller and a
// product needs several instructions.
//
// What each lane holds, with g = lane / 4 and t = lane % 4:
//   a result c of 16 × 8, as (row, column):   c[0] = (g, 2t), c[1] = (g, 2t + 1), c[2] = (g + 8, 2t),
//                           c[3] = (g + 8, 2t + 1);
//   bytes, a of 16 × 16:    a[0] = row g, columns 4t … 4t + 3; a[1] = row g + 8, the same columns;
//   bytes, b of 16 × 8:     b = rows 4t … 4t + 3 of column g;
//   halves, a of 16 × 16:   a[0] = row g, columns 2t, 2t + 1; a[1] = row g + 8;
//                           a[2], a[3] = the same rows, 8 columns to the right;
//   halves, b of 16 × 8:    b[0] = rows 2t, 2t + 1 of column g; b[1] = 8 rows further down;
//   halves, a result of 16 × 8:   c[0] = row g, columns 2t, 2t + 1; c[1] = row g + 8.
// For smaller products, a of 16 × 8 is a[0] and a[1], and b of 8 × 8 is b[0].
#pragma once

#include <cstdint>

namespace cudavision::cuda {

/// c += a · b for unsigned bytes, summed in int32: 16 × 8 from 16 × 16 and 16 × 8.
__device__ __forceinline__ void mma(int (&c)[4], const std::uint32_t (&a)[2], std::uint32_t b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  asm("mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
      : "+r"(c[0]), "+r"(c[1])
      : "r"(a[0]), "r"(b));
  asm("mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
      : "+r"(c[2]), "+r"(c[3])
      : "r"(a[1]), "r"(b));
#else
  asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
      : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
#endif
}

/// c += a0 · b0 + a1 · b1 for unsigned bytes.
__device__ __forceinline__ void mma(int (&c)[4], const std::uint32_t (&a0)[2], const std::uint32_t (&a1)[2],
                                    std::uint32_t b0, std::uint32_t b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  mma(c, a0, b0);
  mma(c, a1, b1);
#else
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
      : "r"(a0[0]), "r"(a0[1]), "r"(a1[0]), "r"(a1[1]), "r"(b0), "r"(b1), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
#endif
}

/// d = a · b + c for half-precision factors, summed in float32: 16 × 8 from 16 × 16 and 16 × 8.
__device__ __forceinline__ void mma(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                                    const float (&c)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[2]), "r"(a[3]), "r"(b[1]));
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
#endif
}

/// d = a · b + c for half-precision factors, summed in float32: 16 × 8 from 16 × 8 and 8 × 8.
__device__ __forceinline__ void mma(float (&d)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t b,
                                    const float (&c)[4]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a0), "r"(a1), "r"(b), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

/// The same product in half precision; results also have half precision.
__device__ __forceinline__ void mma(std::uint32_t (&d)[2], std::uint32_t a0, std::uint32_t a1, std::uint32_t b,
                                    const std::uint32_t (&c)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%5,%6};"
      : "=r"(d[0]), "=r"(d[1])
      : "r"(a0), "r"(a1), "r"(b), "r"(c[0]), "r"(c[1]));
}

/// The product in half precision with shapes 16 × 8 from 16 × 16 and 16 × 8.
__device__ __forceinline__ void mma(std::uint32_t (&d)[2], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                                    const std::uint32_t (&c)[2]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  mma(d, a[0], a[1], b[0], c);
  mma(d, a[2], a[3], b[1], d);
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9};"
      : "=r"(d[0]), "=r"(d[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]));
#endif
}

/// Writes four tiles of 8 rows × 16 bytes to shared memory: lane 4g + t holds the word at byte 4t of row g of each
/// tile. Lane 8n + g passes the address of row g of tile n, which is aligned to 16 bytes. Before Hopper (9.0), lanes
/// get the addresses through shuffles.
__device__ __forceinline__ void store_tiles(void* row, const std::uint32_t (&tiles)[4]) {
  const auto at = std::uint32_t(__cvta_generic_to_shared(row));
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(tiles[0]),
               "r"(tiles[1]), "r"(tiles[2]), "r"(tiles[3])
               : "memory");
#else
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    const std::uint32_t to = __shfl_sync(~0u, at, 8 * n + threadIdx.x % 32 / 4) + threadIdx.x % 4 * 4;
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(tiles[n]) : "memory");
  }
#endif
}

}  // namespace cudavision::cuda
