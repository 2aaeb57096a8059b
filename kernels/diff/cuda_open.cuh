// SPDX-License-Identifier: LGPL-2.1-or-later
// Opens a tile: see the drawing in cuda_open.cu.
#pragma once

#include "kernels/diff/cuda_count.cuh"
#include "kernels/diff/cuda_light.cuh"
#include "kernels/diff/cuda_write.cuh"

namespace cudavision::diff {

/// The part of a tile that a warp of an opening block processes.
template <class S, bool wide>
struct OpenedPart {
  static constexpr int warps = S::threads / 32, parts = Opened::parts(wide), words = Opened::words(wide),
                       pixels = 32 * words;
  static constexpr int rows = S::tile_rows * parts / warps;  ///< rows of a warp
  static_assert(rows % S::rows == 0 && rows > 0);
  /// In the frame: the first pixel of the part, and the first pixel of the lane, which is outside the part for lane 0.
  int begin, lane, x, y;
  /// In the analysis: the first pixel of the lane's word, the row for y, and the size.
  int word_x, row, width, height;

  __device__ __forceinline__ OpenedPart(const KernelParams& p, int tile_x, int tile_y) {
    const int warp = threadIdx.x / 32, scale = 1 << p.log2_scale;
    lane = threadIdx.x % 32;
    begin = (tile_x * parts + warp % parts) * pixels;
    x = begin + (lane - 1) * 32;
    y = tile_y * S::tile_rows + warp / parts * rows;
    word_x = ((begin >> p.log2_scale) / 32 + lane - 1) * 32;
    row = y >> p.log2_scale;
    width = (p.width + scale - 1) >> p.log2_scale;
    height = (p.height + scale - 1) >> p.log2_scale;
  }
};

/// The bits of a word that are in the frame. x: the first pixel of the word.
__device__ __forceinline__ std::uint32_t word_in_frame(int x, int width) {
  const int left = width - x;
  return x < 0 || left <= 0 ? 0 : left >= 32 ? ~0u : (1u << left) - 1;
}
/// The bits of a word in a row of the analysis; bits outside the frame are 1.
__device__ __forceinline__ std::uint32_t load_word(const KernelParams& p, int x, int y, int height, std::uint32_t in) {
  if (in == 0 || y < 0 || y >= height) return ~0u;
  return __ldcg(reinterpret_cast<const std::uint32_t*>(p.changed + y * p.bits_pitch + (x >> 3))) | ~in;
}

/// Opens the rows of a warp with a radius of 1 (radius 0: does not open them), in registers.
template <int rows>
__device__ __forceinline__ void open_by_one(const KernelParams& p, int x, int y, int width, int height,
                                            std::uint32_t (&opened)[rows]) {
  const std::uint32_t in = word_in_frame(x, width);
  std::uint32_t words[rows + 4];
  if (y >= 2 && y + rows + 2 <= height) {
    const unsigned char* from = p.changed + (y - 2) * p.bits_pitch + (max(x, 0) >> 3);
#pragma unroll
    for (int i = 0; i < rows + 4; ++i, from += p.bits_pitch)
      words[i] = in ? __ldcg(reinterpret_cast<const std::uint32_t*>(from)) | ~in : ~0u;
  } else {
#pragma unroll
    for (int i = 0; i < rows + 4; ++i) words[i] = load_word(p, x, y - 2 + i, height, in);
  }
  if (p.open_radius == 0) {
#pragma unroll
    for (int i = 0; i < rows; ++i) opened[i] = words[2 + i];
    return;
  }
#pragma unroll
  for (int i = 0; i < rows + 4; ++i) {
    const std::uint32_t before = __shfl_up_sync(~0u, words[i], 1), after = __shfl_down_sync(~0u, words[i], 1);
    words[i] &= __funnelshift_l(before, words[i], 1) & __funnelshift_r(words[i], after, 1);
  }
#pragma unroll
  for (int i = 0; i < rows + 2; ++i) {
    std::uint32_t kept = words[i] & words[i + 1] & words[i + 2] & in;
    if (y - 1 + i < 0 || y - 1 + i >= height) kept = 0;
    const std::uint32_t before = __shfl_up_sync(~0u, kept, 1), after = __shfl_down_sync(~0u, kept, 1);
    words[i] = kept | __funnelshift_l(before, kept, 1) | __funnelshift_r(kept, after, 1);
  }
#pragma unroll
  for (int i = 0; i < rows; ++i) opened[i] = words[i] | words[i + 1] | words[i + 2];
}

/// Opens the middle of three words along the row. `in`: the bits in the frame; bits outside it are 1 in `words`.
__device__ __forceinline__ std::uint32_t open_row(const std::uint32_t (&words)[3], const std::uint32_t (&in)[3],
                                                  int radius) {
  std::uint32_t before = words[0], middle = words[1], after = words[2];
#pragma unroll 1
  for (int s = 1; s <= radius; ++s) {  // before and after: only bits near the middle are correct
    before &= words[0] << s & __funnelshift_r(words[0], words[1], s);
    middle &= __funnelshift_l(words[0], words[1], s) & __funnelshift_r(words[1], words[2], s);
    after &= __funnelshift_l(words[1], words[2], s) & words[2] >> s;
  }
  before &= in[0], middle &= in[1], after &= in[2];
  std::uint32_t grown = middle;
#pragma unroll 1
  for (int s = 1; s <= radius; ++s) grown |= __funnelshift_l(before, middle, s) | __funnelshift_r(middle, after, s);
  return grown;
}

/// Opens the rows of all warps of a block with any radius, through shared memory.
template <class S, bool wide>
__device__ __noinline__ void open_by_more(const KernelParams& p, int tile_x, int tile_y, std::uint32_t* shared,
                                          std::uint32_t (&opened)[OpenedPart<S, wide>::rows]) {
  using Part = OpenedPart<S, wide>;
  constexpr int part_warps = Part::warps / Part::parts;
  const Part at(p, tile_x, tile_y);
  const int radius = p.open_radius, part = threadIdx.x / 32 % Part::parts, warp = threadIdx.x / 32 / Part::parts;
  const int rows = S::tile_rows >> p.log2_scale, top = (tile_y * S::tile_rows) >> p.log2_scale;
  std::uint32_t* const loaded = shared + part * (rows + 4 * radius) * 32;
  std::uint32_t* const opened_rows =
      shared + Part::parts * max(rows + 4 * radius, S::tile_rows) * 32 + part * (rows + 2 * radius) * 32;
  const std::uint32_t in[3] = {word_in_frame(at.word_x - 32, at.width), word_in_frame(at.word_x, at.width),
                               word_in_frame(at.word_x + 32, at.width)};
#pragma unroll 4
  for (int row = warp; row < rows + 4 * radius; row += part_warps)
    loaded[row * 32 + at.lane] = load_word(p, at.word_x, top - 2 * radius + row, at.height, in[1]);
  __syncthreads();
  for (int row = warp; row < rows + 2 * radius; row += part_warps) {
    const std::uint32_t* from = loaded + row * 32 + at.lane;
    std::uint32_t kept = *from;
#pragma unroll 4
    for (int i = 0; i < 2 * radius; ++i) kept &= *(from += 32);
    const std::uint32_t words[3] = {__shfl_up_sync(~0u, kept, 1), kept, __shfl_down_sync(~0u, kept, 1)};
    const int y = top - radius + row;
    opened_rows[row * 32 + at.lane] = y >= 0 && y < at.height ? open_row(words, in, radius) : 0;
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < Part::rows; ++i) {
    const int row = min(at.row - top + i, rows - 1);
    const std::uint32_t* from = opened_rows + row * 32 + at.lane;
    opened[i] = *from;
#pragma unroll 4
    for (int j = 0; j < 2 * radius; ++j) opened[i] |= *(from += 32);
  }
}

/// Repeats each of the low 32 >> log2_scale bits so that they fill a word.
__device__ __forceinline__ std::uint32_t spread_bits(std::uint32_t bits, int log2_scale) {
#pragma unroll 1
  for (int i = 0; i < log2_scale; ++i) {
    bits &= 0xffff;
    bits = (bits | bits << 8) & 0x00ff00ff;
    bits = (bits | bits << 4) & 0x0f0f0f0f;
    bits = (bits | bits << 2) & 0x33333333;
    bits = (bits | bits << 1) & 0x55555555;
    bits |= bits << 1;
  }
  return bits;
}

/// Converts the opened words of the analysis to the words of the frame.
template <int rows>
__device__ __forceinline__ void spread_rows(int log2_scale, int x, int word_x, std::uint32_t (&words)[rows]) {
  std::uint32_t spread[rows];
  const int lane = threadIdx.x % 32, first = __shfl_sync(~0u, word_x, 0), at = max(x >> log2_scale, 0);
#pragma unroll
  for (int i = 0; i < rows; ++i) {
    const std::uint32_t of_row = log2_scale == 1 ? words[i / 2] : log2_scale == 2 ? words[i / 4] : words[i / 8];
    spread[i] = spread_bits(__shfl_sync(~0u, of_row, (at - first) / 32) >> at % 32, log2_scale);
  }
#pragma unroll
  for (int i = 0; i < rows; ++i) words[i] = lane > 0 ? spread[i] : 0;
}

/// Shows the changed pixels of a warp. changed: bits of the 32 pixels of a lane (see OpenedPart); `shared` has room for
/// them. removed: the removed pixels in shared memory, so that only strips with such pixels are shown; null: all are
/// shown. The loop has few instructions, because fetching instructions takes most of the time for small frames.
template <class S, Writes writes, int rows, class Part>
__device__ __forceinline__ void show_part(const KernelParams& p, const Part& part, const std::uint32_t (&changed)[rows],
                                          std::uint32_t* shared, const std::uint32_t* removed) {
#pragma unroll
  for (int row = 0; row < rows; ++row) shared[row * 32 + part.lane] = changed[row];
  __syncwarp();
  const int whole_width = part.y + rows <= p.whole_rows * S::tile_rows ? p.whole_width : 0;
#pragma unroll 1
  for (int first = 0; first < rows; first += S::rows, shared += S::rows * 32) {
#pragma unroll 1
    for (int at = part.lane * S::pixels; at < Part::pixels; at += S::tile_width) {
      const int x = part.begin + at, y = part.y + first;
      const auto strip_of = [at](const std::uint32_t* rows_of_words, int row) {
        return rows_of_words[row * 32 + 1 + at / 32] >> at % 32 & ((1u << S::pixels) - 1);
      };
      if (removed) {
        std::uint32_t any = 0;
#pragma unroll
        for (int row = 0; row < S::rows; ++row) any |= strip_of(removed, first + row);
        if (any == 0) continue;
      }
      Words<S::rows> bits;
#pragma unroll
      for (int row = 0; row < S::rows; ++row) bits.of[row] = strip_of(shared, row);
      if (x + S::pixels > whole_width) {
        if (x < p.width) show_changed_partly<S>(p, x, y, bits);
      } else if constexpr (may_write(writes, Writes::changed)) {
        LaneWords<S> v;
        if (writes == Writes::changed || p.writes == Writes::changed)
          load_picture<S, true>(p, x, y, v);
        else  // Writes::mask does not need it
          each_piece<S>([&](auto, int, int, auto of) { clear_words(of(v)); });
        write_changed<S, true>(p, x, y, v, bits.of);
      } else {
        write_plain_mask<S>(p, x, y, bits.of);
      }
    }
  }
}

/// Whether a tile has nothing to open and nothing to clear. All threads of a block call this function, which also waits
/// until the slots are cleared. Opening only removes pixels, so only the pixels in the tile matter.
template <class S, bool wide>
__device__ __forceinline__ bool skips_tile(const KernelParams& p, int tile_x, int tile_y) {
  bool found = !p.found_tiles;
  if (p.found_tiles) {
    const int begin = tile_x * Opened::width(wide), end = min(begin + Opened::width(wide), p.width);
    const int tile = begin / S::tile_width + int(threadIdx.x);
    if (tile * S::tile_width < end) found = __ldcg(p.found_tiles + tile_y * p.compared_x + tile);
    if (threadIdx.x == 0 && p.final_mask) found = found || __ldcg(p.filled_tiles + blockIdx.x);
  }
  return !__syncthreads_or(found);
}

/// Opens a tile, counts its changed pixels and shows them. All threads of a block call it.
template <class S, Writes writes, bool wide>
__device__ __forceinline__ void open_tile(const KernelParams& p, int tile_x, int tile_y, std::uint32_t* slots) {
  using Part = OpenedPart<S, wide>;
  const bool light = p.detects_light && __ldcg(&p.state->light);
  if (light) restart_rows<typename S::T>(p.restart);
  if (skips_tile<S, wide>(p, tile_x, tile_y)) return;
  const Part part(p, tile_x, tile_y);
  constexpr int words_of_warp = Part::rows * 32;
  std::uint32_t* const removed = slots + p.slots + 1 + threadIdx.x / 32 * words_of_warp;
  std::uint32_t* const shared = slots + p.slots + 1 + (p.corrects ? Part::warps * words_of_warp : 0);
  std::uint32_t changed[Part::rows];
  if (p.open_radius <= 1)
    open_by_one(p, part.word_x, part.row, part.width, part.height, changed);
  else
    open_by_more<S, wide>(p, tile_x, tile_y, shared, changed);
  if (p.log2_scale > 0) spread_rows(p.log2_scale, part.x, part.word_x, changed);

  const bool beside = part.lane == 0 || part.lane > Part::words;
  const std::uint32_t in = beside ? 0 : word_in_frame(part.x, p.width);
#pragma unroll
  for (int i = 0; i < Part::rows; ++i) changed[i] = part.y + i < p.height && !light ? changed[i] & in : 0;
  if (p.final_mask && !beside && part.x < p.width)
#pragma unroll
    for (int i = 0; i < Part::rows; ++i)
      if (part.y + i < p.height)
        reinterpret_cast<std::uint32_t*>(p.final_mask + (part.y + i) * p.final_pitch)[part.x / 32] = changed[i];
  count_bits<32>(p, tile_x * Opened::width(wide), tile_y * S::tile_rows, part.x, part.y, changed, slots);
  if constexpr (writes != Writes::nothing) {
    if (part.begin < p.width && part.y < p.height) {
      std::uint32_t any = p.corrects ? 0 : 1;
      if (p.corrects) {
#pragma unroll
        for (int i = 0; i < Part::rows; ++i) {
          const std::uint32_t before = load_word(p, part.x, part.y + i, p.height, in) & in;
          removed[i * 32 + part.lane] = part.y + i < p.height ? before & ~changed[i] : 0;
          any |= removed[i * 32 + part.lane];
        }
      }
      if (__any_sync(~0u, any))
        show_part<S, writes>(p, part, changed, shared + threadIdx.x / 32 * words_of_warp,
                             p.corrects ? removed : nullptr);
    }
  }
  std::uint32_t any = 0;
#pragma unroll
  for (int i = 0; i < Part::rows; ++i) any |= changed[i];
  const bool any_in_tile = __syncthreads_or(any != 0);
  if (p.found_tiles && p.final_mask && threadIdx.x == 0) p.filled_tiles[blockIdx.x] = any_in_tile;
  if (any_in_tile) store_counts(p, int(blockIdx.x), tile_x * Opened::width(wide), tile_y * S::tile_rows, slots);
}

}  // namespace cudavision::diff
