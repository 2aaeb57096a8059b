// SPDX-License-Identifier: LGPL-2.1-or-later
// The source rows of a block in shared memory, for cuda_matrix_strip.cu: groups of rows in a ring of slots,
// copied ahead of their use.
//
//   columns of a row      0          first                           last        end
//                         | sides    | copied in units of 16 bytes   | sides     |
//   row of the picture    begin      … inside the row, aligned …     … the block's pixels and 4 more
//
//   copying: Thread i copies row i / per_row of each group. It copies unit i % per_row and then every per_row-th unit.
//            Units are numbered from the block's first pixel on; the left end of the window comes last. So most
//            requests are for whole lines of the cache (128 bytes).
//   sides:   Bytes outside the row, and bytes that no whole unit holds. They are filled in when the group has arrived.
//            A map, made once, gives each byte's index in the row or its border value.
//            Most of these bytes are in the tile itself.
#pragma once

#include "kernels/convolve/cuda_params.cuh"
#include "kernels/cuda/async.cuh"
#include "kernels/cuda/warp.cuh"

namespace cudavision::convolve {
namespace {

/// The position of the byte that stands for byte `byte` of a row (counted from the start of the row, inside or not),
/// or the complement of its border value.
__device__ __forceinline__ int source_byte(const SetView& view, int byte) {
  const int C = view.channels, pixel = byte >= 0 ? byte / C : -((C - 1 - byte) / C), channel = byte - pixel * C;
  if (!(view.own >> channel & 1)) return ~0;
  const int column = border_index(pixel, view.width, view.border);
  return column < 0 ? ~int(view.border_value[channel]) : column * C + channel;
}

/// The columns of a row of the tile, see the drawing above. `first`, `last`: multiples of the unit. Byte `begin` of a
/// row of the picture is column 0. Columns before `needed` are in no window.
struct Columns {
  int begin, needed, first, last, end;

  __device__ __forceinline__ int sides() const { return first - needed + end - last; }
  __device__ __forceinline__ int side(int k) const {
    return needed + k < first ? needed + k : needed + k - first + last;
  }
};

/// Copies columns in units of Unit bytes: unit `part` and every per_row-th one after it.
template <int Unit>
__device__ __forceinline__ void copy_units(unsigned char* to, const unsigned char* from, Columns columns, int part,
                                           int per_row) {
  for (int column = columns.first + part * Unit; column < columns.last; column += per_row * Unit)
    cuda::copy_async<Unit>(to + column, from + column);
}

/// Begins to copy any row, inside the frame or not, of any alignment. Not inlined, because few frames need it.
static __device__ __noinline__ void copy_any(const MatrixJob& job, unsigned char* to, int row, Columns columns,
                                             int part, int per_row) {
  const SetView& view = job.view;
  row = border_index(row, view.height, view.border);
  const unsigned char* const from = view.src + row * view.src_pitch;
  if (row >= 0 && job.unit) {
    if (job.unit == 16) return copy_units<16>(to, from + columns.begin, columns, part, per_row);
    if (job.unit == 8) return copy_units<8>(to, from + columns.begin, columns, part, per_row);
    return copy_units<4>(to, from + columns.begin, columns, part, per_row);
  }
  for (int column = part; column < columns.end; column += per_row) {
    const int byte = columns.begin + column, mapped = source_byte(view, byte);
    if (row < 0)
      to[column] = std::uint8_t(view.border_value[(byte + strip_lead * 12) % view.channels]);
    else
      to[column] = mapped < 0 ? std::uint8_t(~mapped) : from[mapped];
  }
}

/// Byte `byte` of the picture's row that extrapolates row `row`. With Border::fill and Border::copy there is no such
/// row outside the frame; row 0 is used, because the value does not matter. With Border::constant,
/// callers pass no row outside the frame.
static __device__ __noinline__ unsigned char load_byte(const MatrixJob& job, int row, int byte) {
  return job.view.src[max(border_index(row, job.view.height, job.view.border), 0) * job.view.src_pitch + byte];
}

template <typename Layout>
struct RowRing {
  static constexpr int threads = 32 * tuning.strip_warps, rows = Layout::group;  ///< rows: rows of a group
  static constexpr int per_row = threads / rows, pitch = Layout::pitch;
  static_assert(threads % rows == 0 && per_row * 16 >= 2 * strip_lead);

  static constexpr int outside = 1 << 20;  ///< more than a row has bytes

