// SPDX-License-Identifier: LGPL-2.1-or-later
// Box mean, threshold and deviation of 8-bit samples on CUDA, by windows that slide: the picture is read twice, in rows.
//
//   a block: some rows of the rectangle of a channel set ("the block's rows"), over the strip: its whole width and the windows' reach beside
//   it; one launch computes all sets
//
//                     thread 0      thread 1      thread 2
//                    ├────────────┼────────────┼────────────┼─ ─ ─     a chunk: 8 or 16 neighbouring samples of a row
//   row y − r − 1    − − − − − − − − − − − − − − − leaves ┐
//   row y            the column sums: of the rows y − r … y + r of each sample, in registers
//   row y + r        + + + + + + + + + + + + + + + enters ┘
//
//   1. sum_columns:  each thread moves its column sums from row to row, for a batch of rows           → shared memory
//   2. write_rows:   a warp takes a segment of a row of the batch and computes the window sums of 32 chunks at a time (cuda_sliding.cuh);
//                    each lane turns the sums of its chunk into results (cuda_results.cuh)            → the picture
//
//   The first column sums of a block are sums of 2 r rows. High windows would cost much there: column_sums, launched before, stores the
//   sums of intervals of rows, and a block adds up whole intervals and the rows between them and the ends of its first window.
//
// Where to change what: the arithmetic: cuda_results.cuh; blocks, batches, segments, intervals: cuda_schedule.cpp and cuda_tuning.hpp; which
// channel sets come here: can_slide in cuda_schedule.cpp.
#include <algorithm>

#include "kernels/cuda/device.hpp"
#include "kernels/cuda/warp.cuh"
#include "kernels/local/cuda_columns.cuh"
#include "kernels/local/cuda_results.cuh"
#include "kernels/local/cuda_sliding.cuh"
#include "kernels/local/cuda_windows.cuh"

namespace cudavision::local {
namespace {

/// Where chunk `index` of the strip lies in row 0, and how many of its samples are inside the row.
template <int C, int N>
struct Chunk {
  const unsigned char* at;
  int valid;

  __device__ __forceinline__ Chunk(const WindowJob& job, int index)
      : at(job.view.src + std::ptrdiff_t(job.schedule.first) * C + std::ptrdiff_t(index) * N),
        valid(job.view.width * C - (job.schedule.first * C + index * N)) {}
  __device__ __forceinline__ bool words(const WindowJob& job) const { return job.words && valid >= N; }
};

constexpr int stored_chunk = 16;     ///< samples whose stored sums a thread of column_sums computes
constexpr int stored_threads = 128;  ///< of a block of column_sums

/// Entries of a row of stored sums.
__device__ __forceinline__ std::ptrdiff_t stored_pitch(int chunks, int chunk) {
  return (std::ptrdiff_t(chunks) * chunk + stored_chunk - 1) / stored_chunk * stored_chunk;
}

template <int C, bool squared>
__device__ __forceinline__ void store_interval(const WindowJob& job, int chunk_of_windows) {
  const std::ptrdiff_t pitch = stored_pitch(job.schedule.chunks, chunk_of_windows);
  const int index = blockIdx.x * stored_threads + threadIdx.x, interval = blockIdx.y;
  if (index * stored_chunk >= pitch || interval >= job.schedule.intervals) return;
  const Chunk<C, stored_chunk> chunk(job, index);
  const int from = job.schedule.table_y + interval * job.schedule.interval, to = min(from + job.schedule.interval, job.view.height);
  Columns<stored_chunk, squared> columns;
  if (chunk.words(job))
    columns.template add_rows<false, true>(chunk.at, job.view.src_pitch, stored_chunk, from, to);
  else
    columns.template add_rows<false, false>(chunk.at, job.view.src_pitch, chunk.valid, from, to);
  const std::ptrdiff_t entry = interval * pitch + index * stored_chunk;
  columns.store(job.sums + entry);
  if constexpr (squared) columns.store_squares(job.squares + entry);
}

/// Stores the sums of the rows of each interval. Block (x, y, z): `stored_threads` chunks of interval y of set z.
template <Operation operation>
__global__ void __launch_bounds__(stored_threads) column_sums(const __grid_constant__ WindowJobs jobs) {
  const WindowJob& job = jobs.sets[blockIdx.z];
  if (operation == Operation::box_mean && job.view.channels == 2)
    store_interval<2, false>(job, chunk_samples(operation));
  else
    store_interval<1, operation == Operation::deviation>(job, chunk_samples(operation));
}

template <Operation operation, int C>
struct Windows {
  static constexpr int N = chunk_samples(operation), pixels = N / C;
  static constexpr bool squared = operation == Operation::deviation;

