// SPDX-License-Identifier: LGPL-2.1-or-later
// Box mean, threshold and deviation of 8-bit samples on CUDA, by sliding windows. The picture is read twice, in rows.
//
//   a block: some rows of a strip ("the block's rows"), `batch` of them at a time; one launch computes all channel sets
//
//                     thread 0  thread 1  thread 2
//                    ├────────┼────────┼────────┼─ ─ ─     a chunk: 8 neighbouring samples of a row
//   row y − r − 1    − − − − − − − − − − − − − − − leaves ┐
//   row y            the column sums: over the rows y − r … y + r of each sample, in registers
//   row y + r        + + + + + + + + + + + + + + + enters ┘
//
//   1. Each thread moves the column sums of its chunk from row to row, for a batch of rows → shared memory.
//   2. A lane computes `per_group` tiles of 32 samples in a row of the batch: it moves its window from sample to sample
//      (cuda_walk.cuh) and converts the sums to bytes (cuda_window_results.cuh). So the lanes of a warp have `batch`
//      rows of 32 / batch groups.
//   3. The bytes of a tile pass through shared memory, so that adjacent lanes write adjacent bytes → the picture.
//
//   The first rows of the next batch are loaded before step 2, and arrive during it.
//
//   The first column sums of a block are sums of 2 r + 1 rows, which would take a long time for tall windows. So the
//   kernel column_sums, launched first, stores the sums of intervals of rows. A block then adds up whole intervals, and
//   the rows between these and the ends of its first window.
//
// Where to change what: the arithmetic: cuda_window_results.cuh; blocks, batches, strips, intervals: cuda_schedule.cpp
// and cuda_tuning.hpp; which channel sets come here: can_slide in cuda_schedule.cpp.
#include <algorithm>

#include "kernels/cuda/device.hpp"
#include "kernels/local/cuda_walk.cuh"
#include "kernels/local/cuda_window_columns.cuh"
#include "kernels/local/cuda_window_results.cuh"
#include "kernels/local/cuda_windows.cuh"

namespace cudavision::local {
namespace {

constexpr int stored_threads = 128;  ///< threads of a block of column_sums

/// The chunk whose first sample is sample `x` of a row.
__device__ __forceinline__ Chunk chunk_at(const WindowJob& job, int x) {
  const int valid = x < 0 ? 0 : min(max(job.view.width * job.view.channels - x, 0), chunk_samples);
  return {job.view.src + x, job.view.src_pitch, valid, job.words && valid == chunk_samples};
}

/// Stores the sums of the rows of each interval. Block (x, y, z): `stored_threads` chunks of interval y of set z.
template <bool squared>
__global__ void __launch_bounds__(stored_threads) column_sums(const __grid_constant__ WindowJobs jobs) {
  const WindowJob& job = jobs.sets[blockIdx.z];
  const WindowSchedule& s = job.schedule;
  const int index = blockIdx.x * stored_threads + threadIdx.x, interval = blockIdx.y;
  if (index >= s.stored_chunks || interval >= s.intervals) return;
  const int from = s.table_y + interval * s.interval;
  WindowColumns<squared> columns;
  columns.add_rows(chunk_at(job, (s.stored_first + index) * chunk_samples), max(from, 0),
                   min(from + s.interval, job.view.height));
#pragma unroll
  for (int line = 0; line < columns.lines; ++line)
    job.stored[(interval * columns.lines + line) * s.stored_chunks + index] = columns.quad(line);
}

template <Operation operation, bool wide, int C, int batch>
struct Windows {
  static constexpr bool squared = operation == Operation::deviation;
  static constexpr int pitch = window_pitch;
  static constexpr int early = batch / 4;  ///< rows of the next batch that are loaded before step 2
  using Lanes = WindowColumns<squared>;

  const WindowJob& job;
  const int y0, y1;    ///< the block's rows
  const int xs;        ///< first sample of the strip
  const int first;     ///< first sample whose column sums are in shared memory
  uint4* const sums;   ///< column sums in shared memory
  uint4* const tiles;  ///< the warp's memory for bytes of tiles
  const WindowResults<operation, wide> results;

  /// Rows that enter and leave.
  template <int n>
  struct Rows {
    uint2 enters[n], leaves[n];
  };

  __device__ __forceinline__ int reach() const { return C * job.radius_x; }

