// SPDX-License-Identifier: LGPL-2.1-or-later
// Writes the output: mask, overlay or difference.
#pragma once

#include "kernels/diff/cuda_masks.cuh"
#include "kernels/diff/cuda_rows.cuh"

namespace cudavision::diff {

/// Stores a row of words in the destination: keeps copied channels (v: the source), and converts samples to their
/// stored form.
template <class S, class P, bool whole, int N>
__device__ __forceinline__ void write_piece(const KernelParams& p, int plane, int row, int x, int y,
                                            const std::uint32_t (&v)[N], std::uint32_t (&out)[N]) {
  const PlaneJob& job = p.planes[plane];
  if (!job.dst.data || (!whole && y + row >= p.height)) return;
  if (job.any_copied) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const std::uint32_t mask = job.rules[i % P::period].copied;
      out[i] = (out[i] & ~mask) | (v[i] & mask);
    }
  }
  to_stored<S>(p, out);
  const int byte = byte_of<S, P>(x), at = row_of<S, P>(row, y);
  if constexpr (whole)
    store_whole<true>(job.dst, byte, at, out);
  else
    store_row(job.dst, job.row_bytes, job.dst_alignment, byte, at, out);
}

/// Makes a row of words of the mask or the overlay. v: the picture.
template <class S, class P, int N>
__device__ __forceinline__ void paint_piece(const KernelParams& p, const PlaneJob& job, int row,
                                            const unsigned (&bits)[S::rows], const std::uint32_t (&v)[N],
                                            std::uint32_t (&out)[N]) {
  using T = typename S::T;
  std::uint32_t mask[N];
  expand_piece<S, P>(p, bits, row, mask);
  if (p.show_mask) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const Rule& rule = job.rules[i % P::period];
      out[i] = rule.black ^ ((rule.black ^ rule.white) & mask[i]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const std::uint32_t tint = job.rules[i % P::period].tint;
      const std::uint32_t tinted = sizeof(T) == 1 ? __vavgu4(v[i], tint) : __vavgu2(v[i], tint);
      out[i] = (tinted & mask[i]) | (v[i] & ~mask[i]);
    }
  }
}

/// Writes the mask or the overlay.
template <class S, bool whole>
__device__ __forceinline__ void write_changed(const KernelParams& p, int x, int y, const LaneWords<S>& v,
                                              const unsigned (&bits)[S::rows]) {
  each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
    const auto& words = of(v);
    std::uint32_t out[sizeof(words) / 4];
    paint_piece<S, P>(p, p.planes[plane], row, bits, words, out);
    write_piece<S, P, whole>(p, plane, row, x, y, words, out);
  });
}

/// Writes the mask of a whole strip (see KernelParams::whole_width), without copied channels.
template <class S>
__device__ __forceinline__ void write_plain_mask(const KernelParams& p, int x, int y, const unsigned (&bits)[S::rows]) {
  each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
    const PlaneJob& job = p.planes[plane];
    std::uint32_t out[sizeof(of(std::declval<LaneWords<S>&>())) / 4];
    constexpr int N = sizeof(out) / 4;
    expand_piece<S, P>(p, bits, row, out);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const Rule& rule = job.rules[i % P::period];
      out[i] = rule.black ^ ((rule.black ^ rule.white) & out[i]);
    }
    to_stored<S>(p, out);
    store_whole<true>(job.dst, byte_of<S, P>(x), row_of<S, P>(row, y), out);
  });
}

/// Loads the picture in sample values.
template <class S, bool whole>
__device__ __forceinline__ void load_picture(const KernelParams& p, int x, int y, LaneWords<S>& v) {
  load_source<S, whole>(p, true, x, y, v);
  each_piece<S>([&](auto, int, int, auto of) { to_values<S>(p, of(v)); });
}

/// Shows the mask or the overlay of a strip that may be incomplete. Not inlined, because it is rare.
template <class S>
__device__ __noinline__ void show_changed_partly(const KernelParams& p, int x, int y, Words<S::rows> bits) {
  LaneWords<S> v;
  load_picture<S, false>(p, x, y, v);
  write_changed<S, false>(p, x, y, v, bits.of);
}

/// Shows the differences of a word, with a gain or squared. Not inlined, because it is long.
template <typename T>
__device__ __noinline__ std::uint32_t show_word(const KernelParams& p, std::uint32_t v, std::uint32_t r,
                                                std::uint32_t about_middle) {
  constexpr int per_word = 4 / int(sizeof(T)), bits = 8 * int(sizeof(T));
  std::uint32_t out = 0;
  for (int j = 0; j < per_word; ++j) {
    const int value = int(T(v >> j * bits)) - int(T(r >> j * bits));
    out |= std::uint32_t(p.show(value, about_middle >> j * bits & 1)) << j * bits;
  }
  return out;
}

/// Writes the difference of v and r; d = |v − r|.
template <class S, bool whole>
__device__ __forceinline__ void write_difference(const KernelParams& p, int x, int y, const LaneWords<S>& v,
                                                 const LaneWords<S>& r, const LaneWords<S>& d) {
  using T = typename S::T;
  each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
    const PlaneJob& job = p.planes[plane];
    const auto& words = of(v);
    const auto &from = of(r), &size = of(d);
    constexpr int N = sizeof(words) / 4;
    std::uint32_t out[N];
    if (!job.any_compared) {
#pragma unroll
      for (int i = 0; i < N; ++i) out[i] = job.rules[i % P::period].black;
    } else if (p.show.plain && !job.any_about_middle) {
#pragma unroll
      for (int i = 0; i < N; ++i) out[i] = size[i];
    } else if (sizeof(T) == 1 && p.show.plain) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        // With the middle moved to zero, this is the saturating difference of signed bytes.
        constexpr std::uint32_t middle = 0x80808080u;
        const std::uint32_t about = __vsubss4(words[i] ^ middle, from[i] ^ middle) ^ middle,
                            mask = job.rules[i % P::period].about_middle;
        out[i] = (about & mask) | (size[i] & ~mask);
      }
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i) out[i] = show_word<T>(p, words[i], from[i], job.rules[i % P::period].about_middle);
    }
    write_piece<S, P, whole>(p, plane, row, x, y, words, out);
  });
}

}  // namespace cudavision::diff
