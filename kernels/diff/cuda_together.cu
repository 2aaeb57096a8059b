// SPDX-License-Identifier: LGPL-2.1-or-later
// Compares and opens by a radius of 1 in one launch: the warps of a block go down a tile together, and exchange the bits of the last rows
// through shared memory.
//
//   grid: the tiles of the frame, 30 strips wide. A step is as many rows as have 32 pixels of a lane: 2 of 16, 4 of 8, or 8 of 4
//
//                 lane 0 | lane 1 | … | lane 30 | lane 31     lanes 0 and 31 compare the pixels beside the tile; 2 rows above it and 2
//                +-------+--------+---+---------+-------+     below are compared, too
//       warp 0   |       |                      |       |     step 0
//       warp 1   |       |                      |       |     step 1
//          …     |       |         tile         |       |
//       warp 0   |       |                      |       |     the next step of warp 0, whose words are loaded before the last one ends
//          …     |       |                      |       |
//
//   a step:  words of the frame and the reference  ->  a bit for each pixel, in one word; the first row has the lowest bits
//            ->  erode along the rows (words of the lanes beside by shuffles), store the word for the next two steps; barrier
//            ->  erode down the columns of this step and the last, dilate both ways: the opened rows, 2 rows above those that were loaded
//            ->  count and write them
//
// Other blocks may read the same samples, so this kernel does not change the reference while it compares: it does not serve a background,
// and keeps the frame in other memory.
//
// Where to change what:
//   which plans run this, and the rows of a tile       opens_together() and walk_tiles() in cuda_schedule.cpp
//   the border of the opening                          Steps::in(): pixels beyond the frame neither erode nor dilate
//   everything else                                    the list in cuda_compare.cu
#include "kernels/diff/cuda_compare.cuh"

namespace cudavision::diff {
namespace {

constexpr int warps = tuning.walk_warps;

/// Rows of `pixels` bits of a lane in a word, on which the steps of an opening work.
template <int pixels>
struct BitRows {
  static constexpr std::uint32_t all = (std::uint64_t(1) << pixels) - 1;
  static constexpr std::uint32_t lowest = ~0u / all, highest = lowest << (pixels - 1);  ///< of each row

  /// The pixels to the left and to the right of each pixel.
  static __device__ __forceinline__ std::uint32_t left_of(std::uint32_t word) {
    const std::uint32_t beside = __shfl_up_sync(~0u, word, 1);
    return (word << 1 & ~lowest) | (beside >> (pixels - 1) & lowest);
  }
  static __device__ __forceinline__ std::uint32_t right_of(std::uint32_t word) {
    const std::uint32_t beside = __shfl_down_sync(~0u, word, 1);
    return (word >> 1 & ~highest) | (beside << (pixels - 1) & highest);
  }
  /// The word that begins one row or two rows earlier.
  static __device__ __forceinline__ std::uint32_t one_above(std::uint32_t last, std::uint32_t word) {
    return __funnelshift_l(last, word, pixels);
  }
  static __device__ __forceinline__ std::uint32_t two_above(std::uint32_t last, std::uint32_t word) {
    return pixels == 16 ? last : __funnelshift_l(last, word, 2 * pixels);
  }
};

/// The tile of a block and the place of a lane, in pixels.
template <class S>
struct Steps {
  static constexpr int rows = walk_step(S::pixels);  ///< of a step
  int lane, x0, x, y0, end;                          ///< x: of the lane
  int first, last;                                   ///< rows of the frame that are compared: first … last − 1
  std::uint32_t columns;                             ///< the bits of a step that lie between the sides of the frame

