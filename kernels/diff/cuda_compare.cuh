// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares a tile: see the drawing in cuda_compare.cu.
#pragma once

#include "kernels/cuda/warp.cuh"
#include "kernels/diff/cuda_count.cuh"
#include "kernels/diff/cuda_light.cuh"
#include "kernels/diff/cuda_shadow.cuh"
#include "kernels/diff/cuda_values.cuh"
#include "kernels/diff/cuda_write.cuh"

namespace cudavision::diff {

/// Whether a kernel for `writes` writes the difference.
template <Writes writes>
__device__ __forceinline__ bool writes_difference(const KernelParams& p) {
  return writes == Writes::difference || (writes == Writes::chosen && p.writes == Writes::difference);
}

/// The words of the background, which has twice the bytes of a sample.
template <class S, bool background>
using BackgroundStrip = LaneWords<S, background ? 2 : 1>;

/// Loads the references at (x, y), as stored: the frame into r, or the background into `state`.
template <class S, bool background, bool whole>
__device__ __forceinline__ void load_references(const KernelParams& p, bool across, int x, int y, LaneWords<S>& r,
                                                BackgroundStrip<S, background>& state) {
  each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
    const PlaneJob& job = p.planes[plane];
    const bool inside = across && (whole || y + row < p.height);
    if constexpr (background) {
      if (!job.background.data || !inside)
        clear_words(of(state));
      else
        load_whole<false>(job.background, 2 * byte_of<S, P>(x), row_of<S, P>(row, y), of(state));
    } else {
      if (!job.reference.data || !inside)
        clear_words(of(r));
      else
        load_whole<false>(job.reference, byte_of<S, P>(x), row_of<S, P>(row, y), of(r));
    }
  });
}

/// Keeps a strip of the frame (v: as stored) as a reference, in place of the reference with which it is compared.
template <class S, bool whole>
__device__ __forceinline__ void keep_frame(const KernelParams& p, int x, int y, const LaneWords<S>& v) {
  each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
    const PlaneJob& job = p.planes[plane];
    if (job.keep.data && (whole || y + row < p.height))
      store_whole<false>(job.keep, byte_of<S, P>(x), row_of<S, P>(row, y), of(v));
  });
}

/// Whether the frame is kept before it is compared, because v changes later: it becomes sample values, or luma.
/// Otherwise it is kept last, because storing while a load of the same bytes waits for memory takes longer.
template <class S>
__device__ __forceinline__ bool keeps_early(const KernelParams& p) {
  return sizeof(typename S::T) > 1 || (S::maybe_rgb && p.luma_of_rgb);
}

/// Converts v and r to sample values, and updates the background. Samples that are not compared become equal. All
/// samples become equal if the frame has no reference yet. `own`: whether this lane updates the strip.
template <class S, bool background, bool whole>
__device__ __forceinline__ void prepare_values(const KernelParams& p, bool has_reference, bool own, int x, int y,
                                               LaneWords<S>& v, LaneWords<S>& r,
                                               BackgroundStrip<S, background>& state) {
  using T = typename S::T;
  each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
    const PlaneJob& job = p.planes[plane];
    auto &words = of(v), &from = of(r);
    constexpr int N = sizeof(words) / 4;
    to_values<S>(p, words);
    if constexpr (background) {
      if (job.background.data) {
        step_background<T>(p, words, of(state), from);
        if (own && (whole || y + row < p.height))
          store_whole<false>(job.background, 2 * byte_of<S, P>(x), row_of<S, P>(row, y), of(state));
      }
    } else {
      to_values<S>(p, from);
    }
    const bool compared = job.any_compared && (background || (job.reference.data && has_reference));
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const std::uint32_t mask = compared ? job.rules[i % P::period].compared : 0;
      from[i] = (from[i] & mask) | (words[i] & ~mask);
    }
  });
}

/// Makes pixels that are not counted equal.
template <class S>
__device__ __forceinline__ void equal_where_not_counted(const KernelParams& p, const unsigned (&unmasked)[S::rows],
                                                        const LaneWords<S>& v, LaneWords<S>& r, LaneWords<S>& d) {
  each_piece<S>([&](auto piece, int, int row, auto of) {
    using P = decltype(piece);
    auto& words = of(v);
    auto &from = of(r), &size = of(d);
    constexpr int N = sizeof(words) / 4;
    std::uint32_t mask[N];
    expand_piece<S, P>(p, unmasked, row, mask);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      from[i] = (from[i] & mask[i]) | (words[i] & ~mask[i]);
      size[i] &= mask[i];
    }
  });
}