  /// The column sums of the window of the row above the block's rows.
  __device__ __forceinline__ void begin(Lanes& columns, const Chunk& chunk, int x) const {
    const WindowSchedule& s = job.schedule;
    const int height = job.view.height, from = max(y0 - 1 - job.radius_y, 0), to = min(y0 + job.radius_y, height);
    if (s.interval == 0) {
      columns.add_rows(chunk, from, to);
      return;
    }
    // The intervals inside the window, and the rows above and below these.
    const int a = divide_up(from - s.table_y, s.interval), b = (to - s.table_y) / s.interval;
    const uint4* at = job.stored + (a * Lanes::lines) * s.stored_chunks + (x / chunk_samples - s.stored_first);
    constexpr int together = squared ? 4 : 8;
#pragma unroll 1
    for (int i = a; i < b; i += together) {
      uint4 quads[together][Lanes::lines];
#pragma unroll
      for (int k = 0; k < together; ++k)
#pragma unroll
        for (int line = 0; line < Lanes::lines; ++line, at += s.stored_chunks)
          quads[k][line] = i + k < b ? __ldg(at) : make_uint4(0, 0, 0, 0);
#pragma unroll
      for (int k = 0; k < together; ++k)
#pragma unroll
        for (int line = 0; line < Lanes::lines; ++line) columns.add_quad(line, quads[k][line]);
    }
    columns.add_rows(chunk, from, s.table_y + a * s.interval);
    columns.add_rows(chunk, s.table_y + b * s.interval, to);
  }

  template <int n>
  __device__ __forceinline__ void load(Rows<n>& rows, const Chunk& chunk, int y) const {
    const int enters = y + job.radius_y, leaves = y - job.radius_y - 1, height = job.view.height;
    if (chunk.words && leaves >= 0 && enters + n <= height) {
      const unsigned char *in = chunk.at + enters * chunk.pitch, *out = chunk.at + leaves * chunk.pitch;
#pragma unroll
      for (int i = 0; i < n; ++i) {
        rows.enters[i] = load_words(in), rows.leaves[i] = load_words(out);
        in += chunk.pitch, out += chunk.pitch;
      }
    } else {
      const auto any = [&](int row) {
        if (row < 0 || row >= height) return make_uint2(0, 0);
        const unsigned char* const at = chunk.at + row * chunk.pitch;
        return chunk.words ? load_words(at) : load_samples(at, chunk.valid);
      };
#pragma unroll
      for (int i = 0; i < n; ++i) rows.enters[i] = any(enters + i), rows.leaves[i] = any(leaves + i);
    }
  }

  /// Step 1 for some rows. `to`: memory for the sums of the first row.
  template <int n>
  __device__ __forceinline__ void sum_columns(Lanes& columns, const Rows<n>& rows, uint4* to) const {
#pragma unroll
    for (int i = 0; i < n; ++i) {
      columns.move(rows.enters[i], rows.leaves[i]);
#pragma unroll
      for (int line = 0; line < Lanes::lines; ++line) to[(line * batch + i) * pitch] = columns.quad(line);
    }
  }

  /// The first sample of a group's tiles.
  __device__ __forceinline__ int group_x(int group) const {
    const WindowSchedule& s = job.schedule;
    return xs + min(group * s.per_group, s.tiles - s.per_group) * window_tile;
  }

  /// Four results, starting at sample x, whose windows the frame cuts. `height`: rows of the windows; `columns_cut`:
  /// the frame also cuts columns. Otherwise all windows have `count` samples, and per_count = 1 / count.
  __device__ __forceinline__ std::uint32_t cut_results(const int* sums, const std::uint32_t* squares, int x, int height,
                                                       bool columns_cut, int count, float per_count) const {
    const int width = job.view.width;
    const float height_as_float = float(height);
    int counts[4] = {count, count, count, count};
    float per_counts[4] = {per_count, per_count, per_count, per_count};
    if (columns_cut) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int pixel = min((x + k) / C, width - 1);
        const int columns = min(pixel + job.radius_x + 1, width) - max(pixel - job.radius_x, 0);
        counts[k] = columns * height;
        // Uses the bits of columns + 2^23 as a float, because conversions are slow.
        per_counts[k] = fast_reciprocal((__int_as_float(0x4b000000 | columns) - 0x1p23f) * height_as_float);
      }
    }
    return results.cut(sums, squares, counts, per_counts);
  }

