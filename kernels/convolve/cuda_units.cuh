// SPDX-License-Identifier: LGPL-2.1-or-later
// Writes the results of cuda_matrix_strip.cu: each warp collects rows in shared memory, then writes units of 16 bytes.
//
//   a warp's rows in shared memory   | 128 pixels, interleaved |   unit u = lane + 32·j: bytes 16·(u % units_across)
//                                    | …                       |   of row u / units_across
//
// A unit that is inside the region, and whose bytes are all results, is written with one store. This file also handles
// the other cases: channels that keep the input, pixels whose window leaves the frame (Border::fill and Border::copy),
// and the sides of the region.
#pragma once

#include "kernels/convolve/cuda_params.cuh"
#include "kernels/cuda/warp.cuh"

namespace cudavision::convolve {
namespace {

__device__ __forceinline__ std::uint32_t select(std::uint32_t mask, std::uint32_t set, std::uint32_t clear) {
  return (set & mask) | (clear & ~mask);
}

__device__ __forceinline__ uint4 select(std::uint32_t mask, const uint4& set, const uint4& clear) {
  return make_uint4(select(mask, set.x, clear.x), select(mask, set.y, clear.y), select(mask, set.z, clear.z),
                    select(mask, set.w, clear.w));
}

/// Writes the bytes of a unit that are inside the region and belong to the set.
static __device__ __noinline__ void store_partly(const MatrixJob& job, int row, int byte, uint4 value) {
  const SetView& view = job.view;
  unsigned char* const to = view.dst + row * view.dst_pitch;
  const std::uint32_t words[4] = {value.x, value.y, value.z, value.w};
  const int begin = view.x0 * view.channels, end = view.x1 * view.channels;
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    const int at = byte + 4 * w;
    if (job.stores_4 && at >= begin && at + 4 <= end) {
      *reinterpret_cast<std::uint32_t*>(to + at) = words[w];
      continue;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (at + i >= begin && at + i < end && view.own >> (at + i) % view.channels & 1) to[at + i] = words[w] >> 8 * i;
  }
}

/// The arguments of replace_edges(), in registers. A function that is not inlined would load them from the kernel's
/// parameters, one after another.
struct Edges {
  Rect whole;
  bool fill;
  std::uint32_t values;  ///< the border values, a byte for each channel
};
__device__ __forceinline__ Edges edges_of(const MatrixJob& job) {
  const SetView& view = job.view;
  std::uint32_t values = 0;
#pragma unroll
  for (int c = 0; c < 4; ++c) values |= (view.border_value[c] & 0xffu) << 8 * c;
  return {job.whole, view.border == Border::fill, values};
}

/// Border::fill and Border::copy: replaces a warp's results whose window leaves the frame. `results`: rows of 128
/// pixels, beginning at (x, y). source(row, byte): the byte of the source.
template <int C, typename Source>
__device__ __forceinline__ void replace_edges(const Edges& edges, unsigned char* results, int rows, int x, int y,
                                              Source source) {
  const Rect& whole = edges.whole;
  const int lane = threadIdx.x % 32;
  const auto replace_pixel = [&](int row, int pixel) {
#pragma unroll
    for (int c = 0; c < C; ++c) {
      const int byte = pixel * C + c;
      results[row * (128 * C) + byte] = edges.fill ? std::uint8_t(edges.values >> 8 * c) : source(row, byte);
    }
  };
  const int left = min(max(whole.x - x, 0), 128),
            right = min(max(x + 128 - (whole.x + max(whole.width, 0)), 0), 128 - left);
  const int sides = left + right;
  for (int item = lane; item < rows * sides; item += 32) {
    const int row = item / sides, i = item - row * sides;
    replace_pixel(row, i < left ? i : 128 - sides + i);
  }
  for (int row = 0; row < rows; ++row)
    if (y + row < whole.y || y + row >= whole.y + whole.height)
      for (int pixel = lane; pixel < 128; pixel += 32) replace_pixel(row, pixel);
}

/// The results of a warp: 128 pixels at (x, y). C channels, K × K weights.
template <typename Layout, int C, int K>
struct Units {
  /// The units of a row, and the units of a lane for each group.
  static constexpr int across = 8 * C, count = Layout::group * across / 32;

