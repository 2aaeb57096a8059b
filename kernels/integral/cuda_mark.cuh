// SPDX-License-Identifier: LGPL-2.1-or-later
// How tiles pass sums to each other if a block does both steps (`together` in cuda_tables.cu). The top bit of each
// word, the mark, shows whether the word belongs to this frame. So a tile repeatedly loads the sums that it needs until
// all have the mark of the frame. No other signal is needed:
//
//   frame              1    2    3    4
//   mark               1    0    1    0     (memory begins with zeros: no word belongs to frame 1)
//
// A stored word is the sum XOR the mark. A loaded word XOR the mark is the sum; its top bit is 1 if the sum is not yet
// available. Every word is stored once per frame. Blocks that only sum or only write use the mark 0 and count summed
// tiles instead (cuda_tables.cu).
#pragma once

#include <cstdint>

#include "kernels/integral/cuda_params.hpp"

namespace cudavision::integral {

/// The mark of this frame: a word in which only the top bit may be set. It depends on the count of written tiles, which
/// grows by `tiles` from frame to frame.
__device__ __forceinline__ std::uint32_t mark_of(const KernelParams& p) {
  return *static_cast<const volatile unsigned*>(p.written) < unsigned(p.tiles) ? 0x80000000u : 0;
}
/// Counts a written tile. The block that calls this has read the mark.
__device__ __forceinline__ void count_written(const KernelParams& p) {
  atomicInc(p.written, unsigned(2 * p.tiles - 1));
}

template <typename Sum>
__device__ __forceinline__ Sum marked(Sum sum, std::uint32_t mark) {
  return sizeof(Sum) == 8 ? sum ^ Sum(std::uint64_t(mark) << 32) : sum ^ Sum(mark);
}

/// Stores a sum with a mark. Other blocks may load the word at the same time.
template <typename Sum>
__device__ __forceinline__ void store_marked(Sum* to, Sum sum, std::uint32_t mark) {
  if constexpr (sizeof(Sum) == 8)
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(marked(sum, mark)));
  else
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(marked(sum, mark)));
}

/// If `wanted`, loads 16 bytes of words, without a branch, so that other loads are in flight at the same time. Each
/// word is loaded atomically.
template <int word_bytes>
__device__ __forceinline__ void load_words(const void* from, bool wanted, uint4& words) {
  if constexpr (word_bytes == 8) {
    std::uint64_t first = words.x | std::uint64_t(words.y) << 32, second = words.z | std::uint64_t(words.w) << 32;
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %3, 0; @p ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2]; }"
                 : "+l"(first), "+l"(second)
                 : "l"(from), "r"(int(wanted)));
    words = make_uint4(std::uint32_t(first), std::uint32_t(first >> 32), std::uint32_t(second),
                       std::uint32_t(second >> 32));
  } else {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %5, 0; @p ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4]; }"
                 : "+r"(words.x), "+r"(words.y), "+r"(words.z), "+r"(words.w)
                 : "l"(from), "r"(int(wanted)));
  }
}
/// If `wanted`, loads one word, without a branch.
template <typename Sum>
__device__ __forceinline__ void load_word(const Sum* from, bool wanted, Sum& word) {
  if constexpr (sizeof(Sum) == 8)
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p ld.relaxed.gpu.global.u64 %0, [%1]; }"
                 : "+l"(word)
                 : "l"(from), "r"(int(wanted)));
  else
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p ld.relaxed.gpu.global.u32 %0, [%1]; }"
                 : "+r"(word)
                 : "l"(from), "r"(int(wanted)));
}

/// Loads one marked word.
template <typename Sum>
__device__ __forceinline__ Sum load_marked(const Sum* from, std::uint32_t mark) {
  Sum word;
  if constexpr (sizeof(Sum) == 8)
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from));
  else
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(from));
  return marked(word, mark);
}

/// Whether a loaded word belongs to the previous frame.
template <typename Sum>
__device__ __forceinline__ bool is_missing(Sum sum) {
  return sum >> (8 * sizeof(Sum) - 1);
}
template <typename Sum>
__device__ __forceinline__ Sum missing_sum() {
  return Sum(1) << (8 * sizeof(Sum) - 1);
}

}  // namespace cudavision::integral
