// SPDX-License-Identifier: LGPL-2.1-or-later
// The source rows of a tile in shared memory, for cuda_matrix_tile.cu: bytes as in the frame, copied in units of 16 while the block
// works on the tile before it.
//
//   columns of a row      0          first                           last        end
//                         | sides    | bytes of the row of the frame | sides     |
//   byte of the frame     begin, a multiple of 16; `lead` bytes before the first window
//
//   sides: bytes outside the row, filled in when the tile has arrived. Most of them lie in the tile itself.
#pragma once

#include "kernels/convolve/cuda_params.cuh"
#include "kernels/cuda/async.cuh"

namespace cudavision::convolve {
namespace {

/// Copies those of the 16 bytes from byte `byte` of row `row` on that lie in the row; row −1: 16 border values.
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
      if (row < 0)
        to[i + j] = std::uint8_t(view.border_value[(at + j + (1 << 16) * 12) % view.channels]);
      else if (at + j >= 0 && at + j < job.row_bytes)
        to[i + j] = from[at + j];
    }
  }
}

struct TileRows {
  const MatrixJob& job;
  int begin, lead, pitch, rows;
  int first, last, end;  ///< columns, see above

  /// Windows begin at pixel x, a multiple of 4, and take `halves` half steps. No result needs pixels from `limit` on.
  __device__ __forceinline__ TileRows(const MatrixJob& job, int x, int halves, int rows, int limit) : job(job), rows(rows) {
    const int C = job.view.channels;
    begin = x * C & -16;
    lead = x * C - begin;
    pitch = matrix_tile_pitch(halves, lead, C);
    first = min(max(-begin, 0), pitch);
    last = max(min(pitch, job.row_bytes - begin), first);
    end = max(min(pitch, limit * C - begin), last);
  }
  __device__ __forceinline__ int bytes() const { return rows * pitch; }
  __device__ __forceinline__ bool has_sides() const { return first + end - last > 0; }

  /// Begins to copy the tile whose first row is row y of the frame.
  __device__ __forceinline__ void copy(unsigned char* tile, int y) const {
    const SetView& view = job.view;
    const int across = pitch / 16, items = rows * across;
    const int inverse = (1 << 22) / across + 1;  // item · inverse >> 22 = item / across, exact for the largest tile
    for (int item = threadIdx.x; item < items; item += blockDim.x) {
      const int r = unsigned(item) * unsigned(inverse) >> 22, column = (item - r * across) * 16;
      const int row = border_index(y + r, view.height, view.border);
      unsigned char* const to = tile + 16 * item;
      if (job.unit == 16 && row >= 0 && column >= first && column + 16 <= last)
        cuda::copy_async<16>(to, view.src + (row * view.src_pitch + begin + column));
      else
        copy_unit(job, to, row, begin + column);
    }
  }

  /// Fills the sides of that tile. A thread fills one column.
  __device__ __forceinline__ void fill_sides(unsigned char* tile, int y) const {
    const SetView& view = job.view;
    const int sides = first + end - last, threads = blockDim.x, together = max(threads / sides, 1);
    for (int k = threadIdx.x % sides; k < sides; k += threads) {
      const int column = k < first ? k : k - first + last, byte = begin + column, C = view.channels;
      const int pixel = byte >= 0 ? byte / C : -((C - 1 - byte) / C), channel = byte - pixel * C;
      const int from = border_index(pixel, view.width, view.border), found = from * C + channel - begin;
      if (!(view.own >> channel & 1)) continue;
      const bool inside = found >= first && found < last;
      for (int r = sides < threads ? threadIdx.x / sides : 0; r < rows; r += together) {
        unsigned char* const row = tile + r * pitch;
        if (from < 0) {
          row[column] = std::uint8_t(view.border_value[channel]);
        } else if (inside) {
          row[column] = row[found];
        } else {
          const int source = border_index(y + r, view.height, view.border);
          row[column] = source < 0 ? std::uint8_t(view.border_value[channel]) : view.src[source * view.src_pitch + begin + found];
        }
      }
    }
  }
};

}  // namespace
}  // namespace cudavision::convolve