  /// Steps 2 and 3 for the batch that begins with row y.
  template <int P>
  __device__ __forceinline__ void write(int y) const {
    const cuda::SetView& view = job.view;
    const int lane = threadIdx.x % 32, warp_group = threadIdx.x / 32 * (32 / batch), width = view.width;
    const int row = y + lane % batch, height = min(row + job.radius_y + 1, view.height) - max(row - job.radius_y, 0);
    const bool whole_rows = y >= job.radius_y && y + batch + job.radius_y <= view.height;
    const int x0 = view.x0 * C, x1 = view.x1 * C;
    int x = group_x(warp_group + lane / batch);
    const uint4* const line = sums + lane % batch * pitch;
    SumWalk<C, P> walk;
    walk.begin(line, x - first, reach(), results.added);
    SquareWalk<squared ? P : 0> square_walk;
    if constexpr (squared) {
      square_walk.apart = batch * pitch;
      square_walk.begin(line + batch * pitch, x - first, reach());
    }
    // The data that the lane stores: 16 bytes of two rows.
    int piece_x[2], piece_y[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int piece = i * 16 + lane / 2;
      piece_x[i] = group_x(warp_group + piece / batch) + lane % 2 * 16;
      piece_y[i] = y + piece % batch;
    }
    const int cut_count = (2 * job.radius_x + 1) * height;
    const float per_cut = reciprocal(cut_count);
#pragma unroll 1
    for (int tile = 0; tile < job.schedule.per_group; ++tile) {
      uint4 input[2];
      if constexpr (operation == Operation::threshold) {
#pragma unroll
        for (int i = 0; i < 2; ++i)
          if (piece_y[i] < y1) input[i] = load_input(piece_x[i], piece_y[i]);
      }
#pragma unroll 1
      for (int c = 0; c < 2; ++c, x += 16) {
        std::uint32_t out[4];
        const bool whole_columns = x >= reach() && x + 16 + reach() <= width * C;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          int sum[8];
          std::uint32_t square[8];
          walk.next(sum);
          if constexpr (squared) square_walk.next(square);
          if (whole_rows && whole_columns) {
#pragma unroll
            for (int q = 0; q < 2; ++q) out[2 * h + q] = results.four(sum + 4 * q, square + 4 * q);
          } else {
#pragma unroll
            for (int q = 0; q < 2; ++q)
              out[2 * h + q] = cut_results(sum + 4 * q, square + 4 * q, x + 8 * h + 4 * q, height, !whole_columns,
                                           cut_count, per_cut);
          }
        }
        tiles[2 * lane + (c ^ (lane / 4 & 1))] = make_uint4(out[0], out[1], out[2], out[3]);
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int piece = i * 16 + lane / 2;
        uint4 value = tiles[2 * piece + (lane % 2 ^ (piece / 4 & 1))];
        if constexpr (operation == Operation::threshold)
          value = make_uint4(at_least(input[i].x, value.x), at_least(input[i].y, value.y),
                             at_least(input[i].z, value.z), at_least(input[i].w, value.w));
        if (piece_y[i] < y1) {
          unsigned char* const to = view.dst + piece_y[i] * view.dst_pitch + piece_x[i];
          if (job.words && piece_x[i] >= x0 && piece_x[i] + 16 <= x1)
            *reinterpret_cast<uint4*>(to) = value;
          else
            store_samples(to, piece_x[i], x0, x1, value);
        }
        piece_x[i] += window_tile;
      }
      __syncwarp();
    }
  }

  /// The 16 samples of the source at sample x of row y.
  __device__ __forceinline__ uint4 load_input(int x, int y) const {
    const unsigned char* const at = job.view.src + y * job.view.src_pitch + x;
    const int valid = job.view.width - x;
    if (job.words && valid >= 16) return __ldg(reinterpret_cast<const uint4*>(at));
    const uint2 a = load_samples(at, valid), b = load_samples(at + 8, valid - 8);
    return make_uint4(a.x, a.y, b.x, b.y);
  }

  static __device__ __noinline__ void store_samples(unsigned char* to, int x, int x0, int x1, uint4 value) {
    const std::uint32_t words[4] = {value.x, value.y, value.z, value.w};
#pragma unroll
    for (int j = 0; j < 16; ++j)
      if (x + j >= x0 && x + j < x1) to[j] = (unsigned char)(words[j / 4] >> (j % 4 * 8));
  }

  __device__ __forceinline__ void write_batch(int y) const {
    switch (reach() % 8) {
      case 0:
        return write<0>(y);
      case 2:
        return write<2>(y);
      case 4:
        return write<4>(y);
      case 6:
        return write<6>(y);
      case 1:
        if constexpr (C == 1) write<1>(y);
        return;
      case 3:
        if constexpr (C == 1) write<3>(y);
        return;
      case 5:
        if constexpr (C == 1) write<5>(y);
        return;
      default:
        if constexpr (C == 1) write<7>(y);
    }
  }

  __device__ __forceinline__ void run() const {
    const int t = threadIdx.x, x = first + t * chunk_samples;
    Chunk chunk = chunk_at(job, x);
    if (x >= xs + job.schedule.tiles * window_tile + reach()) chunk.valid = 0;
    uint4* const to = sums + t;
    Lanes columns;
    Rows<early> rows;
    if (chunk.valid > 0) {
      load(rows, chunk, y0);
      begin(columns, chunk, x);
    } else {
      for (int i = 0; i < Lanes::lines * batch; ++i) to[i * pitch] = make_uint4(0, 0, 0, 0);
    }
#pragma unroll 1
    for (int y = y0; y < y1; y += batch) {
      if (chunk.valid > 0) {
        Rows<batch - early> more;
        load(more, chunk, y + early);
        sum_columns(columns, rows, to);
        sum_columns(columns, more, to + early * pitch);
        if (y + batch < y1) load(rows, chunk, y + batch);
      }
      __syncthreads();
      write_batch(y);
      __syncthreads();
    }
  }
};

