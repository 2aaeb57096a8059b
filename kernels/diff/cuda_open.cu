// SPDX-License-Identifier: LGPL-2.1-or-later
// Opens the mask that the comparing kernel stored as bits (erosion, then dilation, with a square of 2·radius + 1 pixels), counts
// the changed pixels in cells, and shows them. Also runs without opening (radius 0) where it must wait for the decision whether light
// was switched (cuda_light.cuh); if it was, nothing changed. At a part of the size, it stores bits for cuda_spread.cu instead.
//
//   grid: the tiles of cuda_compare.cu. Shared memory: its bits (32 pixels a word) with margins of 2·radius rows and 1 word:
//
//        | word |<- tile_width / 32 words ->| word |   a thread stays in one column of words, and steps down
//        +------+---------------------------+------+ - 2·radius   a: loaded bits     -> b: eroded across  (all rows)
//        |      |   the tile, 16 rows       |      |              b                  -> a: eroded down    (radius … rows − radius)
//        +------+---------------------------+------+ - 2·radius   a                  -> b: dilated across -> a: down (the tile)
//
// Then each lane takes the bits of its strip, as in cuda_compare.cu.
//
// Where to change what:
//   the border of the opening    the words loaded and combined in each_row() below (1 beyond the frame for the erosion, 0 for the
//                                dilation)
//   everything else              the list in cuda_compare.cu
#include "kernels/diff/cuda_count.cuh"
#include "kernels/diff/cuda_write.cuh"

namespace cudavision::diff {
namespace {

template <class S, Writes writes>
__global__ void __launch_bounds__(S::threads) open_mask(const __grid_constant__ KernelParams p) {
  constexpr int pitch = S::tile_width / 32 + 2;  // words: one more on each side, because twice the radius is at most 32
  constexpr int most_rows = S::tile_rows + 4 * max_open_radius, at_once = S::threads / pitch;  // rows
  __shared__ std::uint32_t a[most_rows * pitch], b[most_rows * pitch];
  __shared__ std::uint32_t slots[max_slots + 2];
  const Tile<S> tile;
  const int radius = p.open_radius, rows = S::tile_rows + 4 * radius, top = tile.y0 - 2 * radius;
  const bool light = p.detects_light && p.state->light;
  clear_slots<S>(p, slots);

  // A thread stays in one column of words.
  const int row0 = threadIdx.x / pitch, column = threadIdx.x % pitch, word_x = tile.x0 + (column - 1) * 32, left = p.width - word_x;
  const std::uint32_t in_frame = word_x < 0 || left <= 0 ? 0 : left >= 32 ? ~0u : (1u << left) - 1;
  const auto each_row = [&](int first, int last, auto work) {
    if (row0 < at_once)
      for (int row = first + row0; row < last; row += at_once) work(row, row * pitch + column);
    __syncthreads();
  };
  // Bits beyond the frame are 1 for the erosion and 0 for the dilation.
  each_row(0, rows, [&](int row, int at) {
    const int y = top + row;
    a[at] = in_frame && y >= 0 && y < p.height
                ? *reinterpret_cast<const std::uint32_t*>(p.changed + y * p.bits_pitch + word_x / 8) | ~in_frame
                : ~0u;
  });
  const bool before_first = column == 0, after_last = column == pitch - 1;
  each_row(0, rows, [&](int, int at) {
    const std::uint32_t word = a[at], before = before_first ? ~0u : a[at - 1], after = after_last ? ~0u : a[at + 1];
    std::uint32_t kept = word;
    for (int s = 1; s <= radius; ++s) kept &= __funnelshift_l(before, word, s) & __funnelshift_r(word, after, s);
    b[at] = kept;
  });
  each_row(radius, rows - radius, [&](int row, int at) {
    std::uint32_t kept = unsigned(top + row) < unsigned(p.height) ? in_frame : 0;
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

  const int bit = tile.x - tile.x0;
  unsigned changed[S::rows];
#pragma unroll
  for (int row = 0; row < S::rows; ++row) {
    const int y = tile.y + row;
    changed[row] = light ? 0 : a[(y - top) * pitch + 1 + bit / 32] >> bit % 32 & bits_in_frame<S>(p, tile.x, y);
    if (writes != Writes::bits)
      count_bits<S>(p, tile, y, changed[row], slots);
    else if (y < p.height)
      store_bits<S>(p.opened + y * p.bits_pitch, tile.x, changed[row]);
  }
  if constexpr (writes == Writes::changed) {
    if (tile.x < p.width) show_changed<S>(p, tile.x, tile.y, changed);
  }
  if (writes == Writes::bits) return;
  __syncthreads();
  store_counts<S>(p, slots);
}

}  // namespace

const void* open_kernel(const Layout& layout, Writes writes) {
  return with_shape(layout, [&](auto shape) {
    using S = decltype(shape);
    if (writes == Writes::bits) return reinterpret_cast<const void*>(open_mask<S, Writes::bits>);
    return writes == Writes::changed ? reinterpret_cast<const void*>(open_mask<S, Writes::changed>)
                                     : reinterpret_cast<const void*>(open_mask<S, Writes::nothing>);
  });
}

}  // namespace cudavision::diff
