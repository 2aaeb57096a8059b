// SPDX-License-Identifier: LGPL-2.1-or-later
// Box mean, threshold and deviation of any channel set on CUDA, with windows that slide over 32-bit column sums. These
// kernels handle the cases that the faster kernels of cuda_windows.cu cannot.
//
//   a block: rows of a strip                line 0   ▒▒▒▒▒▒▒▒▒▒▒▒▒   column sums for a row of windows, one line for
//      thread 0   thread 1   thread 2       line 1   ▒▒▒▒▒▒▒▒▒▒▒▒▒   each channel (deviation: the samples and their
//     ├─────────┼──────────┼──────────┤ ─   …                        squares; threshold: the luma), in shared memory
//     a chunk: 4 or 8 pixels
//
//   1. begin, sum_columns:  each thread moves its column sums from row to row, for a batch of rows → lines
//   2. write_rows:          a warp has a segment of a row of the batch. It computes the window sums of 32 × 8 pixels of
//                           each line at a time (cuda_sliding.cuh) and converts them to results → the picture
//
//   The first column sums of a block are sums of 2 r rows. For tall windows, the kernel running_sums, launched first,
//   stores running column sums after every 16 rows. They start from zero every 64 rows (a band). A block adds whole
//   bands, the parts of two bands, and a few rows.
//
// Where to change what: the values summed in a line: Pixels::value in cuda_lines_columns.cuh; results: Block::write;
// strips, rows, batches: cuda_lines_schedule.cpp; which kernels are compiled: cuda_lines.cu; which channel sets use
// these kernels: cuda_box.cpp.
#pragma once

#include "kernels/cuda/warp.cuh"
#include "kernels/local/cuda_lines_columns.cuh"
#include "kernels/local/cuda_results.cuh"
#include "kernels/local/cuda_sliding.cuh"

namespace cudavision::local {

/// Converts a sum below 2^53 to double, exactly.
__device__ __forceinline__ double to_double(std::uint32_t sum) {
  return __hiloint2double(0x43300000, int(sum)) - 0x1p52;
}
__device__ __forceinline__ double to_double(std::uint64_t sum) {
  return __longlong_as_double(0x4330000000000000ll | (long long)(sum)) - 0x1p52;
}

/// The mean of a window that the frame cuts, or whose sum has 64 bits. Not inlined, because short code stays in the
/// instruction cache.
template <typename Sum>
__device__ __noinline__ std::uint32_t mean_of_any(Sum sum, int count) {
  return rounded_mean(sum, count);
}

template <typename S, typename Sum>
struct Block {
  using T = typename S::T;
  static constexpr int L = S::lines, P = S::P, N = line_results;
  static constexpr bool light = L * P <= LineShape::most_light_columns;
  using Line = ColumnRow<N>;

  const LineJob& job;
  const int first;              ///< first pixel of the first chunk
  const int x0, x1;             ///< pixels of the strip
  const int y0, y1;             ///< rows of the block
  const std::uint32_t address;  ///< address of the lines in shared memory
  const int quads;              ///< quads of a line
  MeanDivider divider;

  __device__ __forceinline__ std::uint32_t line(int row, int l) const {
    return address + (row * L + l) * 16 * (quads + 1);
  }

  /// Computes the column sums of the first window, without the row that enters first.
  template <bool words>
  __device__ __forceinline__ void begin(LineColumns<S>& columns, int x) const {
    const LineSchedule& s = job.schedule;
    const int height = job.views[0].height, from = max(y0 - job.radius_y, 0), to = min(y0 + job.radius_y, height);
    int starts[2] = {from, to}, ends[2] = {to, to}, signs[2] = {1, 1};  // ranges of rows to add or subtract
    if (s.stored_entries > 0) {
      // The stored sums nearest to both ends, and the rows that are missing from them or must be subtracted.
      const int top = (from - s.stored_y + stored_rows / 2) / stored_rows,
                bottom = min((to - s.stored_y + stored_rows / 2) / stored_rows, s.stored_entries);
      const std::ptrdiff_t pitch = std::ptrdiff_t(s.stored_chunks) * P;
      const auto add = [&](int rows, int sign) {
        columns.add_stored(job.stored + std::ptrdiff_t(rows - 1) * L * pitch + (x - s.stored_first), pitch, sign);
      };
      if (top % band_entries) add(top, -1);
      if (bottom % band_entries) add(bottom, 1);
#pragma unroll 2
      for (int i = top / band_entries; i < bottom / band_entries; ++i) add((i + 1) * band_entries, 1);
      const int begin = min(s.stored_y + top * stored_rows, height),
                end = min(s.stored_y + bottom * stored_rows, height);
      starts[0] = min(from, begin), ends[0] = max(from, begin), signs[0] = from < begin ? 1 : -1;
      starts[1] = min(to, end), ends[1] = max(to, end), signs[1] = end < to ? 1 : -1;
    }
#pragma unroll 1
    for (int i = 0; i < 2; ++i)
      columns.template add_rows<words, words && light ? 4 : 1>(job, x, i ? starts[1] : starts[0], i ? ends[1] : ends[0],
                                                               i ? signs[1] : signs[0]);
  }

