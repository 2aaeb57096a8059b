// SPDX-License-Identifier: LGPL-2.1-or-later
// How the pixels of a rectangle are divided among threads: chunks, which are loaded in advance, and quads at the sides.
//
//   row        | quads | chunk | chunk | … | chunk | quads |   chunk: 16 bytes; or a quad (4 pixels), if that is more
//                       thread0 thread1                        or has three channels; or 16 bytes of each of 3 planes
//   next row   | quads | chunk | …
//
// Chunks are numbered row by row; thread i of n works on the chunks i, i + n, i + 2n … Then it processes quads in the
// same way. Quads cover pixels that belong to no whole chunk, or all pixels if the rows cannot be accessed as words.
// They may extend beyond the rectangle.
#pragma once

#include <type_traits>

#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/warp.cuh"
#include "kernels/histogram/cuda_tuning.hpp"
#include "kernels/histogram/cuda_walk.hpp"

namespace cudavision::histogram {

template <typename T, int C>
constexpr int chunk_quads = C* int(sizeof(T)) >= 4 ? 1 : 4 / (C * int(sizeof(T)));

/// A chunk of a channel set: its words as in memory. Quads: the number of quads; 1 at the sides.
template <typename T, int C, int Quads = chunk_quads<T, C>>
struct Chunk {
  static constexpr int quads = Quads, pixels = 4 * Quads, quad_words = C * int(sizeof(T)), words = Quads * quad_words;
  std::uint32_t word[words];

  /// Converts stored words to samples.
  __device__ __forceinline__ void to_samples(const cuda::SetView& view) {
    if constexpr (sizeof(T) == 2) cuda::to_samples(word, view.shift, view.max_value);
  }
  /// Converts samples back to stored words.
  __device__ __forceinline__ void to_stored(const cuda::SetView& view) {
    if constexpr (sizeof(T) == 2) {
#pragma unroll
      for (int i = 0; i < words; ++i) word[i] <<= view.shift;  // the low sample has `shift` zero bits at the top
    }
  }
  __device__ __forceinline__ std::uint32_t sample(int pixel, int c) const {
    constexpr int per_word = 4 / int(sizeof(T));
    const int i = pixel * C + c;
    if constexpr (sizeof(T) == 1) return __byte_perm(word[i / per_word], 0, 0x4440 | i % per_word);
    return i % per_word ? word[i / per_word] >> 16 : word[i / per_word] & 0xffff;
  }
  __device__ __forceinline__ cuda::Quad<T, C> quad(int q) const {
    std::uint32_t raw[quad_words];
#pragma unroll
    for (int i = 0; i < quad_words; ++i) raw[i] = word[q * quad_words + i];
    return cuda::deinterleave<T, C>(raw);
  }
  __device__ __forceinline__ void set_quad(int q, const cuda::Quad<T, C>& quad) {
    std::uint32_t raw[quad_words];
    cuda::interleave<T, C>(quad, raw);
#pragma unroll
    for (int i = 0; i < quad_words; ++i) word[q * quad_words + i] = raw[i];
  }
};
/// A chunk of three planes: the same pixels of each plane.
template <typename T, int Quads = chunk_quads<T, 1>>
struct PlaneChunks {
  static constexpr int quads = Quads, pixels = 4 * Quads, words = 3 * Quads * int(sizeof(T));
  Chunk<T, 1, Quads> plane[3];

  __device__ __forceinline__ void to_samples(const cuda::SetView& view) {
#pragma unroll
    for (int c = 0; c < 3; ++c) plane[c].to_samples(view);
  }
  __device__ __forceinline__ void to_stored(const cuda::SetView& view) {
#pragma unroll
    for (int c = 0; c < 3; ++c) plane[c].to_stored(view);
  }
  __device__ __forceinline__ std::uint32_t sample(int pixel, int c) const { return plane[c].sample(pixel, 0); }
};

#ifdef __CUDACC__

/// Volatile, because the compiler would otherwise move a load in advance after the work on earlier chunks.
__device__ __forceinline__ void load_in_order(const unsigned char* from, std::uint32_t* words) {
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "l"(from));
}
__device__ __forceinline__ void load_in_order(const unsigned char* from, std::uint32_t& word) {
  asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(word) : "l"(from));
}

/// The address of byte x of row y. This is one multiply-add; without asm, the compiler generates four instructions.
template <typename Byte>
__device__ __forceinline__ Byte* byte_at(Byte* data, int pitch, int x, int y) {
  Byte* at;
  asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(at) : "r"(y), "r"(pitch), "l"(data + x));
  return at;
}

/// The rows of a plane. `access`: bytes that are read or written at once, 16 or 4.
struct Rows {
  const unsigned char* data;
  int pitch, access;

  __device__ __forceinline__ Rows(const cuda::SetView& view, int access)
      : data(view.src), pitch(int(view.src_pitch)), access(access) {}
  /// Holds the fields in registers. Otherwise the compiler would read them from constant memory at every use.
  __device__ __forceinline__ void hold_in_registers() {
    data = reinterpret_cast<const unsigned char*>(cuda::warp_uniform(reinterpret_cast<unsigned long long>(data)));
    pitch = cuda::warp_uniform(pitch);
    access = cuda::warp_uniform(access);
  }
};