/// Adds the differences of a row of pixels (one value each) to `sum`; returns one bit for each pixel, set if it is
/// above the threshold.
template <class S>
__device__ __forceinline__ unsigned above_threshold(const KernelParams& p,
                                                    const std::uint32_t (&most)[S::quads * S::words_a_quad],
                                                    std::uint32_t& sum) {
  constexpr int W = S::words_a_quad;
  [[maybe_unused]] unsigned eight = 0;
  unsigned bits = 0;
#pragma unroll
  for (int q = 0; q < S::quads; ++q) {
    if constexpr (sizeof(typename S::T) == 1) {
      const std::uint32_t word = most[q], low = 0x7f7f7f7f;
      sum = __dp4a(word, 0x01010101u, sum);
      // The highest bit of a byte: first whether the lower 7 bits are larger, then whether all 8 are.
      const std::uint32_t lower = (word & low) + (~p.threshold & low);
      std::uint32_t above;  // (word & ~threshold) | (~(word ^ threshold) & lower)
      asm("lop3.b32 %0, %1, %2, %3, 0xb2;" : "=r"(above) : "r"(word), "r"(p.threshold), "r"(lower));
      above &= ~low;
      eight = __dp4a(above, q % 2 ? 0x80402010u : 0x08040201u, q % 2 ? eight : 0u);  // 128 times the bits of 8 pixels
      if (q % 2 || q + 1 == S::quads) bits |= eight >> 7 << q / 2 * 8;
    } else {
#pragma unroll
      for (int w = 0; w < W; ++w) {
        const std::uint32_t word = most[q * W + w], low = word & 0xffff, high = word >> 16;
        sum += low + high;
        bits |= (unsigned(low > (p.threshold & 0xffff)) | unsigned(high > (p.threshold & 0xffff)) << 1)
                << (4 * q + 2 * w);
      }
    }
  }
  return bits;
}

/// The shared memory of a comparing block.
struct CompareShared {
  std::uint32_t slots[max_slots(compared_tile) + 1];
  std::uint32_t sums[tuning.tile_rows], above[tuning.tile_rows];  ///< of each warp
};

/// Finds the changed pixels of a strip whose words are loaded: v, the frame; r, the reference, or `state`, the
/// background. Then v and r are sample values, or luma if luma is compared, and d is their difference. own: see
/// prepare_values(). unmasked: the pixels that may change; partly: whether some pixels may not change. Adds the
/// differences to `sum`.
template <class S, bool background, Writes writes, bool whole>
__device__ __forceinline__ void find_changed(const KernelParams& p, bool has_reference, bool own, int x, int y,
                                             const unsigned (&unmasked)[S::rows], bool partly, LaneWords<S>& v,
                                             LaneWords<S>& r, BackgroundStrip<S, background>& state, LaneWords<S>& d,
                                             unsigned (&changed)[S::rows], std::uint32_t& sum) {
  using T = typename S::T;
  constexpr int W = S::words_a_quad;
  if (!background && own && keeps_early<S>(p)) keep_frame<S, whole>(p, x, y, v);
  prepare_values<S, background, whole>(p, has_reference, own, x, y, v, r, state);
  const auto set_difference = [&](const LaneWords<S>& frame) {
    each_piece<S>([&](auto, int, int, auto of) {
      auto& size = of(d);
      constexpr int N = sizeof(size) / 4;
#pragma unroll
      for (int i = 0; i < N; ++i) size[i] = absolute_difference<T>(of(frame)[i], of(r)[i]);
    });
  };
  if (S::maybe_rgb && p.luma_of_rgb) {
    LaneWords<S> luma = v, reference = r;
    to_luma<S>(p, false, luma);
    to_luma<S>(p, p.reference_is_luma && p.planes[0].reference.data, reference);
    r = reference;
    set_difference(luma);
    if (writes_difference<writes>(p)) v = luma;  // the overlay shows the picture itself
  } else {
    set_difference(v);
  }
  if (partly) equal_where_not_counted<S>(p, unmasked, v, r, d);

  std::uint32_t most[S::rows][S::quads * W];
  greatest<S>(p, d, most);
#pragma unroll
  for (int row = 0; row < S::rows; ++row) {
    if (partly) {
#pragma unroll
      for (int q = 0; q < S::quads; ++q) {
        std::uint32_t mask[W];
        expand_quad<T>(unmasked[row] >> 4 * q, mask);
#pragma unroll
        for (int w = 0; w < W; ++w) most[row][q * W + w] &= mask[w];
      }
    }
    unsigned bits = above_threshold<S>(p, most[row], sum);
    if (p.foreground && unmasked[row]) bits = load_bits<S>(p.foreground + (y + row) * p.bits_pitch, x) & unmasked[row];
    if constexpr (background) {
      if (p.drops_shadows && bits) {
        LaneWords<S> compared = v, lit = r;  // copies, so that v and r stay in registers
        if (S::maybe_rgb && p.luma_of_rgb && !writes_difference<writes>(p)) to_luma<S>(p, false, compared);
        bits = clear_shadows<S>(p, compared, lit, row, bits);
      }
    }
    changed[row] = bits;
  }
}

