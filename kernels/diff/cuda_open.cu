// SPDX-License-Identifier: LGPL-2.1-or-later
// Opens the mask that the comparing kernel stored as bits (erosion, then dilation, with a square of 2·radius + 1 pixels), spreads it over
// the pixels of the frame if the analysis has a part of its size, counts the changed pixels in cells, and shows them. Also runs without
// opening (radius 0) where it must wait for the decision whether light was switched (cuda_light.cuh); if it was, nothing changed.
//
//   grid: the tiles of cuda_compare.cu, of the frame. Shared memory: the bits of the tile in the analysis (32 pixels a word) with margins
//   of 2·radius rows and 1 word:
//
//        | word |<- tile_width / 32 words ->| word |   a thread stays in one column of words, and steps down
//        +------+---------------------------+------+ - 2·radius   a: loaded bits     -> b: eroded across  (all rows)
//        |      |  the tile, 16 / scale     |      |              b                  -> a: eroded down    (radius … rows − radius)
//        |      |  rows                     |      |              a                  -> b: dilated across -> a: down (the tile)
//        +------+---------------------------+------+ - 2·radius
//
//   Then each lane takes the bits of its strip, as in cuda_compare.cu. At a scale of 2:
//
//        changed of the analysis   |0 1 1 0 …|
//        pixels of the strip       |0 0 1 1 1 1 0 0 …|  in each of 2 rows
//
// Where to change what:
//   the border of the opening    the words loaded and combined in each_row() below (1 beyond the frame for the erosion, 0 for the
//                                dilation)
//   everything else              the list in cuda_compare.cu
#include "kernels/diff/cuda_count.cuh"
#include "kernels/diff/cuda_write.cuh"

namespace cudavision::diff {
namespace {

/// Bits for the pixels of a strip row, from those of the analysis from its first pixel on.
template <class S>
__device__ __forceinline__ unsigned spread_bits(unsigned word, int log2_scale) {
  if (log2_scale == 0) return word;
  unsigned bits = 0;
#pragma unroll
  for (int i = 0; i < S::pixels; ++i) bits |= (word >> (i >> log2_scale) & 1) << i;
  return bits;
}

template <class S, Writes writes>
__global__ void __launch_bounds__(S::threads) open_mask(const __grid_constant__ KernelParams p) {
  constexpr int pitch = S::tile_width / 32 + 2;  // words: one more on each side, because twice the radius is at most 32
  constexpr int most_rows = S::tile_rows + 4 * max_open_radius, at_once = S::threads / pitch;  // rows
  __shared__ std::uint32_t a[most_rows * pitch], b[most_rows * pitch];
  __shared__ std::uint32_t slots[max_slots + 2];
  const Tile<S> tile;
  // Of the analysis:
  const int scale = 1 << p.log2_scale, width = (p.width + scale - 1) >> p.log2_scale,
            height = (p.height + scale - 1) >> p.log2_scale;
  const int radius = p.open_radius, rows = (S::tile_rows >> p.log2_scale) + 4 * radius;
  const int top = (tile.y0 >> p.log2_scale) - 2 * radius, first_x = (tile.x0 >> p.log2_scale) / 32 * 32;
  const bool light = p.detects_light && p.state->light;
  clear_slots<S>(p, slots);

  // A thread stays in one column of words.
  const int row0 = threadIdx.x / pitch, column = threadIdx.x % pitch, word_x = first_x + (column - 1) * 32, left = width - word_x;
  const std::uint32_t in_frame = word_x < 0 || left <= 0 ? 0 : left >= 32 ? ~0u : (1u << left) - 1;
  const auto each_row = [&](int first, int last, auto work) {
    if (row0 < at_once)
      for (int row = first + row0; row < last; row += at_once) work(row, row * pitch + column);
    __syncthreads();
  };
  // Bits beyond the frame are 1 for the erosion and 0 for the dilation.
  each_row(0, rows, [&](int row, int at) {
    const int y = top + row;
    a[at] = in_frame && y >= 0 && y < height
                ? *reinterpret_cast<const std::uint32_t*>(p.changed + y * p.bits_pitch + word_x / 8) | ~in_frame
                : ~0u;
  });
  if (radius > 0) {
    const bool before_first = column == 0, after_last = column == pitch - 1;
    each_row(0, rows, [&](int, int at) {
      const std::uint32_t word = a[at], before = before_first ? ~0u : a[at - 1], after = after_last ? ~0u : a[at + 1];
      std::uint32_t kept = word;
      for (int s = 1; s <= radius; ++s) kept &= __funnelshift_l(before, word, s) & __funnelshift_r(word, after, s);
      b[at] = kept;
    });
    each_row(radius, rows - radius, [&](int row, int at) {
      std::uint32_t kept = unsigned(top + row) < unsigned(height) ? in_frame : 0;
      for (int s = -radius; s <= radius; ++s) kept &= b[at + s * pitch];
      a[at] = kept;
    });
    each_row(radius, rows - radius, [&](int, int at) {
      const std::uint32_t word = a[at], before = before_first ? 0 : a[at - 1], after = after_last ? 0 : a[at + 1];
      std::uint32_t grown = word;
      for (int s = 1; s <= radius; ++s) grown |= __funnelshift_l(before, word, s) | __funnelshift_r(word, after, s);
      b[at] = grown;
    });
    each_row(2 * radius, rows - 2 * radius, [&](int, int at) {
      std::uint32_t grown = 0;
      for (int s = -radius; s <= radius; ++s) grown |= b[at + s * pitch];
      a[at] = grown;
    });
  }

  const int bit = (tile.x >> p.log2_scale) - first_x;
  unsigned changed[S::rows];
#pragma unroll
  for (int row = 0; row < S::rows; ++row) {
    const int y = tile.y + row;
    const unsigned of_analysis = a[((y >> p.log2_scale) - top) * pitch + 1 + bit / 32] >> bit % 32;
    changed[row] = light ? 0 : spread_bits<S>(of_analysis, p.log2_scale) & bits_in_frame<S>(p, tile.x, y);
    count_bits<S>(p, tile, y, changed[row], slots);
  }
  if constexpr (writes == Writes::changed) {
    if (tile.x < p.width) show_changed<S>(p, tile.x, tile.y, changed);
  }
  __syncthreads();
  store_counts<S>(p, slots);
}

}  // namespace

const void* open_kernel(const Layout& layout, Writes writes) {
  return with_shape(layout, [&](auto shape) {
    using S = decltype(shape);
    return writes == Writes::changed ? reinterpret_cast<const void*>(open_mask<S, Writes::changed>)
                                     : reinterpret_cast<const void*>(open_mask<S, Writes::nothing>);
  });
}

}  // namespace cudavision::diff
