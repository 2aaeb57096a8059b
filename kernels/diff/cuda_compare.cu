// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares frames, in one read: difference, threshold, output, the reference for later frames, and counts of changed pixels in
// cells.
//
//   grid: tiles_x × tiles_y tiles; a tile is a block, 32 lanes wide, 16 rows high
//
//           lane 0    lane 1        lane 31      a lane has 4, 8 or 16 pixels of a row (strip_pixels), of 1 row, or of 2 rows if
//   warp 0  |strip   |strip   | … |strip   |    chroma is subsampled in height, with the chroma samples of those pixels:
//   warp 1  |strip   |strip   | … |strip   |        plane 0    |Y0 Y1 Y2 … Y15|     16 bytes (GRAY8, NV12)
//     …                                                        |Y0 Y1 Y2 … Y15|
//                                                   plane 1    |U0 V0 … U7 V7 |
//
// A tile adds its counts in shared memory and stores them as a record of its own, in page-locked host memory: no counter is shared
// by tiles, none must be cleared, and no copy follows the kernel. The host adds the records.
//
// Where to change what:
//   another border         the opening: cuda_open.cu (nothing erodes or dilates from beyond the frame); comparing has no border
//   another sample type    cuda_schedule.cpp (layout_of), with_shape() in cuda_shape.cuh, words: cuda_values.cuh and cuda_masks.cuh
//   another block shape    cuda_tuning.hpp (tile_rows, strip_bytes), strip_pixels() and strip_rows() in cuda_schedule.hpp
//   another output         Writes in cuda_schedule.hpp, cuda_write.cuh; a mode: Show in arithmetic.hpp
#include "kernels/cuda/warp.cuh"
#include "kernels/diff/cuda_count.cuh"
#include "kernels/diff/cuda_light.cuh"
#include "kernels/diff/cuda_shadow.cuh"
#include "kernels/diff/cuda_values.cuh"
#include "kernels/diff/cuda_write.cuh"

namespace cudavision::diff {
namespace {

/// The words of the background: of twice the bytes of a sample.
template <class S, bool background>
using State = Strip<S, background ? 2 : 1>;

/// Loads the references at (x, y), as stored: r, or the background into `state`.
template <class S, bool background>
__device__ __forceinline__ void load_references(const KernelParams& p, bool across, int x, int y, Strip<S>& r,
                                                State<S, background>& state) {
  each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
    const PlaneJob& job = p.planes[plane];
    const bool inside = across && y + row < p.height;
    if constexpr (background) {
      if (job.background.data && inside) load_own(job.background, 2 * byte_of<S, P>(x), row_of<S, P>(row, y), of(state));
    } else {
      if (job.reference.data && inside)
        load_row<false>(job.reference, job.reference_bytes, job.reference_alignment, byte_of<S, P>(x), row_of<S, P>(row, y), of(r));
    }
  });
}

