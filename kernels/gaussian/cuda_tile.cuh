// SPDX-License-Identifier: LGPL-2.1-or-later
// The source rows of a block in shared memory: groups of 16 rows in a ring of slots, copied ahead of their use.
//
//   columns of a group     0           first                         last         end
//                          | sides     | copied in units             | sides      |
//   row of the picture     begin       … inside the row, aligned …                … 64 bytes a warp, and their window
//
//   copying: Thread i copies row i / per_row of each group. It copies unit i % per_row and then every per_row-th unit.
//            Units are numbered from the first strip on; the left end of the window comes last. So most requests are
//            for whole lines of the cache (128 bytes).
//   sides:   Samples outside the row, and samples that no whole unit holds. They are filled in when the group has
//            arrived. A map, made once, gives each sample's index in the row or its border value. Most of these samples
//            are in the tile itself.
//
// cuda.cu lists where to change what.
#pragma once

#include "kernels/cuda/async.cuh"
#include "kernels/cuda/warp.cuh"
#include "kernels/gaussian/cuda_read.cuh"

namespace cudavision::gaussian {

/// Copies columns [first, last) of a row in units of Unit bytes: unit `part` and every per_row-th one after it.
template <int Unit, int Per_row>
__device__ __forceinline__ void copy_units(unsigned char* to, const unsigned char* from, int first, int last,
                                           int part) {
#pragma unroll 1
  for (int column = first + part * Unit; column < last; column += Per_row * Unit)
    cuda::copy_async<Unit>(to + column, from + column);
}

/// The rare cases, kept out of the loop: rows that are border values (row < 0),
/// and rows that are not aligned to 16 bytes.
template <typename T, int Per_row>
static __device__ __noinline__ void copy_rarely(const SetJob& job, unsigned char* to, int row, int begin, int first,
                                                int last, int end, int part) {
  const unsigned char* const from = job.view.src + row * job.view.src_pitch + begin;
  if (row < 0) {
    for (int c = part * int(sizeof(T)); c < end; c += Per_row * int(sizeof(T)))
      *reinterpret_cast<T*>(to + c) = T(border_sample(job, (begin + c) / int(sizeof(T))));
  } else if (job.unit == 8) {
    copy_units<8, Per_row>(to, from, first, last, part);
  } else if (job.unit == 4) {
    copy_units<4, Per_row>(to, from, first, last, part);
  }
}

template <typename T, int Pitch>
struct Tile {
  static constexpr int threads = 32 * tuning.strip_warps;
  static constexpr int per_row = threads / step_rows;

  const SetJob& job;
  unsigned char* const memory;
  int* const map;
  int begin, first, last, end;  ///< byte columns, see above: whole samples; `first` and `begin` are multiples of 32
  int needed;                   ///< the first column in a window, at most `first`
  int y, limit;                 ///< the thread's row of group 0; rows from `limit` on are not needed
  int strip;                    ///< the column where the first strip begins
  int row, part;                ///< the thread's row in each group, and its first unit in that row
  int height;                   ///< height of the picture
  const unsigned char* source;  ///< byte `begin` of row 0
  long long pitch;              ///< bytes from row to row of the source

  /// A block of `bytes` bytes at byte x, which needs rows from y to limit − 1.
  __device__ __forceinline__ Tile(const SetJob& job, int x, int bytes, int y, int limit, unsigned char* memory,
                                  int* map)
      : job(job), memory(memory), map(map), y(y + int(threadIdx.x) / per_row), limit(limit) {
    row = threadIdx.x / per_row;
    part = threadIdx.x % per_row;
    begin = (x - job.lead) & ~31;  // a sector of the L2 cache
    strip = x - begin;
    end = min(x + bytes, job.row_end) + job.reach - begin;
    const int unit = max(job.unit, 1);
    first = job.unit ? max(0, -begin) : 0;
    last = job.unit ? max(first, min((end + 31) / 32 * 32, (job.row_bytes - begin) / unit * unit)) : 0;
    end = max(end, last);
    needed = min(first, strip - job.reach);
    height = cuda::warp_uniform(job.view.height);
    source =
        reinterpret_cast<const unsigned char*>(cuda::warp_uniform(reinterpret_cast<long long>(job.view.src + begin)));
    pitch = cuda::warp_uniform((long long)(job.view.src_pitch));
  }

  __device__ __forceinline__ bool has_sides() const { return needed < first || last < end; }
  /// Samples to the left of `needed` are in no window.
  __device__ __forceinline__ int sides() const { return (first - needed + end - last) / int(sizeof(T)); }
  /// The column of side sample k.
  __device__ __forceinline__ int side(int k) const {
    const int column = needed + k * int(sizeof(T));
    return column < first ? column : column - first + last;
  }

  /// Makes the map of the sides. All threads of the block call it, and synchronize before fill().
  __device__ __forceinline__ void make_map() const {
#pragma unroll 1
    for (int k = threadIdx.x; k < sides(); k += threads)
      map[k] = source_byte(job, (begin + side(k)) / int(sizeof(T)), int(sizeof(T)));
  }

  /// Whether copy<true>() is enough: rows are aligned and without sides,
  /// and no row has border values or lies far outside the frame.
  __device__ __forceinline__ bool plain(int radius) const {
    const bool inside = y - row >= 0 && limit <= height;
    return job.unit == 16 && !has_sides() && (inside || (job.view.border != Border::constant && radius < height));
  }

  /// Begins to copy the thread's part of group `group` into slot `slot`. Plain: see plain().
  template <bool Plain>
  __device__ __forceinline__ void copy(int group, int slot) const {
    int from = y + group * step_rows;
    if (from >= limit) return;
    if (__builtin_expect(unsigned(from) >= unsigned(height), 0))
      from = Plain ? near_border_index(from, height, job.view.border) : border_index(from, height, job.view.border);
    unsigned char* const to = memory + (slot * step_rows + row) * Pitch;
    if (!Plain && (job.unit != 16 || from < 0))
      return copy_rarely<T, per_row>(job, to, from, begin, first, last, end, part);
    const unsigned char* const at = source + from * pitch;
    constexpr int whole = strip_bytes * tuning.strip_warps / 16 / per_row;  // units of the strips, for each thread
#pragma unroll
    for (int i = 0; i < (Pitch / 16 + per_row - 1) / per_row; ++i) {
      int column = strip + (i * per_row + part) * 16;
      if (i >= whole && column >= Pitch) column -= Pitch;
      if ((Plain && i < whole) || (column >= first && column < last))
        cuda::copy_async<16>(to + column, at + unsigned(column));
    }
  }

  /// Fills the sides of group `group`, which has arrived.
  __device__ __forceinline__ void fill(int group, int slot) const {
    const SetView& view = job.view;
    int from = y + group * step_rows;
    if (from >= limit) return;
    if (unsigned(from) >= unsigned(view.height)) from = border_index(from, view.height, view.border);
    if (from < 0) return;  // copy() has written the whole row
    unsigned char* const to = memory + (slot * step_rows + row) * Pitch;
#pragma unroll 1
    for (int k = part; k < sides(); k += per_row) {
      const int byte = map[k], column = byte - begin;
      T value;
      if (byte < 0)
        value = T(~byte);
      else if (column >= first && column < last)
        value = *reinterpret_cast<const T*>(to + column);
      else
        value = *reinterpret_cast<const T*>(view.src + from * view.src_pitch + byte);
      *reinterpret_cast<T*>(to + side(k)) = value;
    }
  }
};

}  // namespace cudavision::gaussian