  const WindowJob& job;
  const double threshold;          ///< the share of the mean below which a sample is black
  const int y0, y1;                ///< the block's rows
  const ColumnRow<N, 16> sums;     ///< the first row of the batch in shared memory
  const ColumnRow<N, 32> squares;  ///< the same; used if squared
  Divider divider;

  __device__ __forceinline__ std::uint32_t row_bytes() const { return 16 * (sums.quads + 1); }
  __device__ __forceinline__ std::uint32_t square_bytes() const { return 16 * (squares.quads + 1); }

  /// The column sums of the first window without the row that enters first.
  template <bool words>
  __device__ __forceinline__ void begin(Columns<N, squared>& columns, const Chunk<C, N>& chunk) const {
    const std::ptrdiff_t pitch = job.view.src_pitch;
    const int from = max(y0 - job.radius_y, 0), to = min(y0 + job.radius_y, job.view.height);
    if (job.schedule.interval == 0) {
      columns.template add_rows<false, words>(chunk.at, pitch, chunk.valid, from, to);
      return;
    }
    // The intervals nearest to the window, then the rows by which they are too few or too many.
    const int interval = job.schedule.interval, table_y = job.schedule.table_y;
    const int first = (from - table_y + interval / 2) / interval, last = (to - table_y + interval / 2) / interval;
    const std::ptrdiff_t stored = stored_pitch(job.schedule.chunks, N);
#pragma unroll 2
    for (int i = first; i < last; ++i) {
      columns.add_stored(job.sums + i * stored + N * int(threadIdx.x));
      if constexpr (squared) columns.add_stored_squares(job.squares + i * stored + N * int(threadIdx.x));
    }
    const int top = min(table_y + first * interval, job.view.height), bottom = min(table_y + last * interval, job.view.height);
    columns.template add_rows<false, words>(chunk.at, pitch, chunk.valid, from, top);
    columns.template add_rows<true, words>(chunk.at, pitch, chunk.valid, top, from);
    columns.template add_rows<false, words>(chunk.at, pitch, chunk.valid, bottom, to);
    columns.template add_rows<true, words>(chunk.at, pitch, chunk.valid, to, bottom);
  }

  /// Step 1: moves the column sums over rows [y, y + count) and stores those of each row.
  template <bool words>
  __device__ __forceinline__ void sum_columns(Columns<N, squared>& columns, const Chunk<C, N>& chunk, int y, int count) const {
    constexpr int together = words ? (squared ? 2 : 3) : 1;
    const std::ptrdiff_t pitch = job.view.src_pitch;
    const int quad = threadIdx.x * (N / 8);
    const auto move = [&](auto rows, int i) {
      constexpr int n = decltype(rows)::value;
      std::uint32_t entering[n][N / 4] = {}, leaving[n][N / 4] = {};
#pragma unroll
      for (int k = 0; k < n; ++k) {
        const int enters = y + i + k + job.radius_y, leaves = y + i + k - job.radius_y - 1;
        if (enters < job.view.height) load_chunk<N, words>(chunk.at + enters * pitch, chunk.valid, entering[k]);
        if (leaves >= 0 && y + i + k > y0) load_chunk<N, words>(chunk.at + leaves * pitch, chunk.valid, leaving[k]);
      }
#pragma unroll
      for (int k = 0; k < n; ++k) {
        columns.template add<false>(entering[k]);
        columns.template add<true>(leaving[k]);
#pragma unroll
        for (int q = 0; q < N / 8; ++q) store_shared(sums.inside(quad + q) + (i + k) * row_bytes(), columns.quad(q));
        if constexpr (squared)
#pragma unroll
          for (int q = 0; q < N / 4; ++q)
            store_shared(squares.inside(2 * quad + q) + (i + k) * square_bytes(),
                         make_uint4(columns.squares[4 * q], columns.squares[4 * q + 1], columns.squares[4 * q + 2],
                                    columns.squares[4 * q + 3]));
      }
    };
    int i = 0;
#pragma unroll 1
    for (; i + together <= count; i += together) move(std::integral_constant<int, together>(), i);
#pragma unroll 1
    for (; i < count; ++i) move(std::integral_constant<int, 1>(), i);
  }