  const MatrixJob& job;
  unsigned char* const memory;
  int* const map;
  Columns columns;
  int y, limit;                 ///< the thread's row of group 0; rows from `limit` on are not needed
  int row, part;                ///< the thread's row in each group, and its first unit in that row
  int height;                   ///< height of the picture
  const unsigned char* source;  ///< byte `begin` of row 0
  long long source_pitch;

  /// A block that needs rows y to limit − 1. Its first pixel is at byte `byte`, a multiple of 16.
  __device__ __forceinline__ RowRing(const MatrixJob& job, int byte, int y, int limit, unsigned char* memory)
      : job(job), memory(memory), map(reinterpret_cast<int*>(memory + Layout::map)), limit(limit) {
    const SetView& view = job.view;
    row = threadIdx.x / per_row;
    part = threadIdx.x % per_row;
    this->y = y + row;
    const int begin = byte - strip_lead, margin = 4 * view.channels;
    const int first = max(-begin, 0), end = min(pitch - strip_lead + margin, (view.x1 + 4) * view.channels - begin);
    int last = first;
    if (job.unit) last = max(first, min((end + 31) & -32, (job.row_bytes - begin) & -job.unit));
    columns = {begin, min(first, strip_lead - margin), first, last, max(end, last)};
    height = cuda::warp_uniform(view.height);
    source = reinterpret_cast<const unsigned char*>(cuda::warp_uniform(reinterpret_cast<long long>(view.src + begin)));
    source_pitch = cuda::warp_uniform((long long)(view.src_pitch));
  }

  __device__ __forceinline__ bool has_sides() const { return job.unit && columns.sides() > 0; }

  /// Whether copy<true>() is enough: rows are aligned to 16 bytes,
  /// and no row has border values or lies far outside the frame.
  __device__ __forceinline__ bool plain() const {
    const bool inside = y - row >= 0 && limit <= height;
    return job.unit == 16 && (inside || has_near_rows());
  }

  /// Makes the map of the sides. All threads call it, and synchronize before fill(). An entry is a column of the tile,
  /// or `outside` + a byte of the picture's row.
  __device__ __forceinline__ void make_map() const {
    for (int k = threadIdx.x; k < columns.sides(); k += threads) {
      const int mapped = source_byte(job.view, columns.begin + columns.side(k)), column = mapped - columns.begin;
      map[k] = mapped < 0 ? mapped : column >= columns.first && column < columns.last ? column : outside + mapped;
    }
  }

  /// Begins to copy the thread's part of a group into a slot. Plain: see plain().
  template <bool Plain>
  __device__ __forceinline__ void copy(int group, int slot) const {
    int from = y + group * rows;
    if (from >= limit) return;
    unsigned char* const to = memory + (slot * rows + row) * pitch;
    const bool is_outside = unsigned(from) >= unsigned(height);
    if (!Plain && (job.unit != 16 || (is_outside && !has_near_rows())))
      return copy_any(job, to, from, columns, part, per_row);
    if (__builtin_expect(is_outside, 0)) from = max(near_border_index(from, height, job.view.border), 0);
    const unsigned char* const at = source + from * source_pitch;
    constexpr int whole = (pitch - 2 * strip_lead) / 16 / per_row;  // units of pixels that each thread copies
#pragma unroll
    for (int i = 0; i <= whole; ++i) {
      int column = strip_lead + (i * per_row + part) * 16;
      if (i == whole && part >= 2 * strip_lead / 16) break;
      if (column >= pitch) column -= pitch;
      if (column >= columns.first && column < columns.last) cuda::copy_async<16>(to + column, at + unsigned(column));
    }
  }

  /// Fills the sides of a group that has arrived. Most values lie in the tile,
  /// so this seldom reads parameters, which takes long.
  __device__ __forceinline__ void fill(int group, int slot) const {
    const int from = y + group * rows;
    if (from >= limit) return;
    // copy_any() has written the whole row.
    if (unsigned(from) >= unsigned(height) && job.view.border == Border::constant) return;
    unsigned char* const to = memory + (slot * rows + row) * pitch;
#pragma unroll 1
    for (int k = part; k < columns.sides(); k += per_row) {
      const int mapped = map[k];
      unsigned char value = std::uint8_t(~mapped);
      if (mapped >= outside)
        value = load_byte(job, from, mapped - outside);
      else if (mapped >= 0)
        value = to[mapped];
      to[columns.side(k)] = value;
    }
  }

 private:
  __device__ __forceinline__ bool has_near_rows() const {
    return job.view.border != Border::constant && height >= 2 * small_most_side;
  }
};

}  // namespace
}  // namespace cudavision::convolve