/// Loads a chunk that begins at pixel x and ends inside the row.
template <typename T, int C>
__device__ __forceinline__ void load_chunk(const Rows& rows, int x, int y, Chunk<T, C>& chunk) {
  constexpr int words = Chunk<T, C>::words;
  const unsigned char* const from = byte_at(rows.data, rows.pitch, x * (C * int(sizeof(T))), y);
  if constexpr (words % 4 == 0) {
    if (rows.access == 16) {
#pragma unroll
      for (int i = 0; i < words; i += 4) load_in_order(from + i * 4, chunk.word + i);
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < words; ++i) load_in_order(from + i * 4, chunk.word[i]);
}
template <typename T, int C>
__device__ __forceinline__ void store_chunk(const cuda::SetView& view, int access, int x, int y,
                                            const Chunk<T, C>& chunk) {
  constexpr int words = Chunk<T, C>::words;
  unsigned char* const to = byte_at(view.dst, int(view.dst_pitch), x * (C * int(sizeof(T))), y);
  if (words % 4 == 0 && access == 16)
    cuda::store_words<words, words % 4 == 0 ? 16 : 4>(to, chunk.word);
  else
    cuda::store_words<words, 4>(to, chunk.word);
}

/// The pixels of a quad at x that are inside a rectangle: bit i is pixel i.
__device__ __forceinline__ unsigned side_mask(const Rect& rect, int x) {
  const int end = rect.x + rect.width;
  return (x < rect.x ? 15u << (rect.x - x) : 15u) & (x + 4 > end ? 15u >> (x + 4 - end) : 15u);
}

/// The chunks that a thread loads in advance.
template <typename Held>
constexpr int chunks_ahead = Held::words > 4 ? 1 : tuning.chunks_ahead;

/// Calls work(chunk, x, y) and then side(x, y) for the chunks and the quads of thread `worker` of `workers` in a
/// rectangle. load(x, y, chunk) loads a chunk. Without `chunks`, there are only quads. All threads of the block call
/// this function; it calls ready() while the first loads are in flight. `InStep`: the threads wait for each other after
/// each round of chunks_ahead chunks or one quad. If `work` has a fourth parameter, it is the mask of the lanes of the
/// warp that call it at the same time.
template <typename Held, bool InStep = false, typename Load, typename Ready, typename Work, typename Side>
__device__ __forceinline__ void for_chunks(const Rect& rect, unsigned worker, unsigned workers, bool chunks, Load load,
                                           Ready ready, Work work, Side side) {
  constexpr int ahead = chunks_ahead<Held>;
  const unsigned height = unsigned(rect.height);
  const int quads_begin = rect.x & ~3, quads_end = (rect.x + rect.width + 3) & ~3;
  int begin = (rect.x + Held::pixels - 1) & ~(Held::pixels - 1), end = (rect.x + rect.width) & ~(Held::pixels - 1);
  if (!chunks || begin >= end) begin = end = quads_end;

  const unsigned in_row = unsigned(end - begin) / Held::pixels, all = in_row * height;
  Walk next(worker, workers, max(in_row, 1u));
  cuda::opaque_register(next.width);
  Walk now = next;
  unsigned to_load = worker, to_take = worker;
  Held loaded[ahead];
  const auto fetch = [&](Held& chunk) {
    if (to_load < all) load(begin + next.x * Held::pixels, rect.y + next.y, chunk);
    to_load += workers;
    next.next();
  };
#pragma unroll
  for (int i = 0; i < ahead; ++i) fetch(loaded[i]);
  ready();
  for (unsigned round = 0; round < all; round += workers * ahead) {
    Held held[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i) held[i] = loaded[i];
#pragma unroll
    for (int i = 0; i < ahead; ++i) fetch(loaded[i]);
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      if constexpr (std::is_invocable_v<Work, const Held&, int, int, unsigned>) {
        const unsigned lanes = __ballot_sync(~0u, to_take < all);
        if (to_take < all) work(held[i], begin + now.x * Held::pixels, rect.y + now.y, lanes);
      } else {
        if (to_take < all) work(held[i], begin + now.x * Held::pixels, rect.y + now.y);
      }
      to_take += workers;
      now.next();
    }
    if (InStep) __syncthreads();
  }

  const unsigned before = unsigned(begin - quads_begin) / 4, sides = before + unsigned(quads_end - end) / 4;
  if (sides == 0) return;
  Walk walk(worker, workers, sides);
  for (unsigned round = 0; round < sides * height; round += workers, walk.next()) {
    if (walk.y < rect.height)
      side((walk.x < int(before) ? quads_begin : end - int(before) * 4) + walk.x * 4, rect.y + walk.y);
    if (InStep) __syncthreads();
  }
}

#endif  // __CUDACC__

}  // namespace cudavision::histogram
