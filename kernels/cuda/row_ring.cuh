// SPDX-License-Identifier: LGPL-2.1-or-later
// The source rows of a block in shared memory: groups of rows in a ring of slots, copied before they are needed. The
// warps of a block process strips side by side and move down together.
//
//   columns of a group   0       needed       first                       last      end
//                        |       | sides      | copied in units           | sides   |
//   row of the picture   begin                  inside the row, aligned …           … the strips and their windows
//
//   copying: Thread i copies row i / per_row of each group. It copies unit i % per_row and then every per_row-th unit.
//            Units are numbered starting at the first strip; the left end of the window has the last numbers. So most
//            requests are for whole cache lines (128 bytes).
//   sides:   Samples outside the row, and samples that no whole unit holds. They are filled in when the group has
//            arrived. A map, made once, gives for each of these samples its column in the tile, its byte in the row, or
//            its border value. Most of them are in the tile itself.
//
// A kernel describes its rows by a Source:
//   T              type of a sample
//   Job            has the fields `view`, `unit` (alignment of source rows in bytes: 16, 8 or 4; 0: less than 4) and
//                  `row_bytes` (bytes of a source row that may be read)
//   source_byte()  the byte of a row that replaces byte `byte` (counted from the start of the row, inside or not), or
//                  the complement of its border value
//   skips_edges    whether Border::fill and Border::copy occur: then row 0 replaces the rows outside the frame
//   plain_sides    whether copy<true>() serves blocks with sides; the map then has no room for whole rows
#pragma once

#include "kernels/cuda/async.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/cuda/warp.cuh"

namespace cudavision::cuda {

/// The columns of a row of the tile, in bytes; see the drawing above. Byte `begin` of a row of the picture is column 0.
/// Columns before `needed` are in no window. `first`, `last`: multiples of the unit.
struct RowColumns {
  int begin, needed, first, last, end;

  /// `begin`: a multiple of 16, the largest unit. Windows begin at column `needed` and end at column `end`.
  template <typename Job>
  __device__ __forceinline__ RowColumns(const Job& job, int begin, int needed, int end)
      : begin(begin), first(max(-begin, 0)), last(first) {
    if (job.unit) last = max(first, min((end + 31) & -32, (job.row_bytes - begin) & -job.unit));
    this->needed = min(first, needed);
    this->end = max(end, last);
  }
  __device__ __forceinline__ int sides() const { return first - needed + end - last; }
  __device__ __forceinline__ int side(int k) const {
    return needed + k < first ? needed + k : needed + k - first + last;
  }
};

/// Copies columns in units of Unit bytes: unit `part`, and every per_row-th unit after it.
template <int Unit>
__device__ __forceinline__ void copy_units(unsigned char* to, const unsigned char* from, const RowColumns& columns,
                                           int part, int per_row) {
#pragma unroll 1
  for (int column = columns.first + part * Unit; column < columns.last; column += per_row * Unit)
    copy_async<Unit>(to + column, from + column);
}

/// Begins to copy a row, inside or outside the frame, of any alignment. Not inlined, because few frames need it.
template <typename Source>
static __device__ __noinline__ void copy_any(const typename Source::Job& job, unsigned char* to, int row,
                                             RowColumns columns, int part, int per_row) {
  using T = typename Source::T;
  constexpr int size = sizeof(T);
  const SetView& view = job.view;
  row = border_index(row, view.height, view.border);
  const unsigned char* const from = view.src + row * view.src_pitch;
  if (row >= 0 && job.unit) {
    if (job.unit == 16) return copy_units<16>(to, from + columns.begin, columns, part, per_row);
    if (job.unit == 8) return copy_units<8>(to, from + columns.begin, columns, part, per_row);
    return copy_units<4>(to, from + columns.begin, columns, part, per_row);
  }
  if (row >= 0 && !Source::plain_sides) return;  // fill() reads the whole row
  for (int column = columns.needed + part * size; column < columns.end; column += per_row * size) {
    const int byte = columns.begin + column, mapped = row < 0 ? -1 : Source::source_byte(job, byte);
    *reinterpret_cast<T*>(to + column) = row < 0      ? T(border_sample(view, byte / size))
                                         : mapped < 0 ? T(~mapped)
                                                      : *reinterpret_cast<const T*>(from + mapped);
  }
}

/// The sample at byte `byte` of the picture's row that extrapolates row `row`. With Border::fill and Border::copy, rows
/// outside the frame have no such row; row 0 is used, because the value does not matter. With Border::constant, callers
/// pass only rows inside the frame.
template <typename T>
static __device__ __noinline__ T load_any(const SetView& view, int row, int byte) {
  row = max(border_index(row, view.height, view.border), 0);
  return *reinterpret_cast<const T*>(view.src + row * view.src_pitch + byte);
}

/// A ring for `warps` warps. A group has `rows` rows. A row of the tile has `pitch` bytes, of which the strips of the
/// block use `block_bytes`.
template <typename Source, int warps, int rows, int block_bytes, int pitch>
struct RowRing {
  using T = typename Source::T;
  static constexpr int threads = 32 * warps, per_row = threads / rows;
  static_assert(threads % rows == 0);

