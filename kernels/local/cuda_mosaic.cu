// SPDX-License-Identifier: LGPL-2.1-or-later
// Mosaics on CUDA: each cell of a shape gets the mean of its samples inside the frame. One launch computes many shapes
// and all channel sets.
//
//   a block: a span of adjacent cells in one row of cells
//
//      span of cells             1. sum_columns   thread t adds up the rows of chunk t (16 bytes of a row). If a span
//   ├─────┬─────┬─────┤                           has fewer chunks than the block has threads, groups of threads share
//   │░░░░░│     │     │                           the rows
//   │░░░░░│     │     │  rows   2. find_means    1 to 32 lanes add up the columns of a cell and write its mean to all
//   │░░░░░│     │     │                           its samples in `line`
//   └─────┴─────┴─────┘          3. write_rows    thread t writes its chunk of `line` to all rows. In ellipses and
//                                                 polygons, each thread tests and writes single pixels
//    columns: sums of the rows
//    line: a row of results      Cells of more than mosaic_fused_side pixels are cut into pieces. One launch adds up
//                                their sums in memory (1, 2), the next one writes their means (2, 3).
//
//   the grid: x: the blocks of a shape's channel set, y: the shapes, z: the channel sets
//
// Where to change what: spans, pieces and launches: cuda_mosaic_schedule.cpp; which shapes are computed together:
// cuda_pixelate.cpp.
#include "kernels/core/sample.hpp"
#include "kernels/cuda/device.hpp"
#include "kernels/cuda/rows.cuh"
#include "kernels/local/cuda_mosaic.cuh"
#include "kernels/local/cuda_results.cuh"

namespace cudavision::local {
namespace {

/// Loads N samples of a row. `valid`: number of samples inside the row; the others become 0. `words`: the whole chunk
/// may be loaded at once.
template <int N, bool words>
__device__ __forceinline__ void load_chunk(const unsigned char* from, int valid, std::uint32_t (&to)[N / 4]) {
  if constexpr (words) {
    static_assert(N == 16);
    const uint4 v = __ldg(reinterpret_cast<const uint4*>(from));
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  } else {
#pragma unroll
    for (int i = 0; i < N / 4; ++i) to[i] = 0;
#pragma unroll
    for (int j = 0; j < N; ++j)
      if (j < valid) to[j / 4] |= std::uint32_t(from[j]) << (j % 4 * 8);
  }
}

/// The column sums of adjacent bytes, in registers. A sum of 257 samples fits in 16 bits.
///
///   a word of four samples:   b0 b1 b2 b3      even columns: Σ b0 │ Σ b2      odd columns: Σ b1 │ Σ b3
template <int N>
struct Columns {
  std::uint32_t even[N / 4] = {}, odd[N / 4] = {};

  __device__ __forceinline__ void add(const std::uint32_t (&words)[N / 4]) {
#pragma unroll
    for (int i = 0; i < N / 4; ++i) {
      even[i] += words[i] & 0xff00ff;
      odd[i] += __byte_perm(words[i], 0, 0x4341);
    }
  }
};

/// The steps that a launch executes.
enum class Stage { all, sum, write };

/// Loads a chunk of a row. `valid`: number of bytes inside the row; the others become 0. `words`: the whole chunk may
/// be loaded at once.
template <bool words>
__device__ __forceinline__ void load_chunk(const unsigned char* from, int valid, std::uint32_t (&to)[4]) {
  if constexpr (words) {
    const uint4 v = __ldg(reinterpret_cast<const uint4*>(from));
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = 0;
#pragma unroll
    for (int j = 0; j < mosaic_chunk; ++j)
      if (j < valid) to[j / 4] |= std::uint32_t(from[j]) << (j % 4 * 8);
  }
}

/// The sums over the rows of a chunk.
///   a word of four bytes:   b0 b1 b2 b3
///   even and odd columns:   Σ b0 │ Σ b2, Σ b1 │ Σ b3, 16 bits each: a sum of 257 bytes fits in 16 bits
template <typename T>
struct ChunkSums {
  static constexpr int N = mosaic_chunk / int(sizeof(T));
  std::uint32_t even[4] = {}, odd[4] = {}, words[N] = {};

