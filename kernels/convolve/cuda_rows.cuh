// SPDX-License-Identifier: LGPL-2.1-or-later
// The source rows of a block in shared memory, for cuda_matrix_strip.cu: groups of rows in a ring of slots, copied ahead of their use.
//
//   columns of a row      0          first                           last        end
//                         | sides    | copied in units of 16 bytes   | sides     |
//   row of the picture    begin      … inside the row …              … the block's pixels and 4 more
//
//   sides: bytes outside the row, and those that no whole unit holds. They are filled in when the group has arrived, by a map that is
//          made once: each byte's place in the row, or its border value. Most places lie in the tile itself.
//
// A warp copies whole rows: row `warp` of a group, and every warps-th one after it.
#pragma once

#include "kernels/convolve/cuda_params.cuh"
#include "kernels/cuda/async.cuh"

namespace cudavision::convolve {
namespace {

/// The place of byte `byte` of a row (from the start of the row, inside or not), or the complement of its border value.
__device__ __forceinline__ int place_of(const SetView& view, int byte) {
  const int C = view.channels, pixel = byte >= 0 ? byte / C : -((C - 1 - byte) / C), channel = byte - pixel * C;
  if (!(view.own >> channel & 1)) return ~0;
  const int column = border_index(pixel, view.width, view.border);
  return column < 0 ? ~int(view.border_value[channel]) : column * C + channel;
}

/// The columns of a row of the tile, see above. `first`, `last`: multiples of the unit. Byte `begin` of a row of the picture is column 0.
struct Columns {
  int begin, first, last, end;

  __device__ __forceinline__ int sides() const { return first + end - last; }
  __device__ __forceinline__ int side(int k) const { return k < first ? k : k - first + last; }
};

/// A warp begins to copy a row: any row, inside the frame or not, of any alignment.
static __device__ __noinline__ void copy_any(const MatrixJob& job, unsigned char* to, int row, Columns columns) {
  const SetView& view = job.view;
  const int lane = threadIdx.x % 32;
  row = border_index(row, view.height, view.border);
  const unsigned char* const from = view.src + row * view.src_pitch;
  if (row >= 0 && job.unit) {
    for (int column = columns.first + job.unit * lane; column < columns.last; column += 32 * job.unit) {
      const unsigned char* const at = from + columns.begin + column;
      if (job.unit == 16)
        cuda::copy_async<16>(to + column, at);
      else if (job.unit == 8)
        cuda::copy_async<8>(to + column, at);
      else
        cuda::copy_async<4>(to + column, at);
    }
    return;
  }
  for (int column = lane; column < columns.end; column += 32) {
    const int byte = columns.begin + column, found = place_of(view, byte);
    if (row < 0)
      to[column] = std::uint8_t(view.border_value[(byte + strip_lead * 12) % view.channels]);
    else
      to[column] = found < 0 ? std::uint8_t(~found) : from[found];
  }
}

/// Byte `byte` of the row of the picture that stands for any row.
static __device__ __noinline__ unsigned char load_byte(const MatrixJob& job, int row, int byte) {
  return job.view.src[border_index(row, job.view.height, job.view.border) * job.view.src_pitch + byte];
}

template <typename Layout>
struct RowRing {
  static constexpr int warps = tuning.strip_warps, rows = Layout::group, pitch = Layout::pitch;  ///< rows: of a group

  static constexpr int outside = 1 << 20;  ///< more than a row has bytes

  const MatrixJob& job;
  unsigned char* const memory;
  int* const map;
  Columns columns;
  int y, limit;  ///< the first row; rows from `limit` on are not needed

  /// A block whose first pixel is at byte `byte`, a multiple of 16. Rows from y on, to limit − 1.
  __device__ __forceinline__ RowRing(const MatrixJob& job, int byte, int y, int limit, unsigned char* memory)
      : job(job), memory(memory), map(reinterpret_cast<int*>(memory + Layout::map)), y(y), limit(limit) {
    const SetView& view = job.view;
    const int begin = byte - strip_lead, first = begin < 0 ? strip_lead : 0;
    int end = min(pitch, (view.x1 + 4) * view.channels - begin), last = first;
    if (job.unit) last = max(first, min((end + job.unit - 1) & -job.unit, (job.row_bytes - begin) & -job.unit));
    columns = {begin, first, last, max(end, last)};
  }

  __device__ __forceinline__ bool has_sides() const { return job.unit && columns.sides() > 0; }

  /// Makes the map of the sides. All threads call it, and synchronize before fill(). A place in the tile is its column; another one lies
  /// `outside` further.
  __device__ __forceinline__ void make_map() const {
    for (int k = threadIdx.x; k < columns.sides(); k += 32 * warps) {
      const int found = place_of(job.view, columns.begin + columns.side(k)), column = found - columns.begin;
      map[k] = found < 0 ? found : column >= columns.first && column < columns.last ? column : outside + found;
    }
  }

  /// Begins to copy the warp's rows of a group into a slot.
  __device__ __forceinline__ void copy(int group, int slot) const {
    const SetView& view = job.view;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int r = 0; r < rows; r += warps) {
      int row = y + group * rows + r + warp;
      if (row >= limit || r + warp >= rows) break;
      unsigned char* const to = memory + (slot * rows + r + warp) * pitch;
      bool any = job.unit != 16;
      if (unsigned(row) >= unsigned(view.height)) {
        any = any || view.border == Border::constant || view.height < 2 * small_most_side;
        row = any ? row : near_row(row);
      }
      if (any) {
        copy_any(job, to, row, columns);
        continue;
      }
      const unsigned char* const from = view.src + (row * view.src_pitch + columns.begin);
      // From the block's first pixel on, so that most requests are of whole lines of the cache; the window's left end comes last.
#pragma unroll
      for (int i = 0; i < (pitch + 511) / 512; ++i) {
        int column = strip_lead + i * 512 + 16 * lane;
        if (column >= pitch) column = column == pitch ? 0 : pitch;
        if (column >= columns.first && column < columns.last) cuda::copy_async<16>(to + column, from + column);
      }
    }
  }

  /// Fills the sides of a group that has arrived. Most values lie in the tile, so this reads no parameters, which takes long.
  __device__ __forceinline__ void fill(int group, int slot) const {
    const bool constant = job.view.border == Border::constant;
    const int height = job.view.height;
#pragma unroll 1
    for (int r = threadIdx.x / 32; r < rows; r += warps) {
      const int row = y + group * rows + r;
      if (row >= limit) break;
      if (constant && unsigned(row) >= unsigned(height)) continue;  // copy_any() has written the whole row
      unsigned char* const to = memory + (slot * rows + r) * pitch;
      for (int k = threadIdx.x % 32; k < columns.sides(); k += 32) {
        const int found = map[k];
        unsigned char value = std::uint8_t(~found);
        if (found >= outside)
          value = load_byte(job, row, found - outside);
        else if (found >= 0)
          value = to[found];
        to[columns.side(k)] = value;
      }
    }
  }

 private:
  /// border_index() for rows a little outside the frame, without a division. Not for Border::constant. For Border::fill and Border::copy
  /// any row serves.
  __device__ __forceinline__ int near_row(int row) const {
    const int height = job.view.height;
    switch (job.view.border) {
      case Border::reflect:
        return row < 0 ? -1 - row : 2 * height - 1 - row;
      case Border::reflect_101:
        return row < 0 ? -row : 2 * height - 2 - row;
      case Border::wrap:
        return row < 0 ? row + height : row - height;
      default:
        return row < 0 ? 0 : height - 1;
    }
  }
};

}  // namespace
}  // namespace cudavision::convolve
