// SPDX-License-Identifier: LGPL-2.1-or-later
// The source rows of a tile in shared memory, for cuda_matrix_tile.cu: bytes as in the frame, copied in units of 16
// while the block processes the previous tile.
//
//   columns of a row      0          first                           last        end
//                         | sides    | bytes of the row of the frame | sides     |
//   byte of the frame     begin, a multiple of 16; `lead` bytes before the first window
//
//   sides: bytes outside the row, filled in when the tile has arrived. Most of them are in the tile itself.
#pragma once

#include "kernels/convolve/cuda_params.cuh"
#include "kernels/cuda/async.cuh"

namespace cudavision::convolve {
namespace {

/// Of the 16 bytes at byte `byte` of row `row`, copies the bytes inside the row; row −1: 16 border values.
static __device__ __noinline__ void copy_unit(const MatrixJob& job, unsigned char* to, int row, int byte) {
  const SetView& view = job.view;
  const unsigned char* const from = view.src + row * view.src_pitch;
#pragma unroll 1
  for (int i = 0; i < 16; i += 4) {
    const int at = byte + i;
    if (row >= 0 && job.unit && at >= 0 && at + 4 <= job.row_bytes) {
      cuda::copy_async<4>(to + i, from + at);
      continue;
    }
#pragma unroll 1
    for (int j = 0; j < 4; ++j) {
      if (row < 0)  // `at` may be negative; the summand, a multiple of 1 to 4 channels, does not change the remainder
        to[i + j] = std::uint8_t(view.border_value[(at + j + (1 << 16) * 12) % view.channels]);
      else if (at + j >= 0 && at + j < job.row_bytes)
        to[i + j] = from[at + j];
    }
  }
}

/// Writes channel c of a pixel of the frame, in any row.
static __device__ __noinline__ void copy_sample(const MatrixJob& job, unsigned char* to, int row, int column, int c) {
  const SetView& view = job.view;
  if (!(view.own >> c & 1)) return;
  row = border_index(row, view.height, view.border);
  *to = row < 0 ? std::uint8_t(view.border_value[c]) : view.src[row * view.src_pitch + column * view.channels + c];
}

template <int C>
struct TileRows {
  const MatrixJob& job;
  int begin, lead, pitch, rows;
  int first, last, end;  ///< columns; see the drawing above

  /// Windows begin at pixel x, a multiple of 4, and have `halves` half steps. No result needs pixel `limit` or later
  /// pixels.
  __device__ __forceinline__ TileRows(const MatrixJob& job, int x, int halves, int rows, int limit)
      : job(job), rows(rows) {
    begin = x * C & -16;
    lead = x * C - begin;
    pitch = matrix_tile_pitch(halves, lead, C);
    first = min(max(-begin, 0), pitch);
    last = max(min(pitch, job.row_bytes - begin), first);
    end = max(min(pitch, limit * C - begin), last);
  }
  __device__ __forceinline__ int bytes() const { return rows * pitch; }
  /// With Border::fill and Border::copy, results whose windows leave the frame are replaced, so any samples are valid.
  __device__ __forceinline__ bool has_sides() const { return first + end - last > 0 && extrapolates(job.view.border); }

  /// Starts copying the tile whose first row is row y of the frame. fill_sides() sets bytes outside the row. Rows
  /// outside the frame are border values; with Border::fill and Border::copy, they are unused and not copied.
  __device__ __forceinline__ void copy(unsigned char* tile, int y) const {
    const SetView& view = job.view;
    for_each(pitch / 16, [&](int unit, int first_row, int step) {
      const int column = 16 * unit;
      const bool whole = job.unit == 16 && column >= first && column + 16 <= last;
      const bool partly = column + 16 > first && column < last;
      const unsigned char* const from = view.src + (begin + column);
      for (int r = first_row; r < rows; r += step) {
        const int row = border_index(y + r, view.height, view.border);
        unsigned char* const to = tile + (r * pitch + column);
        if (whole && row >= 0)
          cuda::copy_async<16>(to, from + row * view.src_pitch);
        else if (row >= 0 ? partly : view.border == Border::constant)
          copy_unit(job, to, row, begin + column);
      }
    });
  }

  /// Fills the sides of this tile: whole pixels if there are four channels, otherwise single bytes.
  __device__ __forceinline__ void fill_sides(unsigned char* tile, int y) const {
    constexpr int size = C == 4 ? 4 : 1;
    using Unit = std::conditional_t<size == 4, std::uint32_t, std::uint8_t>;
    const SetView& view = job.view;
    const int left = first / size, right = last & -size, count = left + (end - right) / size;
    for_each(count, [&](int unit, int first_row, int step) {
      const int column = unit < left ? size * unit : size * (unit - left) + right, byte = begin + column;
      const int pixel = byte >= 0 ? byte / C : -((C - 1 - byte) / C), channel = byte - pixel * C;
      const int from = border_index(pixel, view.width, view.border), source_column = from * C + channel - begin;
      unsigned char* const to = tile + column;
      if (from < 0) {
        Unit value = 0;
#pragma unroll
        for (int c = 0; c < size; ++c) value |= Unit(view.border_value[channel + c] << 8 * c);
        for (int r = first_row; r < rows; r += step) *reinterpret_cast<Unit*>(to + r * pitch) = value;
      } else if (source_column >= first && source_column + size <= last) {  // inside the tile
#pragma unroll 4
        for (int r = first_row; r < rows; r += step)
          *reinterpret_cast<Unit*>(to + r * pitch) = *reinterpret_cast<const Unit*>(tile + (r * pitch + source_column));
      } else {
        for (int r = first_row; r < rows; r += step)
#pragma unroll 1
          for (int c = 0; c < size; ++c) copy_sample(job, to + (r * pitch + c), y + r, from, channel + c);
      }
    });
  }

 private:
  /// Divides rows of `count` units among the threads: calls f(unit, first row, distance between rows) for each thread.
  /// If there are more units than threads, some threads get several units.
  template <typename F>
  __device__ __forceinline__ static void for_each(int count, F&& f) {
    const int threads = blockDim.x;
    if (count > threads) {
      for (int unit = threadIdx.x; unit < count; unit += threads) f(unit, 0, 1);
    } else {
      const int row = int(threadIdx.x) / count, step = threads / count;
      if (row < step) f(int(threadIdx.x) - row * count, row, step);
    }
  }
};

}  // namespace
}  // namespace cudavision::convolve