  const MatrixJob& job;
  const unsigned char* const ring;  ///< the warp's first pixel in the block's source rows
  unsigned char* const stage;
  int x, y, rows;  ///< the first pixel, and the rows to write
  // If whole_columns is set, no pixel is replaced (Border::fill and Border::copy) in the groups from whole_begin to
  // before whole_end.
  int whole_begin, whole_end;
  bool whole_columns;
  int bytes;             ///< bytes of a row that are inside the region, from x on
  bool inside;           ///< whether each unit of these bytes is one store
  std::uint32_t copies;  ///< mask of the bytes of a pixel that keep the input
  unsigned char* to;     ///< address of row 0 of the warp's results, even if that row is outside the frame
  long long pitch;       ///< distance between rows of the destination, in bytes

  __device__ __forceinline__ Units(const MatrixJob& job, const unsigned char* ring, unsigned char* stage, int x, int y,
                                   int rows)
      : job(job), ring(ring), stage(stage), x(x), y(y), rows(rows), copies(C == 4 ? job.copies : 0) {
    const SetView& view = job.view;
    const Rect& whole = job.whole;
    bytes = min(view.x1 - x, 128) * C;
    inside = job.stores_16 && x >= view.x0 && bytes % 16 == 0;
    // Group n completes rows y + n · group − (K − 1) …
    whole_columns = x >= whole.x && x + 128 <= whole.x + whole.width;
    whole_begin = (max(whole.y - y, 0) + K - 1 + Layout::group - 1) / Layout::group;
    if (whole.y <= y) whole_begin = 0;
    whole_end = max(min(whole.y + whole.height - y, 1 << 24) + K - 1, 0) / Layout::group;
    pitch = cuda::warp_uniform((long long)(view.dst_pitch));
    to = view.dst + (y * pitch + x * C);
  }

  /// Whether write<true>() can write the groups from whole_begin to before whole_end: each unit is one store, and of
  /// four channels, the first or the last one keeps the input.
  __device__ __forceinline__ bool plain() const {
    return inside && whole_columns && (C < 4 || copies == 0xff000000u || copies == 0xffu);
  }

  /// Writes the rows that group `group` completes. `slot`: the slot of the group; `before`: the slot of the group
  /// before it. Plain: see plain(). A pixel of four channels then has the results of three channels and an arbitrary
  /// fourth byte; `merge` adds the channel of the input.
  template <bool Plain>
  __device__ __forceinline__ void write(int group, int slot, int before, std::uint32_t merge) const {
    if (!Plain && (!whole_columns || group < whole_begin || group >= whole_end)) {
      if (!extrapolates(job.view.border))
        replace(edges_of(job), stage, ring, slot, before, x, y + group * Layout::group - (K - 1));
      __syncwarp();
    }
    const SetView& view = job.view;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < count; ++j) {
      const int unit = lane + 32 * j;
      const int r = C == 3 ? unit / across : lane / across + j * (32 / across),
                column = (C == 3 ? unit : lane) % across * 16;
      const int row = group * Layout::group + r - (K - 1);
      if (unsigned(row) >= unsigned(rows) || column >= bytes) continue;
      uint4 value = *reinterpret_cast<const uint4*>(stage + unit * 16);
      if (C == 4 && (Plain || copies)) {
        const uint4 from = *reinterpret_cast<const uint4*>(source(ring, r, slot, before) + column);
        if (Plain)
          value = make_uint4(__byte_perm(value.x, from.x, merge), __byte_perm(value.y, from.y, merge),
                             __byte_perm(value.z, from.z, merge), __byte_perm(value.w, from.w, merge));
        else
          value = select(copies, from, value);
      }
      const int byte = x * C + column;
      if (Plain || inside || (job.stores_16 && byte >= view.x0 * C && byte + 16 <= view.x1 * C))
        *reinterpret_cast<uint4*>(to + (row * pitch + column)) = value;
      else
        store_partly(job, y + row, byte, value);
    }
  }

 private:
  /// The source row of row r of the results.
  __device__ __forceinline__ static const unsigned char* source(const unsigned char* ring, int r, int slot,
                                                                int before) {
    const int from = r - K / 2, at = from >= 0 ? slot * Layout::group + from : (before + 1) * Layout::group + from;
    return ring + at * Layout::pitch;
  }
  /// Calls replace_edges(). Not inlined, because few groups need it.
  static __device__ __noinline__ void replace(Edges edges, unsigned char* stage, const unsigned char* ring, int slot,
                                              int before, int x, int y) {
    replace_edges<C>(edges, stage, Layout::group, x, y,
                     [&](int r, int byte) { return source(ring, r, slot, before)[byte]; });
  }
};

}  // namespace
}  // namespace cudavision::convolve