  /// Step 2: the results of rows [y, y + count).
  __device__ __forceinline__ void write_rows(int y, int count) {
    const int lane = threadIdx.x % 32, steps = (job.schedule.chunks + 31) / 32;
    const int segments = (steps + job.schedule.segment - 1) / job.schedule.segment;
    for (int task = threadIdx.x / 32; task < count * segments; task += blockDim.x / 32) {
      const int i = task / segments, first = task % segments * job.schedule.segment, end = min(first + job.schedule.segment, steps);
      const int row = y + i, height = min(row + job.radius_y + 1, job.view.height) - max(row - job.radius_y, 0);
      divider.set((2 * job.radius_x + 1) * height);
      Slider<N, C, 16> slider({sums.address + i * row_bytes(), sums.quads}, job.radius_x, first * 32, lane);
      if constexpr (squared) {
        Slider<N, C, 32> square_slider({squares.address + i * square_bytes(), squares.quads}, job.radius_x, first * 32, lane);
        for (int step = first; step < end; ++step) {
          std::uint32_t sum[N], square[N];
          slider.next(step * 32, 0, sum);
          square_slider.next(step * 32, 0, square);
          write(row, height, step * 32 + lane, sum, square);
        }
      } else {
        for (int step = first; step < end; ++step) {
          std::uint32_t sum[N];
          slider.next(step * 32, operation == Operation::box_mean ? divider.half : 0, sum);
          write(row, height, step * 32 + lane, sum, sum);
        }
      }
    }
  }