template <class S, bool background, Writes writes, bool whole>
__device__ __forceinline__ void compare_pixels(const KernelParams& p, int tile_x, int tile_y, CompareShared& shared) {
  constexpr unsigned all = (1u << S::pixels) - 1;
  const TilePlace<S> tile(tile_x, tile_y);
  const int x = tile.x, y = tile.y;
  const bool has_reference = !waits_for_reference(p);
  const bool across = x < (whole ? p.whole_width : p.width);

  LaneWords<S> v, r;  // the frame and the reference
  BackgroundStrip<S, background> state;
  load_source<S, whole>(p, across, x, y, v);
  load_references<S, background, whole>(p, across, x, y, r, state);
  if (p.count) clear_slots(p, shared.slots);
  unsigned unmasked[S::rows];
  bool partly = false;
#pragma unroll
  for (int row = 0; row < S::rows; ++row) {
    unmasked[row] = whole ? (across ? all : 0) : bits_in_frame<S>(p, x, y + row);
    if (!whole && p.unmasked && unmasked[row]) unmasked[row] &= load_bits<S>(p.unmasked + (y + row) * p.bits_pitch, x);
    partly = partly || (!whole && unmasked[row] != all);
  }
  __syncthreads();

  LaneWords<S> d;
  unsigned changed[S::rows], bits_set = 0;
  std::uint32_t sum = 0;
  find_changed<S, background, writes, whole>(p, has_reference, across, x, y, unmasked, partly, v, r, state, d, changed,
                                             sum);
#pragma unroll
  for (int row = 0; row < S::rows; ++row) {
    bits_set += __popc(changed[row]);
    if (p.changed && (whole || y + row < p.height))
      store_bits<S>(p.changed + (y + row) * p.bits_pitch, x, changed[row]);
  }
  if (p.count) count_bits<S::pixels>(p, tile.x0, tile.y0, x, y, changed, shared.slots);
  if (across) {
    if constexpr (may_write(writes, Writes::difference))
      if (writes_difference<writes>(p)) write_difference<S, whole>(p, x, y, v, r, d);
    if constexpr (may_write(writes, Writes::changed))
      if (writes == Writes::changed || p.writes == Writes::changed) write_changed<S, whole>(p, x, y, v, changed);
  }

  const int warp = threadIdx.x / 32;
  const bool any = bits_set != 0;
  sum = cuda::warp_sum(sum);
  if (threadIdx.x % 32 == 0) shared.sums[warp] = sum;
  if (p.detects_light) {
    bits_set = cuda::warp_sum(bits_set);
    if (threadIdx.x % 32 == 0) shared.above[warp] = bits_set;
  }
  const bool any_in_tile = __syncthreads_or(any);
  if (!background && across && !keeps_early<S>(p)) keep_frame<S, whole>(p, x, y, v);
  if (p.found_tiles && threadIdx.x == 0) p.found_tiles[blockIdx.x] = any_in_tile;
  if (p.count && any_in_tile) store_counts(p, int(blockIdx.x), tile.x0, tile.y0, shared.slots);
  if (threadIdx.x == 0 && p.verdict) {
    std::uint32_t of_tile = 0, above = 0;
#pragma unroll
    for (int i = 0; i < S::threads / 32; ++i) of_tile += shared.sums[i];
    if (p.detects_light && any_in_tile)
      for (int i = 0; i < S::threads / 32; ++i) above += shared.above[i];
    finish_comparison(p, has_reference, of_tile, above);
  }
}

/// Compares a tile. All threads of a block call it. `whole` code tests no edges; only common shapes have it.
template <class S, bool background, Writes writes>
__device__ __forceinline__ void compare_tile(const KernelParams& p, int tile_x, int tile_y, CompareShared& shared) {
  const bool across = (tile_x + 1) * S::tile_width <= p.whole_width || p.whole_width == p.width;
  if (S::common && across && tile_y < p.whole_rows && !p.unmasked)
    compare_pixels<S, background, writes, S::common>(p, tile_x, tile_y, shared);
  else
    compare_pixels<S, background, writes, false>(p, tile_x, tile_y, shared);
}

}  // namespace cudavision::diff