  __device__ __forceinline__ void add(std::uint32_t (&row)[4], int shift, int max_value) {
    if constexpr (sizeof(T) == 1) {
#pragma unroll
      for (int i = 0; i < 4; ++i) even[i] += row[i] & 0xff00ff, odd[i] += __byte_perm(row[i], 0, 0x4341);
    } else {
      cuda::to_samples(row, shift, max_value);
#pragma unroll
      for (int i = 0; i < 4; ++i) words[2 * i] += row[i] & 0xffff, words[2 * i + 1] += row[i] >> 16;
    }
  }
  __device__ __forceinline__ std::uint32_t sum(int j) const {
    if constexpr (sizeof(T) == 2) return words[j];
    const std::uint32_t pair = j % 2 ? odd[j / 4] : even[j / 4];
    return j / 2 % 2 ? pair >> 16 : pair & 0xffff;
  }
};

template <typename T>
struct Block {
  static constexpr int N = ChunkSums<T>::N;
  static constexpr int most_samples = mosaic_row / int(sizeof(T));

  const MosaicJobs& jobs;
  const MosaicSet& set;
  const MosaicPart& part;
  const MosaicGrid& grid;
  MosaicAxis x, y;
  std::uint32_t* columns;  ///< the column sum of sample s of the span is at column_index(s)
  T* line;
  int column, cells, row;  ///< the span: its first cell, number of cells, and row of cells
  int x0, y0, x1, y1;      ///< the span or the piece, in pixels of the set
  int first, chunks;       ///< the first sample of the first chunk, and the number of chunks
  std::uint64_t* sums;     ///< sum of the first cell

  // Threads store columns at a distance of N + 1, so that they use different banks.
  __device__ static int column_index(int s) { return s + s / N; }

  /// Step 1: sums up the columns of the rows [y0, y1).
  template <bool words>
  __device__ void sum_columns(int chunk, int group, int groups) const {
    const int share = (y1 - y0 + groups - 1) / groups, from = y0 + group * share, to = min(from + share, y1);
    const unsigned char* at = set.src + from * set.src_pitch + (std::ptrdiff_t(first) + chunk * N) * sizeof(T);
    const int valid = (set.width * set.channels - first - chunk * N) * int(sizeof(T));
    constexpr int together = words ? 8 : 1;
    ChunkSums<T> sum;
#pragma unroll 1
    for (int i = from; i < to; i += together) {
      std::uint32_t rows[together][4] = {};
#pragma unroll
      for (int k = 0; k < together; ++k)
        if (i + k < to) load_chunk<words>(at + k * set.src_pitch, valid, rows[k]);
      at += together * set.src_pitch;
#pragma unroll
      for (int k = 0; k < together; ++k) sum.add(rows[k], jobs.shift, jobs.max_value);
    }
#pragma unroll
    for (int j = 0; j < N; ++j) atomicAdd(&columns[column_index(chunk * N + j)], sum.sum(j));
  }