  static constexpr int outside = 1 << 20;  ///< larger than the number of bytes in a row of the tile

  const typename Source::Job& job;
  unsigned char* const memory;
  int* const map;
  const RowColumns columns;
  const int strip;              ///< the column where the first strip begins
  const int radius;             ///< the most rows above and below the picture that windows reach
  int y, limit;                 ///< the thread's row of group 0; row `limit` and later rows are not needed
  int row, part;                ///< the thread's row in each group, and its first unit in that row
  int height;                   ///< height of the picture
  const unsigned char* source;  ///< byte `begin` of row 0
  long long source_pitch;

  /// A block that needs rows y to limit − 1. Its first strip begins at column `strip`.
  __device__ __forceinline__ RowRing(const typename Source::Job& job, const RowColumns& columns, int strip, int radius,
                                     int y, int limit, unsigned char* memory, unsigned char* map)
      : job(job),
        memory(memory),
        map(reinterpret_cast<int*>(map)),
        columns(columns),
        strip(strip),
        radius(radius),
        limit(limit) {
    row = threadIdx.x / per_row;
    part = threadIdx.x % per_row;
    this->y = y + row;
    height = warp_uniform(job.view.height);
    source =
        reinterpret_cast<const unsigned char*>(warp_uniform(reinterpret_cast<long long>(job.view.src + columns.begin)));
    source_pitch = warp_uniform((long long)(job.view.src_pitch));
  }

  __device__ __forceinline__ bool has_sides() const {
    return (!Source::plain_sides || job.unit) && columns.sides() > 0;
  }

  /// Whether copy<true>() is sufficient: rows are aligned to 16 bytes, and no row has border values or lies far outside
  /// the frame.
  __device__ __forceinline__ bool plain() const {
    const bool inside = y - row >= 0 && limit <= height;
    return job.unit == 16 && (Source::plain_sides || !has_sides()) && (inside || has_near_rows());
  }

  /// Makes the map of the sides. All threads call it and synchronise before fill(). An entry is a column of the tile,
  /// `outside` + a byte of the picture's row, or the complement of a border value.
  __device__ __forceinline__ void make_map() const {
#pragma unroll 1
    for (int k = threadIdx.x; k < columns.sides() / int(sizeof(T)); k += threads) {
      const int mapped = Source::source_byte(job, columns.begin + columns.side(k * int(sizeof(T)))),
                column = mapped - columns.begin;
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
      return copy_any<Source>(job, to, from, columns, part, per_row);
    if (__builtin_expect(is_outside, 0)) {
      from = near_border_index(from, height, job.view.border);
      if (Source::skips_edges) from = max(from, 0);
    }
    const unsigned char* const at = source + from * source_pitch;
    constexpr int units = pitch / 16;
    constexpr int whole = block_bytes / 16 / per_row;  // units of the strips, for each thread
    // Threads without a unit in the last round stop if they are many. If they are few, each copies a unit that another
    // thread also copies: racecheck warns of two writes, but both write the same bytes.
    constexpr int last_round = units / per_row, rest = units % per_row <= per_row / 4 ? units % per_row : per_row;
#pragma unroll
    for (int i = 0; i * per_row < units; ++i) {
      int column = strip + (i * per_row + part) * 16;
      if (i == last_round && part >= rest) break;
      if (i >= whole && column >= pitch) column -= pitch;
      if ((Plain && !Source::plain_sides && i < whole) || (column >= columns.first && column < columns.last))
        copy_async<16>(to + column, at + unsigned(column));
    }
  }

  /// Fills the sides of a group that has arrived. Most values lie in the tile, so fill() seldom reads parameters, which
  /// is slow.
  __device__ __forceinline__ void fill(int group, int slot) const {
    const int from = y + group * rows;
    if (from >= limit) return;
    // copy_any() has written the whole row.
    if (unsigned(from) >= unsigned(height) && job.view.border == Border::constant) return;
    unsigned char* const to = memory + (slot * rows + row) * pitch;
#pragma unroll 1
    for (int k = part; k < columns.sides() / int(sizeof(T)); k += per_row) {
      const int mapped = map[k];
      T value = T(~mapped);
      if (mapped >= outside)
        value = load_any<T>(job.view, from, mapped - outside);
      else if (mapped >= 0)
        value = *reinterpret_cast<const T*>(to + mapped);
      *reinterpret_cast<T*>(to + columns.side(k * int(sizeof(T)))) = value;
    }
  }

 private:
  __device__ __forceinline__ bool has_near_rows() const {
    return job.view.border != Border::constant && radius < height;
  }
};

}  // namespace cudavision::cuda
