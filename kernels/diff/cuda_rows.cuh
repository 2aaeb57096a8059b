// SPDX-License-Identifier: LGPL-2.1-or-later
// Reads and writes the words of a strip.
#pragma once

#include <cstring>
#include <type_traits>

#include "kernels/diff/cuda_shape.cuh"

namespace cudavision::diff {

/// The alignment that the widest access to this many words needs.
constexpr int words_alignment(int words) { return strip_alignment(4 * words); }
/// The vector type for this access.
template <int N>
using WordsVector = std::conditional_t<words_alignment(N) == 16, uint4,
                                       std::conditional_t<words_alignment(N) == 8, uint2, std::uint32_t>>;

/// A row of words as a value, which stays in registers when a function takes or returns it.
template <int N>
struct Words {
  std::uint32_t of[N];
};

// Loads words at the end of a row, or of badly aligned planes. Not inlined and not unrolled, because they are rare.
template <int N>
__device__ __noinline__ Words<N> load_some(const unsigned char* from, int bytes, int alignment) {
  Words<N> words{};
  int i = 0;
  if (alignment >= 4) {
#pragma unroll 1
    for (; i + 4 <= bytes; i += 4) words.of[i / 4] = *reinterpret_cast<const std::uint32_t*>(from + i);
  }
#pragma unroll 1
  for (; i < bytes; ++i) words.of[i / 4] |= std::uint32_t(from[i]) << i % 4 * 8;
  return words;
}
template <int N>
__device__ __noinline__ void store_some(unsigned char* to, int bytes, int alignment, Words<N> words) {
  int i = 0;
  if (alignment >= 4) {
#pragma unroll 1
    for (; i + 4 <= bytes; i += 4) *reinterpret_cast<std::uint32_t*>(to + i) = words.of[i / 4];
  }
#pragma unroll 1
  for (; i < bytes; ++i) to[i] = (unsigned char)(words.of[i / 4] >> i % 4 * 8);
}

__device__ __forceinline__ unsigned char* place_in(const View& view, int byte, int row) {
  unsigned char* at;
  asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(at) : "r"(row), "r"(view.pitch), "l"(view.data + byte));
  return at;
}

/// Loads whole words. picture: from a picture of the caller, which is read once and is therefore evicted first from the
/// caches; otherwise from memory of the plan, which the next frames read again. Constant loads are not used, because
/// the compiler may move them before the wait for the previous launch (kernels/cuda/overlap.hpp).
template <bool picture, int N>
__device__ __forceinline__ void load_words(const unsigned char* from, std::uint32_t (&words)[N]) {
  using Vector = WordsVector<N>;
#pragma unroll
  for (int i = 0; i < int(4 * N / sizeof(Vector)); ++i) {
    const Vector* const at = reinterpret_cast<const Vector*>(from) + i;
    const Vector v = picture ? __ldcs(at) : __ldcg(at);
    memcpy(words + i * (sizeof(Vector) / 4), &v, sizeof v);
  }
}
/// Stores whole words. picture: to a picture of the caller, which this launch does not read.
template <bool picture, int N>
__device__ __forceinline__ void store_words(unsigned char* to, const std::uint32_t (&words)[N]) {
  using Vector = WordsVector<N>;
#pragma unroll
  for (int i = 0; i < int(4 * N / sizeof(Vector)); ++i) {
    Vector v;
    memcpy(&v, words + i * (sizeof(Vector) / 4), sizeof v);
    Vector* const at = reinterpret_cast<Vector*>(to) + i;
    picture ? __stcs(at, v) : void(*at = v);
  }
}

/// Loads the words at a byte of a row. Words beyond the end of the row are zero.
template <bool picture, int N>
__device__ __forceinline__ void load_row(const View& view, int row_bytes, int alignment, int byte, int row,
                                         std::uint32_t (&words)[N]) {
  const unsigned char* const at = place_in(view, byte, row);
  if (byte + 4 * N <= row_bytes && alignment >= words_alignment(N)) {
    load_words<picture>(at, words);
  } else {
    Words<N> some{};
    if (byte < row_bytes) some = load_some<N>(at, min(4 * N, row_bytes - byte), alignment);
#pragma unroll
    for (int i = 0; i < N; ++i) words[i] = some.of[i];
  }
}
/// Stores words to a picture of the caller.
template <int N>
__device__ __forceinline__ void store_row(const View& view, int row_bytes, int alignment, int byte, int row,
                                          const std::uint32_t (&words)[N]) {
  unsigned char* const at = place_in(view, byte, row);
  if (byte + 4 * N <= row_bytes && alignment >= words_alignment(N)) {
    store_words<true>(at, words);
  } else if (byte < row_bytes) {
    Words<N> some;
#pragma unroll
    for (int i = 0; i < N; ++i) some.of[i] = words[i];
    store_some(at, min(4 * N, row_bytes - byte), alignment, some);
  }
}
// The same functions for rows that are aligned and long enough: for memory of the plan, and for whole strips
// (KernelParams::whole_width).
template <bool picture, int N>
__device__ __forceinline__ void load_whole(const View& view, int byte, int row, std::uint32_t (&words)[N]) {
  load_words<picture>(place_in(view, byte, row), words);
}
template <bool picture, int N>
__device__ __forceinline__ void store_whole(const View& view, int byte, int row, const std::uint32_t (&words)[N]) {
  store_words<picture>(place_in(view, byte, row), words);
}

/// The byte and the row of the words of a lane in a plane.
template <class S, class P>
__device__ __forceinline__ int byte_of(int x) {
  return (P::first ? x : x >> S::shift_x) * P::C * int(sizeof(typename S::T));
}
template <class S, class P>
__device__ __forceinline__ int row_of(int row, int y) {
  return P::first ? y + row : y >> S::shift_y;
}

/// Converts stored words to sample values, and back.
template <class S, int N>
__device__ __forceinline__ void to_values(const KernelParams& p, std::uint32_t (&words)[N]) {
  if constexpr (sizeof(typename S::T) == 2) cuda::to_samples(words, p.shift, p.show.max);
}
template <class S, int N>
__device__ __forceinline__ void to_stored(const KernelParams& p, std::uint32_t (&words)[N]) {
  if constexpr (sizeof(typename S::T) == 2) {
#pragma unroll
    for (int i = 0; i < N; ++i) words[i] <<= p.shift;  // the low sample has `shift` zero bits at the top
  }
}

template <int N>
__device__ __forceinline__ void clear_words(std::uint32_t (&words)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) words[i] = 0;
}

/// Loads the strip of the source at (x, y), as stored. It is zero if not `across`: beyond the end of the row.
template <class S, bool whole>
__device__ __forceinline__ void load_source(const KernelParams& p, bool across, int x, int y, LaneWords<S>& strip) {
  each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
    const PlaneJob& job = p.planes[plane];
    auto& words = of(strip);
    const int byte = byte_of<S, P>(x), at = row_of<S, P>(row, y);
    if (!job.src.data || !across || (!whole && y + row >= p.height)) {
      clear_words(words);
    } else if constexpr (whole) {
      load_whole<true>(job.src, byte, at, words);
    } else {
      load_row<true>(job.src, job.row_bytes, job.src_alignment, byte, at, words);
    }
  });
}

}  // namespace cudavision::diff