  /// The results of a chunk. `height`: rows of the windows.
  __device__ __forceinline__ void write(int row, int height, int index, const std::uint32_t (&sum)[N],
                                        const std::uint32_t (&square)[N]) const {
    const cuda::SetView& view = job.view;
    const int x = job.schedule.first + index * pixels;
    if (x >= view.x1 || x + pixels <= view.x0) return;
    const auto count_at = [&](int pixel) {
      return (min(pixel + job.radius_x + 1, view.width) - max(pixel - job.radius_x, 0)) * height;
    };
    const bool whole = x >= job.radius_x && x + pixels + job.radius_x <= view.width;  // all windows have the width 2 r + 1
    std::uint32_t out[N / 4];
    if constexpr (operation == Operation::box_mean) {
#pragma unroll
      for (int q = 0; q < N / 4; ++q) out[q] = four_means(sum + 4 * q, divider);
      if (!whole) {
#pragma unroll
        for (int j = 0; j < N; ++j) {
          const int pixel = x + j / C;
          if (pixel >= job.radius_x && pixel + job.radius_x < view.width) continue;
          const std::uint32_t value = mean(sum[j] - divider.half, count_at(min(pixel, view.width - 1)));
          out[j / 4] = __byte_perm(out[j / 4], value, 0x3210 ^ (j % 4 ^ 4) << (j % 4 * 4));
        }
      }
    } else if constexpr (operation == Operation::threshold) {
      const Chunk<C, N> chunk(job, index);
      std::uint32_t own[N / 4];
      const unsigned char* const at = chunk.at + row * view.src_pitch;
      if (chunk.words(job))
        load_chunk<N, true>(at, N, own);
      else
        load_chunk<N, false>(at, chunk.valid, own);
      const std::uint32_t factor = std::uint32_t(fmin(threshold * 0x1p32, 0x1p32 - 1));
      const auto below = [&](int j) {
        return int(__byte_perm(own[j / 4], 0, 0x4440 + j % 4) * (whole ? divider.count : count_at(min(x + j, view.width - 1)))) -
               int(__umulhi(sum[j], factor));  // own · count − sum · factor, within 2
      };
      std::uint32_t nearest = ~0u;
#pragma unroll
      for (int q = 0; q < N / 4; ++q) {
        int difference[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          difference[k] = below(4 * q + k);
          nearest = min(nearest, std::uint32_t(difference[k] + 2));
        }
        out[q] = not_negative(difference[0], difference[1], difference[2], difference[3]);
      }
      if (nearest <= 4) {
#pragma unroll
        for (int j = 0; j < N; ++j) {
          const std::uint32_t mask = 0xffu << (j % 4 * 8);
          const int count = count_at(min(x + j, view.width - 1));
          const std::uint32_t value = is_below(__byte_perm(own[j / 4], 0, 0x4440 + j % 4), count, sum[j], threshold) ? 0 : mask;
          out[j / 4] = (out[j / 4] & ~mask) | value;
        }
      }
    } else {
      float farthest = 0, per_count = reciprocal(divider.count);
#pragma unroll
      for (int q = 0; q < N / 4; ++q) {
        std::uint32_t value[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          int count = divider.count;
          if (!whole) count = count_at(min(x + 4 * q + k, view.width - 1)), per_count = reciprocal(count);
          const float result = approximate_deviation(spread(sum[4 * q + k], square[4 * q + k], count), per_count),
                      shifted = result + 0x1.8p23f;  // rounds half to even; the low byte is the integer
          farthest = fmaxf(farthest, fabsf(result - (shifted - 0x1.8p23f)));
          value[k] = __float_as_uint(shifted);
        }
        out[q] = __byte_perm(__byte_perm(value[0], value[1], 0x40), __byte_perm(value[2], value[3], 0x40), 0x5410);
      }
      if (farthest > 0.4999f) {
#pragma unroll
        for (int j = 0; j < N; ++j) {
          const int count = count_at(min(x + j, view.width - 1));
          const std::uint64_t exact = spread(sum[j], square[j], count);
          const float result = approximate_deviation(exact, reciprocal(count));
          const int value =
              fabsf(result - rintf(result)) > 0.4999f ? rounded_deviation(exact, count, result) : __float2int_rn(result);
          out[j / 4] = __byte_perm(out[j / 4], value, 0x3210 ^ (j % 4 ^ 4) << (j % 4 * 4));
        }
      }
    }
    store(view.dst + row * view.dst_pitch + std::ptrdiff_t(x) * C, x, out);
  }