/// Keeps the frame, brings v and r to sample values, and updates the background. Samples that are not compared become equal; all if
/// the frame has no reference yet.
template <class S, bool background>
__device__ __forceinline__ void prepare_values(const KernelParams& p, bool has_reference, bool across, int x, int y, Strip<S>& v,
                                               Strip<S>& r, State<S, background>& state) {
  using T = typename S::T;
  each_piece<S>([&](auto piece, int plane, int row, auto of) {
    using P = decltype(piece);
    const PlaneJob& job = p.planes[plane];
    auto &words = of(v), &from = of(r);
    constexpr int N = sizeof(words) / 4;
    const bool inside = across && y + row < p.height;
    if (job.keep.data && inside) store_own(job.keep, byte_of<S, P>(x), row_of<S, P>(row, y), words);
    to_values<S>(p, words);
    if constexpr (background) {
      if (job.background.data) {
        step_background<T>(p, words, of(state), from);
        if (inside) store_own(job.background, 2 * byte_of<S, P>(x), row_of<S, P>(row, y), of(state));
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

/// Pixels that are not counted become equal.
template <class S>
__device__ __forceinline__ void equal_where_not_counted(const KernelParams& p, const unsigned (&counted)[S::rows],
                                                        const Strip<S>& v, Strip<S>& r, Strip<S>& d) {
  each_piece<S>([&](auto piece, int, int row, auto of) {
    using P = decltype(piece);
    auto& words = of(v);
    auto &from = of(r), &size = of(d);
    constexpr int N = sizeof(words) / 4;
    std::uint32_t mask[N];
    expand_piece<S, P>(p, counted, row, mask);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      from[i] = (from[i] & mask[i]) | (words[i] & ~mask[i]);
      size[i] &= mask[i];
    }
  });
}

/// Adds the differences of a row of pixels (one value each) to `sum`; returns one bit for each pixel above the threshold.
template <class S>
__device__ __forceinline__ unsigned above_threshold(const KernelParams& p, const std::uint32_t (&most)[S::quads * S::words_a_quad],
                                                    std::uint32_t& sum) {
  constexpr int W = S::words_a_quad;
  unsigned bits = 0;
#pragma unroll
  for (int q = 0; q < S::quads; ++q) {
    if constexpr (sizeof(typename S::T) == 1) {
      const std::uint32_t word = most[q];
      sum = __dp4a(word, 0x01010101u, sum);
      bits |= __dp4a(__vsetgtu4(word, p.threshold), 0x08040201u, 0u) << 4 * q;
    } else {
#pragma unroll
      for (int w = 0; w < W; ++w) {
        const std::uint32_t word = most[q * W + w], low = word & 0xffff, high = word >> 16;
        sum += low + high;
        bits |= (unsigned(low > (p.threshold & 0xffff)) | unsigned(high > (p.threshold & 0xffff)) << 1) << (4 * q + 2 * w);
      }
    }
  }
  return bits;
}

template <class S, bool background, Writes writes>
__global__ void __launch_bounds__(S::threads) compare(const __grid_constant__ KernelParams p) {
  using T = typename S::T;
  constexpr int W = S::words_a_quad;
  constexpr unsigned all = (1u << S::pixels) - 1;
  __shared__ std::uint32_t slots[max_slots + 2], above;
  const Tile<S> tile;
  const int x = tile.x, y = tile.y;
  const bool has_reference = !waits_for_reference(p);
  if (threadIdx.x == 0) above = 0;
  const bool across = x < p.width;

  Strip<S> v, r;  // the frame and the reference
  State<S, background> state;
  load_source<S>(p, x, y, v);
  load_references<S, background>(p, across, x, y, r, state);
  clear_slots<S>(p, slots);
  unsigned counted[S::rows];
  bool partly = false;
#pragma unroll
  for (int row = 0; row < S::rows; ++row) {
    counted[row] = bits_in_frame<S>(p, x, y + row);
    if (p.counted && counted[row]) counted[row] &= load_bits<S>(p.counted + (y + row) * p.bits_pitch, x);
    partly = partly || counted[row] != all;
  }
  __syncthreads();

  prepare_values<S, background>(p, has_reference, across, x, y, v, r, state);
  Strip<S> d;  // |v − r|, of luma if only the luma of RGB is compared
  const auto set_difference = [&](const Strip<S>& frame) {
    each_piece<S>([&](auto, int, int, auto of) {
      auto& size = of(d);
      constexpr int N = sizeof(size) / 4;
#pragma unroll
      for (int i = 0; i < N; ++i) size[i] = absolute_difference<T>(of(frame)[i], of(r)[i]);
    });
  };
  if (S::maybe_rgb && p.luma_of_rgb) {
    Strip<S> luma = v, reference = r;
    to_luma<S>(p, false, luma);
    to_luma<S>(p, p.reference_is_luma && p.planes[0].reference.data, reference);
    r = reference;
    set_difference(luma);
    if (writes == Writes::difference) v = luma;  // the overlay shows the picture itself
  } else {
    set_difference(v);
  }
  if (partly) equal_where_not_counted<S>(p, counted, v, r, d);

  std::uint32_t most[S::rows][S::quads * W], sum = 0;
  greatest<S>(p, d, most);
  unsigned changed[S::rows], bits_set = 0;
#pragma unroll
  for (int row = 0; row < S::rows; ++row) {
    if (partly) {
#pragma unroll
      for (int q = 0; q < S::quads; ++q) {
        std::uint32_t mask[W];
        expand_quad<T>(counted[row] >> 4 * q, mask);
#pragma unroll
        for (int w = 0; w < W; ++w) most[row][q * W + w] &= mask[w];
      }
    }
    unsigned bits = above_threshold<S>(p, most[row], sum);
    if (p.foreground && counted[row]) bits = load_bits<S>(p.foreground + (y + row) * p.bits_pitch, x) & counted[row];
    if constexpr (background) {
      if (p.drops_shadows && bits) {
        Strip<S> compared = v, lit = r;  // copies, so that v and r stay in registers
        if (S::maybe_rgb && p.luma_of_rgb && writes != Writes::difference) to_luma<S>(p, false, compared);
        bits = clear_shadows<S>(p, compared, lit, row, bits);
      }
    }
    changed[row] = bits;
    bits_set += __popc(bits);
    if (p.changed && y + row < p.height) store_bits<S>(p.changed + (y + row) * p.bits_pitch, x, bits);
    if (p.count) count_bits<S>(p, tile, y + row, bits, slots);
  }
  if (across) {
    if constexpr (writes == Writes::difference) write_difference<S>(p, x, y, v, r, d);
    if constexpr (writes == Writes::changed) write_changed<S>(p, x, y, v, changed);
  }

  sum = cuda::warp_sum(sum);
  if (threadIdx.x % 32 == 0 && sum) atomicAdd(&slots[0], sum);
  if (p.detects_light) {
    bits_set = cuda::warp_sum(bits_set);
    if (threadIdx.x % 32 == 0 && bits_set) atomicAdd(&above, bits_set);
  }
  __syncthreads();
  if (p.count) store_counts<S>(p, slots);
  if (threadIdx.x == 0) {
    *record_of(p) = slots[0];
    if (p.detects_light)
      decide_light(*p.state, p.verdict, {p.number, p.light_limit, p.light_age}, has_reference, above);
    else if (p.interval > 1 && blockIdx.x == 0 && blockIdx.y == 0)
      *p.verdict = {has_reference, 0, 0};
  }
}

template <class S, bool background>
const void* choose(Writes writes) {
  if (writes == Writes::nothing) return reinterpret_cast<const void*>(compare<S, background, Writes::nothing>);
  if (writes == Writes::difference) return reinterpret_cast<const void*>(compare<S, background, Writes::difference>);
  return reinterpret_cast<const void*>(compare<S, background, Writes::changed>);
}

}  // namespace

const void* compare_kernel(const Layout& layout, bool background, Writes writes) {
  return with_shape(layout, [&](auto shape) {
    using S = decltype(shape);
    return background ? choose<S, true>(writes) : choose<S, false>(writes);
  });
}

}  // namespace cudavision::diff