  /// Step 1: moves the column sums over the rows [y, y + count) and stores the sums of each row.
  template <bool words>
  __device__ __forceinline__ void sum_columns(LineColumns<S>& columns, int x, int y, int count) const {
    constexpr int together = words && light ? 2 : 1;
#pragma unroll 1
    for (int i = 0; i < count; i += together) {
      Pixels<S, P> entering[together], leaving[together];
      for (int k = 0; k < together; ++k) {  // loads without branches overlap
        entering[k].template load<words>(job, x, min(y + i + k + job.radius_y, job.views[0].height - 1));
        leaving[k].template load<words>(job, x, max(min(y + i + k, job.views[0].height) - job.radius_y - 1, 0));
      }
#pragma unroll
      for (int k = 0; k < together; ++k) {
        const int enters = y + i + k + job.radius_y, leaves = y + i + k - job.radius_y - 1;
        entering[k].finish(job, enters < job.views[0].height);
        leaving[k].finish(job, leaves >= 0 && y + i + k > y0);
        if (k > 0 && i + k >= count) break;
        columns.move(job, entering[k], leaving[k]);
#pragma unroll
        for (int l = 0; l < L; ++l)
#pragma unroll
          for (int q = 0; q < P / 4; ++q)
            store_shared(line(i + k, l) + 16 * Line::swizzled(int(threadIdx.x) * (P / 4) + q), columns.quad(l, q));
      }
    }
  }

  /// Step 2: computes the results of the rows [y, y + count).
  __device__ __forceinline__ void write_rows(int y, int count) {
    const LineSchedule& s = job.schedule;
    const int lane = threadIdx.x % 32, start = (x0 - first) / N, steps = (x1 - x0 + 32 * N - 1) / (32 * N);
    const int segments = (steps + s.segment - 1) / s.segment;
    for (int task = threadIdx.x / 32; task < count * segments; task += blockDim.x / 32) {
      const int i = task / segments, from = task % segments * s.segment, to = min(from + s.segment, steps);
      const int row = y + i, height = min(row + job.radius_y + 1, job.views[0].height) - max(row - job.radius_y, 0);
      divider.set((2 * job.radius_x + 1) * height);
      slide(row, height, i, start + from * 32, start + to * 32, lane, std::make_integer_sequence<int, L>());
    }
  }

  template <int... l>
  __device__ __forceinline__ void slide(int row, int height, int i, int chunk, int end, int lane,
                                        std::integer_sequence<int, l...>) const {
    Slider<N, Sum> sliders[L] = {{{line(i, l), quads}, job.radius_x, chunk, lane}...};
#pragma unroll 1
    for (; chunk < end; chunk += 32) write(row, height, chunk, first + (chunk + lane) * N, sliders);
  }

  /// Computes the results of a lane's pixels. All lanes must call this, because they slide together.
  __device__ __forceinline__ void write(int row, int height, int chunk, int x, Slider<N, Sum> (&sliders)[L]) const {
    const cuda::SetView& view = job.views[0];
    const bool whole = x >= job.radius_x && x + N + job.radius_x <= view.width;  // all windows have the width 2 r + 1
    const auto count_at = [&](int j) {
      const int pixel = min(x + j, view.width - 1);
      return whole ? divider.count
                   : (min(pixel + job.radius_x + 1, view.width) - max(pixel - job.radius_x, 0)) * height;
    };
    Results out{};
    int l = 0;
#pragma unroll
    for (int c = 0; c < S::C; ++c) {
      if (!(S::mask >> c & 1) || l >= L) continue;
      Sum sums[S::group][N];
#pragma unroll
      for (int k = 0; k < S::group; ++k) sliders[l + k].next(chunk, sums[k]);
      l += S::group;
      if constexpr (S::operation == Operation::threshold) {
        if (x >= view.width) continue;
        Pixels<S, N> pixels;
        if (loads_words(job, x, N))
          pixels.template load<true>(job, x, row);
        else
          pixels.template load<false>(job, x, row);
        pixels.finish(job, true);
#pragma unroll
        for (int j = 0; j < N; ++j) {
          const double share = to_double(std::uint64_t(pixels.luma(job, j)) * std::uint32_t(count_at(j)));
          const std::uint32_t value = share < __dmul_rn(to_double(sums[0][j]), job.factor) ? 0 : view.max_value;
#pragma unroll
          for (int each = 0; each < S::C; ++each)
            if (S::mask >> each & 1) out.set_sample(each, j, value << view.shift);
        }
      } else if constexpr (S::operation == Operation::deviation) {
#pragma unroll
        for (int j = 0; j < N; ++j) {
          const int count = count_at(j);
          out.set_sample(c, j,
                         deviation(to_double(sums[0][j]), to_double(sums[S::group - 1][j]), count,
                                   whole ? divider.per_count : 1.0 / count)
                             << view.shift);
        }
      } else if (whole && sizeof(Sum) == 4) {
#pragma unroll
        for (int j = 0; j < N; ++j) out.set_sample(c, j, divider.mean(std::uint32_t(sums[0][j])) << view.shift);
      } else {
#pragma unroll
        for (int j = 0; j < N; ++j) out.set_sample(c, j, mean_of_any(sums[0][j], count_at(j)) << view.shift);
      }
    }
    if (x >= min(x1, view.x1) || x + N <= view.x0) return;
#pragma unroll
    for (int s = 0; s < Pixels<S, N>::sources; ++s) store(job.views[s], x, row, out);
  }

