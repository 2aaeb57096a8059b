// SPDX-License-Identifier: LGPL-2.1-or-later
// Code for the kernels of two pictures: 16 bytes of a row in registers, and bytes as numbers.
#pragma once

#include "kernels/blend/arithmetic.hpp"
#include "kernels/blend/cuda_schedule.hpp"

namespace cudavision::blend {
namespace {

using std::uint32_t;
using std::uint8_t;

// ---- 16 bytes -------------------------------------------------------------------------------------------------------

struct Chunk {
  uint32_t word[4];
};
__device__ __forceinline__ Chunk load_chunk(const uint8_t* row, int x, int row_bytes) {
  if (x + 16 <= row_bytes) {
    const uint4 v = __ldg(reinterpret_cast<const uint4*>(row + x));
    return {{v.x, v.y, v.z, v.w}};
  }
  Chunk chunk{};
#pragma unroll
  for (int i = 0; i < 16; ++i)
    if (x + i < row_bytes) chunk.word[i / 4] |= uint32_t(row[x + i]) << i % 4 * 8;
  return chunk;
}
/// Loads the chunks at byte x of row y of the upper and of the lower picture.
__device__ __forceinline__ void load_chunks(const PairPlane& plane, int x, int y, Chunk& above, Chunk& below) {
  above = load_chunk(plane.above + y * plane.above_pitch, x, plane.row_bytes);
  below = load_chunk(plane.below + y * plane.below_pitch, x, plane.row_bytes);
}
__device__ __forceinline__ void store_chunk(uint8_t* row, int x, int row_bytes, const Chunk& chunk) {
  if (x + 16 <= row_bytes) {
    *reinterpret_cast<uint4*>(row + x) = make_uint4(chunk.word[0], chunk.word[1], chunk.word[2], chunk.word[3]);
    return;
  }
#pragma unroll
  for (int i = 0; i < 16; ++i)
    if (x + i < row_bytes) row[x + i] = uint8_t(chunk.word[i / 4] >> i % 4 * 8);
}

// ---- Bytes as numbers -----------------------------------------------------------------------------------------------
// Floats around round_bias, 1.5 · 2^23, differ by 1. So if a byte is inserted into the lowest bits of this number, the
// result is 1.5 · 2^23 + byte. A sum with it is rounded half to even and has the result in its lowest bits. Neither
// direction needs a conversion instruction.

__device__ __forceinline__ float biased(uint32_t word, int byte) {
  return __uint_as_float(__byte_perm(word, 0x4b400000, 0x7650 | byte));
}
__device__ __forceinline__ float number(uint32_t word, int byte) { return biased(word, byte) - round_bias; }

/// A byte times 2^-133: bits 16 to 23 of the float are the byte, the other bits are 0. A byte below 128 gives a
/// subnormal number; for 128 and above, bit 23 makes the exponent 1, whose numbers have the same spacing. A fused
/// multiply-add with a factor times 2^133 gives the same bits as number() with the factor, and saves its subtraction.
/// Factors must be below 2^-5, and subnormal numbers must be preserved (no -ftz).
__device__ __forceinline__ float tiny(uint32_t word, int byte) {
  return __uint_as_float(__byte_perm(word, 0, 0x4044 | byte << 8));
}
inline constexpr int tiny_exponent = -133;

__device__ __forceinline__ uint32_t pack(float a, float b, float c, float d) {
  const uint32_t ab = __byte_perm(__float_as_uint(a), __float_as_uint(b), 0x0040);
  return __byte_perm(ab, __byte_perm(__float_as_uint(c), __float_as_uint(d), 0x0040), 0x5410);
}

}  // namespace
}  // namespace cudavision::blend