  __device__ __forceinline__ Steps(const KernelParams& p, int tile_x, int tile_y) {
    lane = threadIdx.x % 32;
    x0 = tile_x * walk_width(S::pixels);
    x = x0 + (lane - 1) * S::pixels;
    y0 = tile_y * p.walk_rows;
    end = min(y0 + p.walk_rows, p.height);
    first = max(y0 - 2, 0);
    last = min(end + 2, p.height);
    const int left = p.width - x;
    const unsigned in_row = x < 0 || left <= 0 ? 0 : left >= S::pixels ? BitRows<S::pixels>::all : (1u << left) - 1;
    columns = in_row * BitRows<S::pixels>::lowest;
  }
  /// The first row of a step. The opened rows begin two rows above, so that those of some step begin with the tile.
  __device__ __forceinline__ int top(int step) const { return y0 - (rows > 2 ? rows - 2 : 2) + step * rows; }
  /// The bits of a step that lie in the frame and are compared.
  __device__ __forceinline__ std::uint32_t in(int top) const {
    const int above = min(max(first - top, 0), rows), below = min(max(top + rows - last, 0), rows);
    if (above + below == 0) return columns;
    if (above + below >= rows) return 0;
    return columns & ~0u << above * S::pixels & ~0u >> below * S::pixels;
  }
  __device__ __forceinline__ bool own_column() const { return lane > 0 && lane < 31; }
  __device__ __forceinline__ bool own_row(int y) const { return y >= y0 && y < end; }
};

/// Words of the last steps, eroded along the rows: those of a step are read for the two steps that follow, while the warps may write one
/// step further.
struct Eroded {
  std::uint32_t of[3 * warps][32];
  __device__ __forceinline__ std::uint32_t& at(int step) { return of[(step + 3 * warps) % (3 * warps)][threadIdx.x % 32]; }
};

/// The opened rows that end two rows above those of `step`. word, in: of this step, eroded along the rows, and those in the frame.
template <class S>
__device__ __forceinline__ std::uint32_t open_step(const Steps<S>& steps, Eroded& eroded, int step, std::uint32_t word,
                                                   std::uint32_t in) {
  using Rows = BitRows<S::pixels>;
  const std::uint32_t last = eroded.at(step - 1), before = eroded.at(step - 2);
  const std::uint32_t in_last = steps.in(steps.top(step - 1)), in_before = steps.in(steps.top(step - 2));
  const auto down = [](std::uint32_t last, std::uint32_t word, std::uint32_t in_last, std::uint32_t in) {
    return word & Rows::one_above(last, word) & Rows::two_above(last, word) & Rows::one_above(in_last, in);
  };
  const std::uint32_t kept = down(last, word, in_last, in), kept_last = down(before, last, in_before, in_last);
  const std::uint32_t grown = kept | Rows::one_above(kept_last, kept) | Rows::two_above(kept_last, kept);
  return (grown | Rows::left_of(grown) | Rows::right_of(grown)) & Rows::two_above(in_last, in);
}

/// Counts the opened pixels of a lane from row y on, which lie in one cell if cells have whole strips and steps.
template <class S>
__device__ __forceinline__ void count_opened(const KernelParams& p, const Steps<S>& steps, int y, std::uint32_t opened,
                                             std::uint32_t* slots) {
  if (p.cell_size % S::pixels == 0 && p.cell_size % Steps<S>::rows == 0) {
    const int row = cell_of(p, y) - cell_of(p, steps.y0), column = cell_of(p, steps.x) - cell_of(p, steps.x0);
    if (opened) atomicAdd(slots + row * p.slots_x + column, __popc(opened));
    return;
  }
  unsigned rows[Steps<S>::rows];
#pragma unroll
  for (int i = 0; i < Steps<S>::rows; ++i) rows[i] = opened >> i * S::pixels & BitRows<S::pixels>::all;
  count_bits<S::pixels>(p, steps.x0, steps.y0, steps.x, y, rows, slots);
}

/// Stores opened rows from y on as bits. All lanes of the warp call this.
template <class S>
__device__ __forceinline__ void store_opened(const KernelParams& p, const Steps<S>& steps, int y, bool own, std::uint32_t opened) {
#pragma unroll
  for (int i = 0; i < Steps<S>::rows; ++i) {
    unsigned bits = own ? opened >> i * S::pixels & BitRows<S::pixels>::all : 0;
    if constexpr (S::pixels == 4) bits |= __shfl_down_sync(~0u, bits, 1) << 4;
    if (!own || y + i >= steps.end) continue;
    unsigned char* const to = p.final_mask + (y + i) * p.final_pitch + steps.x / 8;
    if constexpr (S::pixels == 16)
      *reinterpret_cast<std::uint16_t*>(to) = std::uint16_t(bits);
    else if (S::pixels == 8 || steps.lane % 2 == 1)  // a tile begins with lane 1, and with a whole byte
      *to = (unsigned char)(bits);
  }
}

/// Writes opened rows. The lane has some of their pixels in the frame.
template <class S, Writes writes, bool whole>
__device__ __forceinline__ void write_opened(const KernelParams& p, int x, int y, int end, std::uint32_t opened) {
#pragma unroll
  for (int row = 0; row < Steps<S>::rows; row += S::rows, opened >>= S::rows * S::pixels % 32) {
    if (y + row >= end) return;
    Words<S::rows> bits;
#pragma unroll
    for (int i = 0; i < S::rows; ++i) bits.of[i] = opened >> i * S::pixels & BitRows<S::pixels>::all;
    if constexpr (!whole) {
      show_changed_partly<S>(p, x, y + row, bits);
    } else if constexpr (writes == Writes::changed) {
      Strip<S> v;
      load_picture<S, true>(p, x, y + row, v);
      write_changed<S, true>(p, x, y + row, v, bits.of);
    } else {
      write_plain_mask<S>(p, x, y + row, bits.of);
    }
  }
}

/// Goes down a tile. Returns the sum of the differences of the pixels of the lane.
template <class S, Writes writes, bool whole>
__device__ __forceinline__ std::uint32_t walk(const KernelParams& p, const Steps<S>& steps, Eroded& eroded, std::uint32_t* slots) {
  using Rows = BitRows<S::pixels>;
  const bool has_reference = !waits_for_reference(p);
  const bool across = steps.x >= 0 && steps.x < (whole ? p.whole_width : p.width);
  const auto inside = [&](int y) { return across && y >= steps.first && y < steps.last; };
  const auto load = [&](int y, Strip<S>& v, Strip<S>& r) {
    BackgroundStrip<S, false> none;
    load_source<S, whole>(p, inside(y), steps.x, y, v);
    load_references<S, false, whole>(p, inside(y), steps.x, y, r, none);
  };
  std::uint32_t sum = 0;
  Strip<S> next_v, next_r;  // loaded one strip ahead
  int step = int(threadIdx.x) / 32;
  load(steps.top(step), next_v, next_r);
#pragma unroll 1
  for (int sweep = 0; steps.top(sweep) - 2 < steps.end; sweep += warps, step += warps) {
    const int top = steps.top(step);
    const std::uint32_t in = steps.in(top);
    std::uint32_t word = ~in;  // pixels that changed, or lie beyond the frame
#pragma unroll
    for (int row = 0; row < Steps<S>::rows; row += S::rows) {
      const int y = top + row;
      Strip<S> v = next_v, r = next_r, d;
      BackgroundStrip<S, false> none;
      load(row + S::rows < Steps<S>::rows ? y + S::rows : steps.top(step + warps), next_v, next_r);
      unsigned counted[S::rows], changed[S::rows];
      bool partly = false;
#pragma unroll
      for (int i = 0; i < S::rows; ++i) {
        counted[i] = in >> (row + i) * S::pixels & Rows::all;
        if (!whole && p.counted && counted[i]) counted[i] &= load_bits<S>(p.counted + (y + i) * p.bits_pitch, steps.x);
        partly = partly || (!whole && counted[i] != Rows::all);
      }
      std::uint32_t of_strip = 0;
      const bool own = inside(y) && steps.own_row(y) && steps.own_column();
      find_changed<S, false, writes, whole, false>(p, has_reference, own, steps.x, y, counted, partly, v, r, none, d, changed,
                                                   of_strip);
      if (own) sum += of_strip;
      if constexpr (writes == Writes::difference)
        if (own) write_difference<S, whole>(p, steps.x, y, v, r, d);
#pragma unroll
      for (int i = 0; i < S::rows; ++i) word |= changed[i] << (row + i) * S::pixels;
    }
    word &= Rows::left_of(word) & Rows::right_of(word);
    eroded.at(step) = word;
    __syncthreads();
    const std::uint32_t opened = open_step(steps, eroded, step, word, in);
    const int y = top - 2;
    const bool own = steps.own_row(y) && steps.own_column() && across;
    store_opened<S>(p, steps, y, own, opened);
    if (!own) continue;
    count_opened(p, steps, y, opened, slots);
    if constexpr (writes == Writes::mask || writes == Writes::changed)
      write_opened<S, writes, whole>(p, steps.x, y, steps.end, opened);
  }
  return sum;
}

template <class S, Writes writes>
__global__ void __launch_bounds__(32 * warps) compare_and_open(const __grid_constant__ KernelParams p) {
  extern __shared__ std::uint32_t slots[];
  __shared__ Eroded eroded;
  __shared__ std::uint32_t sums[warps];
  clear_slots(p, slots);  // before the first barrier of the walk
  const int tile_x = int(blockIdx.x), tile_y = int(blockIdx.y);
  const Steps<S> steps(p, tile_x, tile_y);
  const bool whole = (steps.x0 + 31 * S::pixels <= p.whole_width || p.whole_width == p.width) && !p.counted &&
                     (p.height % S::rows == 0 || steps.last < p.height);
  std::uint32_t sum;
  if (whole)
    sum = walk<S, writes, true>(p, steps, eroded, slots);
  else
    sum = walk<S, writes, false>(p, steps, eroded, slots);
  sum = cuda::warp_sum(sum);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  const int index = tile_y * int(gridDim.x) + tile_x;
  store_counts(p, index, slots);
  if (threadIdx.x > 0) return;
#pragma unroll
  for (int i = 1; i < warps; ++i) sum += sums[i];
  p.sums[index] = sum;
  if (p.interval > 1 && index == 0) *p.verdict = {!waits_for_reference(p), 0, 0};
}

}  // namespace

const void* compare_and_open_kernel(const Layout& layout, Writes writes) {
  return with_shape(layout, [&](auto shape) {
    using S = decltype(shape);
    if (writes == Writes::nothing) return reinterpret_cast<const void*>(compare_and_open<S, Writes::nothing>);
    if (writes == Writes::difference) return reinterpret_cast<const void*>(compare_and_open<S, Writes::difference>);
    if constexpr (S::channels0 < 4)  // formats of 4 channels have one that is copied
      if (writes == Writes::mask) return reinterpret_cast<const void*>(compare_and_open<S, Writes::mask>);
    return reinterpret_cast<const void*>(compare_and_open<S, Writes::changed>);
  });
}

}  // namespace cudavision::diff