  /// Step 2: computes the means of the cells, or adds to `sums`.
  template <Stage stage>
  __device__ void find_means() const {
    const int C = set.channels, count = cells * C;
    int lanes = 1;  // lanes per cell
    while (lanes < 32 && lanes * 4 < (x1 - x0) / cells) lanes *= 2;
    for (int base = 0; base < count; base += mosaic_threads / lanes) {
      const int i = base + int(threadIdx.x) / lanes, cell = i / C, c = i - cell * C;
      const bool valid = i < count;
      const int from = valid ? max(x.begin(column + cell), x0) : 0,
                to = valid ? min(x.begin(column + cell + 1), x1) : 0;
      std::uint64_t sum = 0;
      if constexpr (stage == Stage::write) {
        if (valid) sum = sums[i];
      } else {
        for (int at = from + int(threadIdx.x) % lanes; at < to; at += lanes)
          sum += columns[column_index(at * C + c - first)];
        for (int d = lanes / 2; d > 0; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
      }
      if constexpr (stage == Stage::sum) {
        if (valid && threadIdx.x % lanes == 0) atomicAdd(reinterpret_cast<unsigned long long*>(&sums[i]), sum);
      } else if (valid) {
        const int width = x.begin(column + cell + 1) - x.begin(column + cell), height = y.begin(row + 1) - y.begin(row);
        const T result = T(rounded_mean(sum, width * height) << jobs.shift);
        for (int at = from + int(threadIdx.x) % lanes; at < to; at += lanes) line[at * C + c - first] = result;
      }
    }
  }

  /// Copies the channels without means from a chunk of the source.
  __device__ uint4 with_source(uint4 means, uint4 source) const {
    const auto mixed = [&](std::uint32_t a, std::uint32_t b, int word) {
      std::uint32_t mask = 0;  // mask of the samples that are taken from a
#pragma unroll
      for (int k = 0; k < 4 / int(sizeof(T)); ++k)
        if (set.filtered >> ((word * 4 / int(sizeof(T)) + k) % 4) & 1)
          mask |= (sizeof(T) == 1 ? 0xffu : 0xffffu) << (k * 8 * int(sizeof(T)));
      return (a & mask) | (b & ~mask);
    };
    return make_uint4(mixed(means.x, source.x, 0), mixed(means.y, source.y, 1), mixed(means.z, source.z, 2),
                      mixed(means.w, source.w, 3));
  }

  /// Writes sample s of row py, which belongs to channel c.
  __device__ void write_sample(int s, int c, int py) const {
    if (!(set.own >> c & 1)) return;
    const T* const from = reinterpret_cast<const T*>(set.src + py * set.src_pitch);
    reinterpret_cast<T*>(set.dst + py * set.dst_pitch)[s] = set.filtered >> c & 1 ? line[s - first] : from[s];
  }

  /// Step 3: writes the needed part of `line` to all rows.
  __device__ void write_rows(int chunk, int group, int groups) const {
    const int left = max(x0, int(grid.x0)), right = min(x1, int(grid.x1)), top = max(y0, int(grid.y0)),
              bottom = min(y1, int(grid.y1));
    const int C = set.channels;
    if (left >= right || top >= bottom) return;
    if (part.cut) {
      const OutlineView shape{part.box, jobs.corners + part.corner, part.corners};
      const int width = right - left, rows = mosaic_threads / width, columns = mosaic_threads - rows * width;
      int py = top + int(threadIdx.x) / width, px = left + int(threadIdx.x) % width;
      while (py < bottom) {
        if (shape.holds_sample(px, py, set.shift_x, set.shift_y, jobs.width, jobs.height, Coverage::inner))
          for (int c = 0; c < C; ++c) write_sample(px * C + c, c, py);
        py += rows, px += columns;
        if (px >= right) px -= width, ++py;
      }
      return;
    }
    // First, each thread writes its whole chunks. Then all threads write the samples to the left and right of these.
    const bool wide = set.words && set.own == (1 << C) - 1;
    const int from = wide ? min((left * C + N - 1) / N * N, right * C) : right * C, to = max(from, right * C / N * N);
    const int begin = first + chunk * N;
    if (group < groups && begin >= from && begin < to) {
      const uint4 means = reinterpret_cast<const uint4*>(line)[chunk];
      const std::ptrdiff_t at = std::ptrdiff_t(begin) * int(sizeof(T));
      for (int py = top + group; py < bottom; py += groups) {
        uint4* const target = reinterpret_cast<uint4*>(set.dst + py * set.dst_pitch + at);
        *target = set.filtered == set.own
                      ? means
                      : with_source(means, __ldg(reinterpret_cast<const uint4*>(set.src + py * set.src_pitch + at)));
      }
    }
    const int before = from - left * C, beside = before + right * C - to;
    for (int i = threadIdx.x; i < beside * (bottom - top); i += mosaic_threads) {
      const int row = i / beside, at = i - row * beside;
      const int sample = at < before ? left * C + at : to + at - before;
      write_sample(sample, sample % C, top + row);
    }
  }
};

template <typename T, Stage stage>
__global__ void __launch_bounds__(mosaic_threads) mosaic(const __grid_constant__ MosaicJobs jobs) {
  constexpr int N = Block<T>::N;
  __shared__ std::uint32_t columns[stage == Stage::write ? 1 : Block<T>::most_samples + Block<T>::most_samples / N];
  __shared__ __align__(16) T line[stage == Stage::sum ? 1 : Block<T>::most_samples];
  const MosaicSet& set = jobs.sets[blockIdx.z];
  const MosaicPart& part = jobs.parts[blockIdx.y];
  const MosaicGrid& grid = part.sets[blockIdx.z];
  if (grid.x0 >= grid.x1 || grid.y0 >= grid.y1) return;
  Block<T> block{jobs,
                 set,
                 part,
                 grid,
                 {part.box.x, part.side, set.shift_x, set.width},
                 {part.box.y, part.side, set.shift_y, set.height},
                 columns,
                 line};
  const int left = block.x.cell(grid.x0), top = block.y.cell(grid.y0);
  const int cells_x = block.x.cell(grid.x1 - 1) - left + 1, cells_y = block.y.cell(grid.y1 - 1) - top + 1;
  const int spans = (cells_x + grid.span - 1) / grid.span, per_row = spans * grid.pieces_x;
  const int down = int(blockIdx.x) / per_row, across = int(blockIdx.x) - down * per_row;
  if (down >= cells_y * grid.pieces_y) return;
  const int cell = across / grid.pieces_x * grid.span, line_of_cells = down / grid.pieces_y;
  block.column = left + cell;
  block.cells = min(int(grid.span), cells_x - cell);
  block.row = top + line_of_cells;
  block.x0 = block.x.begin(block.column);
  block.x1 = block.x.begin(block.column + block.cells);
  block.y0 = block.y.begin(block.row);
  block.y1 = block.y.begin(block.row + 1);
  if constexpr (stage != Stage::all) {
    const int pixels = mosaic_piece / (set.channels * int(sizeof(T)));
    block.x0 += across % grid.pieces_x * pixels;
    block.x1 = min(block.x1, block.x0 + pixels);
    block.y0 += down % grid.pieces_y * mosaic_piece_rows;
    block.y1 = min(block.y1, block.y0 + mosaic_piece_rows);
    if (block.x0 >= block.x1 || block.y0 >= block.y1) return;
    block.sums = jobs.sums + set.first_sum + (line_of_cells * cells_x + cell) * set.channels;
  }
  block.first = block.x0 * set.channels / N * N;
  block.chunks = (block.x1 * set.channels - block.first + N - 1) / N;
  const int groups = mosaic_threads / block.chunks, group = int(threadIdx.x) / block.chunks,
            chunk = int(threadIdx.x) - group * block.chunks;
  if constexpr (stage != Stage::write) {
    for (int i = threadIdx.x; i < block.chunks * (N + 1); i += mosaic_threads) columns[i] = 0;
    __syncthreads();
    if (group < groups) {
      if (set.words && block.first + (chunk + 1) * N <= set.width * set.channels)
        block.template sum_columns<true>(chunk, group, groups);
      else
        block.template sum_columns<false>(chunk, group, groups);
    }
    __syncthreads();
  }
  block.template find_means<stage>();
  if constexpr (stage != Stage::sum) {
    __syncthreads();
    block.write_rows(chunk, group, groups);
  }
}

/// Calls f with the kernel for the stage.
template <Stage stage, typename F>
Status with_kernel(const FormatInfo& format, F f) {
  return format.sample_bytes() == 1 ? f(mosaic<std::uint8_t, stage>) : f(mosaic<std::uint16_t, stage>);
}

}  // namespace

Status load_mosaic(const FormatInfo& format) {
  const auto load = [](auto kernel) { return cuda::load_kernel(kernel, "cannot load the kernel for mosaics"); };
  if (Status status = with_kernel<Stage::all>(format, load); !status.ok()) return status;
  if (Status status = with_kernel<Stage::sum>(format, load); !status.ok()) return status;
  return with_kernel<Stage::write>(format, load);
}

Status launch_mosaic(const FormatInfo& format, const MosaicJobs& jobs, int parts, int blocks, Queue queue) {
  const auto launch = [&](auto kernel) {
    kernel<<<dim3(blocks, parts, format.color_sets()), mosaic_threads, 0, queue.stream>>>(jobs);
    return cuda::check(cudaGetLastError(), "cannot launch the mosaic");
  };
  if (!is_apart(jobs.parts[0])) return with_kernel<Stage::all>(format, launch);
  if (Status status = with_kernel<Stage::sum>(format, launch); !status.ok()) return status;
  return with_kernel<Stage::write>(format, launch);
}

}  // namespace cudavision::local