  __device__ __forceinline__ void store(unsigned char* to, int x, const std::uint32_t (&out)[N / 4]) const {
    if (job.words && x >= job.view.x0 && x + pixels <= job.view.x1) {
      if constexpr (N == 16)
        *reinterpret_cast<uint4*>(to) = make_uint4(out[0], out[1], out[2], out[3]);
      else
        *reinterpret_cast<uint2*>(to) = make_uint2(out[0], out[1]);
      return;
    }
#pragma unroll
    for (int j = 0; j < N; ++j)
      if (x + j / C >= job.view.x0 && x + j / C < job.view.x1) to[j] = (unsigned char)(out[j / 4] >> (j % 4 * 8));
  }
};

/// Computes block `index` of a channel set.
template <Operation operation, int C>
__device__ __forceinline__ void compute(const WindowJobs& jobs, const WindowJob& job, int index) {
  constexpr int N = chunk_samples(operation);
  extern __shared__ uint4 shared[];
  const int t = threadIdx.x, chunks = job.schedule.chunks;
  const std::uint32_t base = std::uint32_t(__cvta_generic_to_shared(shared));
  const int y0 = job.view.y0 + index * jobs.rows;
  Windows<operation, C> block{job,
                              jobs.factor,
                              y0,
                              min(y0 + jobs.rows, job.view.y1),
                              {base, chunks * (N / 8)},
                              {base + jobs.batch * std::uint32_t(column_row_bytes(operation, chunks)), chunks * (N / 4)}};
  for (int i = t; i < jobs.batch; i += blockDim.x) {
    store_shared(base + i * block.row_bytes() + 16 * block.sums.quads, make_uint4(0, 0, 0, 0));
    if (block.squared)
      store_shared(block.squares.address + i * block.square_bytes() + 16 * block.squares.quads, make_uint4(0, 0, 0, 0));
  }
  const Chunk<C, N> chunk(job, t);
  const bool words = chunk.words(job);
  Columns<N, Windows<operation, C>::squared> columns;
  if (t < chunks) words ? block.template begin<true>(columns, chunk) : block.template begin<false>(columns, chunk);
  for (int y = y0; y < block.y1; y += jobs.batch) {
    const int count = min(jobs.batch, block.y1 - y);
    if (t < chunks)
      words ? block.template sum_columns<true>(columns, chunk, y, count)
            : block.template sum_columns<false>(columns, chunk, y, count);
    __syncthreads();
    block.write_rows(y, count);
    __syncthreads();
  }
}

template <Operation operation>
__global__ void __launch_bounds__(1024) windows(const __grid_constant__ WindowJobs jobs) {
  int set = 0, index = blockIdx.x;
  while (index >= jobs.sets[set].schedule.blocks) index -= jobs.sets[set++].schedule.blocks;
  if (operation == Operation::threshold || (set == 0 && jobs.sets[0].view.channels == 1))
    compute<operation, 1>(jobs, jobs.sets[0], index);  // parameters at fixed places save 5 % of the time
  else if (operation == Operation::box_mean && jobs.sets[set].view.channels == 2)
    compute<operation, 2>(jobs, jobs.sets[set], index);
  else
    compute<operation, 1>(jobs, jobs.sets[set], index);
}

/// Calls f with the kernels of an operation.
template <typename F>
Status with_kernels(Operation operation, F f) {
  if (operation == Operation::threshold) return f(column_sums<Operation::threshold>, windows<Operation::threshold>);
  if (operation == Operation::deviation) return f(column_sums<Operation::deviation>, windows<Operation::deviation>);
  return f(column_sums<Operation::box_mean>, windows<Operation::box_mean>);
}

}  // namespace

Status load_windows(Operation operation, int shared_limit) {
  return with_kernels(operation, [&](auto stored, auto sliding) {
    const Status status = cuda::load_kernel(stored, "cannot load the kernel for column sums");
    return status.ok() ? cuda::load_kernel(sliding, "cannot load the kernel for windows", shared_limit) : status;
  });
}

Status launch_windows(Operation operation, const WindowJobs& jobs, const WindowLaunch& launch, Queue queue) {
  return with_kernels(operation, [&](auto stored, auto sliding) {
    int intervals = 0, chunks = 0;
    for (const WindowSchedule& s : launch.sets) {
      intervals = std::max(intervals, s.intervals);
      chunks = std::max(chunks, divide_up(s.chunks * chunk_samples(operation), stored_chunk));
    }
    if (intervals > 0) {
      stored<<<dim3(divide_up(chunks, stored_threads), intervals, jobs.count), stored_threads, 0, queue.stream>>>(jobs);
      if (Status status = cuda::check(cudaGetLastError(), "cannot launch the column sums"); !status.ok()) return status;
    }
    sliding<<<launch.blocks, launch.threads, launch.shared_bytes, queue.stream>>>(jobs);
    return cuda::check(cudaGetLastError(), "cannot launch the windows");
  });
}

}  // namespace cudavision::local