  /// The pixels of a lane in the layout of memory, except for the rotation of channels.
  struct Results {
    static constexpr int bytes = N * S::C * int(sizeof(T));
    std::uint32_t raw[bytes / 4];

    __device__ __forceinline__ void set_sample(int c, int j, std::uint32_t value) {
      const int byte = (j * S::C + c) * int(sizeof(T));
      raw[byte / 4] += value << byte % 4 * 8;
    }
    __device__ __forceinline__ T get(int c, int j) const {
      const int byte = (j * S::C + c) * int(sizeof(T));
      return T(raw[byte / 4] >> byte % 4 * 8);
    }
  };

  /// Writes the filtered channels. Other channels are copied if they belong to the set; otherwise they are not written.
  __device__ __forceinline__ void store(const cuda::SetView& view, int x, int row, Results& out) const {
    constexpr unsigned all = (1u << S::C) - 1;
    constexpr int pixel = S::C * int(sizeof(T)), words = Results::bytes / 4, alignment = line_alignment(Results::bytes);
    unsigned char* const to = view.dst + row * view.dst_pitch + std::ptrdiff_t(x) * pixel;
    const unsigned char* const from = view.src + row * view.src_pitch + std::ptrdiff_t(x) * pixel;
    if (job.stores_words && x >= view.x0 && x + N <= min(x1, view.x1)) {
      if constexpr (S::mask != all) {
        std::uint32_t other[words];
        cuda::load_words<words, alignment, false>(view.own == all ? from : to, other);
        if (sizeof(T) == 2 && job.rotated) rotate_channels<true>(other);
#pragma unroll
        for (int i = 0; i < words; ++i) {
          std::uint32_t copied_bits = 0;
#pragma unroll
          for (int k = 0; k < 4; ++k)
            if (!(S::mask >> (4 * i + k) / int(sizeof(T)) % S::C & 1)) copied_bits |= 0xffu << 8 * k;
          if constexpr (sizeof(T) == 1)
            out.raw[i] = __byte_perm(out.raw[i], other[i], job.merger);
          else
            out.raw[i] |= other[i] & copied_bits;
        }
        if (sizeof(T) == 2 && job.rotated) rotate_channels<false>(out.raw);
      }
      cuda::store_words<words, alignment>(to, out.raw);
      return;
    }
#pragma unroll
    for (int j = 0; j < N; ++j) {
      if (x + j < view.x0 || x + j >= view.x1) continue;
#pragma unroll
      for (int c = 0; c < S::C; ++c) {
        const int stored = S::rotates && job.rotated ? (c + 1) % S::C : c;
        if (S::mask >> c & 1)
          reinterpret_cast<T*>(to)[j * S::C + stored] = out.get(c, j);
        else if (view.own >> stored & 1)
          reinterpret_cast<T*>(to)[j * S::C + stored] = reinterpret_cast<const T*>(from)[j * S::C + stored];
      }
    }
  }
};

template <typename S, typename Sum>
__global__ void __launch_bounds__(S::most_threads) lines(const __grid_constant__ LineJob job) {
  extern __shared__ uint4 shared[];
  const LineSchedule& s = job.schedule;
  const cuda::SetView& view = job.views[0];
  const int x0 = s.left + int(blockIdx.x) * s.strip, y0 = view.y0 + int(blockIdx.y) * s.rows;
  const int first = max(x0 - (job.radius_x + line_results - 1) / line_results * line_results, 0);
  const int quads = int(blockDim.x) * (S::P / 4);
  Block<S, Sum> block{job,
                      first,
                      x0,
                      min(x0 + s.strip, view.x1),
                      y0,
                      min(y0 + s.rows, view.y1),
                      std::uint32_t(__cvta_generic_to_shared(shared)),
                      quads};
  for (int i = threadIdx.x; i < s.batch * S::lines; i += blockDim.x)
    store_shared(block.line(0, i) + 16 * quads, make_uint4(0, 0, 0, 0));
  const int x = first + int(threadIdx.x) * S::P;
  const bool inside = x < view.width, words = loads_words(job, x, S::P);
  LineColumns<S> columns;
  if (inside) words ? block.template begin<true>(columns, x) : block.template begin<false>(columns, x);
  for (int y = y0; y < block.y1; y += s.batch) {
    const int count = min(s.batch, block.y1 - y);
    if (words) {
      block.template sum_columns<true>(columns, x, y, count);
    } else {
      block.template sum_columns<false>(columns, x, y, count);
    }
    __syncthreads();
    block.write_rows(y, count);
    __syncthreads();
  }
}

}  // namespace cudavision::local