/// Computes block `index` of a channel set.
template <Operation operation, bool wide, int C, int batch>
__device__ __forceinline__ void compute(const WindowJobs& jobs, const WindowJob& job, int index) {
  extern __shared__ uint4 shared[];
  const WindowSchedule& s = job.schedule;
  const int strip = index % s.strips, y0 = job.view.y0 + index / s.strips * jobs.rows,
            xs = s.left + strip * s.tiles * window_tile;
  constexpr int lines = WindowColumns<operation == Operation::deviation>::lines * batch;
  WindowResults<operation, wide> results;
  results.set((2 * job.radius_x + 1) * (2 * job.radius_y + 1), jobs.factor);
  const Windows<operation, wide, C, batch> block{job,
                                                 y0,
                                                 min(y0 + jobs.rows, job.view.y1),
                                                 xs,
                                                 (xs - C * (job.radius_x + 1)) & -chunk_samples,
                                                 shared,
                                                 shared + lines * window_pitch + threadIdx.x / 32 * 64,
                                                 results};
  block.run();
}

template <Operation operation, bool wide, int batch>
__global__ void __launch_bounds__(window_threads, window_blocks(operation, batch))
    windows(const __grid_constant__ WindowJobs jobs) {
  int set = 0, index = blockIdx.x;
  while (index >= jobs.sets[set].schedule.blocks) index -= jobs.sets[set++].schedule.blocks;
  if (operation == Operation::box_mean && jobs.sets[set].view.channels == 2)
    compute<operation, wide, operation == Operation::box_mean ? 2 : 1, batch>(jobs, jobs.sets[set], index);
  else
    compute<operation, wide, 1, batch>(jobs, jobs.sets[set], index);
}

/// Calls f with the kernels of an operation.
template <typename F>
Status with_kernels(Operation operation, bool wide, int batch, F f) {
  if (operation == Operation::deviation) return f(column_sums<true>, windows<Operation::deviation, true, 8>);
  const auto choose = [&](auto of) {
    constexpr Operation o = decltype(of)::value;
    if (wide) return f(column_sums<false>, windows<o, true, 16>);  // schedule_windows() gives no other batch
    return batch == 8 ? f(column_sums<false>, windows<o, false, 8>) : f(column_sums<false>, windows<o, false, 16>);
  };
  if (operation == Operation::threshold) return choose(std::integral_constant<Operation, Operation::threshold>());
  return choose(std::integral_constant<Operation, Operation::box_mean>());
}

}  // namespace

Status load_windows(Operation operation, int shared_limit) {
  for (const bool wide : {false, true})
    for (const int batch : {8, 16}) {
      const Status status = with_kernels(operation, wide, batch, [&](auto stored, auto sliding) {
        const Status loaded = cuda::load_kernel(stored, "cannot load the kernel for column sums");
        return loaded.ok() ? cuda::load_kernel(sliding, "cannot load the kernel for windows", shared_limit) : loaded;
      });
      if (!status.ok()) return status;
    }
  return {};
}

Status launch_windows(Operation operation, const WindowJobs& jobs, const WindowLaunch& launch, Queue queue) {
  return with_kernels(operation, launch.wide, launch.batch, [&](auto stored, auto sliding) {
    int intervals = 0, chunks = 0;
    for (const WindowSchedule& s : launch.sets) {
      intervals = std::max(intervals, s.intervals);
      chunks = std::max(chunks, s.stored_chunks);
    }
    if (intervals > 0) {
      stored<<<dim3(divide_up(chunks, stored_threads), intervals, jobs.count), stored_threads, 0, queue.stream>>>(jobs);
      if (Status status = cuda::check(cudaGetLastError(), "cannot launch the column sums"); !status.ok()) return status;
    }
    sliding<<<launch.blocks, window_threads, launch.shared_bytes, queue.stream>>>(jobs);
    return cuda::check(cudaGetLastError(), "cannot launch the windows");
  });
}

}  // namespace cudavision::local
